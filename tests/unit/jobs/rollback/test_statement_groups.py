"""What becomes of a statement over several tables whose session is gone: the journal and the tables' logs decide."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from lakewarden.catalog import failpoints
from lakewarden.catalog.errors import ConflictError, NotFoundError, UnavailableError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.model.lineage_record import STATEMENT, group_app
from lakewarden.catalog.model.rollbacks import (
    GROUP_PATIENCE,
    Rollback,
    needed_versions,
    rollback_locks,
    tainted_versions,
)
from lakewarden.catalog.model.rows import Action, RollbackStep
from lakewarden.catalog.model.rows import RollbackState as State
from lakewarden.jobs.actions.answers import Due, NotDue, WhyNot
from lakewarden.jobs.actions.world import World
from lakewarden.jobs.planning.planner import judge
from lakewarden.jobs.rollback.journal.group_rows import given_up, group_of
from lakewarden.jobs.rollback.journal.stored_plan import decode_plan
from lakewarden.jobs.rollback.report.next_steps import steps_from
from support.builders.rollbacks import Lake
from support.builders.worlds import NOW, view

pytestmark = pytest.mark.heavy

GROUP = "b7c0ffee"
NAMES = ("first", "second")
TEXT = "DELETE first, second FROM first JOIN second ON first.id = second.id"


@dataclass
class Cut:
    """A statement that was cut off somewhere, on two tables with the rows 1 and 2."""

    lake: Lake
    group: Rollback

    def change(self, name: str, *, app: str = "", number: int = 1) -> int:
        """What the session does to one table: it writes anew what it holds, without row 2."""
        write_deltalake(
            self.lake.place(name),
            pa.table({"id": pa.array([1], pa.int64())}),
            mode="overwrite",
            commit_properties=CommitProperties(
                custom_metadata={"lakewarden.run_id": GROUP},
                app_transactions=[Transaction(app or group_app(GROUP), number)],
            ),
        )
        return self.lake.head(name)

    def end(self) -> Rollback:
        return self.lake.go_on(GROUP)

    def rows(self) -> Sequence[Sequence[int]]:
        return [self.lake.rows(name) for name in NAMES]


@pytest.fixture
def cut(tmp_path: Path) -> Cut:
    lake = Lake(tmp_path)
    for name in NAMES:
        lake.append(name, 1)
        lake.append(name, 2)
    changes = [lake.step(name, 2, kind=RollbackStep.CHANGE) for name in NAMES]
    group = group_of(GROUP, changes, statement=TEXT, actor="ana", at=lake.clock.now())
    lake.journal.put([group.head, *group.steps], because="test")
    return Cut(lake, group)


def test_the_journal_has_who_what_and_which_versions_before_anything_is_done(cut: Cut) -> None:
    stored = cut.lake.journal.get(GROUP)
    assert stored.is_group and stored.head.actor == "ana"
    assert decode_plan(stored.head.payload or "").statement == TEXT
    assert [(row.name, row.from_version, row.wave) for row in stored.steps] == [
        ("db.first", 1, 0),
        ("db.second", 1, 1),
    ]
    assert {row.state for row in (stored.head, *stored.steps)} == {State.INTENT}


def test_a_table_is_held_by_one_statement_or_rollback_at_a_time(cut: Cut) -> None:
    changes = [cut.lake.step(name, 2, kind=RollbackStep.CHANGE) for name in reversed(NAMES)]
    other = group_of("other", changes, statement=TEXT, actor="bo", at=cut.lake.clock.now())
    with pytest.raises(ConflictError, match=rf"held by rollback {GROUP}"):
        cut.lake.journal.begin(other, because="test")
    assert [one.rollback_id for one in cut.lake.journal.all()] == [GROUP]
    assert cut.end().head.state is State.COMPENSATED
    cut.lake.journal.begin(other, because="test")
    assert {one.rollback_id for one in cut.lake.journal.all()} == {GROUP, "other"}


def test_cut_off_before_its_first_commit_nothing_is_changed(cut: Cut) -> None:
    assert cut.end().head.state is State.COMPENSATED
    assert cut.rows() == [[1, 2], [1, 2]]


def test_cut_off_between_two_commits_the_first_is_taken_back(cut: Cut) -> None:
    cut.change("first")
    assert cut.rows() == [[1], [1, 2]]
    assert cut.end().head.state is State.COMPENSATED
    assert cut.rows() == [[1, 2], [1, 2]]
    assert cut.lake.head("first") == 3, "the change, and its restore"


def test_cut_off_after_its_last_commit_it_is_done(cut: Cut) -> None:
    heads = [cut.change(name) for name in NAMES]
    ended = cut.end()
    assert ended.head.state is State.DONE
    assert not ended.can_be_undone(cut.lake.clock.now()) and rollback_locks([ended]) == {}
    assert cut.rows() == [[1], [1]]
    assert [cut.lake.head(name) for name in NAMES] == heads


def test_a_session_that_wakes_up_later_finds_that_its_change_counts_as_made(cut: Cut) -> None:
    cut.change("first")
    cut.end()
    assert DeltaTable(cut.lake.place("second")).transaction_version(group_app(GROUP)) == 1


def test_under_an_operation_id_the_tables_tell_what_was_taken_back_and_what_was_fenced_off(
    tmp_path: Path,
) -> None:
    lake, app = Lake(tmp_path), f"{STATEMENT}load"
    for name in NAMES:
        lake.append(name, 1)
        lake.append(name, 2)
    change = partial(replace, kind=RollbackStep.CHANGE, apps=(app,))
    steps = [change(lake.step(name, 2), fence=fence) for name, fence in zip(NAMES, (4, 2), strict=True)]
    group = group_of(GROUP, steps, statement=TEXT, actor="ana", at=lake.clock.now())
    lake.journal.put([group.head, *group.steps], because="test")
    cut = Cut(lake, group)
    cut.change("first", app=app, number=3)
    assert cut.end().head.state is State.COMPENSATED
    assert cut.rows() == [[1, 2], [1, 2]]
    told = [DeltaTable(lake.place(name)).transaction_version(app) for name in NAMES]
    assert told == [-1, 2], "as before the change, and fenced off"


def test_a_change_that_the_session_knew_to_be_impossible_leaves_no_commit(cut: Cut) -> None:
    cut.change("first")
    back = given_up(cut.group, never_made={"id-second"})
    cut.lake.journal.save(back, expects=State.INTENT, because="test")
    assert cut.end().head.state is State.COMPENSATED
    assert cut.rows() == [[1, 2], [1, 2]]
    assert cut.lake.head("second") == 1


def test_what_somebody_wrote_after_a_change_stays_and_the_group_waits_for_a_person(cut: Cut) -> None:
    cut.change("first")
    cut.lake.append("first", 9)
    ended = cut.end()
    assert ended.head.state is State.CONFLICT
    assert ended.head.message is not None
    assert "db.first was written to after the statement changed it (version 3, WRITE)" in ended.head.message
    assert cut.rows() == [[1, 9], [1, 2]]
    assert [one.command.split()[2] for one in steps_from(ended)] == ["resume", "undo"]
    assert rollback_locks([ended])["id-first"].waits


def test_what_somebody_wrote_before_a_change_stays_when_it_is_taken_back(cut: Cut) -> None:
    cut.lake.append("first", 9)
    cut.change("first")
    assert cut.end().head.state is State.COMPENSATED
    assert cut.rows() == [[1, 2, 9], [1, 2]]


def spoil(cut: Cut, name: str) -> Callable[[], None]:
    """Make the last commit of a table's log unreadable; what mends it."""
    log = cut.lake.path(name) / "_delta_log" / f"{cut.lake.head(name):020}.json"
    whole = log.read_bytes()
    log.write_text("no json\n")

    def mend() -> None:
        log.write_bytes(whole)

    return mend


