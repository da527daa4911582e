"""The Iceberg table that an analysed statement writes to, and the same statement on another state of that table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.jobs.session.iceberg.snapshot_reads import head_of, is_iceberg, location_of_table
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind

__all__ = [
    "WrittenTable",
    "changed_leaf",
    "inside_with",
    "is_of_a_change",
    "operation_of",
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
    known here."""
    match kind(plan):
        case name if name in _ROWS:
            relation = plan.table()
        case name if name in _CHANGES:
            relation = plan.originalTable()
        case "DeleteFromTable":
            leaves = plans.leaves(plan)
            relation = leaves[0] if len(leaves) == 1 else None
        case _:
            return None
    return None if relation is None else _written(relation)


def changed_leaf(plans: Plans, said: JavaPlan) -> JavaPlan | None:
    """The name of the table whose rows a parsed UPDATE, DELETE or MERGE changes; None for any other statement, and for
    a target that is no plain name."""
    said = inside_with(said)
    match kind(said):
        case "MergeIntoTable":
            target = said.targetTable()
        case "UpdateTable" | "DeleteFromTable":
            target = said.table()
        case _:
            return None
    leaves = plans.leaves(target)
    return leaves[0] if len(leaves) == 1 and kind(leaves[0]) == "UnresolvedRelation" else None


def inside_with(said: JavaPlan) -> JavaPlan:
    """A parsed statement without the queries that it begins with (WITH)."""
    while kind(said) == "UnresolvedWith":
        said = said.child()
    return said


def table_behind(plans: Plans, session: Any, name: str) -> WrittenTable | None:
    """The Iceberg table that SQL calls so; None where that is no such table, or none that is written here."""
    if not session.catalog().tableExists(name):
        return None
    leaf, *others = plans.leaves(session.table(name).queryExecution().analyzed())
    return None if others else _written(leaf)


def _written(relation: Any) -> WrittenTable | None:
    if kind(relation) != "DataSourceV2Relation" or not is_iceberg(relation.table()):
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
