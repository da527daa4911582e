"""The Iceberg table that an analysed statement writes to, and the same statement on another state of that table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.jobs.session.formats.said_changes import changed_leaf, inside_with, spelled
from lakewarden.jobs.session.iceberg.snapshot_reads import head_of, is_iceberg, location_of_table
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind

__all__ = [
    "WrittenTable",
    "is_of_a_change",
    "is_row_by_row",
    "operation_of",
    "require_no_evolution",
    "table_behind",
    "written_table",
]

_ROWS: Final = ("AppendData", "OverwriteByExpression", "OverwritePartitionsDynamic")
_CHANGES: Final = ("ReplaceData", "WriteDelta")
_ODD: Final = ("<=>", " false")
_OF_A_CHANGE: Final = "RowLevelOperationTable"


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenTable:
    """The target of a statement, as it was when the statement was analysed."""

    relation: Any
    """The leaf with the catalog's own table."""
    location: str
    """Canonical."""
    base: Any
    """Its `TableMetadata`."""

    @property
    def table(self) -> Any:
        """Spark's table."""
        return self.relation.table()

    @property
    def version(self) -> int:
        """The number of the snapshot that main is at, 0 for none."""
        snapshot = self.base.currentSnapshot()
        return 0 if snapshot is None else int(snapshot.sequenceNumber())

    def uuids(self, plans: Plans) -> frozenset[str]:
        """The columns, in lower case, that hold UUIDs: Spark takes them for texts, Iceberg orders them otherwise."""
        columns = plans.items(self.base.schema().columns())
        return frozenset(str(one.name()).lower() for one in columns if str(one.type()) == "uuid")

    @staticmethod
    def is_append(plan: JavaPlan) -> bool:
        """Whether a statement adds rows, and that is all."""
        return kind(plan) == "AppendData"

    def placed(self, plans: Plans, plan: JavaPlan, table: Any) -> JavaPlan:
        """The statement, on another state of its target: nothing loads the table anew, as the leaves have no name."""
        match kind(plan):
            case name if name in _ROWS:
                return plan.withNewTable(_leaf(plans, plan.table(), table))
            case "DeleteFromTable":
                (leaf,) = plans.leaves(plan)
                return plans.replaced(plan, [(leaf, _leaf(plans, leaf, table))])
            case _:
                return self._changed(plans, plan, table)

    def _changed(self, plans: Plans, plan: JavaPlan, table: Any) -> JavaPlan:
        """Of a statement that reads what it writes: its scan and its write belong to one operation."""
        old = plan.table().table()
        info = plans.sql.connector.write.RowLevelOperationInfoImpl(
            old.operation().command(), plan.table().options()
        )
        operation = old.copy(table, table.newRowLevelOperationBuilder(info).build())
        pairs = [(leaf, _leaf(plans, leaf, operation)) for leaf in plans.leaves(plan) if is_of_a_change(leaf)]
        found = plans.replaced(plan, pairs)
        ends = [found.projections()]
        if kind(plan) == _CHANGES[0]:
            ends.append(plans.nothing if _is_odd(found) else found.groupFilterCondition())
        return found.copy(
            _leaf(plans, found.table(), operation),
            found.condition(),
            found.query(),
            _leaf(plans, found.originalTable(), table),
            *ends,
            found.write(),
        )


def written_table(plans: Plans, plan: JavaPlan) -> WrittenTable | None:
    """The Iceberg table whose main branch an analysed statement writes to; None for any other, or in a way that is not
    known here. Raises `UsageError` for a change through a view."""
    match kind(plan):
        case name if name in _ROWS:
            relation = plan.table()
        case name if name in _CHANGES:
            relation = plan.originalTable()
        case "DeleteFromTable":
            relation = _bare(plans, plan.table())
        case "UpdateTable" | "MergeIntoTable":
            _bare(plans, plan.children().head())
            return None
        case _:
            return None
    return None if relation is None else _written(relation)


def is_row_by_row(plan: JavaPlan) -> bool:
    """Whether an analysed statement reads the rows that it changes."""
    return kind(plan) in _CHANGES


