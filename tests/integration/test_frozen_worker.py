"""A worker that is frozen among its deletions: its run is lost, others go on, it wakes, and deletes nothing more."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog.model.rows import Outcome
from lakewarden.daemon.workers.lost_runs import Reaper
from support.builders.estate import AHEAD, Estate, numbers, rows
from support.cases import mostly_long
from support.processes import frozen_vacuum

pytestmark = pytest.mark.crash

FILES = 40


@pytest.fixture
def folder(estate: Estate, tmp_path: Path) -> Path:
    """`db.t`: forty files that a version outside of any window has, and that head no longer has."""
    place = tmp_path / "lake" / "t"
    short = {"delta.deletedFileRetentionDuration": "interval 1 second"}
    for number in range(FILES):
        write_deltalake(str(place), numbers(number * 10), mode="append", configuration=short)
    write_deltalake(str(place), numbers(0), mode="overwrite")
    time.sleep(1.1)
    estate.must("tables", "register", str(place), "--name", "db.t")
    estate.must("tables", "policy", "set", "db.t", "mode=manage")
    return place


def frozen(estate: Estate, when: int) -> "subprocess.Popen[str]":
    """A worker that took the run and sleeps."""
    process = subprocess.Popen(
        [sys.executable, frozen_vacuum.__file__, str(estate.home), str(when)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    end = time.monotonic() + 60
    while _state(process.pid) != "T":
        assert process.poll() is None and time.monotonic() < end, process.communicate()[0]
        time.sleep(0.05)
    return process


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def settled(estate: Estate, run_id: str) -> None:
    """Wait until the lease is over, and settle the run as the daemon does."""
    services = estate.services
    reaper = Reaper(
        queue=services.queue,
        run_log=services.run_log,
        registry=services.registry,
        clock=services.clock,
        attempts=1,
        pause=AHEAD,
    )
    end = time.monotonic() + 30
    while not reaper.lost():
        assert time.monotonic() < end
        time.sleep(0.1)
    for run in reaper.lost():
        assert run.request.run_id == run_id and reaper.finish(run)


@pytest.mark.parametrize("gone", mostly_long([0, 17], [17]), ids=["before the first file", "among the files"])
def test_it_deletes_nothing_when_it_wakes(estate: Estate, folder: Path, gone: int) -> None:
    run_id = estate.queue("db.t", estate.vacuum("db.t"))
    looks_before_the_first_file = _looks(estate, folder)
    process = frozen(estate, looks_before_the_first_file + gone + 1)
    try:
        left = len(list(folder.glob("*.parquet")))
        assert left == FILES + 1 - gone
        settled(estate, run_id)
        if gone == 0:
            DeltaTable(str(folder)).restore(FILES - 1)  # outside of any window, and whole
        process.send_signal(signal.SIGCONT)
        said, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert f"{Outcome.FAILED}" in said and "lease was lost" in said, said
    assert len(list(folder.glob("*.parquet"))) == left
    assert len(rows(folder)) == (10 * FILES if gone == 0 else 10)


def _looks(estate: Estate, folder: Path) -> int:
    """How often a worker looks at its claim before the first file goes: at its start, twice before it says
    that it begins, before and after the look at the batch; each time by its own clock, then before and after it asked
    the queue."""
    return 5 * 3
