"""What a run whose worker is gone came to, by the log alone."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.model.rows import Action
from lakewarden.catalog.state.port import Run, RunRequest, RunState
from lakewarden.jobs.actions.registry import verdict_of
from lakewarden.jobs.actions.spec import GiveUp, Recovered, Retry, Verdict
from support.builders.commits import counted

AT = datetime(2026, 1, 1, tzinfo=UTC)
OURS, THEIRS = "run-1", None


def run(action: Action, *, decided_on: int | None = 4) -> Run:
    request = RunRequest(
        run_id=OURS,
        table_id="t",
        name="db.t",
        location="file:///t",
        action=action,
        payload="{}",
        because="due",
        requires_version=decided_on,
    )
    return Run(request=request, state=RunState.RUNNING, queued_at=AT)


def commits(*entries: tuple[str, str | None]) -> list[Commit]:
    return [
        counted(version=version, committed_at=AT, operation=operation, run_id=run_id)
        for version, (operation, run_id) in enumerate(entries, start=5)
    ]


CASES: dict[str, tuple[Run, list[Commit], Verdict]] = {
    "nothing happened": (run(Action.COMPACT), [], Retry()),
    "only others committed": (run(Action.COMPACT), commits(("WRITE", THEIRS)), Retry()),
    "compaction committed": (run(Action.COMPACT), commits(("OPTIMIZE", OURS)), Recovered(version=5)),
    "compaction committed before others": (
        run(Action.COMPACT),
        commits(("OPTIMIZE", OURS), ("WRITE", THEIRS)),
        Recovered(version=5),
    ),
    "purge of vectors and compaction committed": (
        run(Action.COMPACT),
        commits(("REORG", OURS), ("OPTIMIZE", OURS)),
        Recovered(version=6),
    ),
    "properties committed": (
        run(Action.PROPERTIES),
        commits(("SET TBLPROPERTIES", OURS)),
        Recovered(version=5),
    ),
    "properties given back, perhaps not all": (
        run(Action.PROPERTIES, decided_on=None),
        commits(("UNSET TBLPROPERTIES", OURS)),
        Retry(),
    ),
    "vacuum ended": (
        run(Action.VACUUM),
        commits(("VACUUM START", OURS), ("VACUUM END", OURS)),
        Recovered(version=6),
    ),
    "vacuum of another format ended": (
        run(Action.VACUUM),
        [replace(one, ends_vacuum=True) for one in commits(("expire", OURS))],
        Recovered(version=5),
    ),
    "vacuum begun": (
        run(Action.VACUUM),
        commits(("VACUUM START", OURS)),
        GiveUp(because="It was interrupted while deleting; the next vacuum deletes the rest."),
    ),
    "conversion committed, the rest perhaps not": (run(Action.CONVERT), commits(("CONVERT", OURS)), Retry()),
    "statistics filled: the last of their steps": (
        run(Action.STATISTICS),
        commits(("WRITE", OURS)),
        Recovered(version=5),
    ),
}


@pytest.mark.parametrize(("lost", "log", "verdict"), CASES.values(), ids=CASES)
def test_the_log_decides(lost: Run, log: list[Commit], verdict: Verdict) -> None:
    assert verdict_of(lost, lambda: log) == verdict


@pytest.mark.parametrize("action", Action)
def test_every_kind_of_run_has_a_verdict_for_a_commit_of_its_own(action: Action) -> None:
    assert isinstance(verdict_of(run(action), lambda: commits(("ANY", OURS))), Recovered | Retry | GiveUp)


def test_a_log_that_cannot_be_read_keeps_no_run_for_ever() -> None:
    def unreadable() -> list[Commit]:
        raise UnreadableError("The entry is gone.")

    for action in (Action.PURGE, Action.VACUUM, Action.CONVERT):
        assert verdict_of(run(action), unreadable) == Retry()
