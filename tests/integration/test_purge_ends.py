"""A purge that was killed half-way always comes to an end, whatever came into the folder since: by itself
where nothing of the old table can be left, else by a command. Nothing of what came since is deleted."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog import failpoints
from lakewarden.catalog.model.pending_purge import MARKER
from lakewarden.catalog.model.rows import Outcome, RunRow, TableState
from lakewarden.catalog.registry.removal import purged
from lakewarden.catalog.state.port import Result
from lakewarden.catalog.state.run_record import run_row
from lakewarden.catalog.system.port import RUNS
from lakewarden.daemon.control.run_recorder import DAEMON
from lakewarden.jobs.runs.properties_ledger import StoredLedger
from support.builders.estate import Estate, made_estate, numbers, rows
from support.crashes.crashes import points_of


class Killed(BaseException):
    """Nothing of ours catches it, as nothing catches a SIGKILL."""


@pytest.fixture
def estate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Estate:
    monkeypatch.setenv("LAKEWARDEN_PURGE_GRACE", "1 ms")
    return made_estate(tmp_path, monkeypatch, capfdbinary)


@pytest.fixture
def folder(estate: Estate, tmp_path: Path) -> Path:
    """`db.t`, alone in the folder around it, of which the grace period is over."""
    place = tmp_path / "lake" / "t"
    for number in range(3):
        write_deltalake(str(place), numbers(number * 10), mode="append")
    estate.must("tables", "register", str(place), "--name", "db.t")
    estate.must("tables", "drop", "db.t", "--purge", "--at-version", "2", "--yes")
    return place


Kill = Callable[[str], None]


@pytest.fixture
def killed_at(estate: Estate, monkeypatch: pytest.MonkeyPatch) -> Kill:
    """Run the purge and kill its worker at a point."""

    def kill(point: str) -> None:
        def die(reached: str) -> None:
            if reached == point:
                raise Killed(point)

        estate.queue("db.t", estate.purge("db.t"))
        with monkeypatch.context() as patch:
            patch.setattr(failpoints, "listener", die)
            with pytest.raises(Killed):
                work(estate)
        [run] = estate.services.queue.unfinished()
        killed = Result(outcome=Outcome.ABANDONED, message="killed")
        assert estate.services.queue.finish(run, run.worker or "", killed)

    return kill


def work(estate: Estate) -> Result:
    done = estate.work(ledger=StoredLedger(estate.services.store))
    assert done is not None
    return done.result


def again(estate: Estate) -> Result:
    """The next attempt, and what the daemon makes of it."""
    estate.queue("db.t", estate.purge("db.t"))
    done = work(estate)
    if done.outcome is Outcome.SUCCEEDED:
        purged(estate.services.registry, estate.row("db.t").table_id, actor=DAEMON)
    return done


def ended(estate: Estate) -> RunRow:
    [run] = [one for one in estate.services.queue.finished(10) if one.result and one.result.error_class]
    return run_row(run, now=estate.services.clock.now())


def made_anew(folder: Path, versions: int = 1) -> None:
    for number in range(versions):
        write_deltalake(str(folder), pa.table({"other": [number]}), mode="append")


@pytest.mark.parametrize(
    "point",
    [
        "purge.log_deleted",
        *points_of("test_killed_at_its_very_end_in_an_otherwise_empty_folder_it_ends"),
        "purge.deleted",
    ],
)
def test_killed_at_its_very_end_in_an_otherwise_empty_folder_it_ends(
    estate: Estate, folder: Path, killed_at: Kill, point: str
) -> None:
    killed_at(point)
    done = again(estate)
    assert done.outcome is Outcome.SUCCEEDED, done
    assert estate.is_state("db.t", TableState.PURGED)
    assert not folder.exists() and folder.parent.exists()


@pytest.mark.few(3)
@pytest.mark.parametrize("versions", [1, 5], ids=["younger", "further on"])
@pytest.mark.parametrize("point", ["purge.log_batch", "purge.log_deleted", "purge.unmarked", "purge.deleted"])
def test_a_table_made_anew_where_nothing_of_the_old_one_is_left_stays_and_the_purge_ends(
    estate: Estate, folder: Path, killed_at: Kill, point: str, versions: int
) -> None:
    killed_at(point)
    made_anew(folder, versions)
    (folder / "empty").mkdir()
    done = again(estate)
    assert done.outcome is Outcome.SUCCEEDED, done
    assert "came later" in (done.message or "")
    assert estate.is_state("db.t", TableState.PURGED)
    assert DeltaTable(str(folder)).to_pyarrow_table().num_rows == versions
    assert not (folder / MARKER).exists() and (folder / "empty").exists()
    estate.must("tables", "register", str(folder), "--name", "db.new")


def test_who_writes_while_the_log_is_about_to_go_keeps_the_log(
    estate: Estate, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker is not killed: it goes on, and sees what came."""

    def write(reached: str) -> None:
        if reached == "purge.data_deleted":
            write_deltalake(str(folder), numbers(100), mode="overwrite")

    monkeypatch.setattr(failpoints, "listener", write)
    done = again(estate)
    assert done.outcome is Outcome.FAILED and "came into the folder" in (done.message or ""), done
    assert rows(folder) == list(range(100, 110))


def test_what_nobody_can_tell_apart_is_left_and_a_command_ends_it(
    estate: Estate, folder: Path, killed_at: Kill
) -> None:
    killed_at("purge.data_deleted")  # the old log is whole: a writer goes on with it
    write_deltalake(str(folder), numbers(100), mode="overwrite")
    before = sorted(path for path in folder.rglob("*") if path.name != MARKER)
    done = again(estate)
    assert done.outcome is Outcome.FAILED
    table_id = estate.row("db.t").table_id
    assert f"lakewarden tables drop {table_id}" in (done.hint or "")
    refused = estate.says("tables", "undrop", "db.t")
    assert refused.code == 4 and f"lakewarden tables drop {table_id}" in refused.err
    estate.services.store.append(RUNS, [ended(estate)], because="as the daemon does")
    said = estate.must("why", "db.t", "-o", "json")
    assert f"lakewarden tables drop {table_id}" in said.out

    shown = estate.must("tables", "drop", table_id, "--dry-run")
    assert "Nothing was changed." in shown.err and estate.is_state("db.t", TableState.PURGING)
    estate.must("tables", "drop", table_id, "--yes")
    row = estate.row("db.t")
    assert row.state is TableState.DROPPED and "its deletion was stopped" in (row.state_reason or "")
    assert not (folder / MARKER).exists()
    assert sorted(folder.rglob("*")) == before
    estate.must("tables", "undrop", "db.t")
    assert rows(folder) == list(range(100, 110))


def test_a_stopped_deletion_stops_its_worker_too(estate: Estate, folder: Path) -> None:
    action = estate.purge("db.t")
    run_id = estate.queue("db.t", action)
    estate.must("tables", "drop", "db.t", "--yes")
    assert "its deletion was stopped" in (estate.result(run_id).message or "")
    estate.queue("db.t", action)
    done = work(estate)
    assert (done.outcome, done.error_class) == (Outcome.FAILED, "RevokedError")
    assert rows(folder) == list(range(30))
