"""Heads that notifications speak of are read again, and no others."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from lakewarden.catalog.metastore import noticed_heads
from lakewarden.catalog.metastore.noticed_heads import NoticedHeads
from lakewarden.catalog.metastore.port import METADATA_FILE, Entry, Notification
from support.fakes.metastore import FakeMetastore

WHOLE = ("t", "u", "v")


class Stage(FakeMetastore):
    """A database with three tables that are asked for, and whatever else a test makes; it notes what is read."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.read: list[tuple[str, ...]] = []
        self.noticed = NoticedHeads(lambda: self.now)
        self.create_database("a")
        for table in WHOLE:
            self.create(entry(table))
        for number in range(60):
            self._tell("ADD_PARTITION", ("z", f"long_ago_{number}"))

    def metadata_files(self, database: str, tables: Sequence[str]) -> dict[str, str]:
        self.read.append(tuple(tables))
        return dict(super().metadata_files(database, tables))

    def told(self, tables: Sequence[str] = WHOLE) -> dict[str, str]:
        """What is told; it is what the entries name."""
        found = dict(self.noticed.metadata_files(self, "a", tables))
        assert found == dict(FakeMetastore.metadata_files(self, "a", WHOLE))
        return found

    def commit(self, table: str, file: str, database: str = "a") -> None:
        before = self.get(database, table)
        assert before is not None
        self.replace(replace(before, parameters={**before.parameters, METADATA_FILE: file}), expected=before)

    def rename(self, table: str, name: str) -> None:
        before = self.get("a", table)
        assert before is not None
        del self._entries["a", table]
        self._entries["a", name] = replace(before, table=name)
        self._tell("ALTER_TABLE", ("a", name))


def entry(table: str, database: str = "a") -> Entry:
    parameters = {"table_type": "ICEBERG", METADATA_FILE: f"file:/{table}/metadata/0.metadata.json"}
    return Entry(
        database=database,
        table=table,
        location=f"file:/{table}",
        provider=None,
        table_type="EXTERNAL_TABLE",
        parameters=parameters,
    )


def test_what_did_not_move_is_read_once() -> None:
    stage = Stage()
    assert [stage.told() for _ in range(5)] == [stage.told()] * 5
    assert stage.read == [WHOLE]


def test_what_moved_is_read_again_alone() -> None:
    stage = Stage()
    stage.told()
    stage.commit("u", "file:/u/metadata/1.metadata.json")
    assert stage.told()["u"] == "file:/u/metadata/1.metadata.json"
    assert stage.read == [WHOLE, ("u",)]


def test_what_was_dropped_names_nothing_and_what_is_made_anew_does() -> None:
    stage = Stage()
    stage.told()
    stage.drop("a", "u")
    assert set(stage.told()) == {"t", "v"}
    stage.create(entry("u"))
    assert set(stage.told()) == set(WHOLE)
    assert stage.read == [WHOLE, ("u",), ("u",)]
    stage._tell("ADD_PARTITION", ("a", "other"))
    stage.told()
    assert stage.read[3:] == [("u",)], "the latest notifications are looked at once more"


def test_a_table_that_was_given_another_name_is_missed_although_only_the_new_name_is_told() -> None:
    stage = Stage()
    stage.told()
    stage.rename("u", "elsewhere")
    assert set(stage.told()) == {"t", "v"}
    stage.rename("elsewhere", "u")
    assert set(stage.told()) == set(WHOLE)


def test_of_tables_that_nobody_asks_for_the_names_are_asked_alone() -> None:
    stage = Stage()
    stage.create_database("b")
    stage.create(entry("other"))
    stage.create(entry("x", "b"))
    stage.told()
    for number in range(4):
        stage.commit("other", f"file:/other/metadata/{number}.metadata.json")
        stage.commit("x", f"file:/x/metadata/{number}.metadata.json", "b")
        stage.told()
    assert stage.read == [WHOLE]


