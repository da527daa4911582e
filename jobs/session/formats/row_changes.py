"""Tables whose rows a statement changes, for whoever decides how they are written."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, Protocol

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from lakewarden.catalog.model.rows import TableFormat
from lakewarden.catalog.policy.rows_write import AskedWay, ChosenWay, WrittenAndRead
from lakewarden.jobs.session.plans import Plans

__all__ = ["Properties", "RowsTarget", "properties_of_database", "properties_of_namespace"]

_NONE: Final = ("NoSuchNamespaceException", "NoSuchDatabaseException", "SCHEMA_NOT_FOUND")
Properties = Mapping[str, str]


class RowsTarget(Protocol):
    """The table of one statement."""

    @property
    def format(self) -> TableFormat:
        """Its own."""

    @property
    def location(self) -> str:
        """Canonical."""

    @property
    def properties(self) -> Properties:
        """Those of the table."""

    def properties_around(self) -> Properties:
        """Those of its namespace, or database."""

    def known(self, *, since: datetime, reads: int | None, rows: Callable[[], int | None]) -> WrittenAndRead:
        """What the table itself tells, and the `reads` that are on record since then. `rows` asks how many a sweep has
        counted, where only all of the log could tell them."""

    def way(self, asked: AskedWay, known: WrittenAndRead) -> ChosenWay:
        """What is done of what is asked for; the session writes so from now on, where the format takes it so.
        Raises `UsageError` and `RefusedError` for what the statement asks for and its table cannot have."""


def properties_of_namespace(relation: Any) -> Properties:
    """Those of the namespace of an analysed leaf of Spark's second API, as its catalog has them."""
    if not relation.catalog().isDefined() or not relation.identifier().isDefined():
        return {}
    namespace = relation.identifier().get().namespace()
    return _found(lambda: relation.catalog().get().loadNamespaceMetadata(namespace))


def properties_of_database(plans: Plans, session: Any, entry: Any) -> Properties:
    """Those of the database of a table's entry (an Option) in Spark's own catalog; none for a table without one."""
    told = plans.option(entry)
    database = None if told is None else plans.option(told.identifier().database())
    if database is None:
        return {}
    catalog = session.sessionState().catalog()
    return _found(lambda: plans.texts(catalog.getDatabaseMetadata(database).properties()))


def _found(ask: Callable[[], Any]) -> Properties:
    try:
        return dict(ask())
    except (Py4JJavaError, PySparkException) as error:
        if not any(one in str(error) for one in _NONE):
            raise  # whether it asks for anything nobody can tell
        return {}
