"""A home with real system tables, real tables and a real queue, driven by commands; its worker works without Spark.

For what lies between a decision and the act: runs are queued, commands are given, then the worker comes.
"""

import os
import time
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Head, Observation
from lakewarden.catalog.model.pending_purge import Purging
from lakewarden.catalog.model.rows import Action, TableRow, TableState
from lakewarden.catalog.state.port import Result, RunRequest
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.daemon.installation.services import Services, open_services
from lakewarden.jobs.actions.answers import AnyAction
from lakewarden.jobs.actions.purge import Purge
from lakewarden.jobs.actions.registry import encode, required_version
from lakewarden.jobs.actions.vacuum import Vacuum
from lakewarden.jobs.runs.standings import StoredStandings
from lakewarden.jobs.worker.runner import Finished, Runner
from support.fakes.clock import ManualClock, one_clock
from support.fakes.engine import FakeEngine
from support.fakes.tools import OneFormat
from support.processes.commands import Cli, Said, caller

__all__ = ["AHEAD", "Estate", "made_estate", "managed_lake", "numbers", "overwritten", "rows"]

AHEAD = timedelta(days=30)
"""How far the clock of a worker is ahead, so that every retention has passed."""
WEEK = timedelta(days=7)


def numbers(first: int, count: int = 10) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + count), pa.int64())})


def overwritten(folder: Path, times: int = 4) -> None:
    """A table whose earlier files are all garbage, made and removed long ago by every clock."""
    short = {"delta.deletedFileRetentionDuration": "interval 1 second"}  # delta-rs goes by the real clock
    for number in range(times):
        write_deltalake(str(folder), numbers(number * 10), mode="overwrite", configuration=short)
    time.sleep(1.1)


def rows(folder: Path) -> list[int]:
    return sorted(DeltaTable(str(folder)).to_pyarrow_table().column("id").to_pylist())


@dataclass
class Estate:
    """`said` runs a command on the home; `now` is what the worker's clock says (really now when None)."""

    home: Path
    said: Cli | None
    reader: DeltaReader = field(default_factory=DeltaReader)
    ahead: timedelta = timedelta(0)

    @property
    def services(self) -> Services:
        return open_services(home=self.home)

    def says(self, *arguments: str) -> Said:
        """What a command says, however it ends."""
        assert self.said is not None, "this process gives no commands"
        return self.said(*arguments)

    def must(self, *arguments: str) -> Said:
        """A command that has to succeed."""
        done = self.says(*arguments)
        assert done.code == 0, (arguments, done.out, done.err)
        return done

    def row(self, where: str) -> TableRow:
        return self.services.registry.resolve(where, gone=True)

    def seen(self, where: str) -> Observation:
        found = self.reader.observe(self.row(where).location or "")
        assert isinstance(found, Observation), found
        return found

    def vacuum(self, where: str, **changes: object) -> Vacuum:
        """The vacuum that the rules decide on for a table whose retention has passed."""
        seen = self.seen(where)
        values = {"requires": seen.at, "max_share": 1.0}
        action = values | {"retention_seconds": int(WEEK.total_seconds())} | changes
        return Vacuum(**action)  # type: ignore[arg-type]  # by name

    def purge(self, where: str) -> Purge:
        """The purge that the rules decide on for a table that waits for one."""
        wanted = Purging.of(self.row(where))
        return Purge(
            requires=Head(wanted.version, wanted.head),
            unknown=wanted.unknown,
            others=wanted.others,
            head_file=wanted.head_file,
            files=1,
            bytes=1,
        )

    def queue(self, where: str, action: AnyAction, *, rank: float = 1.0) -> str:
        """Queue an action as the daemon does."""
        row, run_id = self.row(where), uuid.uuid4().hex
        request = RunRequest(
            run_id=run_id,
            table_id=row.table_id,
            name=row.name,
            location=row.location or "",
            action=Action(action.kind),
            payload=encode(action),
            because="it is due",
            requires_version=required_version(action),
            rank=rank,
        )
        assert self.services.queue.enqueue([request]) == (run_id,)
        return run_id

    def result(self, run_id: str) -> Result:
        found = self.services.queue.get(run_id)
        assert found is not None and found.result is not None, found
        return found.result

    @property
    def tools(self) -> OneFormat:
        return OneFormat(self.reader, FakeEngine(self.services.clock))

    def work(self, **changes: object) -> Finished | None:
        """Let a worker take the next run, some days ahead of the commits it finds."""
        services = self.services
        clock = ManualClock(datetime.now().astimezone() + self.ahead)
        values = {
            "worker": f"w-{os.getpid()}",
            "queue": services.queue,
            "tools": OneFormat(self.reader, FakeEngine(clock)),
            "metastore": None,
            "clock": clock,
            "storage": lambda _: StorageOptions(),
            "lease": timedelta(minutes=1),
            "heartbeat": timedelta(seconds=1),
            "longest_run": timedelta(days=1),
            "clocks": one_clock(clock),
            "standings": StoredStandings(services.store),
        }
        return Runner(**(values | changes)).run_next()  # type: ignore[arg-type]  # by name

    def is_state(self, where: str, state: TableState) -> bool:
        return self.row(where).state is state


def made_estate(
    folder: Path, monkeypatch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[bytes]
) -> Estate:
    """A new home below `folder`, on which commands are given in this process."""
    made = Estate(folder / "home", caller(folder / "home", monkeypatch, captured), ahead=AHEAD)
    made.must("init")
    return made


def managed_lake(estate: Estate, lake: Path) -> Path:
    """The folder of `db.t`, managed, with files that a vacuum would delete; another folder is beside it."""
    place = lake / "t"
    overwritten(place)
    (lake / "beside").mkdir()
    estate.must("tables", "register", str(place), "--name", "db.t")
    estate.must("tables", "policy", "set", "db.t", "mode=manage")
    return place
