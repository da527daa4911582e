"""Column ids outlive what happens to columns."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from lakewarden.catalog.formats.port import Capabilities, Commit, Observation
from lakewarden.catalog.model.rows import DELTA, Change, Column, SchemaRow
from lakewarden.catalog.observation.schemas import next_schema
from lakewarden.catalog.storage.file_store import canonical
from support.builders.commits import counted, observed
from support.manifest_format.reader import ManifestReader
from support.manifest_format.writer import ManifestWriter

CAN = Capabilities(restore=True, vacuum=True, compact=True, file_statistics=True)


def column(path: str, type_: str = "long", *, id: int = 0, nullable: bool = True) -> Column:
    return Column(id=id, path=path, type=type_, nullable=nullable)


def seen(version: int, *columns: Column, mapping: str | None = None) -> Observation:
    return observed(
        format=DELTA,
        location="file:///t",
        version=version,
        committed_at=datetime(2026, 1, 1, tzinfo=UTC),
        format_id="u",
        schema=columns,
        names_columns=mapping is not None,
        capabilities=CAN,
    )


def no_commits(location: str, *, after: int, upto: int | None = None) -> list[Commit]:
    return []


def recorded(*observations: Observation) -> list[SchemaRow]:
    history: list[SchemaRow] = []
    for one in observations:
        row = next_schema("t", one, history, no_commits)
        if row is not None:
            history.append(row)
    return history


def ids(row: SchemaRow) -> dict[str, int]:
    return {one.path: one.id for one in row.columns}


def test_the_first_version_gets_ids_and_no_changes() -> None:
    (first,) = recorded(seen(0, column("a"), column("b")))
    assert (ids(first), first.changes, first.schema_id) == ({"a": 1, "b": 2}, (), 0)


def test_an_equal_schema_is_not_recorded_again() -> None:
    assert len(recorded(seen(0, column("a")), seen(5, column("a")))) == 1


def test_an_id_is_never_used_twice_even_after_a_drop() -> None:
    history = recorded(
        seen(0, column("a"), column("b")), seen(1, column("a")), seen(2, column("a"), column("c"))
    )
    assert ids(history[-1]) == {"a": 1, "c": 3}
    assert [one.change for row in history for one in row.changes] == [Change.DROP, Change.ADD]


def test_with_column_mapping_a_rename_is_a_rename() -> None:
    history = recorded(
        seen(0, column("a", id=7), column("b", id=9), mapping="name"),
        seen(1, column("z", id=7), column("b", id=9), mapping="name"),
    )
    (change,) = history[-1].changes
    assert (change.column_id, change.change, change.before, change.after) == (7, Change.RENAME, "a", "z")


def test_moves_types_and_nullability_are_told_apart() -> None:
    history = recorded(
        seen(0, column("a"), column("b"), column("c", nullable=False)),
        seen(1, column("b", "string"), column("a"), column("c")),
    )
    changes = {(one.column_id, one.change) for one in history[-1].changes}
    assert changes == {
        (1, Change.MOVE),
        (2, Change.MOVE),
        (2, Change.TYPE),
        (3, Change.NULLABILITY),
    }
    assert history[-1].schema_id == 1


def test_a_schema_is_of_the_version_that_made_it_and_says_by_whom() -> None:
    commits = [
        counted(
            version=version,
            committed_at=datetime(2026, 1, version, tzinfo=UTC),
            operation="WRITE",
            format_id=format_id,
            user=user,
        )
        for version, format_id, user in ((2, None, None), (3, "u", "eve"), (4, "u", "ana"), (5, None, "bob"))
    ]
    asked: list[tuple[str, int, int | None]] = []

    def since(location: str, *, after: int, upto: int | None = None) -> list[Commit]:
        asked.append((location, after, upto))
        return commits

    first = next_schema("t", seen(1, column("a")), [], since)
    assert first is not None
    assert (first.version, first.changed_by, asked) == (1, None, [])
    second = next_schema("t", seen(5, column("a"), column("b")), [first], since)
    assert second is not None
    assert (second.version, second.changed_by, asked) == (4, "ana", [("file:///t", 1, 5)])
    assert second.changed_at == datetime(2026, 1, 4, tzinfo=UTC)


def test_where_the_commit_is_not_known_the_schema_is_of_the_version_that_was_read() -> None:
    before, after = recorded(seen(1, column("a")), seen(5, column("b")))
    assert (before.version, after.version, after.changed_by) == (1, 5, None)
    assert after.changed_at == datetime(2026, 1, 1, tzinfo=UTC)


class Lake:
    """A table of the tests' own format, whose versions have gaps and whose head moves back by hand, and the schemas
    that a daemon records of it."""

    def __init__(self, root: Path) -> None:
        self.writer = ManifestWriter(root=root, now=datetime(2026, 1, 1, tzinfo=UTC))
        self.reader, self.place = ManifestReader(), canonical(str(root))
        self.history = dict[tuple[str, int], SchemaRow]()

    def commit(self, *columns: str) -> int:
        """A commit; with columns of this schema from now on."""
        told = tuple((name, "long") for name in columns) or None
        return self.writer.commit(operation="append", columns=told)

    def look(self) -> SchemaRow | None:
        """What a look records; None for nothing. As in the system table, a key that is there stays as it is."""
        seen = self.reader.observe(self.place)
        assert isinstance(seen, Observation)
        row = next_schema("t", seen, tuple(self.history.values()), self.reader.commits)
        if row is not None:
            assert (row.table_id, row.version) not in self.history, "it would be dropped without a word"
            self.history[row.table_id, row.version] = row
        return row


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "t")


def test_a_head_that_goes_back_to_a_schema_on_record_changes_none_and_what_follows_is_told_from_there(
    lake: Lake,
) -> None:
    first = lake.commit("a", "b")
    lake.look()
    lake.commit("a")
    dropped = lake.look()
    assert dropped is not None and [one.change for one in dropped.changes] == [Change.DROP]
    lake.writer.move_main(first)
    assert lake.look() is None
    lake.commit()
    assert lake.look() is None, "made from the first, with its schema"
    made = lake.commit("a", "b", "c")
    row = lake.look()
    assert row is not None and (row.version, row.schema_id) == (made, 2)
    assert ids(row) == {"a": 1, "b": 2, "c": 3}
    assert [(one.change, one.column_id) for one in row.changes] == [(Change.ADD, 3)]


def test_the_commit_that_made_a_schema_is_looked_for_on_heads_own_line(lake: Lake) -> None:
    first = lake.commit("a")
    lake.look()
    abandoned = lake.commit("a", "z")
    lake.writer.move_main(first)
    made = lake.commit("a", "b")
    lake.commit()
    row = lake.look()
    assert abandoned < made and row is not None and row.version == made
    assert ids(row) == {"a": 1, "b": 2}


def test_between_two_schemas_on_record_head_may_go_to_and_fro(lake: Lake) -> None:
    versions = [lake.commit("a")]
    lake.look()
    versions.append(lake.commit("a", "b"))
    lake.look()
    for number in (*versions, *reversed(versions)):
        lake.writer.move_main(number)
        assert lake.look() is None
    assert len(lake.history) == 2
