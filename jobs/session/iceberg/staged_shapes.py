"""Statements that write an Iceberg table, their kind of change, and the place of their query."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.catalog.model.rows import TableFormat
from lakewarden.catalog.policy.rows_write import ChosenWay
from lakewarden.jobs.session.formats.said_changes import spelled
from lakewarden.jobs.session.formats.shapes import Execution, Shape, with_query, without_with
from lakewarden.jobs.session.formats.table_commits import (
    HeldOperation,
    Readers,
    RecordCarrier,
    WriteMark,
    digest_of,
    statement_app,
)
from lakewarden.jobs.session.iceberg.iceberg_ways import IcebergTarget, UnnamedTarget, mode_of
from lakewarden.jobs.session.iceberg.new_tables import NewTable, new_table
from lakewarden.jobs.session.iceberg.snapshot_reads import key_of
from lakewarden.jobs.session.iceberg.staged_operations import StagedOnce
from lakewarden.jobs.session.iceberg.staged_writes import StagedWrite
from lakewarden.jobs.session.iceberg.written_tables import operation_of, table_behind, written_table
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind
from lakewarden.jobs.upsert.once import OperationVerdict

__all__ = ["rows_named", "shape_of_iceberg"]

_FORMAT: Final = "iceberg"
_ROWS: Final = ("AppendData", "OverwriteByExpression", "OverwritePartitionsDynamic")
_WITH_QUERY: Final = frozenset({"AppendData", "OverwriteByExpression"})
_SPARK: Final = "spark_catalog"
_OWN_OPTION: Final = "__required_write_privileges__"
"""Spark's parser says by it what a statement does to the table."""
_CHANGES: Final = (Operation.DELETE, Operation.MERGE, Operation.UPDATE)


def shape_of_iceberg(
    plans: Plans, plan: JavaPlan, *, is_merge: bool, begun: RecordCarrier | None
) -> Shape | None:
    """The shape of an analysed statement; None if it writes no Iceberg table, or in a way that is not known here."""
    alone = without_with(plans, plan, _WITH_QUERY)
    if alone is not None:
        plan, is_merge, begun = alone, False, None
    target = written_table(plans, plan)
    if target is not None:
        staged = begun if isinstance(begun, StagedWrite) else StagedWrite(plans, target, is_alone=is_merge)
        return _staged(plans, plan, staged, is_merge=is_merge)
    made = new_table(plans, plan)
    return None if made is None else _made(plan, made)


class _WithoutOptions:
    """What writes of Iceberg tables have in common: they take no options, and the library puts rows where they go."""

    def with_own_record(self, shape: Shape) -> tuple[Shape, str | None]:
        return shape, None

    def require_plain(self, session: Any) -> None:
        """It takes no options."""

    def arranged(self, session: Any, shape: Shape, query: JavaPlan) -> JavaPlan:
        return query


@dataclass(frozen=True)
class MadeTable(_WithoutOptions):
    """`TableWrite` of a table that a statement makes."""

    made: NewTable

    def carrier(self, readers: Readers) -> RecordCarrier:
        return self.made

    def run(self, session: Any, plan: JavaPlan, done: Execution) -> DataFrame:
        return self.made.run(session, plan)


@dataclass(frozen=True)
class ChangedTable(_WithoutOptions):
    """`TableWrite` and `TableChange` of a table that is there."""

    plans: Plans
    staged: StagedWrite
    operation: Operation

    def carrier(self, readers: Readers) -> RecordCarrier:
        return self.staged

    def run(self, session: Any, plan: JavaPlan, done: Execution) -> DataFrame:
        return self.staged.run(session, plan)

    def once(self, readers: Readers, operation: str, text: str) -> StagedOnce:
        return StagedOnce(staged=self.staged, operation=operation, text=text)

    def commit(self, readers: Readers, called: str) -> "StagedCommit":
        if self.staged.target.base.currentSnapshot() is None:
            raise UsageError(
                f"{called} has no version so far to which it could be taken back.",
                hint="Insert a row into it first, or write one statement for each table.",
            )
        return StagedCommit(self.staged, key_of(self.staged.target.table))

    def rows(self, session: Any, readers: Readers, *, is_named: bool) -> UnnamedTarget | None:
        if is_named or self.operation not in _CHANGES:
            return None
        return UnnamedTarget(plans=self.plans, target=self.staged.target)


