"""What others did after a rollback, and whether an undo would take it away."""

from typing import Any

import pytest

from lakewarden.catalog.formats.port import Commit, CommitKind
from lakewarden.catalog.model.rollbacks import marked_by
from lakewarden.jobs.rollback.execute.later_commits import Since, since_restore
from support.builders.commits import counted
from support.histories.fleet_logs import NOW

OURS = ("rollback-r1-1", "rollback-r1-2")


def commits(*lines: str) -> list[Commit]:
    """Versions 4, 5, ...: an operation, what a RESTORE went to, and who made it: `RESTORE 3 by rollback-r2-1`."""
    return [_commit(version, line) for version, line in enumerate(lines, start=4)]


def _commit(version: int, line: str) -> Commit:
    what, _, run_id = line.partition(" by ")
    operation, _, target = what.partition(" to ")
    return counted(
        version=version,
        committed_at=NOW,
        operation=operation,
        parameters={"version": target} if target else {},
        data_change=operation != "OPTIMIZE",
        run_id=run_id or None,
    )


def since(*lines: str) -> Since:
    """After a restore that made version 3."""
    return since_restore(3, commits(*lines), OURS, "rollback-r1-1-undo")


@pytest.mark.parametrize(
    ("lines", "foreign"),
    [
        pytest.param([], None, id="nothing"),
        pytest.param(["OPTIMIZE", "WRITE by rollback-r1-2"], None, id="maintenance and what we added again"),
        pytest.param(["WRITE", "OPTIMIZE", "MERGE"], 4, id="the first of two writes"),
        pytest.param(["RESTORE to 1 by rollback-r2-1"], 4, id="another rollback"),
        pytest.param(
            ["RESTORE to 1 by rollback-r2-1", "RESTORE to 3 by rollback-r2-1-undo"], None, id="and its undo"
        ),
        pytest.param(["OPTIMIZE", "WRITE", "RESTORE to 4"], None, id="a write that somebody took back"),
        pytest.param(["WRITE", "RESTORE to 4"], 4, id="a RESTORE to the write"),
        pytest.param(["WRITE", "RESTORE to 2"], 4, id="a RESTORE to before the rollback"),
        pytest.param(["WRITE", "RESTORE"], 4, id="a RESTORE to nobody knows where"),
        pytest.param(["WRITE", "RESTORE to 3", "MERGE"], 6, id="and another write"),
        pytest.param(["WRITE", "WRITE by rollback-r1-2", "RESTORE to 5"], 4, id="what we added on top of it"),
        pytest.param(["WRITE", "RESTORE to 3", "RESTORE to 5"], None, id="a RESTORE to that RESTORE"),
    ],
)
def test_what_somebody_elses_commit_stands_in_the_way(lines: list[str], foreign: int | None) -> None:
    found = since(*lines)
    assert (None if found.foreign is None else found.foreign.version) == foreign
    assert (found.head, found.undone) == (3 + len(lines), ())


def test_another_formats_compactions_and_ways_back_count_as_what_they_did_not_as_what_they_are_called() -> (
    None
):
    def commit(version: int, operation: str, kind: CommitKind, **told: Any) -> Commit:
        return Commit(version=version, parent=3, committed_at=NOW, operation=operation, kind=kind, **told)

    compacted = commit(10, "compact", CommitKind.MAINTENANCE, added_files=1, removed_files=9)
    written = commit(20, "append", CommitKind.APPEND, data_change=True)
    back = commit(30, "restore", CommitKind.RESTORE, data_change=True, restored=10)
    undo = "rollback-r1-1-undo"
    assert since_restore(3, [compacted], OURS, undo) == Since(head=10)
    assert since_restore(3, [compacted, written], OURS, undo).foreign == written
    assert since_restore(3, [compacted, written, back], OURS, undo) == Since(head=30)


def test_a_retention_that_somebody_sets_is_kept_by_its_name_unless_a_restore_took_it_back() -> None:
    def sets(version: int, name: str, run_id: str | None = None) -> Commit:
        told = {"properties": f'{{"{name}":"interval 60 days"}}'}
        return counted(
            version=version,
            committed_at=NOW,
            operation="SET TBLPROPERTIES",
            parameters=told,
            format_id="u",
            run_id=run_id,
        )

    retention, undo = "delta.deletedFileRetentionDuration", "rollback-r1-1-undo"
    ours, theirs = sets(4, retention, OURS[0]), sets(4, retention)
    assert since_restore(3, [ours], OURS, undo).kept == {}
    assert since_restore(3, [theirs], OURS, undo).kept == {retention: theirs}
    other = since_restore(3, [sets(4, "owner.note")], OURS, undo)
    assert other.kept == {} and other.foreign is not None
    back = _commit(5, "RESTORE to 3")
    assert since_restore(3, [_commit(4, "WRITE"), back], OURS, undo).kept == {}


def test_once_it_is_undone_nothing_stands_in_the_way_any_more() -> None:
    undo = "RESTORE to 2 by rollback-r1-1-undo"
    assert since(undo, "WRITE") == Since(head=5, undone=(4,))
    over = since("WRITE", undo)
    assert over.foreign is not None and over.undone == (5,), "by Spark, which does not look at head"


@pytest.mark.parametrize(
    ("run_id", "rollback_id"),
    [("rollback-r-1-2", "r-1"), ("rollback-65f8-1-undo", "65f8"), ("job-7", None), (None, None)],
)
def test_a_mark_names_its_rollback(run_id: str | None, rollback_id: str | None) -> None:
    assert marked_by(run_id) == rollback_id
