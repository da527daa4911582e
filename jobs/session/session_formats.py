"""The formats whose tables users' sessions read and write: one line for each."""

from collections.abc import Iterable
from typing import Any, Final, TypeVar

from lakewarden.jobs.session.delta.delta_sessions import DeltaSessions
from lakewarden.jobs.session.formats.session_format import SessionFormat
from lakewarden.jobs.session.iceberg.iceberg_sessions import IcebergSessions
from lakewarden.jobs.session.plans import JavaPlan, Plans

__all__ = [
    "FORMATS",
    "as_taken",
    "first_known",
    "found_name",
    "require_analysable",
    "require_sound",
    "with_found_names",
]

FORMATS: Final[tuple[SessionFormat, ...]] = (
    DeltaSessions(),
    IcebergSessions(),
)

Answer = TypeVar("Answer")


def first_known(answers: Iterable[Answer | None]) -> Answer | None:
    """The first answer that is one."""
    return next((one for one in answers if one is not None), None)


def with_found_names(plans: Plans, session: Any, said: JavaPlan) -> JavaPlan:
    """A parsed statement whose tables have the names by which Spark finds them."""
    for one in FORMATS:
        said = one.with_found_names(plans, session, said)
    return said


def found_name(plans: Plans, session: Any, table: str) -> str:
    """The same of a table's name, as SQL has it."""
    for one in FORMATS:
        table = one.found_name(plans, session, table)
    return table


def as_taken(plans: Plans, session: Any, said: JavaPlan) -> JavaPlan:
    """A parsed definition of a table as its format's own commands take it. Raises `UsageError` for one that makes no
    sense."""
    for one in FORMATS:
        said = one.as_taken(plans, session, said)
    return said


def require_analysable(plans: Plans, session: Any, said: JavaPlan) -> None:
    """Raise `UsageError` for a parsed statement that would change something as soon as it is analysed."""
    for one in FORMATS:
        one.require_analysable(plans, session, said)


def require_sound(plans: Plans, analysed: JavaPlan) -> None:
    """Raise `UsageError` for an analysed statement that would leave a table at odds with its own definition."""
    for one in FORMATS:
        one.require_sound(plans, analysed)
