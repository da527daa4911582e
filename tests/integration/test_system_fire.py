"""System tables under fire: several processes, no shared lock or database, the same rows and new keys, random SIGKILLs.

Every acknowledged change must be there exactly once;
a change that was not acknowledged may be there once or not at all.
`LAKEWARDEN_FIRE_SECONDS` makes the fire last longer than it does in CI.
"""

import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import RUNS, TABLES
from lakewarden.catalog.system.recovery.verify import verify
from lakewarden.catalog.system.store import DeltaSystemStore
from support.builders.system_samples import NOW, table_row
from support.processes import system_process
from support.processes.system_process import SHARED_ROWS
from support.servers.hdfs import Hdfs

pytestmark = pytest.mark.heavy
WRITERS = 5
KINDS = ("marked", "inserted", "appended")


@dataclass(slots=True)
class Writer:
    """A process that writes, and the file of what it was told is done."""

    process: "subprocess.Popen[bytes]"
    acks: Path

    def has_acknowledged(self) -> bool:
        return self.acks.exists() and self.acks.stat().st_size > 0


@dataclass(slots=True)
class Fire:
    """Writers on one store, each started again when it was killed."""

    location: str
    folder: Path
    kills: int = 0
    started: int = 0

    def rage(self, seconds: float) -> None:
        """Keep `WRITERS` processes writing and kill one now and then: at least so long, at least so many."""
        begin = time.monotonic()
        writers = [self._start() for _ in range(WRITERS)]
        while self._too_little() or time.monotonic() < begin + seconds:
            assert time.monotonic() < begin + 10 * seconds + 120, "the writers hardly come to write"
            time.sleep(random.uniform(0.1, 1.5))
            victim = random.choice(writers)
            if victim.has_acknowledged():
                victim.process.send_signal(signal.SIGKILL)
                victim.process.wait()
                self.kills += 1
                writers[writers.index(victim)] = self._start()
        (self.folder / "stop").touch()
        assert [writer.process.wait(120) for writer in writers] == [0] * WRITERS

    def acknowledged(self, what: str) -> list[str]:
        """Everything that some writer was told is done."""
        lines = [line for file in self.folder.glob("*.ack") for line in file.read_text().splitlines()]
        return [line.removeprefix(f"{what} ") for line in lines if line.startswith(f"{what} ")]

    def _too_little(self) -> bool:
        return self.kills < 5 or any(len(self.acknowledged(what)) < 5 for what in KINDS)

    def _start(self) -> Writer:
        self.started += 1
        name = f"w{self.started}"
        command = [sys.executable, system_process.__file__, "write", self.location, name, str(self.folder)]
        process = subprocess.Popen(command, env=_environment())
        return Writer(process=process, acks=self.folder / f"{name}.ack")


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@pytest.fixture(params=["file", pytest.param("hdfs", marks=[pytest.mark.hdfs, pytest.mark.long])])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "file":
        return canonical(str(tmp_path / "system"))
    hdfs: Hdfs = request.getfixturevalue("hdfs")
    return f"{hdfs.uri}/fire/{uuid.uuid4().hex}"


def test_every_acknowledged_change_is_there_once(location: str, tmp_path: Path) -> None:
    store = DeltaSystemStore(location, StorageOptions(), actor="tests")
    store.create(system_rows(store, now=NOW, actor="tests"))
    store.edit(TABLES, lambda _: [table_row(10 + number) for number in range(SHARED_ROWS)], because="shared")
    acks = tmp_path / "acks"
    acks.mkdir()
    fire = Fire(location=location, folder=acks)
    fire.rage(float(os.environ.get("LAKEWARDEN_FIRE_SECONDS", "20")))

    rows = store.rows(TABLES).all()
    assert max(Counter(row.table_id for row in rows).values()) == 1
    marked = Counter(mark for row in rows for mark in row.aliases)
    inserted = {f"{row.table_id} {row.owner}" for row in rows if row.row >= 1000}
    appended = Counter(row.run_id for row in store.rows(RUNS).all())
    told = {what: fire.acknowledged(what) for what in KINDS}
    assert [one for one in told["marked"] if marked[one] != 1] == []
    assert [one for one in told["inserted"] if one not in inserted] == []
    assert [one for one in told["appended"] if appended[one] != 1] == []
    assert max([*marked.values(), *appended.values()]) == 1
    assert verify(store) == ()
    print(
        f"{location.split(':')[0]}: {fire.kills} kills, "
        + ", ".join(f"{len(v)} {k}" for k, v in told.items())
    )
