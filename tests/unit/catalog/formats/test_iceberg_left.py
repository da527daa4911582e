"""Which snapshots main has left without a commit that says so."""

import pytest

from lakewarden.catalog.formats.iceberg.left_snapshots import left_by_main
from support.builders.iceberg_histories import SnapshotTable


def table() -> SnapshotTable:
    return SnapshotTable(table_id="a").write(1).write(2)


UNDO = "rollback-r-1"


@pytest.mark.parametrize(
    ("one", "left"),
    [
        pytest.param(table().write(3), (), id="it went on"),
        pytest.param(table().write(3).set_back(2).write(4), (3,), id="a load that was taken back"),
        pytest.param(table().write(3).set_back(2), (3,), id="and nothing since"),
        pytest.param(table().write(3).write(4).set_back(2), (3, 4), id="two"),
        pytest.param(table().write(3).set_back(2).set_back(3), (), id="there and back"),
        pytest.param(table().write(3, branch="dev").write(4, on=2), (), id="a branch that main never was at"),
        pytest.param(
            table().write(3, branch="dev").write(4, on=3, branch="dev").set_back(4).set_back(2),
            (3, 4),
            id="a branch that main was at, with what came before it there",
        ),
        pytest.param(table().restored(3, to=1, run_id=UNDO), (), id="a rollback of ours says itself what it left"),
        pytest.param(
            table().restored(3, to=1, run_id=UNDO).restored(4, to=2, run_id=f"{UNDO}-undo"), (), id="and its undo"
        ),
        pytest.param(
            table().restored(3, to=1, run_id=UNDO).set_back(1), (2, 3), id="a rollback that somebody took back"
        ),
        pytest.param(table().write(3, on=0), (), id="a table made anew has begun since"),
        pytest.param(table().write(3, on=0).set_back(2), (3,), id="which somebody took back"),
        pytest.param(table().write(3).set_back(2).write(4).expire(3), (), id="what has expired, nothing tells"),
        pytest.param(table().write(3).set_back(2).write(4).expire(1), (3,), id="older ones expired"),
        pytest.param(table().set_back(None), (), id="a table without rows"),
        pytest.param(SnapshotTable(table_id="a"), (), id="a table that never had any"),
    ],
)  # fmt: skip
def test_what_main_has_left_is_told_by_its_moves(one: SnapshotTable, left: tuple[int, ...]) -> None:
    assert left_by_main(one.metadata) == left
