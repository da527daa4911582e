"""What is decided and queued, and then forbidden, changed or made anew:
the worker finds out before it deletes anything."""

import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.model.rows import Outcome, TableState
from lakewarden.catalog.state.port import Result
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.callers import real_user
from lakewarden.daemon.usecases.rollbacks.rollback import rollbacks_of_services
from lakewarden.jobs.actions.rollback import RollBack
from lakewarden.jobs.rollback.execute.run import JournaledRollbacks
from lakewarden.jobs.rollback.journal.journal import Journal
from lakewarden.jobs.rollback.journal.steps import TableStep
from lakewarden.jobs.rollback.step_check import require_same_head
from lakewarden.jobs.worker.runner import Finished
from support.builders.callers import actor
from support.builders.clones import shallow_clone
from support.builders.estate import Estate, managed_lake, numbers, overwritten, rows


@pytest.fixture
def folder(estate: Estate, tmp_path: Path) -> Path:
    """`db.t`, managed, with files that a vacuum would delete."""
    return managed_lake(estate, tmp_path / "lake")


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*.parquet")}


def finished(done: Finished | None) -> Result:
    assert done is not None
    return done.result


def dropped(estate: Estate, folder: Path, *more: str) -> None:
    """Drop it with its files, and wait until the grace period is over."""
    at = str(DeltaTable(str(folder)).version())
    estate.must("tables", "drop", "db.t", "--purge", "--at-version", at, "--yes", *more)


def test_the_counter_proof_an_allowed_vacuum_and_an_allowed_purge_delete(
    estate: Estate, folder: Path
) -> None:
    estate.queue("db.t", estate.vacuum("db.t"))
    done = finished(estate.work())
    assert (done.outcome, done.actual_files) == (Outcome.SUCCEEDED, 3), done
    assert len(files(folder)) == 1
    dropped(estate, folder)
    estate.queue("db.t", estate.purge("db.t"))
    assert finished(estate.work()).outcome is Outcome.SUCCEEDED
    assert not folder.exists()


COMMANDS = {
    "legal hold": ("tables", "hold", "db.t", "--reason", "case 4711"),
    "legal hold of its namespace": ("tables", "hold", "db.*", "--reason", "case 4711"),
    "a longer promise": ("tables", "policy", "set", "db.t", "rollback.promise=365 days"),
    "a longer retention of all": ("tables", "policy", "set", "*", "vacuum.retention=365 days"),
    "pause of all": ("pause", "*"),
    "observe only": ("tables", "policy", "set", "db.t", "mode=observe"),
    "vacuum switched off": ("tables", "policy", "set", "db.t", "vacuum.enabled=no"),
    "dropped": ("tables", "drop", "db.t", "--yes"),
}


@pytest.mark.few(2)
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_queued_vacuum_is_taken_back_by_the_command_that_forbids_it(
    estate: Estate, folder: Path, command: tuple[str, ...]
) -> None:
    before = files(folder)
    run_id = estate.queue("db.t", estate.vacuum("db.t"))
    estate.must(*command)
    done = estate.work()
    assert files(folder) == before
    assert done is None and estate.result(run_id).outcome is Outcome.SKIPPED
    assert "taken back before it began" in (estate.result(run_id).message or "")


@pytest.mark.few(2)
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_what_was_forbidden_is_not_done_even_if_the_run_stayed_in_the_queue(
    estate: Estate, folder: Path, command: tuple[str, ...]
) -> None:
    before, action = files(folder), estate.vacuum("db.t")
    estate.must(*command)
    estate.queue("db.t", action)
    done = finished(estate.work())
    assert files(folder) == before
    assert (done.outcome, done.error_class) == (Outcome.FAILED, "RevokedError"), done


@pytest.mark.parametrize("forbid", [("tables", "hold", "db.*", "--reason", "case 4711"), ("pause", "db.*")])
def test_a_rename_does_not_lead_out_of_a_hold_or_a_pause(
    estate: Estate, folder: Path, forbid: tuple[str, ...]
) -> None:
    before = files(folder)
    estate.must(*forbid)
    estate.must("tables", "rename", "db.t", "free.t")
    estate.queue("free.t", estate.vacuum("free.t"))
    done = finished(estate.work())
    assert files(folder) == before
    assert (done.outcome, done.error_class) == (Outcome.FAILED, "RevokedError"), done


def test_a_rename_does_not_lead_out_of_a_promise(estate: Estate, folder: Path) -> None:
    before, action = files(folder), estate.vacuum("db.t")
    estate.must("tables", "policy", "set", "db.*", "rollback.promise=300 days")
    said = estate.must("tables", "rename", "db.t", "free.t")
    assert "free.t keeps rollback.promise = 300 days, as it had as db.t" in said.err
    estate.queue("free.t", action)
    done = finished(estate.work())
    assert files(folder) == before
    assert "has to keep more by now: 300 days" in (done.message or "")