def require_no_evolution(plans: Plans, session: Any, said: JavaPlan) -> None:
    """Raise `UsageError` for a parsed MERGE, or an EXPLAIN of one, that may change the columns of an Iceberg table:
    Spark changes them as soon as it analyses it, whatever becomes of the statement."""
    said = inside_with(said.logicalPlan() if kind(said) == "ExplainCommand" else said)
    if kind(said) != "MergeIntoTable" or not said.withSchemaEvolution():
        return
    named = changed_leaf(plans, said)
    leaf = None if named is None else plans.table_named(session, spelled(plans, named))
    if leaf is None or kind(leaf) != "LogicalRelation":
        raise UsageError(
            "WITH SCHEMA EVOLUTION is for Delta tables that are called by their names. Nothing was run.",
            hint="Change the columns first: ALTER TABLE ... ADD COLUMN; then MERGE without it.",
        )


def table_behind(plans: Plans, session: Any, name: str) -> WrittenTable | None:
    """The Iceberg table that SQL calls so; None where that is no such table, or none that is written here."""
    leaf = plans.table_named(session, name)
    return None if leaf is None else _written(leaf)


def _bare(plans: Plans, target: JavaPlan) -> JavaPlan | None:
    """The leaf of a table whose rows Spark changes by itself. Raises `UsageError` for a view of Iceberg tables."""
    found = plans.bare_table(target)
    if found is None and any(_is_iceberg_leaf(leaf) for leaf in plans.leaves(target)):
        raise UsageError(
            "Rows of an Iceberg table are not changed through a view. Nothing was run.",
            hint="Name the table itself, with the view's condition.",
        )
    return found


def _is_iceberg_leaf(leaf: Any) -> bool:
    """Whether a leaf is an Iceberg table."""
    return kind(leaf) == "DataSourceV2Relation" and is_iceberg(leaf.table())


def _written(relation: Any) -> WrittenTable | None:
    if not _is_iceberg_leaf(relation):
        return None
    table = relation.table()
    base = head_of(table)
    if base is None or int(base.formatVersion()) < 2 or not _is_ours_to_look_after(base):
        return None
    return WrittenTable(relation=relation, location=location_of_table(table), base=base)


def _is_ours_to_look_after(base: Any) -> bool:
    """Whether its owner lets anybody delete its files: else nothing that is written could be taken back."""
    return str(base.properties().getOrDefault("gc.enabled", "true")).lower() == "true"


def is_of_a_change(leaf: Any) -> bool:
    """Whether a leaf is how a statement reads the rows that it changes."""
    return kind(leaf) == "DataSourceV2Relation" and kind(leaf.table()) == _OF_A_CHANGE


_COMMANDS: Final[Mapping[str, Operation]] = {
    "DELETE": Operation.DELETE,
    "UPDATE": Operation.UPDATE,
    "MERGE": Operation.MERGE,
}


def operation_of(plan: JavaPlan, *, is_merge: bool) -> Operation:
    """What a statement of `written_table` does. A MERGE that only inserts is analysed as an append."""
    match kind(plan):
        case "AppendData":
            return Operation.MERGE if is_merge else Operation.APPEND
        case "OverwriteByExpression" if str(plan.deleteExpr().sql()) == "true":
            return Operation.OVERWRITE
        case "OverwriteByExpression" | "OverwritePartitionsDynamic":
            return Operation.PARTIAL_OVERWRITE
        case "DeleteFromTable":
            return Operation.DELETE
        case _:
            return _COMMANDS[str(plan.table().table().operation().command())]


def _is_odd(plan: JavaPlan) -> bool:
    """Whether a MERGE may compare by `<=>`, or by nothing: Spark fails (None.get) where it asks by that which files to
    read. It then reads all."""
    if str(plan.table().table().operation().command()) != "MERGE":
        return False
    said = str(plan.query().toString())
    return any(one in said for one in _ODD)


def _leaf(plans: Plans, leaf: Any, table: Any) -> Any:
    """Without a name, and with its catalog, which knows the functions that the table is partitioned by."""
    return leaf.copy(table, leaf.output(), leaf.catalog(), plans.nothing, leaf.options(), plans.nothing)
