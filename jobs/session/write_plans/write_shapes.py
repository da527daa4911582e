"""Statements that write a Delta or an Iceberg table, their kind of change, and the place of their query."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.catalog.policy.rows_write import ChosenWay
from lakewarden.jobs.session.iceberg.new_tables import NewTable, new_table
from lakewarden.jobs.session.iceberg.snapshot_reads import key_of
from lakewarden.jobs.session.iceberg.staged_writes import StagedWrite
from lakewarden.jobs.session.iceberg.written_tables import operation_of, written_table
from lakewarden.jobs.session.judgement.write_options import USER_METADATA, require_no_marks, user_metadata_of
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind
from lakewarden.jobs.session.reads import location_of

__all__ = ["Shape", "makes_delta", "shape_of", "vacuumed_by", "with_own_record"]

_ROWS_OF_ICEBERG: Final = ("AppendData", "OverwriteByExpression", "OverwritePartitionsDynamic")
_WITH_QUERY: Final = frozenset(
    {"AppendData", "OverwriteByExpression", "DeltaDynamicPartitionOverwriteCommand"}
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """A write taken apart: the whole plan and what it is made of."""

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
    known: int = -1
    """The newest version of the target that this application has seen, -1 where there is no target: head is not
    before it."""
    staged: StagedWrite | NewTable | None = None
    """What commits it; None for Delta's own transaction."""
    heads: Mapping[str, Any] = field(default_factory=dict)
    """What the target is read at, by what tells it from others, where the format's own transaction does not see to
    that."""
    way: ChosenWay | None = None
    """How rows that change are written; None where nobody asks."""

    @property
    def format(self) -> str:
        """That of the table."""
        return "delta" if self.staged is None else "iceberg"

    @property
    def judged(self) -> JavaPlan | None:
        """The query, for whoever has to say whether its tables may be read. A DELETE or UPDATE of one table that Spark
        itself does is none: what its conditions ask is judged by how they are said."""
        alone = self.staged is not None and self.operation in (Operation.DELETE, Operation.UPDATE)
        return None if alone else self.query


def shape_of(
    plans: Plans,
    session: Any,
    plan: JavaPlan,
    *,
    is_merge: bool = False,
    staged: StagedWrite | None = None,
) -> Shape | None:
    """The shape of an analysed statement; None if it writes no Delta or Iceberg table, or in a way that is not known
    here. `is_merge`: it was written as a MERGE. `staged`: what commits it, if it was analysed for that."""
    target = written_table(plans, plan)
    if target is not None:
        return _staged(
            plans, plan, staged or StagedWrite(plans, target, is_alone=is_merge), is_merge=is_merge
        )
    made = new_table(plans, plan)
    if made is not None:
        return _made_of_iceberg(plan, made)
    match kind(plan):
        case "WithCTE" if kind(plan.plan()) in _WITH_QUERY:  # INSERT INTO IDENTIFIER(...) under a WITH
            query = plans.logical.WithCTE(plan.plan().query(), plan.cteDefs())
            return shape_of(plans, session, plan.plan().withNewQuery(query).storeAnalyzedQuery())
        case "AppendData":
            return _into(plan, Operation.APPEND)
        case "OverwriteByExpression":
            whole = str(plan.deleteExpr().sql()) == "true"
            return _into(plan, Operation.OVERWRITE if whole else Operation.PARTIAL_OVERWRITE)
        case "DeltaDynamicPartitionOverwriteCommand":
            return _into(plan, Operation.PARTIAL_OVERWRITE)
        case "CreateTableAsSelect" | "ReplaceTableAsSelect" | "CreateTable" | "ReplaceTable":
            return _created(plans, session, plan)
        case "MergeIntoCommand":
            return _merged(plans, plan)
        case "UpdateCommand":
            return _changed(plan, Operation.UPDATE, plan.tahoeFileIndex().deltaLog())
        case "DeleteCommand":
            return _changed(plan, Operation.DELETE, plan.deltaLog())
        case _:
            return None


def makes_delta(plans: Plans, session: Any, plan: JavaPlan) -> bool:
    """Whether the table that a statement makes has Delta's format."""
    provider = plans.option(plan.tableSpec().provider())
    return str(provider or session.conf().get("spark.sql.sources.default")).lower() == "delta"


def with_own_record(plans: Plans, shape: Shape) -> tuple[Shape, str | None]:
    """The write without what its options would put into the commit in our record's place: the user's own metadata,
    which is handed over, None for none. Raises `UsageError` for an option that is not taken."""
    plan = shape.plan
    if shape.staged is not None:
        return shape, None
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
    written = _into(plan.withNewTable(kept), shape.operation)
    return shape if written is None else written, own


