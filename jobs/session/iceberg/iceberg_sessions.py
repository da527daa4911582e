"""Iceberg in users' sessions: the port's answers."""

from collections.abc import Sequence
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.catalog.lineage.streams.offsets import NOT_SAID, Began
from lakewarden.jobs.engines.spark.names import quoted
from lakewarden.jobs.session.formats.plan_parts import (
    Affected,
    PinnedLeaf,
    Pinning,
    QueriedTable,
    WitnessedTarget,
)
from lakewarden.jobs.session.formats.shapes import NamedRows, Shape
from lakewarden.jobs.session.formats.table_commits import Readers, RecordCarrier
from lakewarden.jobs.session.iceberg.bucket_joins import buckets_of, told_of_join
from lakewarden.jobs.session.iceberg.catalog_names import catalog_name, version_named, with_catalog_names
from lakewarden.jobs.session.iceberg.marked_commits import OUR_MARKS
from lakewarden.jobs.session.iceberg.own_reads import own_leaf
from lakewarden.jobs.session.iceberg.snapshot_reads import (
    committed_by,
    is_fixed,
    is_iceberg,
    location_of_table,
    name_of_table,
    pinned_leaf,
    read_of_scan,
    read_of_table,
    unpinned_read,
    uuid_of_table,
)
from lakewarden.jobs.session.iceberg.staged_shapes import rows_named, shape_of_iceberg
from lakewarden.jobs.session.iceberg.stream_tables import (
    StreamedTable,
    initial_offset,
    sink_location,
    table_streamed,
)
from lakewarden.jobs.session.iceberg.written_tables import (
    is_of_a_change,
    is_row_by_row,
    require_no_evolution,
    table_behind,
    written_table,
)
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind
from lakewarden.jobs.session.writes import Read

__all__ = ["IcebergSessions"]

_FORMAT: Final = "iceberg"
_LEAF: Final = "DataSourceV2Relation"
_LEAVES: Final = (_LEAF, "DataSourceV2ScanRelation", "BatchScanExec")
_NAMING: Final = frozenset(
    {
        "AddPartitionField", "CreateOrReplaceBranch", "CreateOrReplaceTag", "DropBranch", "DropIdentifierFields",
        "DropPartitionField", "DropTag", "ReplacePartitionField", "SetIdentifierFields",
        "SetWriteDistributionAndOrdering",
    }
)  # fmt: skip
"""Statements of Iceberg's that hold no more than the name of their table, analysed, too."""
_UTILITIES: Final = "org.apache.iceberg.spark.Spark3Util"


