"""By which commits head came from a version: branches, and what nobody published, are not among them."""

from pathlib import Path

import pytest

from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.formats.port import Commit, CommitKind
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.jobs.rollback.execute.head_line import commits_since, on_line
from support.builders.iceberg_tables import IcebergWriter
from support.histories.fleet_logs import NOW


def commits(parents: dict[int, int | None]) -> list[Commit]:
    return [
        Commit(version=one, parent=parent, committed_at=NOW, kind=CommitKind.APPEND, operation="append")
        for one, parent in parents.items()
    ]


@pytest.mark.parametrize(
    ("parents", "head", "line"),
    [
        pytest.param({}, 7, (), id="nothing"),
        pytest.param({8: 7}, 7, (), id="a branch, or what nobody published"),
        pytest.param({8: 7, 9: 7, 11: 9}, 11, (9, 11), id="main beside a branch"),
        pytest.param({8: 7}, 6, None, id="set back to before it"),
        pytest.param({9: -2, 10: 9}, 10, None, id="what came first has expired"),
        pytest.param({9: None}, 9, None, id="made from nothing"),
        pytest.param({9: 10, 10: 9}, 10, None, id="a circle, which no table has"),
        pytest.param({8: 7, 9: 7}, None, (8, 9), id="a format whose versions are one line"),
    ],
)
def test_only_what_head_goes_back_through_came_after_a_version(
    parents: dict[int, int | None], head: int | None, line: tuple[int, ...] | None
) -> None:
    found = on_line(commits(parents), after=7, head=head)
    assert (None if found is None else tuple(one.version for one in found)) == line


def test_it_is_told_by_the_table_itself(tmp_path: Path) -> None:
    table = IcebergWriter(root=tmp_path / "t")
    location = canonical(str(table.root))

    def since(after: int) -> list[int] | None:
        found = commits_since(IcebergReader(), location, after=after)
        return None if found is None else [one.version for one in found]

    for name in ("a", "b", "on a branch", "of a killed run"):
        table.commit(add=((f"{name}.parquet", 100),))
    two, branch = (int(table.snapshots[place]["snapshot-id"]) for place in (1, 2))
    table.more["refs"] = {"audit": {"snapshot-id": branch, "type": "branch"}}
    table.move_main(two)
    assert (since(1), since(2), since(3)) == ([2], [], None)
    table.commit(add=(("c.parquet", 100),))
    assert (since(1), since(2)) == ([2, 5], [5])
