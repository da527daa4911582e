"""A statement over several tables under an operation id: what comes next, for all that can be known."""

from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest

from lakewarden.catalog.model.rollbacks import GROUP_PATIENCE, Rollback
from lakewarden.catalog.model.rows import RollbackState, RollbackStep
from lakewarden.jobs.rollback.journal.group_rows import group_of
from lakewarden.jobs.rollback.journal.steps import TableStep
from lakewarden.jobs.upsert.once import OperationVerdict
from lakewarden.jobs.upsert.once_of_several import Decision, Member, Turn, about_members, about_unfinished
from support.builders.worlds import NOW

HELD = Member(name="t", verdict=OperationVerdict.DONE, run_id="g1")
OTHER = Member(name="t", verdict=OperationVerdict.DONE, is_same=False)
NOT = Member(name="t", verdict=OperationVerdict.NOT_DONE)
UNTOLD = Member(name="t", verdict=OperationVerdict.UNTOLD)


def decided(*members: Member) -> Decision:
    named = [replace(one, name=name) for one, name in zip(members, "abc", strict=False)]
    return about_members("load", named)


@pytest.mark.parametrize("members", [*product((HELD, OTHER, NOT, UNTOLD), repeat=2), (HELD, HELD, NOT)])
def test_it_is_done_where_none_holds_it_and_was_done_where_all_do(members: tuple[Member, ...]) -> None:
    """All cases of two tables, and one of three."""
    alike = set(members)
    wanted = Turn.DONE if alike == {HELD} else Turn.DO if alike == {NOT} else Turn.REFUSE
    assert decided(*members).turn is wanted


def test_another_text_is_refused_as_for_one_table_whatever_else_is_known() -> None:
    for rest in (HELD, NOT, UNTOLD, OTHER):
        refused = decided(rest, OTHER)
        assert refused.because.startswith("Another statement was done on this table as operation load")


def test_what_is_undone_in_part_says_where_and_how_to_undo_the_rest() -> None:
    refused = decided(NOT, HELD)
    assert refused.because == "b holds operation load, and a does not any more: it was undone in part."
    assert "`lakewarden rollback plan --run g1`" in refused.hint
    assert "rollback plan" not in decided(NOT, replace(HELD, run_id=None)).hint, "its log is gone"


def test_what_a_log_does_not_tell_any_more_is_said_of_its_table() -> None:
    assert "the log of b does not tell any more" in decided(HELD, UNTOLD).because


def begun(state: RollbackState, *, seen: timedelta) -> Rollback:
    """A statement whose session gave its last sign of life so long ago."""
    step = TableStep(
        table_id="t", name="t", location="/t", from_version=1, to_version=2, kind=RollbackStep.CHANGE
    )
    group = group_of("g1", [step], statement="x", actor="ana", at=NOW - seen)
    return group.with_head(state)


@pytest.mark.parametrize("state", [RollbackState.INTENT, RollbackState.UNDOING])
@pytest.mark.parametrize(
    ("seen", "left", "turn"),
    [
        (timedelta(0), timedelta(seconds=1), Turn.WAIT),
        (GROUP_PATIENCE - timedelta(seconds=1), timedelta(seconds=1), Turn.WAIT),
        (timedelta(0), timedelta(0), Turn.REFUSE),
        (GROUP_PATIENCE, timedelta(seconds=1), Turn.END),
        (GROUP_PATIENCE, timedelta(0), Turn.END),
    ],
)
def test_who_lives_is_waited_for_a_while_and_who_does_not_is_ended(
    state: RollbackState, seen: timedelta, left: timedelta, turn: Turn
) -> None:
    assert about_unfinished("load", begun(state, seen=seen), now=NOW, until=NOW + left).turn is turn


def test_what_waits_for_a_person_is_not_waited_for() -> None:
    stuck = begun(RollbackState.CONFLICT, seen=timedelta(0))
    refused = about_unfinished("load", stuck, now=NOW, until=NOW + GROUP_PATIENCE)
    assert refused.turn is Turn.REFUSE and "`lakewarden rollback show g1`" in refused.hint
