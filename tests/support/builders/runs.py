"""Runs on small real Delta tables, executed by the fake engine: no Spark, no database."""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Commit, Observation
from lakewarden.catalog.model.rows import Action
from lakewarden.catalog.state.port import RunRequest
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.jobs.actions.answers import AnyAction
from lakewarden.jobs.actions.registry import encode, required_version
from lakewarden.jobs.runs.port import JobContext, Target
from lakewarden.jobs.worker.runner import Runner
from support.fakes.clock import one_clock
from support.fakes.engine import FakeEngine
from support.fakes.metastore import FakeMetastore
from support.fakes.state import FakeQueue
from support.fakes.tools import OneFormat

__all__ = ["Bench", "delta_table", "parquet_file", "request_of"]


def parquet_file(path: Path, rows: int = 10) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": pa.array(range(rows), pa.int64())}), path)


def delta_table(folder: Path, commits: int = 1) -> str:
    """A Delta table of `commits` commits of ten rows each. Returns its canonical location."""
    for _ in range(commits):
        write_deltalake(folder, pa.table({"id": pa.array(range(10), pa.int64())}), mode="append")
    return canonical(str(folder))


def request_of(location: str, action: AnyAction, **changes: Any) -> RunRequest:
    values: dict[str, Any] = {
        "run_id": "run-1",
        "table_id": f"id of {location}",
        "name": "db.t",
        "location": location,
        "action": Action(action.kind),
        "payload": encode(action),
        "because": "a test asks for it",
        "requires_version": required_version(action),
    }
    return RunRequest(**{**values, **changes})


@dataclass
class Bench:
    """Everything a run needs, with fakes where Spark and servers would be."""

    clock: SystemClock = field(default_factory=SystemClock)
    metastore: FakeMetastore = field(default_factory=FakeMetastore)
    reader: DeltaReader = field(default_factory=DeltaReader)

    def __post_init__(self) -> None:
        self.queue = FakeQueue(self.clock)
        self.engine = FakeEngine(self.clock, self.metastore)

    @property
    def tools(self) -> OneFormat:
        return OneFormat(self.reader, self.engine)

    def runner(self, **changes: Any) -> Runner:
        values: dict[str, Any] = {
            "worker": "w",
            "queue": self.queue,
            "tools": self.tools,
            "metastore": self.metastore,
            "clock": self.clock,
            "storage": lambda _: StorageOptions(),
            "lease": timedelta(minutes=1),
            "heartbeat": timedelta(milliseconds=10),
            "longest_run": timedelta(days=1),
            "clocks": one_clock(changes.get("clock", self.clock)),
        }
        return Runner(**{**values, **changes})

    def context(self, location: str, *, name: str = "db.t", run_id: str = "run-1") -> JobContext:
        return JobContext(
            target=Target(table_id=f"id of {location}", name=name, location=location),
            run_id=run_id,
            reader=self.reader,
            clock=self.clock,
            engine=self.engine,
            metastore=self.metastore,
            still_ours=lambda: None,
        )

    def seen(self, location: str) -> Observation:
        seen = self.reader.observe(location)
        assert isinstance(seen, Observation), seen
        return seen

    def commits(self, location: str) -> list[Commit]:
        return list(self.reader.commits(location, after=-1))