def _options_of(plan: JavaPlan) -> tuple[Any, ...]:
    return (plan.writeOptions(),) if kind(plan).endswith("AsSelect") else ()


def vacuumed_by(plan: JavaPlan) -> str | None:
    """The canonical location of the Delta table that an analysed VACUUM is about."""
    child = plan.child() if kind(plan) == "VacuumTableCommand" else None
    if child is None or kind(child) != "ResolvedTable" or kind(child.table()) != "DeltaTableV2":
        return None
    return location_of(child.table().path())


def _into(plan: JavaPlan, operation: Operation) -> Shape | None:
    relation = plan.table()
    if kind(relation) != "DataSourceV2Relation" or kind(relation.table()) != "DeltaTableV2":
        return None
    target = location_of(relation.table().path())
    return Shape(
        operation=operation,
        plan=plan,
        target=target,
        query=plan.query(),
        # Spark runs the query that it has put aside when it analysed the statement: put the new one there, too.
        rebuilt=lambda query: plan.withNewQuery(query).storeAnalyzedQuery(),
        locate=lambda: target,
        known=_known(relation.table().deltaLog()),
    )


def _staged(plans: Plans, plan: JavaPlan, staged: StagedWrite, *, is_merge: bool) -> Shape:
    """Of an Iceberg table: where the statement reads what it writes, all of it is the query."""
    target = staged.target
    is_rows = kind(plan) in _ROWS_OF_ICEBERG
    if is_rows and not (plan.table().options().isEmpty() and plan.writeOptions().isEmpty()):
        raise UsageError(
            "A write to an Iceberg table takes no options but userMetadata. Nothing was run.",
            hint="ALTER TABLE sets properties of the table.",
        )
    query = plan.query() if is_rows else plan

    def rebuilt(found: JavaPlan) -> JavaPlan:
        return plan.withNewQuery(found).storeAnalyzedQuery() if is_rows else found

    return Shape(
        operation=operation_of(plan, is_merge=is_merge),
        plan=plan,
        target=target.location,
        query=None if kind(plan) == "DeleteFromTable" else query,
        rebuilt=rebuilt,
        locate=lambda: target.location,
        known=target.version,
        staged=staged,
        heads={key_of(target.table): target.base},
    )


def _made_of_iceberg(plan: JavaPlan, made: NewTable) -> Shape:
    return Shape(
        operation=Operation.REPLACE,
        plan=plan,
        target=None,
        query=plan.query(),
        rebuilt=lambda query: _with_query(plan, query),
        locate=made.locate,
        staged=made,
    )


def _created(plans: Plans, session: Any, plan: JavaPlan) -> Shape | None:
    catalog, identifier = plan.name().catalog(), plan.name().identifier()
    if not makes_delta(plans, session, plan) or not kind(catalog).endswith("DeltaCatalog"):
        return None

    def found() -> Any | None:
        if not catalog.tableExists(identifier):
            return None
        table = catalog.loadTable(identifier)
        return table if kind(table) == "DeltaTableV2" else None

    def locate() -> str | None:
        table = found()
        return None if table is None else location_of(table.path())

    replaced = found() if kind(plan).startswith("Replace") else None
    return Shape(
        operation=Operation.REPLACE,
        plan=plan,
        target=None if replaced is None else location_of(replaced.path()),
        query=plan.query() if kind(plan).endswith("AsSelect") else None,
        rebuilt=lambda query: _with_query(plan, query),
        locate=locate,
        known=-1 if replaced is None else _known(replaced.deltaLog()),
    )


def _with_query(plan: JavaPlan, query: JavaPlan) -> JavaPlan:
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


def _merged(plans: Plans, plan: JavaPlan) -> Shape:
    _require_recordable(plans, plan)
    log = plan.targetFileIndex().deltaLog()
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

    return Shape(
        operation=Operation.MERGE,
        plan=plan,
        target=target,
        query=plan.source(),
        rebuilt=rebuilt,
        locate=lambda: target,
        known=_known(log),
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


def _changed(plan: JavaPlan, operation: Operation, log: Any) -> Shape:
    target = location_of(log.dataPath())
    return Shape(
        operation=operation,
        plan=plan,
        target=target,
        query=None,
        rebuilt=lambda _: plan,
        locate=lambda: target,
        known=_known(log),
    )


def _known(log: Any) -> int:
    """What Delta has in mind of a table: nothing is read for it."""
    return int(log.unsafeVolatileSnapshot().version())
