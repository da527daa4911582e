"""A worker, or a command, on a host whose clock is wrong deletes nothing by its age, and orders nothing to be."""

from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.model.rows import Outcome, TableState
from lakewarden.catalog.state.port import Result
from lakewarden.daemon.control.assembly import build_daemon
from lakewarden.jobs.actions.answers import AnyAction
from lakewarden.jobs.engines.registry import InstalledTools
from lakewarden.jobs.runs.host_clock import HostClock
from lakewarden.jobs.runs.worker_config import WorkerConfig
from lakewarden.jobs.worker import process
from lakewarden.jobs.worker.run_lines import RunLines
from lakewarden.jobs.worker.runner import Runner
from support.builders.estate import Estate, managed_lake
from support.fakes.clock import ManualClock

AHEAD = timedelta(days=30)


@pytest.fixture
def folder(estate: Estate, tmp_path: Path) -> Path:
    """`db.t` has three files that a vacuum would delete, if a month had passed."""
    return managed_lake(estate, tmp_path / "lake")


def files(folder: Path) -> int:
    return len(list(folder.rglob("*.parquet")))


def worked(estate: Estate, action: AnyAction, apart: timedelta, *, database: timedelta = AHEAD) -> Result:
    """A run on a host whose clock is so much ahead of the database's, which is a month ahead of what it finds."""
    now = SystemClock().now() + database
    clock = ManualClock(now + apart)
    estate.queue("db.t", action)
    done = estate.work(clock=clock, clocks=HostClock(own=clock, database=lambda: now, host="node-7"))
    assert done is not None
    return done.result


@pytest.mark.few(1)
@pytest.mark.parametrize("apart", [AHEAD, -AHEAD, timedelta(minutes=6)], ids=["ahead", "behind", "a little"])
def test_a_worker_whose_clock_is_wrong_deletes_nothing(
    estate: Estate, folder: Path, apart: timedelta
) -> None:
    done = worked(estate, estate.vacuum("db.t"), apart, database=timedelta(0))
    assert done.outcome is Outcome.FAILED and files(folder) == 4, done
    assert "The clock of node-7 is " in (done.message or "") and "NTP" in (done.hint or ""), done
    version = str(DeltaTable(str(folder)).version())
    estate.must("tables", "drop", "db.t", "--purge", "--at-version", version, "--yes")
    done = worked(estate, estate.purge("db.t"), apart)
    assert done.outcome is Outcome.FAILED and "nothing is deleted by its age" in (done.message or ""), done
    assert files(folder) == 4 and estate.is_state("db.t", TableState.PURGING)


@pytest.mark.long
def test_it_goes_wrong_while_it_deletes(estate: Estate, folder: Path) -> None:
    now = SystemClock().now() + AHEAD
    clock = ManualClock(now)
    asked: list[str] = []

    def database() -> object:
        asked.append("now")
        if len(asked) == 3:
            clock.advance(timedelta(days=2))
        return now

    estate.queue("db.t", estate.vacuum("db.t"))
    compared = HostClock(own=clock, database=database, host="node-7")  # type: ignore[arg-type]  # a moment
    done = estate.work(clock=clock, clocks=compared)
    assert done is not None and done.result.outcome is Outcome.FAILED, done
    assert "2 days ahead" in (done.result.message or ""), done
    assert files(folder) == 4


@pytest.mark.long
@pytest.mark.parametrize("apart", [timedelta(0), timedelta(minutes=4), timedelta(minutes=-4)])
def test_what_clocks_may_be_apart_counts_as_young(estate: Estate, folder: Path, apart: timedelta) -> None:
    """By whichever is behind: the retention ends for both."""
    week = timedelta(days=7, seconds=30)
    done = worked(estate, estate.vacuum("db.t"), apart, database=week)
    gone = apart >= timedelta(0)
    assert done.outcome is (Outcome.SUCCEEDED if gone else Outcome.SKIPPED), done
    assert files(folder) == (1 if gone else 4)
    assert worked(estate, estate.vacuum("db.t"), timedelta(0)).outcome is (
        Outcome.SKIPPED if gone else Outcome.SUCCEEDED
    )


@pytest.mark.long
def test_young_by_the_database_is_young(estate: Estate, folder: Path) -> None:
    done = worked(estate, estate.vacuum("db.t"), timedelta(minutes=4), database=timedelta(days=7, minutes=-2))
    assert done.outcome is Outcome.SKIPPED and files(folder) == 4, done


@pytest.mark.long
def test_a_purge_is_ordered_by_no_wrong_clock(
    estate: Estate, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = str(DeltaTable(str(folder)).version())
    right = SystemClock.now
    monkeypatch.setattr(SystemClock, "now", lambda self: right(self) - timedelta(days=3))
    said = estate.says("tables", "drop", "db.t", "--purge", "--at-version", version, "--yes")
    assert said.code == 4 and "is 3 days behind the control database's" in said.err, said.err
    assert "Traceback" not in said.err and estate.is_state("db.t", TableState.ACTIVE)


def test_no_worker_can_be_made_that_does_not(estate: Estate) -> None:
    with pytest.raises(TypeError, match="'clocks'"):
        Runner(  # type: ignore[call-arg]  # that is what is tried
            worker="w",
            queue=estate.services.queue,
            tools=estate.tools,
            metastore=None,
            clock=SystemClock(),
            storage=estate.services.storage,
            lease=timedelta(minutes=1),
            heartbeat=timedelta(seconds=1),
            longest_run=timedelta(days=1),
        )


def test_every_worker_compares(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = estate.services.settings
    config = WorkerConfig(name="w", database_url=settings.database_url)
    tools = InstalledTools(config)
    runner = process._runner(config, tools, RunLines(config))
    runner.clocks.require_agreeing()
    right = SystemClock.now
    monkeypatch.setattr(SystemClock, "now", lambda self: right(self) + timedelta(days=1))
    with pytest.raises(PreconditionError, match="ahead of the control database's"):
        runner.clocks.require_agreeing()


def test_the_daemon_compares_before_it_deletes_of_its_own_tables(
    estate: Estate, monkeypatch: pytest.MonkeyPatch
) -> None:
    clocks = build_daemon(estate.services, pages=False).parts.cycle.parts.caretaker.clocks
    clocks.require_agreeing()
    right = SystemClock.now
    monkeypatch.setattr(SystemClock, "now", lambda self: right(self) - timedelta(days=1))
    with pytest.raises(PreconditionError, match="behind the control database's"):
        clocks.require_agreeing()
