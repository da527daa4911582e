"""Statements that write a Delta table, their kind of change, and the place of their query."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.catalog.model.rows import DELTA
from lakewarden.jobs.session.delta.buckets.bucketed_writes import BucketedWrites
from lakewarden.jobs.session.delta.delta_commits import DeltaCommit, DeltaRecords
from lakewarden.jobs.session.delta.delta_reads import TABLE, known_version, makes_delta
from lakewarden.jobs.session.delta.delta_ways import DeltaTarget
from lakewarden.jobs.session.delta.kept_rows import require_plain_conditions
from lakewarden.jobs.session.delta.operation_ids import Once
from lakewarden.jobs.session.delta.write_options import require_no_marks, user_metadata_of
from lakewarden.jobs.session.formats.shapes import Execution, Shape, with_query, without_with
from lakewarden.jobs.session.formats.table_commits import Readers
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind, location_of
from lakewarden.jobs.session.writes import USER_METADATA

__all__ = ["shape_of_delta", "vacuumed_by"]

_WITH_QUERY: Final = frozenset(
    {"AppendData", "OverwriteByExpression", "DeltaDynamicPartitionOverwriteCommand"}
)


_UPDATED: Final = "UpdateCommand"
_COMMANDS: Final = ("DeleteCommand", "MergeIntoCommand", _UPDATED)


def shape_of_delta(plans: Plans, session: Any, plan: JavaPlan) -> Shape | None:
    """The shape of an analysed statement; None if it writes no Delta table, or in a way that is not known here."""
    plan = without_with(plans, plan, _WITH_QUERY) or plan
    match kind(plan):
        case "AppendData":
            return _into(plans, plan, Operation.APPEND)
        case "OverwriteByExpression":
            whole = str(plan.deleteExpr().sql()) == "true"
            return _into(plans, plan, Operation.OVERWRITE if whole else Operation.PARTIAL_OVERWRITE)
        case "DeltaDynamicPartitionOverwriteCommand":
            return _into(plans, plan, Operation.PARTIAL_OVERWRITE)
        case "CreateTableAsSelect" | "ReplaceTableAsSelect" | "CreateTable" | "ReplaceTable":
            return _created(plans, session, plan)
        case "MergeIntoCommand":
            return _merged(plans, plan)
        case "UpdateCommand":
            return _changed(plans, plan, Operation.UPDATE)
        case "DeleteCommand":
            return _changed(plans, plan, Operation.DELETE)
        case _:
            return None


@dataclass(frozen=True, kw_only=True)
class DeltaWrite:
    """`TableWrite` and `TableChange` of a Delta table: its own transaction commits."""

    plans: Plans
    plan: JavaPlan
    """The analysed statement."""
    target: str | None
    """Canonical; None for a table that does not exist yet."""
    known: int
    """A version that the target's head is not before."""
    makes_table: bool = False

    def carrier(self, readers: Readers) -> DeltaRecords:
        return DeltaRecords(readers(DELTA), self.target, self.known, makes_table=self.makes_table)

    def with_own_record(self, shape: Shape) -> tuple[Shape, str | None]:
        return _with_own_record(self.plans, shape)

    def require_plain(self, session: Any) -> None:
        require_plain_conditions(self.plans, session, self.plan)

    def arranged(self, session: Any, shape: Shape, query: JavaPlan) -> JavaPlan:
        return BucketedWrites(self.plans).spread(session, shape, query)

    def run(self, session: Any, plan: JavaPlan, done: Execution) -> DataFrame:
        return BucketedWrites(self.plans).run(session, plan, done)

    def once(self, readers: Readers, operation: str, text: str) -> Once:
        return Once(
            spark=self.plans.spark,
            reader=readers(DELTA),
            operation=operation,
            text=text,
            location=self._there,
        )

    def commit(self, readers: Readers, called: str) -> DeltaCommit:
        return DeltaCommit(self.plans, self.plans.spark, readers(DELTA), self._there)

    def rows(self, session: Any, readers: Readers, *, is_named: bool) -> DeltaTarget | None:
        plan, name = self.plan, kind(self.plan)
        if name not in _COMMANDS:
            return None
        log = _log_of(plan, name)
        return DeltaTarget(
            plans=self.plans,
            session=session,
            reader=readers(DELTA),
            location=location_of(log.dataPath()),
            snapshot=log.unsafeVolatileSnapshot(),
            entry=plan.catalogTable(),
            all_change=name == _UPDATED and bool(plan.condition().isEmpty()),
        )

    @property
    def _there(self) -> str:
        assert self.target is not None, "a table that is there is changed"
        return self.target


def _log_of(plan: JavaPlan, name: str) -> Any:
    """The log of the table whose rows a command changes."""
    match name:
        case "MergeIntoCommand":
            return plan.targetFileIndex().deltaLog()
        case "UpdateCommand":
            return plan.tahoeFileIndex().deltaLog()
        case _:
            return plan.deltaLog()


