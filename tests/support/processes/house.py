"""A small installation on disk with real tables, real stores and daemon processes that can be killed."""

import fcntl
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from lakewarden.catalog.model.rows import Mode, PolicySettings, RunRow, Source, TableState
from lakewarden.catalog.registry.convert import WantedConversion, begin_conversion
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.state.port import Run
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import HEALTH, RUNS, SYSTEM_TABLES, TABLES
from lakewarden.daemon.settings.settings import load_settings
from support.builders.callers import actor
from support.builders.runs import parquet_file
from support.processes import daemon_process
from support.processes.daemon_process import FakeWorkerServices

__all__ = ["QUICK", "House"]

ANA = actor("ana", admin=True)
CARE = PolicySettings(mode=Mode.MANAGE, compaction_min_small_files=3, compaction_quiet_seconds=0)
QUICK = {
    "lease.ttl": "4 s",
    "run.lease": "3 s",
    "run.heartbeat": "500 ms",
    "sweep.interval": "500 ms",
    "workers.idle": "20 s",
    "workers.drain": "20 s",
}


@dataclass
class House:
    """A home folder, its tables, and the daemons on it. `environment` goes to every daemon."""

    folder: Path
    settings: dict[str, str] = field(default_factory=lambda: dict(QUICK))
    environment: dict[str, str] = field(default_factory=dict)
    daemons: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.home = self.folder / "home"
        self.services = FakeWorkerServices(load_settings(home=self.home, environment={}, flags=self.settings))
        self.home.mkdir(parents=True, exist_ok=True)
        store = self.services.store
        store.create(system_rows(store, now=self.services.clock.now(), actor="root"))

    def table(self, name: str, commits: int = 5) -> str:
        """A managed table of `commits` small files that has to be compacted. Returns its location."""
        place = self.folder / "lake" / name
        for number in range(commits):
            self.append(place, number)
        row = register(self.services.registry, str(place), actor=ANA, name=f"db.{name}").row
        managed = replace(row, policy=CARE, source=Source.CONVERT)
        self.services.store.edit(TABLES, lambda _: [managed], because="test")
        return str(place)

    def conversion(self, name: str) -> str:
        """A Parquet folder that somebody wants converted. Returns its location."""
        place = self.folder / "raw" / name
        parquet_file(place / "a.parquet")
        begin_conversion(self.services.registry, str(place), WantedConversion(name=f"db.{name}"), actor=ANA)
        return str(place)

    def append(self, place: Path | str, number: int = 0) -> None:
        """A user writes ten rows."""
        rows = pa.table({"id": pa.array(range(number * 10, number * 10 + 10), pa.int64())})
        write_deltalake(str(place), rows, mode="append")

    @contextmanager
    def daemon(self, until: str = "stopped", *, failpoint: str = "") -> Iterator["subprocess.Popen[bytes]"]:
        """A daemon process; what is left of it at the end of the block is killed."""
        process = self.start(until, failpoint=failpoint)
        try:
            yield process
        finally:
            process.kill()
            process.wait()

    def start(self, until: str = "stopped", *, failpoint: str = "") -> "subprocess.Popen[bytes]":
        """A daemon process that the caller ends."""
        flags = [f"{key}={value}" for key, value in self.settings.items()]
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        with (self.home / f"daemon-{len(self.daemons)}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, daemon_process.__file__, str(self.home), until, *flags],
                stdout=log,
                stderr=log,
                env={
                    **environment,
                    **self.environment,
                    "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                    "PYTHONPYCACHEPREFIX": os.environ.get("PYTHONPYCACHEPREFIX")
                    or str(self.folder.parent / "pycache"),
                    "LAKEWARDEN_FAILPOINT": failpoint,
                },
            )
        self.daemons.append(process)
        return process

    def freeze(self, process: "subprocess.Popen[bytes]") -> None:
        """Stop a daemon that holds neither SQLite's lock nor the one on the home: all others would wait for it."""
        while True:
            process.send_signal(signal.SIGSTOP)
            self.wait_until(lambda: _is_stopped(process.pid))
            if self._is_unlocked():
                return
            process.send_signal(signal.SIGCONT)
            time.sleep(0.05)

    def _is_unlocked(self) -> bool:
        handle = os.open(self.home, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with closing(sqlite3.connect(self.home / "state.db", timeout=1.0)) as database:
                database.execute("BEGIN IMMEDIATE")
        except (BlockingIOError, sqlite3.OperationalError):
            return False
        finally:
            os.close(handle)
        return True

    def run_until_idle(self, seconds: float = 300) -> int:
        """A daemon that works until nothing is left; waits while the lease of a killed one still runs."""
        deadline = time.monotonic() + seconds
        while True:
            with self.daemon("idle") as process:
                code = process.wait(max(1.0, deadline - time.monotonic()))
            if code != 4 or time.monotonic() > deadline:
                return code

    def wait_until(self, check: Callable[[], bool], seconds: float = 120) -> None:
        """Wait for something that a daemon is to bring about."""
        deadline = time.monotonic() + seconds
        while not check():
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.05)

    def runs(self) -> tuple[RunRow, ...]:
        """Recorded runs on users' tables."""
        return tuple(
            row for row in self.services.store.rows(RUNS).all() if row.name.startswith(("db.", "default."))
        )

    def unfinished(self) -> tuple[Run, ...]:
        return self.services.queue.unfinished()

    def operations(self, location: str) -> Counter[str]:
        """How often each operation is in a table's log."""
        reader = self.services.readers[0]
        return Counter(commit.operation for commit in reader.commits(f"file://{location}", after=-1))

    def run_ids(self, location: str) -> Counter[str]:
        """How many commits of a table carry each run id."""
        reader = self.services.readers[0]
        commits = reader.commits(f"file://{location}", after=-1)
        return Counter(commit.run_id for commit in commits if commit.run_id is not None)

    def files(self, location: str) -> int:
        """The number of files in the head of a table."""
        return sum(1 for _ in self.services.readers[0].files(f"file://{location}"))

    def versions(self) -> dict[str, int]:
        """The version of each system table."""
        return {table.name.value: self.services.store.rows(table).version for table in SYSTEM_TABLES}

    def state_of(self, name: str) -> TableState | None:
        """The state of a table's row, None without one."""
        rows = self.services.store.rows(TABLES).all()
        return next((row.state for row in rows if row.name == name), None)

    def health_of(self, name: str) -> int | None:
        """The number of files that the catalog believes a table has."""
        row = next(row for row in self.services.store.rows(TABLES).all() if row.name == name)
        health = self.services.store.rows(HEALTH).get(row.table_id)
        return None if health is None else health.files

    def last_log(self) -> str:
        """What the daemon that was started last said."""
        return (self.home / f"daemon-{len(self.daemons) - 1}.log").read_text(errors="replace")

    def log(self) -> str:
        """What all daemons and workers said."""
        paths = [*sorted(self.home.glob("daemon-*.log")), *sorted(self.home.glob("logs/*.log"))]
        return "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')}" for path in paths)

    def end(self) -> None:
        """Kill what still runs."""
        for process in self.daemons:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()


def _is_stopped(pid: int) -> bool:
    """A signal is on its way for a while; whoever runs on meanwhile may still take a lock."""
    states = [
        stat.read_text().rpartition(")")[2].split()[0] for stat in Path(f"/proc/{pid}/task").glob("*/stat")
    ]
    return set(states) == {"T"}
