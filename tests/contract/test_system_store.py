"""What every SystemStore promises: the delta-rs one on a local folder and on HDFS, and the fake."""

import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakewarden.catalog.errors import ConflictError, FencedError, NotFoundError, PreconditionError, UsageError
from lakewarden.catalog.model.rows import TableRow
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import (
    AUDIT,
    HEALTH,
    LINEAGE,
    RUNS,
    SYSTEM_TABLES,
    TABLES,
    Fence,
    Rows,
    SystemStore,
    SystemTable,
)
from lakewarden.catalog.system.store import DeltaSystemStore
from support.builders.system_samples import NOW, health_row, sample, table_row
from support.fakes.system_store import FakeSystemStore

Open = Callable[[], SystemStore]
every_table = pytest.mark.parametrize("table", SYSTEM_TABLES, ids=lambda table: table.name)


on_hdfs_too = pytest.mark.parametrize(
    "another", ["local", pytest.param("hdfs", marks=pytest.mark.hdfs), "fake"], indirect=True
)
"""For what depends on how a storage commits. A commit waits half a second for its block there, hence not for all."""


@pytest.fixture(params=["local", "fake"])
def another(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens the same empty store again and again, as other processes would."""
    if request.param == "fake":
        return FakeSystemStore().beside
    location = canonical(str(tmp_path / "system"))
    if request.param == "hdfs":
        location = f"{request.getfixturevalue('hdfs').uri}/contract/{uuid.uuid4().hex}"
    return lambda: DeltaSystemStore(location, StorageOptions(), actor="tests")


@pytest.fixture
def store(another: Open) -> SystemStore:
    opened = another()
    opened.create(system_rows(opened, now=NOW, actor="tests"))
    return opened


@on_hdfs_too
def test_a_store_exists_once_it_was_created(another: Open) -> None:
    store = another()
    assert not store.exists()
    with pytest.raises(NotFoundError, match="does not exist"):
        store.rows(TABLES)
    store.create(system_rows(store, now=NOW, actor="tests"))
    assert store.exists() and another().exists()


def test_row_0_is_the_table_of_tables_itself(store: SystemStore) -> None:
    names = [row.name for row in sorted(store.rows(TABLES).all(), key=lambda row: row.row)]
    assert names == [f"lakewarden.{table.name}" for table in SYSTEM_TABLES]
    row = store.rows(TABLES).find(row=0)[0]
    assert row.location == store.location(TABLES)


def test_an_installation_is_the_same_for_ever(store: SystemStore) -> None:
    made = store.installation()
    store.edit(TABLES, lambda _: [table_row(1)], because="test")
    store.create([])
    assert store.installation() == made and made


def test_a_commit_is_told_from_any_other_one_and_known_again(store: SystemStore, another: Open) -> None:
    store.edit(TABLES, lambda _: [table_row(1)], because="test")
    version = store.rows(TABLES).version
    told = [store.digest(TABLES, one) for one in range(version + 2)]
    assert told[-1] is None and None not in told[:-1] and len(set(told)) == len(told)
    store.edit(TABLES, lambda _: [table_row(2)], because="test")
    assert another().digest(TABLES, version) == told[version]


def test_creating_it_again_changes_nothing(store: SystemStore) -> None:
    before = [store.rows(table).version for table in SYSTEM_TABLES]
    store.create(system_rows(store, now=NOW, actor="somebody else"))
    assert [store.rows(table).version for table in SYSTEM_TABLES] == before


@every_table
def test_every_kind_of_row_comes_back_as_it_was(store: SystemStore, table: SystemTable[Any]) -> None:
    rows = [sample(table, number) for number in range(1, 31)]
    done = store.edit(table, lambda _: rows, because="samples")
    view = store.rows(table)
    assert len(done.rows) == 30 and view.version == done.version
    for row in rows:
        assert view.get(*(getattr(row, name) for name in table.key)) == row
    keys = [tuple(getattr(row, name) for name in table.key) for row in rows]
    nobody = ("nobody",) * len(table.key)
    assert view.stored([*keys, nobody]) == dict(zip(keys, rows, strict=True))
    assert set(view.arrow().column_names) == set(type(rows[0]).__dataclass_fields__)


def test_rows_are_found_by_any_column(store: SystemStore) -> None:
    store.edit(TABLES, lambda _: [table_row(number) for number in range(10, 30)], because="samples")
    rows = store.rows(TABLES)
    assert rows.find(name="db5.t12") == (table_row(12),)
    assert rows.find(table_id="table-000012", row=12) == (table_row(12),)
    assert rows.find(table_id="table-000012", row=13) == ()
    assert len(rows.find(owner="ana", paused=None)) == 15
    with pytest.raises(UsageError, match="no column colour"):
        rows.find(colour="red")


def test_a_key_must_be_complete(store: SystemStore) -> None:
    with pytest.raises(UsageError, match="output_id, output_version"):
        store.rows(LINEAGE).get("table-000001")


def test_all_rows_come_in_key_order(store: SystemStore) -> None:
    store.edit(HEALTH, lambda _: [health_row(number) for number in (5, 3, 9, 1)], because="samples")
    assert [row.version for row in store.rows(HEALTH).all()] == [1, 3, 5, 9]


def test_arrow_gives_the_columns_asked_for(store: SystemStore) -> None:
    store.edit(TABLES, lambda _: [table_row(50)], because="samples")
    columns = store.rows(TABLES).arrow(["row", "name"])
    assert columns.column_names == ["row", "name"]
    assert {"row": 50, "name": "db1.t50"} in columns.to_pylist()


def test_the_highest_number_needs_no_rows(store: SystemStore) -> None:
    assert store.rows(TABLES).highest("row") == 6
    assert store.rows(HEALTH).highest("version") is None
    store.edit(TABLES, lambda _: [table_row(41)], because="samples")
    assert store.rows(TABLES).highest("row") == 41


@on_hdfs_too
def test_a_key_that_is_there_is_replaced(store: SystemStore) -> None:
    store.edit(TABLES, lambda _: [table_row(7), table_row(8)], because="register")
    store.edit(TABLES, lambda _: [table_row(7, owner="ben")], because="owner")
    assert store.rows(TABLES).get("table-000007") == table_row(7, owner="ben")
    assert store.rows(TABLES).get("table-000008") == table_row(8)
    assert store.rows(TABLES).arrow(["row"]).num_rows == 9


def test_what_a_commit_added_can_be_asked_for(store: SystemStore) -> None:
    first, second = sample(LINEAGE, 1), sample(LINEAGE, 2)
    store.append(LINEAGE, [first], because="a sweep")
    version = store.append(LINEAGE, [second, first, sample(LINEAGE, 3)], because="the next one")
    store.raise_fence("another leader", at_least=7)
    assert store.added(LINEAGE, version) == (second, sample(LINEAGE, 3))
    assert store.added(LINEAGE, version - 1) == (first,)
    assert store.added(LINEAGE, version + 1) == ()
    assert store.added(LINEAGE, 0) == ()
    with pytest.raises(NotFoundError, match="has no version"):
        store.added(LINEAGE, version + 2)


def test_a_row_equal_to_what_is_stored_makes_no_commit(store: SystemStore) -> None:
    first = store.edit(TABLES, lambda _: [table_row(7)], because="register")
    for _ in range(10):
        again = store.edit(TABLES, lambda rows: [table_row(7), *rows.all()], because="an idle sweep")
        assert again.rows == () and again.version == first.version


def test_only_rows_that_differ_are_written(store: SystemStore) -> None:
    store.edit(TABLES, lambda _: [table_row(number) for number in range(10, 20)], because="register")
    changed = [table_row(number, owner="ben" if number == 13 else "ana") for number in range(10, 20)]
    assert store.edit(TABLES, lambda _: changed, because="owner").rows == (table_row(13, owner="ben"),)


@pytest.mark.heavy
def test_ten_thousand_rows_are_one_commit(store: SystemStore) -> None:
    before = store.rows(TABLES).version
    rows = [table_row(number) for number in range(10, 10_010)]
    done = store.edit(TABLES, lambda _: rows, because="a fleet")
    assert done.version == before + 1
    assert store.rows(TABLES).arrow(["row"]).num_rows == 10_007


@on_hdfs_too
def test_rows_can_be_deleted(store: SystemStore) -> None:
    store.edit(TABLES, lambda _: [table_row(7), table_row(8)], because="register")
    store.edit(TABLES, lambda _: (), delete=lambda rows: rows.find(row=7), because="conversion failed")
    assert store.rows(TABLES).get("table-000007") is None
    assert store.rows(TABLES).get("table-000008") == table_row(8)
    version = store.rows(TABLES).version
    store.edit(TABLES, lambda _: (), delete=lambda _: [table_row(7)], because="again")
    assert store.rows(TABLES).version == version


def test_a_bucket_can_become_empty_and_full_again(store: SystemStore) -> None:
    store.edit(HEALTH, lambda _: [health_row(1)], because="seen")
    store.edit(HEALTH, lambda _: (), delete=lambda rows: rows.all(), because="gone")
    assert store.rows(HEALTH).all() == ()
    store.edit(HEALTH, lambda _: [health_row(1)], because="seen again")
    assert store.rows(HEALTH).all() == (health_row(1),)


@on_hdfs_too
def test_an_older_version_shows_what_was(store: SystemStore) -> None:
    before = store.edit(TABLES, lambda _: [table_row(7)], because="register").version
    store.edit(TABLES, lambda _: [table_row(7, owner="ben")], because="owner")
    assert store.rows(TABLES, version=before).get("table-000007") == table_row(7)
    with pytest.raises(NotFoundError, match="no version 99"):
        store.rows(TABLES, version=99)


def test_a_view_stays_at_its_version(store: SystemStore) -> None:
    store.edit(TABLES, lambda _: [table_row(7)], because="register")
    view = store.rows(TABLES)
    store.edit(TABLES, lambda _: [table_row(7, owner="ben")], because="owner")
    assert view.get("table-000007") == table_row(7)


@on_hdfs_too
def test_whoever_loses_decides_again_on_what_is_there(store: SystemStore, another: Open) -> None:
    rival = another()
    seen: list[str | None] = []

    def take_over(rows: Rows[TableRow]) -> list[TableRow]:
        current = rows.get("table-000007")
        seen.append(None if current is None else current.owner)
        if len(seen) == 1:
            rival.edit(TABLES, lambda _: [table_row(7, owner="rival")], because="faster")
        return [] if current is not None else [table_row(7, owner="me")]

    done = store.edit(TABLES, take_over, because="slower")
    assert seen == [None, "rival"] and done.rows == ()
    assert [row.owner for row in store.rows(TABLES).find(row=7)] == ["rival"]


def test_a_commit_to_another_row_makes_it_decide_again_too(store: SystemStore, another: Open) -> None:
    rival = another()
    calls: list[int] = []

    def next_number(rows: Rows[TableRow]) -> list[TableRow]:
        calls.append(rows.version)
        if len(calls) == 1:
            rival.edit(TABLES, lambda view: [table_row((view.highest("row") or 0) + 1)], because="faster")
        return [table_row((rows.highest("row") or 0) + 1)]

    done = store.edit(TABLES, next_number, because="slower")
    assert len(calls) == 2 and [row.row for row in done.rows] == [8]
    assert store.rows(TABLES).highest("row") == 8


def test_giving_up_changes_nothing(store: SystemStore) -> None:
    version = store.rows(TABLES).version

    def refuse(rows: Rows[TableRow]) -> list[TableRow]:
        raise PreconditionError("not today")

    with pytest.raises(PreconditionError, match="not today"):
        store.edit(TABLES, refuse, because="x")
    assert store.rows(TABLES).version == version


@on_hdfs_too
def test_threads_that_insert_the_same_keys_end_with_one_row_each(store: SystemStore) -> None:
    wins: list[int] = []

    def insert(thread: int) -> None:
        for number in range(10, 15):
            row = table_row(number, owner=f"thread-{thread}")
            done = store.edit(
                TABLES,
                lambda rows, row=row: [row] if rows.get(row.table_id) is None else [],  # type: ignore[misc]  # bound now
                because="race",
            )
            wins.append(len(done.rows))

    threads = [threading.Thread(target=insert, args=(thread,)) for thread in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(wins) == 5 and len(wins) == 20
    assert store.rows(TABLES).arrow(["row"]).num_rows == 12


@on_hdfs_too
def test_appending_twice_adds_once(store: SystemStore) -> None:
    first = store.append(RUNS, [sample(RUNS, 1), sample(RUNS, 2)], because="recorded")
    assert store.append(RUNS, [sample(RUNS, 1), sample(RUNS, 2)], because="recorded again") == first
    assert store.append(RUNS, [sample(RUNS, 2), sample(RUNS, 3)], because="one more") == first + 1
    assert store.rows(RUNS).all() == (sample(RUNS, 1), sample(RUNS, 2), sample(RUNS, 3))


def test_appending_leaves_a_known_key_as_it_is(store: SystemStore) -> None:
    store.append(AUDIT, [sample(AUDIT, 1)], because="call")
    store.append(AUDIT, [replace(sample(AUDIT, 1), actor="forger")], because="call")
    assert store.rows(AUDIT).all() == (sample(AUDIT, 1),)


@on_hdfs_too
def test_every_new_leader_gets_a_higher_token(store: SystemStore, another: Open) -> None:
    first = store.raise_fence("daemon-1", at_least=41)
    second = another().raise_fence("daemon-2", at_least=7)
    assert (first, second) == (
        Fence(token=42, incarnation="daemon-1"),
        Fence(token=43, incarnation="daemon-2"),
    )


@every_table
def test_a_stale_leader_is_refused(store: SystemStore, another: Open, table: SystemTable[Any]) -> None:
    old = store.raise_fence("daemon-1", at_least=0)
    store.edit(table, lambda _: [sample(table, 1)], fence=old, because="leads")
    another().raise_fence("daemon-2", at_least=0)
    with pytest.raises(FencedError):
        store.edit(table, lambda _: [sample(table, 2)], fence=old, because="woke up")
    with pytest.raises(FencedError):
        store.append(table, [sample(table, 2)], fence=old, because="woke up")
    assert sample(table, 2) not in store.rows(table).all()


@on_hdfs_too
def test_a_stale_leader_is_refused_on_all_seven_tables(store: SystemStore, another: Open) -> None:
    old = store.raise_fence("daemon-1", at_least=0)
    another().raise_fence("daemon-2", at_least=0)
    for table in SYSTEM_TABLES:
        with pytest.raises(FencedError):
            store.edit(table, lambda _, one=table: [sample(one, 2)], fence=old, because="woke up")  # type: ignore[misc]  # bound now


@every_table
def test_a_leader_frozen_between_reading_and_committing_is_refused(
    store: SystemStore, another: Open, table: SystemTable[Any]
) -> None:
    old = store.raise_fence("daemon-1", at_least=0)

    def freeze(_: Rows[Any]) -> list[Any]:
        another().raise_fence("daemon-2", at_least=0)
        return [sample(table, 1)]

    with pytest.raises(FencedError):
        store.edit(table, freeze, fence=old, because="froze")
    assert sample(table, 1) not in store.rows(table).all()


def test_others_than_the_leader_carry_no_token(store: SystemStore) -> None:
    leader = store.raise_fence("daemon-1", at_least=0)
    store.edit(TABLES, lambda _: [table_row(7)], because="the command line registers a table")
    done = store.edit(TABLES, lambda _: [table_row(8)], fence=leader, because="the leader goes on")
    assert done.rows == (table_row(8),)


def test_daemons_that_start_at_once_get_different_tokens(another: Open) -> None:
    another().create(())
    tokens: list[int] = []

    def lead(name: str) -> None:
        try:
            tokens.append(another().raise_fence(name, at_least=0).token)
        except (FencedError, ConflictError):
            return  # overtaken: allowed, and it does not lead

    threads = [threading.Thread(target=lead, args=(f"daemon-{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tokens and len(set(tokens)) == len(tokens)
    assert another().raise_fence("last", at_least=0).token == max(tokens) + 1
