"""What EXPLAIN GOVERNED says of how a statement would be done: the way of its rows, and what its format does by itself,
such as to join bucket by bucket. Nothing is run."""

from dataclasses import dataclass
from typing import Any, Final

from lakewarden.catalog.model.enums import RowsWrite
from lakewarden.jobs.engines.spark.names import quoted
from lakewarden.jobs.session.compiled_changes import mean_what_is_written
from lakewarden.jobs.session.plans import Plans, kind
from lakewarden.jobs.session.read_plans.pins import pin
from lakewarden.jobs.session.row_ways.statement_ways import RowWays
from lakewarden.jobs.session.session_formats import FORMATS, first_known, require_analysable, with_found_names
from lakewarden.jobs.session.write_plans.known_shapes import shape_of
from lakewarden.jobs.sql.compile.values import Compiled

__all__ = ["ExplainedWrites"]

_MERGE: Final = "MergeIntoTable"


@dataclass(frozen=True, kw_only=True)
class ExplainedWrites:
    """Of one Spark application."""

    plans: Plans
    ways: RowWays | None
    """None where somebody may know of fewer tables than there are."""

    def plain(self, text: str, write: RowsWrite | None) -> tuple[str, ...]:
        """Of a statement that Spark runs as it is."""
        session: Any = self.plans.cloned(self.plans.spark._jsparkSession)
        plan = self.plans.parsed(session, text)
        told = self._of_way(session, plan, write)
        own = self._of_merge(self.plans.cloned(session), plan)
        return told if own is None else (*told, own)

    def compiled(self, done: Compiled, write: RowsWrite | None) -> tuple[str, ...]:
        """Of a statement that becomes one step; nothing where it becomes several."""
        if len(done.steps) > 1 or self.ways is None:
            return ()
        session: Any = self.plans.cloned(self.plans.spark._jsparkSession)
        mean_what_is_written(session, done.dialect)
        plan = self.plans.composed(session, done.steps[0].sql)
        told = self._of_way(self.plans.cloned(session), plan, write)
        own = self._of_table(session, done, plan)
        return told if own is None else (*told, own)

    def _of_way(self, session: Any, plan: Any, write: RowsWrite | None) -> tuple[str, ...]:
        if self.ways is None:
            return ()
        return self.ways.told(session, with_found_names(self.plans, session, plan), write)

    def _of_table(self, session: Any, done: Compiled, plan: Any) -> str | None:
        name = ".".join(quoted(part) for part in done.target.parts)
        if not any(one.has_way_of_its_own(self.plans, session, name) for one in FORMATS):
            return None
        return self._joined(session, self._analysed(session, plan))

    def _of_merge(self, session: Any, plan: Any) -> str | None:
        if self.ways is None or kind(plan) != _MERGE:
            return None
        analysed = self._analysed(session, with_found_names(self.plans, session, plan))
        is_told = any(one.is_changed_in_its_way(self.plans, analysed) for one in FORMATS)
        return self._joined(session, analysed) if is_told else None

    def _analysed(self, session: Any, plan: Any) -> Any:
        """Raises `UsageError` for what changes a table as soon as it is analysed."""
        require_analysable(self.plans, session, plan)
        return self.plans.analysed(session, plan)

    def _joined(self, session: Any, analysed: Any) -> str | None:
        shape = shape_of(self.plans, session, analysed)
        if shape is None or shape.query is None:
            return None
        pinned = pin(self.plans, session, shape.query, target=shape.target, own=shape.heads)
        plan = shape.rebuilt(pinned.plan)
        return first_known(one.told_of_its_way(self.plans, session, plan) for one in FORMATS)