def test_a_longer_promise_of_a_derived_table_counts_too(estate: Estate, folder: Path, tmp_path: Path) -> None:
    before, action = files(folder), estate.vacuum("db.t")
    write_deltalake(str(tmp_path / "lake" / "derived"), numbers(0))
    estate.must("tables", "register", str(tmp_path / "lake" / "derived"), "--name", "db.derived")
    estate.must("tables", "policy", "set", "db.derived", "rollback.promise=300 days")
    estate.must("lineage", "declare", "db.derived", "--upstream", "db.t", "--on-rollback", "plan")
    estate.queue("db.t", action)
    done = finished(estate.work())
    assert files(folder) == before
    assert "has to keep more by now" in (done.message or "")


def test_a_purge_that_is_undropped_is_taken_back(estate: Estate, folder: Path) -> None:
    dropped(estate, folder)
    action = estate.purge("db.t")
    run_id = estate.queue("db.t", action)
    estate.must("tables", "undrop", "db.t")
    done = estate.work()
    assert rows(folder) == list(range(30, 40))
    assert done is None and "was undropped" in (estate.result(run_id).message or "")
    estate.queue("db.t", action)  # one that was left lying
    assert "is active" in (finished(estate.work()).message or "")
    assert rows(folder) == list(range(30, 40))


def test_a_purge_of_a_table_made_anew_in_its_grace_period_deletes_nothing(
    estate: Estate, folder: Path
) -> None:
    dropped(estate, folder)
    version = DeltaTable(str(folder)).version()
    shutil.rmtree(folder)
    for number in range(version + 1):
        write_deltalake(str(folder), numbers(number), mode="overwrite")
    (folder / "exports").mkdir()
    (folder / "exports" / "precious.csv").write_text("mine")
    estate.queue("db.t", estate.purge("db.t"))
    done = finished(estate.work())
    assert (folder / "exports" / "precious.csv").read_text() == "mine"
    assert len(rows(folder)) == 10 and len(files(folder)) == version + 1
    assert done.outcome is Outcome.FAILED and "is another table" in (done.message or "")


def test_unknown_files_in_the_folder_are_deleted_only_by_a_consent_that_names_them(
    estate: Estate, folder: Path
) -> None:
    (folder / "exports").mkdir()
    (folder / "exports" / "precious.csv").write_text("mine")
    version = str(DeltaTable(str(folder)).version())
    drop = ("tables", "drop", "db.t", "--purge", "--at-version", version, "--yes")
    refused = estate.says(*drop)
    assert refused.code == 4 and "exports/precious.csv" in refused.err
    assert estate.is_state("db.t", TableState.ACTIVE)
    dry = estate.must("tables", "drop", "db.t", "--purge", "--dry-run", "-o", "json").json
    assert (dry["unknown_files"], dry["unknown_shown"]) == (1, ["exports/precious.csv"])
    estate.must(*drop, "--unknown-files", dry["unknown_token"])
    (folder / "exports" / "later.csv").write_text("mine, too")
    estate.queue("db.t", estate.purge("db.t"))
    assert "nobody agreed" in (finished(estate.work()).message or "")
    assert (folder / "exports" / "later.csv").exists() and rows(folder)
    (folder / "exports" / "later.csv").unlink()
    estate.queue("db.t", estate.purge("db.t"))
    assert finished(estate.work()).outcome is Outcome.SUCCEEDED
    assert not folder.exists()


def test_a_table_that_was_rescued_from_its_purge_is_not_followed_and_a_refusal_changes_nothing(
    estate: Estate, folder: Path, tmp_path: Path
) -> None:
    dropped(estate, folder)
    rescued = tmp_path / "lake" / "rescued"
    folder.rename(rescued)
    before = estate.services.store.rows(TABLES).version
    refused = estate.says("tables", "register", str(rescued))
    after = estate.services.store.rows(TABLES).version
    estate.queue("db.t", estate.purge("db.t"))
    estate.work()
    assert len(rows(rescued)) == 10
    assert refused.code == 4 and "undrop" in refused.err
    assert (estate.row("db.t").location, after) == (f"file://{folder}", before)


