"""Maintenance runs on real Delta tables: the real reader, the real engine on the suite's session, a clock to be set."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pyspark.sql import Row, SparkSession

from lakewarden.catalog.clock import Clock, SystemClock
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.jobs.actions.answers import AnyAction
from lakewarden.jobs.engines.delta.engine import DeltaEngine
from lakewarden.jobs.engines.delta.sessions.stamped_sessions import forget_tables
from lakewarden.jobs.engines.spark.names import table_at
from lakewarden.jobs.runs.port import JobContext, Report, Target
from lakewarden.jobs.worker.dispatch import execute
from support.fakes.clock import ManualClock

__all__ = ["DeltaTableOnDisk", "forget_delta_logs"]

_runs = itertools.count()


@dataclass(frozen=True, slots=True)
class DeltaTableOnDisk:
    """A Delta table in a local folder, looked at by the reader and worked on through the executors."""

    spark: SparkSession
    folder: Path

    @property
    def location(self) -> str:
        return canonical(str(self.folder))

    @property
    def sql_name(self) -> str:
        return table_at(self.location)

    def sql(self, statement: str) -> list[Row]:
        """Run a statement; `{t}` in it is the table."""
        return self.spark.sql(statement.replace("{t}", self.sql_name)).collect()

    def rows(self, version: int | None = None) -> list[Row]:
        """All rows of a version, sorted."""
        at = "" if version is None else f" VERSION AS OF {version}"
        return sorted(self.spark.sql(f"SELECT * FROM {self.sql_name}{at}").collect(), key=repr)

    def observe(self) -> Observation:
        seen = DeltaReader().observe(self.location)
        assert isinstance(seen, Observation), seen
        return seen

    def run(
        self,
        action: AnyAction,
        *,
        now: datetime | None = None,
        still_ours: Callable[[], None] = lambda: None,
        run_id: str | None = None,
    ) -> Report:
        """Execute an action at a moment (really now when None)."""
        clock: Clock = SystemClock() if now is None else ManualClock(now)
        ctx = JobContext(
            target=Target(table_id="t1", name="db.t", location=self.location),
            run_id=run_id or f"run-{next(_runs)}",
            reader=DeltaReader(),
            clock=clock,
            engine=DeltaEngine(lambda: self.spark, storage=lambda _: StorageOptions(), clock=clock),
            metastore=None,
            still_ours=still_ours,
        )
        return execute(ctx, action)

    def live_paths(self, version: int) -> set[Path]:
        """The data files of a version."""
        return {self.folder / file.path for file in DeltaReader().files(self.location, version=version)}


def forget_delta_logs(spark: SparkSession) -> None:
    """Make Spark read every log anew, as another process would."""
    forget_tables(spark.sparkContext)