@pytest.mark.parametrize("broken", NAMES)
def test_what_may_be_whole_is_not_taken_back_for_a_log_that_cannot_be_read(cut: Cut, broken: str) -> None:
    for name in NAMES:
        cut.change(name)
    mend = spoil(cut, broken)
    ended = cut.end()
    assert (ended.head.state, ended.head.undo) == (State.CONFLICT, False)
    assert ended.head.message is not None and f"cannot be told: db.{broken}'s log" in ended.head.message
    mend()
    assert cut.rows() == [[1], [1]]
    again = ended.with_head(State.INTENT)
    cut.lake.journal.save(again, expects=State.CONFLICT, because="somebody mended the log")
    assert cut.end().head.state is State.DONE
    assert cut.rows() == [[1], [1]]


@pytest.mark.parametrize("broken", NAMES)
def test_when_it_is_taken_back_an_unreadable_log_keeps_no_other_table_from_it(cut: Cut, broken: str) -> None:
    for name in NAMES:
        cut.change(name)
    back = given_up(cut.group, never_made=())
    cut.lake.journal.save(back, expects=State.INTENT, because="test")
    mend = spoil(cut, broken)
    ended = cut.end()
    assert ended.head.state is State.CONFLICT
    assert ended.head.message is not None and f"db.{broken}" in ended.head.message
    (other,) = set(NAMES) - {broken}
    assert cut.lake.rows(other) == [1, 2]
    assert cut.lake.states(GROUP)[other] == [State.COMPENSATED]
    mend()
    again = ended.with_head(State.UNDOING)
    cut.lake.journal.save(again, expects=State.CONFLICT, because="somebody mended the log")
    assert cut.end().head.state is State.COMPENSATED
    assert cut.rows() == [[1, 2], [1, 2]]


def test_a_change_that_was_surely_not_made_takes_the_others_back_whatever_cannot_be_read(cut: Cut) -> None:
    cut.change("first")
    mend = spoil(cut, "first")
    ended = cut.end()
    assert (ended.head.state, ended.head.undo) == (State.CONFLICT, True)
    mend()
    cut.lake.journal.save(ended.with_head(State.UNDOING), expects=State.CONFLICT, because="mended")
    assert cut.end().head.state is State.COMPENSATED
    assert cut.rows() == [[1, 2], [1, 2]]


