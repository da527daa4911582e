"""The table of rights says what was granted and what was asked for, and that nothing was recorded where nothing was."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from support.reference.rights import Rights, network_page, reached, recorded, rights_page

GRANTED = {"pods": frozenset({"create", "watch"})}


def test_without_a_record_the_page_says_so() -> None:
    page = rights_page(None, GRANTED)
    assert "| pods | create | yes | not recorded |" in page
    assert "has not been recorded yet" in page


def test_what_is_kept_is_printed_beside_what_is_granted(tmp_path: Path) -> None:
    file = tmp_path / "rights.json"
    assert recorded(file) is None
    Rights(file).keep({"worker": {("create", "pods"), ("list", "secrets")}, "daemon": set()})
    asked = recorded(file)
    assert asked is not None and asked.day == datetime.now(UTC).date()
    page = rights_page(asked, GRANTED)
    assert [line for line in page.splitlines() if line.startswith("| ")][1:] == [
        "| pods | create | yes | yes |",
        "| pods | watch | yes | **no** |",
        "| secrets | list | **no** | yes |",
    ]
    assert page.endswith("asked for: daemon: nothing.\n")


def test_who_was_reached_stands_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "rights.json"
    assert "has not been tried yet" in network_page(reached(file))
    Rights(file).keep_reached({"daemon": {"postgresql:5432"}, "stranger": set()})
    Rights(file).keep({"worker": {("create", "pods")}})
    assert recorded(file) is not None
    page = network_page(reached(file))
    assert [line for line in page.splitlines() if line.startswith("| ")] == [
        "| from | postgresql:5432 |",
        "| daemon | yes |",
        "| stranger |  |",
    ]


def test_nothing_is_kept_where_no_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Rights(None).keep({"worker": {("create", "pods")}})
    assert not list(tmp_path.iterdir())
