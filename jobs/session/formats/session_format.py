"""The port of a table format in users' sessions.

Spark's plans have leaves and commands of each format's own. Neutral modules go through the formats in the order of the
registry (jobs/session/session_formats.py); the first that knows a part of a plan, or a statement, answers for it.
"""

from typing import Any, Protocol

from lakewarden.jobs.session.formats.plan_parts import PlanParts
from lakewarden.jobs.session.formats.row_changes import RowsTarget
from lakewarden.jobs.session.formats.shapes import NamedRows, Shape
from lakewarden.jobs.session.formats.stream_parts import StreamParts
from lakewarden.jobs.session.formats.table_commits import Readers, RecordCarrier
from lakewarden.jobs.session.plans import JavaPlan, Plans

__all__ = ["SessionFormat"]


class SessionFormat(PlanParts, StreamParts, Protocol):
    """One format. Holds no state: threads and applications share it."""

    def own_metadata(self, plans: Plans, session: Any) -> str | None:
        """What a session says that its commits are to carry beside our record; None where it says nothing."""

    def require_no_record(self, key: str, value: str | None) -> None:
        """Raise `NotAllowedError` for a setting by which commits would have something like our record."""

    def with_found_names(self, plans: Plans, session: Any, said: JavaPlan) -> JavaPlan:
        """A parsed statement whose tables have the names by which Spark finds them."""

    def found_name(self, plans: Plans, session: Any, table: str) -> str:
        """The same of a table's name, as SQL has it."""

    def version_named(self, plans: Plans, session: Any, table: str, version: int) -> str | None:
        """What Spark calls a version of the table that `found_name` names; None where that is its number, and for a
        table of another format."""

    def as_taken(self, plans: Plans, session: Any, said: JavaPlan) -> JavaPlan:
        """A parsed definition of a table as the format's own commands take it. Raises `UsageError` for one without
        sense."""

    def require_analysable(self, plans: Plans, session: Any, said: JavaPlan) -> None:
        """Raise `UsageError` for a parsed statement that would change something as soon as it is analysed."""

    def require_sound(self, plans: Plans, analysed: JavaPlan) -> None:
        """Raise `UsageError` for an analysed statement that would leave a table at odds with its own definition."""

    def shape(
        self, plans: Plans, session: Any, plan: JavaPlan, *, is_merge: bool, begun: RecordCarrier | None
    ) -> Shape | None:
        """The shape of an analysed statement that writes a table of this format in a way that is known; None for any
        other. `is_merge`: it was written as a MERGE. `begun`: what commits it, if it was analysed for that."""

    def vacuumed(self, analysed: JavaPlan) -> str | None:
        """The canonical location of the table that an analysed VACUUM is about; None for any other statement."""

    def rows_named(self, plans: Plans, session: Any, leaf: JavaPlan, *, all_change: bool) -> NamedRows | None:
        """The table that a parsed UPDATE, DELETE or MERGE names, of a format whose way is decided on before the
        statement is analysed; None where that is known later. `all_change`: it changes every row."""

    def rows_read(
        self, plans: Plans, session: Any, readers: Readers, leaf: JavaPlan, *, all_change: bool
    ) -> RowsTarget | None:
        """The table that an analysed leaf reads, of any other format; None where it is not this one's. `readers`
        read its log."""

    def has_way_of_its_own(self, plans: Plans, session: Any, table: str) -> bool:
        """Whether changes of the table that SQL calls so may be done in a way that is to be told."""

    def is_changed_in_its_way(self, plans: Plans, analysed: JavaPlan) -> bool:
        """The same of an analysed statement."""

    def told_of_its_way(self, plans: Plans, session: Any, plan: JavaPlan) -> str | None:
        """How an analysed and pinned MERGE would be done; None where there is nothing to tell."""
