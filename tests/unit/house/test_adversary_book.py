"""What the adversary's book holds against the product has to be right: else its findings are its own mistakes."""

from datetime import UTC, datetime
from pathlib import Path

from deltalake import CommitProperties, DeltaTable

from support.adversary.book import Book, Table
from support.adversary.reading import FILES_FOR
from support.adversary.stranger import Stranger

NOW = datetime(2026, 11, 22, tzinfo=UTC)


def _set(table: Table, value: str) -> None:
    ours = CommitProperties(custom_metadata={"lakewarden.run_id": "r"})
    DeltaTable(table.folder).alter.set_table_properties({FILES_FOR: value}, commit_properties=ours)


def _begun(folder: Path) -> tuple[Book, Stranger, Table]:
    book, stranger = Book(), Stranger()
    table = book.open(folder)
    stranger.create(folder)
    book.sync(table, NOW, ours=False)
    return book, stranger, table


def test_what_the_product_sets_is_not_theirs(tmp_path: Path) -> None:
    book, _, table = _begun(tmp_path / "t")
    _set(table, "interval 7 days")
    book.sync(table, NOW, ours=True)
    assert table.now.properties[FILES_FOR] == "interval 7 days"
    assert FILES_FOR not in table.moments[table.head].theirs


def test_what_an_owner_changes_after_the_product_is_theirs(tmp_path: Path) -> None:
    book, stranger, table = _begun(tmp_path / "t")
    _set(table, "interval 7 days")
    book.sync(table, NOW, ours=True)
    stranger.properties(table.folder, {FILES_FOR: "interval 365 days"})
    book.sync(table, NOW, ours=False)
    assert table.moments[table.head].theirs[FILES_FOR] == "interval 365 days"


def test_a_restore_by_a_stranger_brings_back_what_was_theirs_then_not_what_the_product_had_set(
    tmp_path: Path,
) -> None:
    book, stranger, table = _begun(tmp_path / "t")
    _set(table, "interval 7 days")
    book.sync(table, NOW, ours=True)
    stranger.properties(table.folder, {FILES_FOR: "interval 365 days"})
    book.sync(table, NOW, ours=False)
    stranger.restore(table.folder, 1)
    book.sync(table, NOW, ours=False)
    assert table.now.properties[FILES_FOR] == "interval 7 days"
    assert FILES_FOR not in table.moments[table.head].theirs


def test_a_restore_by_a_stranger_takes_back_what_an_owner_had_set(tmp_path: Path) -> None:
    book, stranger, table = _begun(tmp_path / "t")
    stranger.properties(table.folder, {FILES_FOR: "interval 365 days"})
    book.sync(table, NOW, ours=False)
    stranger.restore(table.folder, 0)
    book.sync(table, NOW, ours=False)
    assert dict(table.moments[table.head].theirs) == dict(table.now.properties) == {}
