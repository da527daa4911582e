"""Only `lakewarden.audit` cannot be written: what was done says so, and is on record later, once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakewarden.catalog.model.rows import AuditRow, TableState
from lakewarden.catalog.system.port import AUDIT
from support.builders.estate import Estate, made_estate
from support.builders.runs import delta_table
from support.processes.house import House


@pytest.fixture
def estate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Estate:
    made = made_estate(tmp_path, monkeypatch, capfdbinary)
    made.must("tables", "register", delta_table(tmp_path / "lake" / "t"), "--name", "db.t")
    return made


@contextmanager
def unwritable(home: Path, *names: str) -> Iterator[None]:
    """A file stands where the folder is that has to be written (root writes anywhere else)."""
    folders = [home / "system" / name for name in names]
    for folder in folders:
        if folder.exists():
            folder.rename(folder.with_suffix(".away"))
        folder.write_text("")
    yield
    for folder in folders:
        folder.unlink()
        if folder.with_suffix(".away").exists():
            folder.with_suffix(".away").rename(folder)


def purge(estate: Estate) -> tuple[str, ...]:
    at = str(DeltaTable(estate.row("db.t").location or "").version())
    return ("tables", "drop", "db.t", "--purge", "--at-version", at, "--yes")


def lift(estate: Estate) -> tuple[str, ...]:
    estate.must("tables", "hold", "db.t", "--reason", "case 7")
    return ("tables", "hold", "db.t", "--lift")


def entries(estate: Estate, what: str) -> list[AuditRow]:
    return [one for one in estate.services.store.rows(AUDIT).all() if one.what == what]


@pytest.mark.parametrize(("asked", "what"), [(purge, "drop"), (lift, "hold")])
def test_what_is_done_and_cannot_be_recorded_says_so_and_is_recorded_by_the_next_call(
    estate: Estate, asked: Callable[[Estate], tuple[str, ...]], what: str
) -> None:
    words = asked(estate)
    before = entries(estate, what)
    with unwritable(estate.home, "audit"):
        done = estate.says(*words)
        assert done.code == 0, done.err
        assert "Done, but not recorded yet: lakewarden.audit cannot be written" in done.err
        row = estate.row("db.t")
        assert (row.state is TableState.PURGING) is (what == "drop") and row.hold is None
    assert entries(estate, what) == before
    estate.must("pause", "other.*")
    [entry] = [one for one in entries(estate, what) if one not in before]
    assert entry.allowed and entry.on == "db.t"
    estate.must("resume", "other.*")
    assert len(entries(estate, what)) == len(before) + 1
    assert not list((estate.home / "system" / "unrecorded").glob("*.json"))


def test_what_can_neither_be_recorded_nor_kept_says_that_it_is_done(estate: Estate) -> None:
    with unwritable(estate.home, "audit", "unrecorded"):
        done = estate.says(*purge(estate))
    assert done.code == 3
    assert "Done, but not recorded" in done.err and "Do not repeat it" in done.err
    assert estate.is_state("db.t", TableState.PURGING)


def test_what_is_refused_is_recorded_later_too(estate: Estate) -> None:
    with unwritable(estate.home, "audit"):
        refused = estate.says("tables", "rename", "db.t", "lakewarden.t")
        assert refused.code == 5 and "Done" not in refused.err
    estate.must("pause", "other.*")
    [entry] = entries(estate, "rename")
    assert not entry.allowed


def test_the_daemon_records_it_in_its_next_cycle(estate: Estate, tmp_path: Path) -> None:
    house = House(tmp_path)
    with unwritable(estate.home, "audit"):
        assert estate.says(*lift(estate)).code == 0
    before = len(entries(estate, "hold"))
    with house.daemon("once") as daemon:
        assert daemon.wait(120) == 0, house.log()
    assert len(entries(estate, "hold")) == before + 2


def test_a_file_that_holds_no_entries_is_put_aside(estate: Estate) -> None:
    with unwritable(estate.home, "audit"):
        estate.says(*lift(estate))
    folder = estate.home / "system" / "unrecorded"
    kept = sorted(folder.glob("*.json"))
    kept[0].write_text("[{}]")
    estate.must("pause", "other.*")
    assert [path.name for path in (folder / "unreadable").iterdir()] == [kept[0].name]
    assert not list(folder.glob("*.json"))