class IcebergSessions:
    """`SessionFormat` of Iceberg."""

    format = _FORMAT
    hidden_plans: Sequence[tuple[str, str]] = ()

    def reads(self, plans: Plans, leaf: Any, name: str) -> Sequence[Read] | None:
        if name not in _LEAVES:
            return None
        table = (leaf.relation() if name == "DataSourceV2ScanRelation" else leaf).table()
        if not is_iceberg(table):
            return None
        return (unpinned_read(table) if name == _LEAF else read_of_scan(table, leaf.scan()),)

    def pinned(self, plans: Plans, leaf: Any, name: str, by: Pinning) -> PinnedLeaf | None:
        if name != _LEAF:
            return None
        if is_of_a_change(leaf):
            return PinnedLeaf()  # the target, whose version its commit has to meet
        if not is_iceberg(leaf.table()):
            return None
        own = own_leaf(plans, leaf, by)
        if own is not None:
            return own
        pinned = pinned_leaf(plans, leaf, by.snapshots)
        if pinned is None:
            return PinnedLeaf(read=unpinned_read(leaf.table()))
        return PinnedLeaf(leaf=pinned, read=read_of_table(pinned.table()), is_fixed=is_fixed(leaf))

    def unmoved_read(self, plans: Plans, leaf: Any, name: str) -> Read | None:
        return None

    def place(self, plans: Plans, leaf: Any, name: str) -> str | None:
        return location_of_table(leaf.table()) if name == _LEAF and is_iceberg(leaf.table()) else None

    def queried(self, leaf: Any, name: str) -> QueriedTable | None:
        if name != _LEAF or not is_iceberg(leaf.table()):
            return None
        table = leaf.table()  # of which also its branches and what tells of it have names
        called = name_of_table(table, str(leaf.catalog().get().name()))
        return QueriedTable(called, location_of_table(table), _FORMAT, uuid_of_table(table))

    def about(self, part: Any, name: str) -> Affected | None:
        if name != "SparkTable" or not is_iceberg(part):
            return None
        return Affected(location_of_table(part), str(part.table().uuid()))

    def named_by(self, plans: Plans, session: Any, command: JavaPlan) -> Any | None:
        if kind(command) not in _NAMING:
            return None
        name = ".".join(quoted(str(part)) for part in plans.sequence(command.table()))
        return self.found(plans, session, plans.current_catalog(session), name)

    def procedures_of(self, catalog: Any) -> bool:
        return is_iceberg(catalog)

    def found(self, plans: Plans, session: Any, catalog: Any, text: str) -> Any | None:
        try:
            found = plans.class_named(_UTILITIES).catalogAndIdentifier(session, text, catalog)
        except (Py4JJavaError, PySparkException):
            return None  # a condition, an order, a moment
        where, name = found.catalog(), found.identifier()
        return where.loadTable(name) if where.tableExists(name) else None

    def witnessed(self, table: Any, command: str) -> WitnessedTarget | None:
        if not is_iceberg(table):
            return None
        return WitnessedTarget(location=location_of_table(table), runs_its_plan=True)

    def committed_by(self, write: Any) -> int | None:
        return committed_by(write)

    def sink_named(self, description: str) -> str | None:
        return None

    def sink_found(self, session: Any, jvm: Any, description: str) -> str | None:
        return sink_location(session, jvm, description)

    def source_place(self, source: Any) -> str | None:
        return None

    def initial_offset(self, source: Any) -> str | None:
        return initial_offset(source)

    def began(self, sources: Sequence[Any]) -> Began:
        return NOT_SAID

    def streamed(self, leaf: Any) -> StreamedTable | None:
        return table_streamed(leaf)

    def own_metadata(self, plans: Plans, session: Any) -> str | None:
        return None

    def require_no_record(self, key: str, value: str | None) -> None:
        if key.startswith(OUR_MARKS):
            raise NotAllowedError(
                f"{key} would make snapshots look like lakewarden's own.",
                hint="Give the property another name.",
            )

    def with_found_names(self, plans: Plans, session: Any, said: JavaPlan) -> JavaPlan:
        return with_catalog_names(plans, session, said)

    def found_name(self, plans: Plans, session: Any, table: str) -> str:
        return catalog_name(plans, session, table)

    def version_named(self, plans: Plans, session: Any, table: str, version: int) -> str | None:
        return version_named(plans, session, table, version)

    def as_taken(self, plans: Plans, session: Any, said: JavaPlan) -> JavaPlan:
        return said

    def require_analysable(self, plans: Plans, session: Any, said: JavaPlan) -> None:
        require_no_evolution(plans, session, said)

    def require_sound(self, plans: Plans, analysed: JavaPlan) -> None:
        """Spark and the library see to it."""

    def shape(
        self, plans: Plans, session: Any, plan: JavaPlan, *, is_merge: bool, begun: RecordCarrier | None
    ) -> Shape | None:
        return shape_of_iceberg(plans, plan, is_merge=is_merge, begun=begun)

    def vacuumed(self, analysed: JavaPlan) -> str | None:
        return None

    def rows_named(self, plans: Plans, session: Any, leaf: JavaPlan, *, all_change: bool) -> NamedRows | None:
        return rows_named(plans, session, leaf, all_change=all_change)

    def rows_read(
        self, plans: Plans, session: Any, readers: Readers, leaf: JavaPlan, *, all_change: bool
    ) -> None:
        return None

    def has_way_of_its_own(self, plans: Plans, session: Any, table: str) -> bool:
        target = table_behind(plans, session, table)
        return target is not None and buckets_of(plans, target.base.spec()) is not None

    def is_changed_in_its_way(self, plans: Plans, analysed: JavaPlan) -> bool:
        target = written_table(plans, analysed) if is_row_by_row(analysed) else None
        return target is not None and buckets_of(plans, target.base.spec()) is not None

    def told_of_its_way(self, plans: Plans, session: Any, plan: JavaPlan) -> str | None:
        target = written_table(plans, plan) if is_row_by_row(plan) else None
        return None if target is None else told_of_join(plans, session, target, plan)
