"""The spool folder: whole batches or nothing, oldest first, what cannot be read is put aside."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.state.hint_spool import Spool, drain
from lakewarden.catalog.state.port import Hint, HintKind
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from support.fakes.clock import ManualClock
from support.fakes.state import FakeInbox

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)


def hint(number: int) -> Hint:
    return Hint(hint_id=f"h{number}", subject=f"db.t{number}", kind=HintKind.ALTERED, at=NOW)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def spool(tmp_path: Path, clock: ManualClock) -> Spool:
    return Spool(canonical(str(tmp_path)), StorageOptions(), clock=clock)


class DeadInbox:
    """A database that does not answer."""

    def put(self, hints: Iterable[Hint]) -> None:
        raise UnavailableError("away")


def test_what_is_spooled_reaches_the_inbox_oldest_first(
    spool: Spool, clock: ManualClock, tmp_path: Path
) -> None:
    spool.put([hint(1), hint(2)])
    clock.advance(timedelta(seconds=1))
    spool.put([hint(3)])
    inbox = FakeInbox()
    assert drain(spool, inbox) == 3
    assert inbox.claim(10) == (hint(1), hint(2), hint(3))
    assert list((tmp_path / "spool").iterdir()) == []
    assert drain(spool, inbox) == 0


def test_a_batch_is_one_file(spool: Spool, tmp_path: Path) -> None:
    spool.put([hint(1), hint(2)])
    (file,) = (tmp_path / "spool").iterdir()
    assert [one["hint_id"] for one in json.loads(file.read_text())["hints"]] == ["h1", "h2"]


def test_no_hints_make_no_file(spool: Spool, tmp_path: Path) -> None:
    spool.put([])
    assert not (tmp_path / "spool").exists()


def test_hints_stay_while_the_database_is_away(spool: Spool) -> None:
    spool.put([hint(1)])
    with pytest.raises(UnavailableError):
        drain(spool, DeadInbox())
    inbox = FakeInbox()
    assert drain(spool, inbox) == 1


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b'{"hints": [', id="cut off"),
        pytest.param(b"[]", id="no batch"),
        pytest.param(b'{"hints": [{"hint_id": "h9"}]}', id="fields missing"),
        pytest.param(
            b'{"hints": [{"hint_id": "h9", "subject": "t", "kind": "sung", "at": '
            b'"2026-01-01T00:00:00+00:00"}]}',
            id="unknown kind",
        ),
        pytest.param(
            b'{"hints": [{"hint_id": "h9", "subject": "t", "kind": "altered", "at": "2026-01-01T00:00:00"}]}',
            id="no time zone",
        ),
        pytest.param(b"\xff\xfe\x00", id="not text"),
    ],
)
def test_what_cannot_be_read_is_put_aside_and_stops_nothing(
    spool: Spool, tmp_path: Path, content: bytes
) -> None:
    spool.put([hint(1)])
    (tmp_path / "spool" / "000-bad.json").write_bytes(content)
    inbox = FakeInbox()
    assert drain(spool, inbox) == 1
    assert (tmp_path / "spool" / "unreadable" / "000-bad.json").read_bytes() == content
    assert drain(spool, inbox) == 0


def test_unfinished_files_are_left_alone(spool: Spool, tmp_path: Path) -> None:
    spool.put([hint(1)])
    for name in (".000-x.json.17.tmp", "000-x.json.17.tmp", ".000-x.json"):
        (tmp_path / "spool" / name).write_bytes(b"{")
    assert drain(spool, FakeInbox()) == 1
    assert len(list((tmp_path / "spool").iterdir())) == 3


def test_a_system_location_that_was_never_made_is_not_made_by_a_hint(tmp_path: Path) -> None:
    nowhere = Spool(canonical(str(tmp_path / "nowhere")), StorageOptions())
    with pytest.raises(UnavailableError, match="no system tables"):
        nowhere.put([hint(1)])
    with pytest.raises(UnavailableError, match="no system tables"):
        drain(nowhere, FakeInbox())
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "spool").write_text("a file where the folder should be")
    with pytest.raises(UnavailableError, match="spool folder"):
        Spool(canonical(str(tmp_path)), StorageOptions()).put([hint(1)])
