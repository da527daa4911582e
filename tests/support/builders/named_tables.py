"""A table that real Spark and a real metastore know by name, and the runs on it."""

from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Head, Observation
from lakewarden.catalog.metastore.hive import HiveMetastore
from lakewarden.catalog.metastore.port import Entry
from lakewarden.catalog.metastore.sync_plan import SyncPlan, plan_sync
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.jobs.actions.statistics import RefreshStatistics
from lakewarden.jobs.actions.sync import SyncMetastore
from lakewarden.jobs.engines.delta.engine import DeltaEngine
from lakewarden.jobs.executors.statistics import refresh_statistics
from lakewarden.jobs.executors.sync import sync_metastore
from lakewarden.jobs.runs.port import JobContext, Report, Target

__all__ = ["NamedTable"]


@dataclass
class NamedTable:
    """`name` is `db.t`; everything is looked up anew each time."""

    spark: SparkSession
    store: HiveMetastore
    name: str
    table_id: str = "table-1"
    reader: DeltaReader = field(default_factory=DeltaReader)

    @property
    def location(self) -> str:
        return canonical(self.entry().location or "")

    def entry(self) -> Entry:
        found = self.store.get(*self.name.split("."))
        assert found is not None
        return found

    def observe(self) -> Observation:
        seen = self.reader.observe(self.location)
        assert isinstance(seen, Observation), seen
        return seen

    def plan(self, *, strict: bool | None = None) -> SyncPlan:
        return plan_sync(
            self.observe(),
            self.entry(),
            table_id=self.table_id,
            location=self.location,
            strict=self.store.strict_columns() if strict is None else strict,
            stale_share=0.1,
        )

    def sync(self) -> Report:
        action = SyncMetastore(requires=Head(self.observe().version), name=self.name)
        return sync_metastore(self.context(), action)

    def refresh(self, *, requires: int | None = None, fill_files: bool = False) -> Report:
        version = self.observe().version if requires is None else requires
        action = RefreshStatistics(requires=Head(version), name=self.name, fill_files=fill_files)
        return refresh_statistics(self.context(), action)

    def context(self) -> JobContext:
        clock = SystemClock()
        return JobContext(
            target=Target(table_id=self.table_id, name=self.name, location=self.location),
            run_id="run-1",
            reader=self.reader,
            clock=clock,
            engine=DeltaEngine(lambda: self.spark, storage=lambda _: StorageOptions(), clock=clock),
            metastore=self.store,
            still_ours=lambda: None,
        )
