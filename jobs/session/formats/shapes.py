"""An analysed write taken apart, and what runs and commits it in the format of its table."""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pyspark.sql import DataFrame

from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.catalog.model.rows import TableFormat
from lakewarden.catalog.policy.rows_write import ChosenWay
from lakewarden.jobs.session.formats.row_changes import RowsTarget
from lakewarden.jobs.session.formats.table_commits import OperationOnce, Readers, RecordCarrier, TableCommit
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind
from lakewarden.jobs.session.writes import Read

__all__ = ["Execution", "NamedRows", "Shape", "TableChange", "TableWrite", "with_query", "without_with"]


@dataclass(kw_only=True)
class Execution:
    """How a write was done, where its format has several ways. Known after it."""

    reads: list[Read] = field(default_factory=list)
    """What was read in a way that Spark's plans do not tell."""
    note: str | None = None
    """What is to be said of it, such as why its buckets were of no use."""
    counts: Mapping[str, int] | None = None
    """What a MERGE that was done here, and not by its format's own command, says of itself; None for any other."""
    left_because: str = ""
    """Why an upsert was left to its format's own MERGE, as the end of a sentence about the table."""
    is_skipped: bool = False
    """It was done before, under its operation id."""


class TableWrite(Protocol):
    """One write of one statement, in a session that is a clone for it alone."""

    def carrier(self, readers: Readers) -> RecordCarrier:
        """What gives its commit the record. `readers` read its table's log."""

    def with_own_record(self, shape: "Shape") -> tuple["Shape", str | None]:
        """The write without what its options would put into the commit in our record's place: the user's own metadata,
        which is handed over, None for none. Raises `UsageError` for an option that is not taken."""

    def require_plain(self, session: Any) -> None:
        """Raise `UsageError` if one of its options asks a query, which nobody would see."""

    def arranged(self, session: Any, shape: "Shape", query: JavaPlan) -> JavaPlan:
        """Its query with the rows where the format wants them; the session may be set up for that."""

    def run(self, session: Any, plan: JavaPlan, done: Execution) -> DataFrame:
        """Run the analysed and pinned statement. Raises what Spark and the format raise."""


class TableChange(Protocol):
    """One write to a table that is there."""

    def once(self, readers: Readers, operation: str, text: str) -> OperationOnce:
        """The statement under an operation id, which stands for its text."""

    def commit(self, readers: Readers, called: str) -> TableCommit:
        """How it is committed together with others; the table is `called` so. Raises `UsageError` for one that could
        not be taken back to what it is."""

    def rows(self, session: Any, readers: Readers, *, is_named: bool) -> RowsTarget | None:
        """The table whose rows it changes, where the way is decided on now. None where it changes none, and where the
        statement `is_named`: its way was decided on by the name of its table."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """A write taken apart: the whole plan and what it is made of."""

    format: TableFormat
    """That of the table."""
    operation: Operation
    plan: JavaPlan
    target: str | None
    """The canonical location, None for a table that does not exist yet."""
    query: JavaPlan | None
    """The query behind the write; None: the write reads nothing but its target."""
    rebuilt: Callable[[JavaPlan], JavaPlan]
    """Puts another query in."""
    locate: Callable[[], str | None]
    """Asks for the target again afterwards."""
    by: TableWrite
    """What runs and commits it."""
    change: TableChange | None
    """What there is to know of a table that is there already; None for one that is made."""
    known: int = -1
    """The newest version of the target that this application has seen, -1 where there is no target: head is not
    before it."""
    heads: Mapping[str, Any] = field(default_factory=dict)
    """What the target is read at, by what tells it from others, where the format's own transaction does not see to
    that."""
    way: ChosenWay | None = None
    """How rows that change are written; None where nobody asks."""
    is_judged_as_said: bool = False
    """The query is the statement itself, of one table: what its conditions ask is judged by how they are said."""
    may_lie_anywhere: bool = False
    """It makes a table, at a place that the statement may name."""

    @property
    def judged(self) -> JavaPlan | None:
        """The query, for whoever has to say whether its tables may be read."""
        return None if self.is_judged_as_said else self.query


class NamedRows(RowsTarget, Protocol):
    """A table whose rows a statement changes that is not analysed yet."""

    def begun(self, way: ChosenWay, said: JavaPlan) -> tuple[JavaPlan, RecordCarrier | None]:
        """The parsed statement as it is to be analysed, and what commits it, where that decides on the way."""


def without_with(plans: Plans, plan: JavaPlan, kinds: Container[str]) -> JavaPlan | None:
    """Of an analysed write of these kinds under a WITH (INSERT INTO IDENTIFIER(...)): the write alone, with the WITH
    around its query. None for any other plan."""
    if kind(plan) != "WithCTE" or kind(plan.plan()) not in kinds:
        return None
    query = plans.logical.WithCTE(plan.plan().query(), plan.cteDefs())
    return plan.plan().withNewQuery(query).storeAnalyzedQuery()


def with_query(plan: JavaPlan, query: JavaPlan) -> JavaPlan:
    """CREATE TABLE AS and CREATE OR REPLACE TABLE AS hide their query from Spark's own replacing."""
    rule = plan.orCreate() if kind(plan) == "ReplaceTableAsSelect" else plan.ignoreIfExists()
    return plan.copy(
        plan.name(),
        plan.partitioning(),
        query,
        plan.tableSpec(),
        plan.writeOptions(),
        rule,
        plan.isAnalyzed(),
    )
