"""Killed between a restore and the journal, then disturbed by a stranger: the mark in the commit says what happened."""

from dataclasses import replace
from pathlib import Path

import pytest

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.model.rows import RollbackState as State
from support.builders.rollbacks import Lake
from support.processes.rollback_process import killed_at

NAMES = ("source", "derived", "leaf")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A rollback just begun: two tables at once, and one derived from them."""
    lake = Lake(tmp_path)
    for name in NAMES:
        for number in (1, 2, 3):
            lake.append(name, number)
    lake.begin(lake.step("source", 1), lake.step("derived", 0), lake.step("leaf", 1, wave=1))
    return lake


POINTS = ("rollback.restored", "rollback.restored:2", "rollback.acted")


@pytest.mark.few(3)
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("stranger", ["source", "derived", "leaf"])
def test_a_restore_that_the_journal_missed_is_neither_left_out_nor_forgotten_by_the_undo(
    lake: Lake, point: str, stranger: str
) -> None:
    killed_at(lake, point)
    lake.append(stranger, 99)
    written = lake.rows(stranger)
    done = lake.go_on(extend=lambda _: [])
    for row in done.steps:
        name = row.table_id.removeprefix("id-")
        restored = any(
            one.run_id == f"rollback-r1-{row.step}"
            for one in lake.reader.commits(lake.location(name), after=2)
        )
        assert (row.state is State.DONE) == restored, name
        if restored:
            assert str(row.name) not in (done.head.message or ""), "nobody wrote to it"
    assert lake.rows(stranger) == written, "nothing of theirs is touched"
    undone = lake.undo()
    held = {name for name in NAMES if name != stranger}
    assert {name: lake.rows(name) for name in held} == {name: [1, 2, 3] for name in held}
    assert undone.head.state in (State.COMPENSATED, State.CONFLICT)
    assert 99 in lake.rows(stranger)


@pytest.mark.few(2)
@pytest.mark.parametrize("state", [State.PLANNED, State.INTENT, State.CONFLICT, State.COMPENSATED])
def test_the_undo_takes_back_what_the_log_shows_whatever_the_journal_says(lake: Lake, state: State) -> None:
    killed_at(lake, "rollback.restored:2")
    rollback = lake.journal.get("r1")
    odd = rollback.with_rows(replace(row, state=state) for row in rollback.steps)
    lake.journal.save(odd.with_head(State.CONFLICT), expects=State.INTENT, because="test")
    assert lake.undo().head.state is State.COMPENSATED
    assert lake.contents(*NAMES) == {name: [1, 2, 3] for name in NAMES}


def test_an_attempt_that_somebody_overtook_writes_nothing_into_the_journal(lake: Lake) -> None:
    mine = lake.journal.get("r1")
    theirs = lake.journal.save(mine, expects=State.INTENT, because="test")
    assert theirs.head.recorded_at > mine.head.recorded_at
    with pytest.raises(ConflictError, match="was changed by somebody else meanwhile"):
        lake.journal.save(mine, expects=State.INTENT, because="test")
