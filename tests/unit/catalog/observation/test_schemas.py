"""Column ids outlive what happens to columns."""

from datetime import UTC, datetime

from lakewarden.catalog.formats.port import Capabilities, Commit, Observation
from lakewarden.catalog.model.rows import DELTA, Change, Column, SchemaRow
from lakewarden.catalog.observation.schemas import next_schema
from support.builders.commits import counted, observed

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
