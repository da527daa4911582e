"""What EXPLAIN GOVERNED says of how a statement would be done: the way of its rows, and its buckets. Nothing is run."""

from dataclasses import dataclass
from typing import Any, Final

from lakewarden.catalog.model.enums import RowsWrite
from lakewarden.jobs.engines.spark.names import quoted
from lakewarden.jobs.session.buckets.bucketed_writes import BucketedWrites
from lakewarden.jobs.session.compiled_changes import mean_what_is_written
from lakewarden.jobs.session.iceberg.bucket_joins import told_of_join
from lakewarden.jobs.session.iceberg.catalog_names import with_catalog_names
from lakewarden.jobs.session.iceberg.staged_writes import StagedWrite
from lakewarden.jobs.session.iceberg.written_tables import is_row_by_row, table_behind
from lakewarden.jobs.session.pins import pin
from lakewarden.jobs.session.plans import Plans, kind
from lakewarden.jobs.session.row_ways.statement_ways import RowWays
from lakewarden.jobs.session.write_plans.write_shapes import shape_of
from lakewarden.jobs.sql.compile.values import Compiled

__all__ = ["ExplainedWrites"]

_MERGE: Final = "MergeIntoTable"


@dataclass(frozen=True, kw_only=True)
class ExplainedWrites:
    """Of one Spark application."""

    plans: Plans
    buckets: BucketedWrites
    ways: RowWays | None
    """None where somebody may know of fewer tables than there are."""

    def plain(self, text: str, write: RowsWrite | None) -> tuple[str, ...]:
        """Of a statement that Spark runs as it is."""
        session: Any = self.plans.cloned(self.plans.spark._jsparkSession)
        plan = self.plans.parsed(session, text)
        told = self._of_way(session, plan, write)
        buckets = self._of_merge(self.plans.cloned(session), plan)
        return told if buckets is None else (*told, buckets)

    def compiled(self, done: Compiled, write: RowsWrite | None) -> tuple[str, ...]:
        """Of a statement that becomes one step; nothing where it becomes several."""
        if len(done.steps) > 1 or self.ways is None:
            return ()
        session: Any = self.plans.cloned(self.plans.spark._jsparkSession)
        mean_what_is_written(session, done.dialect)
        plan = self.plans.composed(session, done.steps[0].sql)
        told = self._of_way(self.plans.cloned(session), plan, write)
        buckets = self._of_buckets(session, done, plan)
        return told if buckets is None else (*told, buckets)

    def _of_way(self, session: Any, plan: Any, write: RowsWrite | None) -> tuple[str, ...]:
        if self.ways is None:
            return ()
        return self.ways.told(session, with_catalog_names(self.plans, session, plan), write)

    def _of_buckets(self, session: Any, done: Compiled, plan: Any) -> str | None:
        name = ".".join(quoted(part) for part in done.target.parts)
        if table_behind(self.plans, session, name) is None and not self.buckets.has_layout(session, name):
            return None
        return self._joined(session, self.plans.analysed(session, plan))

    def _of_merge(self, session: Any, plan: Any) -> str | None:
        if self.ways is None or kind(plan) != _MERGE:
            return None
        analysed = self.plans.analysed(session, with_catalog_names(self.plans, session, plan))
        has_buckets = self.buckets.changes(analysed) or is_row_by_row(analysed)
        return self._joined(session, analysed) if has_buckets else None

    def _joined(self, session: Any, analysed: Any) -> str | None:
        shape = shape_of(self.plans, session, analysed)
        if shape is None or shape.query is None:
            return None
        pinned = pin(self.plans, session, shape.query, target=shape.target, snapshots=dict(shape.heads))
        plan = shape.rebuilt(pinned.plan)
        if isinstance(shape.staged, StagedWrite):
            return told_of_join(self.plans, session, shape.staged.target, plan)
        return self.buckets.told(session, plan)
