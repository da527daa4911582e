"""What EXPLAIN GOVERNED says of how a statement would be done: the way of its rows, and its buckets. Nothing is run."""

from dataclasses import dataclass
from typing import Any

from lakewarden.catalog.model.enums import RowsWrite
from lakewarden.jobs.engines.spark.names import quoted
from lakewarden.jobs.session.buckets.bucketed_writes import BucketedWrites
from lakewarden.jobs.session.compiled_changes import mean_what_is_written
from lakewarden.jobs.session.iceberg.catalog_names import with_catalog_names
from lakewarden.jobs.session.pins import pin
from lakewarden.jobs.session.plans import Plans
from lakewarden.jobs.session.row_ways.statement_ways import RowWays
from lakewarden.jobs.session.write_plans.write_shapes import shape_of
from lakewarden.jobs.sql.compile.values import Compiled

__all__ = ["ExplainedWrites"]


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
        return self._of_way(session, self.plans.parsed(session, text), write)

    def compiled(self, done: Compiled, write: RowsWrite | None) -> tuple[str, ...]:
        """Of a statement that becomes one step; nothing where it becomes several."""
        if len(done.steps) > 1:
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
        if not self.buckets.has_layout(session, name):
            return None
        shape = shape_of(self.plans, session, self.plans.analysed(session, plan))
        if shape is None or shape.query is None:
            return None
        pinned = pin(self.plans, session, shape.query, target=shape.target)
        return self.buckets.told(session, shape.rebuilt(pinned.plan))
