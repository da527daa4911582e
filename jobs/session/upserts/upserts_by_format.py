"""Runs upserts: the source is pinned, and brought into the target as its format does it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, Protocol

from lakewarden.jobs.session.conflicts.retries import RETRIES_KEY, retried, retries_of
from lakewarden.jobs.session.frames import plan_of, schema_of
from lakewarden.jobs.session.read_plans.pins import pin
from lakewarden.jobs.session.row_ways.statement_ways import RowWays
from lakewarden.jobs.session.session_formats import first_known
from lakewarden.jobs.session.upserts.batch_reads import require_whole_versions
from lakewarden.jobs.session.upserts.merged_upserts import MergedUpserts
from lakewarden.jobs.session.upserts.source import UpsertSource, rows_of
from lakewarden.jobs.session.upserts.staged_upserts import StagedUpserts
from lakewarden.jobs.session.write_recorder import WriteRecorder
from lakewarden.jobs.session.writes import Upsert, Upserted
from lakewarden.jobs.upsert.changes import Cdc

__all__ = ["Upserts"]

_CASE: Final = "spark.sql.caseSensitive"
"""Names are compared without case; two that differ in nothing but case are refused."""


class FormatUpserts(Protocol):
    """Upserts of one Spark application into tables of one format."""

    def tried(self, session: Any, request: Upsert, source: UpsertSource, made: list[str]) -> Upserted | None:
        """One try in a session, a clone for it alone; None where the target is another format's. Where it makes the
        table, `made` is told. Raises `LostRaceError` if somebody else committed meanwhile."""


class Upserts:
    """Upserts of one Spark application. `create` runs a governed CREATE TABLE."""

    def __init__(self, recorder: WriteRecorder, *, create: Callable[[str], object], ways: RowWays) -> None:
        self._plans = recorder.plans
        self._formats: tuple[FormatUpserts, ...] = (
            StagedUpserts(recorder=recorder, ways=ways),
            MergedUpserts(recorder, create=create, ways=ways),  # the last: what is missing is made
        )

    def run(self, request: Upsert) -> Upserted:
        """See `Writer.upsert`."""
        if request.options.cdc is Cdc.DELTA:
            require_whole_versions(self._plans, request.frame)
        # Every try begins with what the session says now: its settings, and its views.
        session: Any = self._plans.cloned(self._plans.spark._jsparkSession)
        session.conf().set(_CASE, "false")
        made: list[str] = []
        done = retried(
            lambda: self._tried(self._plans.cloned(session), request, made),
            retries=retries_of(session.conf().get(RETRIES_KEY, ""), default=request.retries),
        )
        return replace(done, created=bool(made) and not done.done_before)

    def _tried(self, session: Any, request: Upsert, made: list[str]) -> Upserted:
        """One try. Where it makes the table, `made` is told."""
        # Of the target itself, too, one version is read: the source is computed before the write begins.
        pinned = pin(self._plans, session, plan_of(rows_of(request)), target=None)
        source = UpsertSource(pinned=pinned, schema=schema_of(self._plans.frame(session, pinned.plan)))
        done = first_known(one.tried(session, request, source, made) for one in self._formats)
        assert done is not None, "the last one takes all"
        return done
