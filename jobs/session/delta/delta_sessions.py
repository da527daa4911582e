"""Delta in users' sessions: the port's answers."""

from collections.abc import Sequence
from typing import Any, Final

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.catalog.lineage.streams.offsets import Began
from lakewarden.catalog.model.lineage_record import USER_KEY, is_like_record
from lakewarden.catalog.model.rows import DELTA
from lakewarden.jobs.engines.delta.sessions.stamped_sessions import USER_METADATA
from lakewarden.jobs.session.delta.buckets.bucketed_writes import BucketedWrites
from lakewarden.jobs.session.delta.buckets.definitions import require_hashed_columns, with_layout_on_record
from lakewarden.jobs.session.delta.delta_reads import (
    TABLE,
    delta_index,
    pinned_delta,
    reads_of_delta,
    unmoved_delta,
)
from lakewarden.jobs.session.delta.delta_streams import began_with_delta, place_of_sink, place_of_source
from lakewarden.jobs.session.delta.delta_ways import DeltaTarget
from lakewarden.jobs.session.delta.delta_writes import shape_of_delta, vacuumed_by
from lakewarden.jobs.session.formats.plan_parts import (
    Affected,
    PinnedLeaf,
    Pinning,
    QueriedTable,
    WitnessedTarget,
)
from lakewarden.jobs.session.formats.shapes import Shape
from lakewarden.jobs.session.formats.table_commits import Readers, RecordCarrier
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind, location_of
from lakewarden.jobs.session.writes import Read

__all__ = ["DeltaSessions"]

_ROWS: Final = ("AppendData", "OverwriteByExpression", "OverwritePartitionsDynamic")


class DeltaSessions:
    """`SessionFormat` of Delta."""

    format = DELTA
    hidden_plans = (("MergeIntoCommand", "source"),)

    def reads(self, plans: Plans, leaf: Any, name: str) -> Sequence[Read] | None:
        return reads_of_delta(plans, leaf, name)

    def pinned(self, plans: Plans, leaf: Any, name: str, by: Pinning) -> PinnedLeaf | None:
        return pinned_delta(plans, leaf, name, by)

    def unmoved_read(self, plans: Plans, leaf: Any, name: str) -> Read | None:
        return unmoved_delta(plans, leaf, name)

    def place(self, plans: Plans, leaf: Any, name: str) -> str | None:
        match name:
            case "DataSourceV2Relation" if kind(leaf.table()) == TABLE:
                return location_of(leaf.table().path())
            case "LogicalRelation":
                index = delta_index(plans, leaf.relation())
                return None if index is None else location_of(index.path())
            case _:
                return None

    def queried(self, leaf: Any, name: str) -> QueriedTable | None:
        return None

    def about(self, part: Any, name: str) -> Affected | None:
        if name != TABLE:
            return None
        uuid = str(part.deltaLog().unsafeVolatileSnapshot().metadata().id())
        return Affected(location_of(part.path()), uuid)

    def named_by(self, plans: Plans, session: Any, command: JavaPlan) -> Any | None:
        return None

    def procedures_of(self, catalog: Any) -> bool:
        return False

    def found(self, plans: Plans, session: Any, catalog: Any, text: str) -> Any | None:
        return None

    def witnessed(self, table: Any, command: str) -> WitnessedTarget | None:
        if command not in _ROWS or kind(table) != TABLE:
            return None
        return WitnessedTarget(location=location_of(table.path()), runs_its_plan=False)

    def committed_by(self, write: Any) -> int | None:
        return None

    def sink_named(self, description: str) -> str | None:
        return place_of_sink(description)

    def sink_found(self, session: Any, jvm: Any, description: str) -> str | None:
        return None

    def source_place(self, source: Any) -> str | None:
        return place_of_source(source)

    def initial_offset(self, source: Any) -> str | None:
        return None

    def began(self, sources: Sequence[Any]) -> Began:
        return began_with_delta(sources)

    def streamed(self, leaf: Any) -> None:
        return None

    def own_metadata(self, plans: Plans, session: Any) -> str | None:
        told = plans.option(session.conf().getOption(USER_METADATA))
        return None if told is None else str(told)

    def require_no_record(self, key: str, value: str | None) -> None:
        if key == USER_METADATA and value is not None and is_like_record(value):
            raise NotAllowedError(
                f"userMetadata may not have the key '{USER_KEY}': it is that of lakewarden's own record.",
                hint="Give it another name.",
            )

    def with_found_names(self, plans: Plans, session: Any, said: JavaPlan) -> JavaPlan:
        return said

    def found_name(self, plans: Plans, session: Any, table: str) -> str:
        return table

    def version_named(self, plans: Plans, session: Any, table: str, version: int) -> str | None:
        return None

    def as_taken(self, plans: Plans, session: Any, said: JavaPlan) -> JavaPlan:
        return with_layout_on_record(plans, session, said)

    def require_analysable(self, plans: Plans, session: Any, said: JavaPlan) -> None:
        """Delta's commands do nothing until they run."""

    def require_sound(self, plans: Plans, analysed: JavaPlan) -> None:
        require_hashed_columns(plans, analysed)

    def shape(
        self, plans: Plans, session: Any, plan: JavaPlan, *, is_merge: bool, begun: RecordCarrier | None
    ) -> Shape | None:
        return shape_of_delta(plans, session, plan)

    def vacuumed(self, analysed: JavaPlan) -> str | None:
        return vacuumed_by(analysed)

    def rows_named(self, plans: Plans, session: Any, leaf: JavaPlan, *, all_change: bool) -> None:
        return None

    def rows_read(
        self, plans: Plans, session: Any, readers: Readers, leaf: JavaPlan, *, all_change: bool
    ) -> DeltaTarget | None:
        index = delta_index(plans, leaf.relation()) if kind(leaf) == "LogicalRelation" else None
        if index is None:
            return None
        return DeltaTarget(
            plans=plans,
            session=session,
            reader=readers(DELTA),
            location=location_of(index.path()),
            snapshot=index.getSnapshot(),
            entry=leaf.catalogTable(),
            all_change=all_change,
        )

    def has_way_of_its_own(self, plans: Plans, session: Any, table: str) -> bool:
        return BucketedWrites(plans).has_layout(session, table)

    def is_changed_in_its_way(self, plans: Plans, analysed: JavaPlan) -> bool:
        return BucketedWrites(plans).changes(analysed)

    def told_of_its_way(self, plans: Plans, session: Any, plan: JavaPlan) -> str | None:
        return BucketedWrites(plans).told(session, plan)