@dataclass(frozen=True)
class StagedCommit:
    """One snapshot, on exactly the metadata that was looked at: whatever came in between, such as a fence, keeps it
    out."""

    staged: StagedWrite
    key: str
    """What tells its table from others in the statement."""
    format: TableFormat = _FORMAT

    def read_at(self, snapshots: Mapping[str, Any]) -> int:
        return int(snapshots[self.key].currentSnapshot().sequenceNumber())

    def look(self, operation: str, text: str) -> HeldOperation:
        is_held, done = self.staged.holds(statement_app(operation))
        return HeldOperation(
            head=self.staged.version,
            verdict=OperationVerdict.DONE if is_held else OperationVerdict.NOT_DONE,
            is_same=done is None or done.statement == digest_of(text),
            run_id=None if done is None else done.run_id,
        )

    def name(self, session: Any, mark: WriteMark) -> None:
        self.staged.make_version()
        if mark.digest is not None:
            self.staged.name(mark.app, mark.number)

    def run(self, session: Any, plan: JavaPlan) -> DataFrame:
        return self.staged.run(session, plan)

    def is_made(self, frame: DataFrame) -> bool:
        return True


def _staged(plans: Plans, plan: JavaPlan, staged: StagedWrite, *, is_merge: bool) -> Shape:
    """Of an Iceberg table: where the statement reads what it writes, all of it is the query."""
    target = staged.target
    is_rows = kind(plan) in _ROWS
    if is_rows and not (plan.table().options().isEmpty() and plan.writeOptions().isEmpty()):
        raise UsageError(
            "A write to an Iceberg table takes no options but userMetadata. Nothing was run.",
            hint="ALTER TABLE sets properties of the table.",
        )
    query = plan.query() if is_rows else plan
    operation = operation_of(plan, is_merge=is_merge)
    write = ChangedTable(plans, staged, operation)

    def rebuilt(found: JavaPlan) -> JavaPlan:
        return plan.withNewQuery(found).storeAnalyzedQuery() if is_rows else found

    return Shape(
        format=_FORMAT,
        operation=operation,
        plan=plan,
        target=target.location,
        query=None if kind(plan) == "DeleteFromTable" else query,
        rebuilt=rebuilt,
        locate=lambda: target.location,
        by=write,
        change=write,
        known=target.version,
        heads={key_of(target.table): target.base},
        is_judged_as_said=operation in (Operation.DELETE, Operation.UPDATE),
    )


def _made(plan: JavaPlan, made: NewTable) -> Shape:
    return Shape(
        format=_FORMAT,
        operation=Operation.REPLACE,
        plan=plan,
        target=None,
        query=plan.query(),
        rebuilt=lambda query: with_query(plan, query),
        locate=made.locate,
        by=MadeTable(made),
        change=None,
        may_lie_anywhere=True,
    )


@dataclass(frozen=True, kw_only=True)
class NamedIcebergTarget(IcebergTarget):
    """`NamedRows` of a table whose mode is settled before its statement is analysed."""

    def begun(self, way: ChosenWay, said: JavaPlan) -> tuple[JavaPlan, RecordCarrier | None]:
        mode = mode_of(way)
        if mode is None:
            return said, None
        staged = StagedWrite(self.plans, self.target, mode=mode)
        return staged.in_mode(said), staged


def rows_named(plans: Plans, session: Any, leaf: JavaPlan, *, all_change: bool) -> NamedIcebergTarget | None:
    """The table that a name means. Names in Spark's own catalog mean none."""
    parts = [str(one) for one in plans.sequence(leaf.multipartIdentifier())]
    current = str(plans.current_catalog(session).name())
    is_ours = (
        len(parts) > 1 and parts[0].lower() != _SPARK and plans.catalog_named(session, parts[0]) is not None
    )
    has_options = bool(dict(leaf.options()).keys() - {_OWN_OPTION})
    if has_options or not (is_ours or current != _SPARK):
        return None
    target = table_behind(plans, session, spelled(plans, leaf))
    return None if target is None else NamedIcebergTarget(plans=plans, target=target, all_change=all_change)