def test_a_move_is_not_followed_while_the_old_place_does_not_answer(
    estate: Estate, folder: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    (tmp_path / "lake").rename(tmp_path / "lake, away")
    (tmp_path / "lake").mkdir()  # what a mount point looks like without its disk
    refused = estate.says("tables", "register", str(copy))
    assert estate.row("db.t").location == f"file://{folder}"
    assert refused.code == 5 and "its disk may be away" in refused.err
    estate.must("tables", "register", str(copy), "--moved")
    assert estate.row("db.t").location == f"file://{copy}"


def test_a_table_replaced_by_a_copy_of_the_same_version_is_another_table(
    estate: Estate, folder: Path, tmp_path: Path
) -> None:
    older = tmp_path / "older"
    shutil.copytree(folder, older)
    action = estate.vacuum("db.t")
    last = older / "_delta_log" / f"{action.requires.version:020d}.json"
    last.unlink()
    write_deltalake(str(older), numbers(70), mode="overwrite")  # another commit of the same number
    shutil.rmtree(folder)
    older.rename(folder)
    before, estate.reader = files(folder), DeltaReader()  # a worker that has not seen it before
    estate.queue("db.t", action)
    done = finished(estate.work())
    assert files(folder) == before
    assert "is another table" in (done.message or "")


def test_a_purge_with_its_disk_away_does_not_count_as_done(
    estate: Estate, folder: Path, tmp_path: Path
) -> None:
    dropped(estate, folder)
    (tmp_path / "lake").rename(tmp_path / "lake, away")
    estate.queue("db.t", estate.purge("db.t"))
    done = finished(estate.work())
    assert done.outcome is Outcome.FAILED and "cannot be seen" in (done.message or "")
    assert estate.is_state("db.t", TableState.PURGING)


def test_a_table_with_a_clone_among_the_managed_ones_is_not_purged(
    estate: Estate, folder: Path, tmp_path: Path
) -> None:
    clone = shallow_clone(folder, tmp_path / "lake" / "clone")
    dropped(estate, folder)
    estate.must("tables", "register", str(clone), "--name", "db.clone")
    estate.queue("db.t", estate.purge("db.t"))
    assert "db.clone reads files of db.t" in (finished(estate.work()).message or "")
    assert len(rows(folder)) == 10


@pytest.mark.parametrize("how", [("--dry-run",), ("--at-version", "3", "--yes")])
def test_a_purge_that_a_known_clone_would_stop_is_refused_at_once(
    estate: Estate, folder: Path, tmp_path: Path, how: tuple[str, ...]
) -> None:
    clone = shallow_clone(folder, tmp_path / "lake" / "clone")
    estate.must("tables", "register", str(clone), "--name", "db.clone")
    refused = estate.says("tables", "drop", "db.t", "--purge", *how)
    assert refused.code == 4 and "db.clone reads files of db.t: it is a shallow clone of it" in refused.err
    estate.must("tables", "drop", "db.clone", "--yes")
    estate.must("tables", "drop", "db.t", "--purge", *how)


def test_vacuum_keeps_what_a_registered_shallow_clone_names(
    estate: Estate, folder: Path, tmp_path: Path
) -> None:
    (named,) = DeltaTable(str(folder), version=1).file_uris()
    clone = shallow_clone(folder, tmp_path / "lake" / "clone", version=1)
    estate.must("tables", "register", str(clone), "--name", "db.clone")
    estate.queue("db.t", estate.vacuum("db.t"))
    assert finished(estate.work()).actual_files == 2
    assert Path(named.removeprefix("file://")).exists()


def rolled_back_to_one(estate: Estate, folder: Path) -> RollBack:
    """A rollback of `db.t` to version 1 that has begun, and of which nothing is done yet."""
    plan = estate.says(
        "rollback", "plan", "db.t", "--to-version", "1", "--consent", "collateral", "-o", "json"
    )
    rollbacks = rollbacks_of_services(estate.services)
    begun = rollbacks.begin(plan.json["hash"], actor=actor(real_user(), admin=True))
    return RollBack(rollback_id=begun.rollback_id)


def rollbacks(estate: Estate) -> JournaledRollbacks:
    services = estate.services
    return JournaledRollbacks(
        journal=Journal(store=services.store, clock=services.clock),
        tools=estate.tools,
        storage=services.storage,
        undo_for=timedelta(days=7),
    )


def test_a_rollback_that_comes_under_hold_after_it_began_rewinds_nothing(
    estate: Estate, folder: Path
) -> None:
    action = rolled_back_to_one(estate, folder)
    version = DeltaTable(str(folder)).version()
    estate.must("tables", "hold", "db.t", "--reason", "case 4711")
    estate.queue("db.t", action)
    done = finished(estate.work(rollbacks=rollbacks(estate)))
    assert DeltaTable(str(folder)).version() == version
    assert done.outcome is Outcome.FAILED and "legal hold" in (done.message or "")
    estate.must("tables", "hold", "db.t", "--lift")
    estate.queue("db.t", action)
    assert finished(estate.work(rollbacks=rollbacks(estate))).outcome is Outcome.SUCCEEDED
    assert rows(folder) == list(range(10, 20))


def test_a_rollback_of_a_table_replaced_since_it_was_verified_touches_nothing(
    estate: Estate, folder: Path
) -> None:
    seen = estate.seen("db.t")
    step = TableStep(
        table_id="t",
        name="db.t",
        location=estate.row("db.t").location or "",
        from_version=seen.version,
        to_version=1,
    ).verified(head=seen.head)
    require_same_head(step, DeltaReader())
    shutil.rmtree(folder)
    overwritten(folder)
    with pytest.raises(ConflictError, match="made anew or replaced"):
        require_same_head(step, DeltaReader())