def test_a_table_that_goes_to_a_name_that_was_another_ones_is_missed() -> None:
    stage = Stage()
    stage.create_database("b")
    stage.create(entry("x", "b"))
    stage.told()
    stage.commit("x", "file:/x/metadata/1.metadata.json", "b")
    stage.told()
    stage.drop("b", "x")
    del stage._entries["a", "u"]
    stage._tell("ALTER_TABLE", ("b", "x"))
    assert set(stage.told()) == {"t", "v"}


def test_names_that_are_swapped_and_swapped_back_name_their_own_files() -> None:
    stage = Stage()
    stage.create(entry("b"))
    stage.commit("b", "file:/b/metadata/1.metadata.json")
    stage.told()
    stage.drop("a", "u")
    stage.rename("b", "u")
    assert stage.told()["u"] == "file:/b/metadata/1.metadata.json"
    for number in range(60):
        stage._tell("ADD_PARTITION", ("z", f"since_{number}"))
    stage.told()
    stage.rename("u", "b")
    assert set(stage.told()) == {"t", "v"}


def test_all_are_read_from_a_metastore_that_was_put_back() -> None:
    stage = Stage()
    stage.told()
    stage.commit("u", "file:/u/metadata/1.metadata.json")
    stage.told()
    del stage._events[-3:]
    stage._entries["a", "u"] = entry("u")
    assert stage.told()["u"] == "file:/u/metadata/0.metadata.json"


def test_notifications_are_read_once_for_all_databases(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, asked = Stage(), list[int]()
    stage.create_database("b")
    stage.create(entry("x", "b"))
    plain = stage.notifications

    def noted(*, after: int, limit: int) -> tuple[Notification, ...]:
        asked.append(after)
        return plain(after=after, limit=limit)

    monkeypatch.setattr(stage, "notifications", noted)
    for _ in range(2):
        for database, tables in (("a", WHOLE), ("b", ("x",))):
            stage.noticed.metadata_files(stage, database, tables)
        stage._tell("ADD_PARTITION", ("z", "z"))
    assert len(asked) == 1


@pytest.mark.parametrize("kind", ["ALTER_DATABASE", "DROP_DATABASE"])
def test_what_is_said_of_the_whole_database_counts_for_each_table(kind: str) -> None:
    stage = Stage()
    stage.told()
    stage._tell(kind, ("a", ""))
    stage.told()
    assert stage.read == [WHOLE] * 2


def test_all_are_read_where_notifications_are_cleaned_away_or_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage()
    stage.told()
    stage.commit("t", "file:/t/metadata/1.metadata.json")
    stage.commit("u", "file:/u/metadata/1.metadata.json")
    lost = stage._events.pop(-2)
    stage._events.insert(-1, Notification(1, "ADD_PARTITION", "z", "z"))
    stage.told()
    assert lost.table == "t" and stage.read == [WHOLE] * 2
    monkeypatch.setattr(noticed_heads, "_AT_ONCE", 1)
    stage.commit("v", "file:/v/metadata/1.metadata.json")
    stage.told()
    assert stage.read == [WHOLE] * 3


def test_one_of_two_with_the_same_number_that_comes_late_is_found_with_the_next() -> None:
    stage = Stage()
    stage.commit("t", "file:/t/metadata/1.metadata.json")
    stage.told()
    stage.commit("u", "file:/u/metadata/1.metadata.json")
    stage._events[-1] = stage._events[-1]._replace(number=stage._events[-2].number)
    stage._events.pop(-2)
    stage._tell("ALTER_TABLE", ("a", "v"))
    assert stage.told()["u"] == "file:/u/metadata/1.metadata.json"


def test_all_are_read_from_time_to_time_for_another_question_and_without_notifications() -> None:
    stage = Stage()
    stage.told()
    stage.now += 601
    stage.told()
    assert stage.read == [WHOLE] * 2
    stage.noticed.metadata_files(stage, "a", ["t", "w"])
    assert stage.read[2:] == [("t", "w")]
    stage.records = False
    del stage.read[:]
    assert [stage.told(), stage.told()] and stage.read == [WHOLE] * 2
    stage.records = True
    stage.told()
    assert stage.read == [WHOLE] * 3, "nobody told what had happened meanwhile"
    stage.noticed.forget()
    stage.told()
    assert stage.read == [WHOLE] * 4
