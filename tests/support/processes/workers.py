"""Worker processes on a real queue: started, killed at named points or at random,
their runs settled like a daemon does."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import psutil
from sqlalchemy import update

from lakewarden.catalog.clock import Clock, SystemClock
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.metastore.port import Metastore
from lakewarden.catalog.registry.service import Registry
from lakewarden.catalog.state.db import open_database
from lakewarden.catalog.state.models import RUN
from lakewarden.catalog.state.port import Result, RunRequest
from lakewarden.catalog.state.queue import DatabaseQueue
from lakewarden.catalog.state.run_log import DatabaseRunLog
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.daemon.workers.lost_runs import Reaper
from lakewarden.jobs.runs.port import Engine
from lakewarden.jobs.runs.spark_settings import SparkSettings
from lakewarden.jobs.runs.worker_config import WorkerConfig, write_config
from lakewarden.jobs.worker.loop import WorkLoop
from support.builders.states import sqlite_url
from support.fakes.engine import FakeEngine
from support.fakes.system_store import FakeSystemStore
from support.processes import fake_worker

__all__ = ["FAKE", "SPARK", "Hall", "is_gone"]

FAKE = (fake_worker.__file__,)
SPARK = ("-m", "lakewarden.jobs.worker.process")
LEASE = timedelta(minutes=5)
"""Longer than any stall of a busy machine: time passes for the dead only (`Hall.settle`)."""


@dataclass
class Hall:
    """A queue in a folder and the workers on it."""

    folder: Path
    program: tuple[str, ...] = FAKE
    spark: SparkSettings = field(default_factory=SparkSettings)
    lease: timedelta = LEASE
    attempts: int = 100

    def __post_init__(self) -> None:
        self.url = sqlite_url(self.folder)
        self._database = open_database(self.url)
        self.queue = DatabaseQueue(self._database)
        self._run_log = DatabaseRunLog(self._database)
        self.reader = DeltaReader()
        clock = SystemClock()
        registry = Registry(
            store=FakeSystemStore(),
            readers=(self.reader,),
            metastore=None,
            clock=clock,
            inspect=lambda row, policy, seen: (),
            storage=lambda _: StorageOptions(),
        )
        self.reaper = Reaper(
            queue=self.queue,
            run_log=self._run_log,
            registry=registry,
            clock=clock,
            attempts=self.attempts,
            pause=timedelta(0),
        )
        self.started = 0

    @contextmanager
    def worker(
        self, *, failpoint: str = "", idle: timedelta = timedelta(seconds=1)
    ) -> Iterator["subprocess.Popen[bytes]"]:
        """A worker process; what is left of it at the end of the block is killed."""
        told = self._next(idle, parent=os.getpid())
        with (self.folder / f"worker-{self.started}.log").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, *self.program],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env={**os.environ, **_python_path(), "LAKEWARDEN_FAILPOINT": failpoint},
            )
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin:
            process.stdin.write(write_config(told).encode())
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def _next(self, idle: timedelta, *, parent: int) -> WorkerConfig:
        self.started += 1
        return WorkerConfig(
            name=f"worker-{self.started}",
            database_url=self.url,
            parent=parent,
            spark=self.spark,
            lease=self.lease,
            heartbeat=timedelta(seconds=1),
            idle=idle,
            poll=timedelta(milliseconds=20),
        )

    def loop(
        self,
        connect: Callable[[str], Metastore | None] = lambda _: None,
        engine: Callable[[Clock, Metastore | None], Engine] = FakeEngine,
    ) -> WorkLoop:
        """A worker for this process, which ends once nothing is queued. `connect` opens the metastore."""
        return fake_worker.loop_of(self._next(timedelta(0), parent=os.getppid()), engine, connect)

    def run_worker(self, *, failpoint: str = "", seconds: float = 300) -> int:
        """Let a worker work until it ends. Returns its exit code."""
        with self.worker(failpoint=failpoint) as process:
            return process.wait(seconds)

    def said(self, run_id: str) -> list[str]:
        """The lines that are kept of a run."""
        return [line.message for line in self._run_log.read(run_id)]

    def settle(self) -> None:
        """What a daemon does with lost runs: once their leases are over it settles them by the tables' logs.

        Only while no worker lives: the leases are ended here instead of waited for.
        """
        with self._database.transaction() as connection:
            connection.execute(update(RUN).where(RUN.c.lease_until.is_not(None)).values(lease_until=1))
        for run in self.reaper.lost():
            self.reaper.finish(run)

    def results(self) -> dict[str, Result]:
        """Results of the finished runs by run id."""
        return {
            run.request.run_id: run.result for run in self.queue.finished(10_000) if run.result is not None
        }

    def enqueue(self, *requests: RunRequest) -> None:
        assert len(self.queue.enqueue(requests)) == len(requests)

    def commits_of(self, location: str, run_id: str) -> list[int]:
        """Versions that carry a run id."""
        commits = self.reader.commits(location, after=-1) if self.reader.is_table(location) else ()
        return [commit.version for commit in commits if commit.run_id == run_id]

    def log(self) -> str:
        """What all workers said."""
        return "\n".join(
            path.read_text(errors="replace") for path in sorted(self.folder.glob("worker-*.log"))
        )


def is_gone(process: psutil.Process, seconds: float = 30) -> bool:
    """Whether a process has ended, or does so soon."""
    until = time.monotonic() + seconds
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


def _python_path() -> Mapping[str, str]:
    return {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
