"""A purge that goes on while others write into the folder: what came to a path after it was listed stays."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog import failpoints
from lakewarden.catalog.model.pending_purge import MARKER
from lakewarden.catalog.model.rows import Outcome, TableState
from lakewarden.catalog.state.port import Result
from lakewarden.jobs.deletion import batches
from lakewarden.jobs.runs.properties_ledger import StoredLedger
from support.builders.estate import Estate, made_estate, numbers, rows


@pytest.fixture
def estate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Estate:
    monkeypatch.setenv("LAKEWARDEN_PURGE_GRACE", "1 ms")
    monkeypatch.setattr(batches, "BATCH", 2)
    return made_estate(tmp_path, monkeypatch, capfdbinary)


@pytest.fixture
def folder(estate: Estate, tmp_path: Path) -> Path:
    """`db.t` with a file that its log does not name."""
    place = tmp_path / "lake" / "t"
    for number in range(3):
        write_deltalake(str(place), numbers(number * 10), mode="append")
    (place / "export.csv").write_text("old")
    estate.must("tables", "register", str(place), "--name", "db.t")
    return place


Beside = Callable[[str, Callable[[], object]], Result]


@pytest.fixture
def purged_beside(estate: Estate, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Beside:
    """Purge it with that file; when the worker reaches a point, somebody else does something."""
    dry = estate.must("tables", "drop", "db.t", "--purge", "--dry-run", "-o", "json").json
    drop = ("tables", "drop", "db.t", "--purge", "--at-version", "2", "--yes")
    estate.must(*drop, "--unknown-files", dry["unknown_token"])

    def purge(point: str, act: Callable[[], object]) -> Result:
        due = [act]

        def reached(name: str) -> None:
            if name == point and due:
                due.pop()()

        with monkeypatch.context() as patch:
            patch.setattr(failpoints, "listener", reached)
            done = worked(estate)
        assert not due, "the purge came to that point"
        return done

    return purge


def worked(estate: Estate) -> Result:
    estate.queue("db.t", estate.purge("db.t"))
    done = estate.work(ledger=StoredLedger(estate.services.store))
    assert done is not None
    return done.result


def made_anew(folder: Path) -> None:
    shutil.rmtree(folder)
    for number in range(3):
        write_deltalake(str(folder), pa.table({"other": [number]}), mode="append")


UNTIL_THE_LOG = ["purge.batch", "purge.data_deleted", "purge.log_batch"]


@pytest.mark.parametrize(
    "point",
    [
        pytest.param("purge.batch", marks=pytest.mark.long),
        "purge.data_deleted",
        "purge.log_batch",
        pytest.param("purge.log_deleted", marks=pytest.mark.long),
        pytest.param("purge.unmarked", marks=pytest.mark.long),
    ],
)
def test_a_table_made_anew_beside_the_living_worker_stays_whole(
    estate: Estate, folder: Path, purged_beside: Beside, point: str
) -> None:
    done = purged_beside(point, lambda: made_anew(folder))
    stays = DeltaTable(str(folder))
    assert (stays.version(), stays.to_pyarrow_table().num_rows) == (2, 3)
    assert not (folder / MARKER).exists()
    if point in UNTIL_THE_LOG:
        assert done.outcome is Outcome.FAILED and "made anew" in (done.message or ""), done
        again = worked(estate)
        assert again.outcome is Outcome.FAILED and "tables drop" in (again.hint or ""), again
        assert DeltaTable(str(folder)).to_pyarrow_table().num_rows == 3


def test_who_commits_after_the_data_keeps_the_log(
    estate: Estate, folder: Path, purged_beside: Beside
) -> None:
    def commit() -> None:
        write_deltalake(str(folder), numbers(100), mode="overwrite")

    done = purged_beside("purge.data_deleted", commit)
    assert done.outcome is Outcome.FAILED and "00003.json came into the folder" in (done.message or ""), done
    assert rows(folder) == list(range(100, 110))


@pytest.mark.parametrize("point", [pytest.param("purge.marked", marks=pytest.mark.long), "purge.batch"])
def test_an_unknown_file_that_is_written_anew_is_not_the_one_that_was_agreed_to(
    estate: Estate, folder: Path, purged_beside: Beside, point: str
) -> None:
    done = purged_beside(point, lambda: (folder / "export.csv").write_text("precious, and new"))
    assert (folder / "export.csv").read_text() == "precious, and new"
    assert (done.outcome, done.error_class) == (Outcome.FAILED, "RefusedError"), done
    assert "export.csv" in (done.message or "") and "nobody agreed to delete it" in (done.message or "")
    again = worked(estate)
    assert again.outcome is Outcome.FAILED and "nobody agreed to delete" in (again.message or ""), again
    assert estate.is_state("db.t", TableState.PURGING)
    (folder / "export.csv").unlink()
    assert worked(estate).outcome is Outcome.SUCCEEDED
    assert not folder.exists()