def _with_own_record(plans: Plans, shape: Shape) -> tuple[Shape, str | None]:
    plan = shape.plan
    if kind(plan).endswith(("TableAsSelect", "CreateTable", "ReplaceTable")):
        for options in (plan.tableSpec().options(), plan.tableSpec().properties(), *_options_of(plan)):
            require_no_marks(plans.texts(options))
        return shape, None
    if kind(plan) not in _WITH_QUERY or plan.table().options().isEmpty():
        return shape, None
    relation = plan.table()
    given = dict(relation.options())
    own = user_metadata_of(given)
    rest = plans.java.HashMap()
    for key, value in given.items():
        if key.lower() != USER_METADATA.lower():
            rest.put(key, value)
    kept = relation.copy(
        relation.table(), relation.output(), relation.catalog(), relation.identifier(),
        plans.options(rest), relation.timeTravelSpec(),
    )  # fmt: skip
    written = _into(plans, plan.withNewTable(kept), shape.operation)
    return shape if written is None else written, own


def _options_of(plan: JavaPlan) -> tuple[Any, ...]:
    return (plan.writeOptions(),) if kind(plan).endswith("AsSelect") else ()


def vacuumed_by(plan: JavaPlan) -> str | None:
    """The canonical location of the Delta table that an analysed VACUUM is about."""
    child = plan.child() if kind(plan) == "VacuumTableCommand" else None
    if child is None or kind(child) != "ResolvedTable" or kind(child.table()) != TABLE:
        return None
    return location_of(child.table().path())


def _into(plans: Plans, plan: JavaPlan, operation: Operation) -> Shape | None:
    relation = plan.table()
    if kind(relation) != "DataSourceV2Relation" or kind(relation.table()) != TABLE:
        return None
    target = location_of(relation.table().path())
    return _shape(
        plans,
        plan,
        operation,
        target=target,
        known=known_version(relation.table().deltaLog()),
        query=plan.query(),
        # Spark runs the query that it has put aside when it analysed the statement: put the new one there, too.
        rebuilt=lambda query: plan.withNewQuery(query).storeAnalyzedQuery(),
        locate=lambda: target,
    )


def _created(plans: Plans, session: Any, plan: JavaPlan) -> Shape | None:
    catalog, identifier = plan.name().catalog(), plan.name().identifier()
    if not makes_delta(plans, session, plan) or not kind(catalog).endswith("DeltaCatalog"):
        return None

    def found() -> Any | None:
        if not catalog.tableExists(identifier):
            return None
        table = catalog.loadTable(identifier)
        return table if kind(table) == TABLE else None

    def locate() -> str | None:
        table = found()
        return None if table is None else location_of(table.path())

    replaced = found() if kind(plan).startswith("Replace") else None
    return _shape(
        plans,
        plan,
        Operation.REPLACE,
        target=None if replaced is None else location_of(replaced.path()),
        known=-1 if replaced is None else known_version(replaced.deltaLog()),
        query=plan.query() if kind(plan).endswith("AsSelect") else None,
        rebuilt=lambda query: with_query(plan, query),
        locate=locate,
    )


def _merged(plans: Plans, plan: JavaPlan) -> Shape:
    _require_recordable(plans, plan)
    log = _log_of(plan, kind(plan))
    target = location_of(log.dataPath())

    def rebuilt(source: JavaPlan) -> JavaPlan:
        return plan.copy(
            source,
            plan.target(),
            plan.catalogTable(),
            plan.targetFileIndex(),
            plan.condition(),
            plan.matchedClauses(),
            plan.notMatchedClauses(),
            plan.notMatchedBySourceClauses(),
            plan.migratedSchema(),
            plan.trackHighWaterMarks(),
            plan.schemaEvolutionEnabled(),
        )

    return _shape(
        plans,
        plan,
        Operation.MERGE,
        target=target,
        known=known_version(log),
        query=plan.source(),
        rebuilt=rebuilt,
        locate=lambda: target,
    )


def _require_recordable(plans: Plans, plan: JavaPlan) -> None:
    """Raise `UsageError` for a merge whose condition or clauses have a query in them: Delta tells nobody what it reads
    for those, so that it would be neither pinned nor on record."""
    clauses = (plan.matchedClauses(), plan.notMatchedClauses(), plan.notMatchedBySourceClauses())
    parts = [plan.condition(), *(clause for each in clauses for clause in plans.sequence(each))]
    if any(plans.asks(part) for part in parts):
        raise UsageError(
            "The condition and the clauses of a merge take no query: what it reads would be on no record.",
            hint="Join what it asks about into the source. `lw.sql` does that to a MERGE by itself.",
        )


def _changed(plans: Plans, plan: JavaPlan, operation: Operation) -> Shape:
    log = _log_of(plan, kind(plan))
    target = location_of(log.dataPath())
    return _shape(
        plans,
        plan,
        operation,
        target=target,
        known=known_version(log),
        query=None,
        rebuilt=lambda _: plan,
        locate=lambda: target,
    )


def _shape(
    plans: Plans,
    plan: JavaPlan,
    operation: Operation,
    *,
    target: str | None,
    known: int,
    query: JavaPlan | None,
    rebuilt: Callable[[JavaPlan], JavaPlan],
    locate: Callable[[], str | None],
) -> Shape:
    makes_table = operation is Operation.REPLACE
    write = DeltaWrite(plans=plans, plan=plan, target=target, known=known, makes_table=makes_table)
    return Shape(
        format=DELTA,
        operation=operation,
        plan=plan,
        target=target,
        query=query,
        rebuilt=rebuilt,
        locate=locate,
        by=write,
        change=None if target is None or makes_table else write,
        known=known,
    )