class Silent(DeltaReader):
    """Reads every log but that of one table, which does not answer."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place: str | None = place

    def commits(self, location: str, *, after: int, upto: int | None = None) -> Iterator[Commit]:
        if location == self.place:
            raise UnavailableError("The storage does not answer.")
        return super().commits(location, after=after, upto=upto)


@pytest.mark.parametrize("silent", NAMES)
def test_a_table_that_does_not_answer_waits_alone(cut: Cut, silent: str) -> None:
    cut.change("first")
    cut.group = given_up(cut.group, never_made=())
    cut.lake.journal.save(cut.group, expects=State.INTENT, because="test")
    cut.lake.reader = reader = Silent(cut.lake.location(silent))
    with pytest.raises(UnavailableError, match=f"db.{silent}: The storage does not answer"):
        cut.end()
    (other,) = set(NAMES) - {silent}
    assert cut.lake.states(GROUP)[other] == [State.COMPENSATED]
    assert cut.lake.rows(other) == [1, 2]
    reader.place = None
    assert cut.end().head.state is State.COMPENSATED
    assert cut.rows() == [[1, 2], [1, 2]]


def test_a_group_that_may_be_whole_waits_for_the_log_that_does_not_answer(cut: Cut) -> None:
    for name in NAMES:
        cut.change(name)
    cut.lake.reader = reader = Silent(cut.lake.location("second"))
    with pytest.raises(UnavailableError):
        cut.end()
    assert cut.rows() == [[1], [1]]
    reader.place = None
    assert cut.end().head.state is State.DONE


@pytest.mark.parametrize(
    "point", ["rollback.undoing", "rollback.fenced", "rollback.taken_back", "rollback.unacted"]
)
def test_two_that_take_a_group_back_at_once_take_it_back_once(cut: Cut, point: str) -> None:
    cut.change("first")
    others: list[Rollback] = []

    def other(reached: str) -> None:
        if reached == point and not others:
            failpoints.listener = None
            others.append(cut.end())

    failpoints.listener = other
    try:
        with pytest.raises(ConflictError):
            cut.end()
    finally:
        failpoints.listener = None
    assert [one.head.state for one in others] == [State.COMPENSATED]
    assert cut.rows() == [[1, 2], [1, 2]]
    assert [cut.lake.head(name) for name in NAMES] == [3, 2], "one restore, and one fence"
    assert cut.end().head.state is State.COMPENSATED


def test_it_can_be_ended_again_and_again(cut: Cut) -> None:
    cut.change("first")
    assert [cut.end().head.state for _ in range(3)] == [State.COMPENSATED] * 3
    assert [cut.lake.head(name) for name in NAMES] == [3, 2]


def test_who_closes_a_group_that_somebody_else_has_ended_is_told(cut: Cut) -> None:
    cut.end()
    with pytest.raises(ConflictError, match="compensated by now"):
        cut.lake.journal.close(cut.group, expects=State.INTENT, because="test")


def test_a_group_that_is_whole_leaves_the_journal(cut: Cut) -> None:
    cut.lake.journal.close(cut.group, expects=State.INTENT, because="test")
    with pytest.raises(NotFoundError):
        cut.lake.journal.get(GROUP)
    assert cut.lake.journal.all() == ()


def test_its_tables_are_held_and_their_versions_are_kept_until_it_is_over(cut: Cut) -> None:
    now = cut.lake.clock.now()
    assert {key: hold.leads for key, hold in rollback_locks([cut.group]).items()} == {
        "id-first": True,
        "id-second": False,
    }
    assert needed_versions([cut.group], now) == {"id-first": 1, "id-second": 1}
    ended = cut.end()
    assert rollback_locks([ended]) == {} and needed_versions([ended], now) == {}


def test_what_read_a_change_that_was_taken_back_is_found(cut: Cut) -> None:
    cut.change("first")
    undone = tainted_versions([cut.end()])
    assert [(one.first, one.last) for one in undone["id-first"]] == [(2, 2)]
    assert "id-second" not in undone


def test_the_daemon_leaves_a_group_alone_while_its_session_says_that_it_lives(cut: Cut) -> None:
    hold = rollback_locks([replace(cut.group, head=replace(cut.group.head, recorded_at=NOW))])["id-first"]
    seen = replace(view(small_files=0), rollback=hold)
    world = World(tables=(seen,))
    early = judge(seen, Action.ROLLBACK, world, NOW + GROUP_PATIENCE - timedelta(seconds=1))
    assert isinstance(early, NotDue) and early.why is WhyNot.WRITERS_ACTIVE
    assert early.until == NOW + GROUP_PATIENCE
    assert isinstance(judge(seen, Action.ROLLBACK, world, NOW + GROUP_PATIENCE), Due)
