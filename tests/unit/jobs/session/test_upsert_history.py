"""Whether an operation was done before: told by the versions that head was made from."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.formats.port import Commit, CommitKind, TableReader
from lakewarden.catalog.model.enums import RollbackStep
from lakewarden.catalog.model.lineage_record import LineageInput, LineageRecord, Operation
from lakewarden.catalog.model.rollbacks import MARK
from lakewarden.jobs.rollback.execute.commit_records import removal_record
from lakewarden.jobs.rollback.journal.steps import NO_VERSION, TableStep
from lakewarden.jobs.session.delta.history import found, was_done
from lakewarden.jobs.session.writes import Read
from lakewarden.jobs.upsert.once import (
    OperationFinding,
    OperationQuestion,
    OperationVerdict,
    fence_of,
    find,
    is_statement,
    next_number,
)
from support.builders.commits import counted

APP = "query"
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def commit(version: int, operation: str = "WRITE", **told: Any) -> Commit:
    return counted(version=version, committed_at=NOW, operation=operation, **told)


def batch(version: int, number: int) -> Commit:
    return commit(version, transactions=((APP, number),))


def removal(version: int, *removed: int) -> Commit:
    """What a rollback's REMOVE FILES of these versions commits on the one before it."""
    step = TableStep(
        table_id="t",
        name="t",
        location="file:///t",
        from_version=version - 1,
        to_version=min(removed) - 1 if min(removed) > 0 else NO_VERSION,
        kind=RollbackStep.REMOVE_FILES,
        versions=removed,
    )
    record = removal_record(step, range(step.to_version + 1, version), mark="rollback", user="ana")
    return commit(version, "DELETE", removed_files=1, lineage=record)


def restore(version: int, to: int | None) -> Commit:
    return commit(version, "RESTORE", restored=to)


def rollback(version: int, to: int, *, told: int | None = None) -> Commit:
    """A rollback of ours, by an engine that says in the same commit what the number was, or by one that does not."""
    numbers = () if told is None else ((APP, told),)
    return commit(version, "RESTORE", restored=to, run_id=f"{MARK}1", transactions=numbers)


def epoch(version: int, number: int) -> Commit:
    """What an engine commits after such a rollback, that cannot say it in the same commit."""
    return commit(version, "Manual Update", run_id=f"{MARK}1", transactions=((APP, number),))


@dataclass
class Log:
    """A log of which everything before `first` was cleaned up. `read` counts commits."""

    every: Sequence[Commit]
    first: int = 0
    found: int | None = None
    read: int = 0

    def commits(self, location: str, *, after: int, upto: int) -> Iterator[Commit]:
        for one in self.every:
            if after < one.version <= upto and one.version >= self.first:
                self.read += 1
                yield one

    def restored(self, location: str, *, version: int) -> int | None:
        return self.found


def done(number: int, *commits: Commit, first: int = 0, went_to: int | None = None) -> bool:
    log = cast("TableReader", Log(commits, first, went_to))
    last = max(told for one in commits for _, told in one.transactions)
    told = found(
        log,
        "file:///t",
        head=commits[-1].version,
        app=APP,
        number=number,
        last=last,
        known=lambda version: known(commits, version),
    )
    return was_done(told, app=APP, number=number)


def known(commits: Sequence[Commit], version: int) -> int | None:
    """The number that a version knows: a RESTORE leaves it as it is."""
    told = [number for one in commits if one.version <= version for _, number in one.transactions]
    return told[-1] if told else None


def test_what_head_was_made_from_was_done() -> None:
    assert done(1, commit(0), batch(1, 0), batch(2, 1), commit(3))
    assert done(0, commit(0), batch(1, 0), batch(2, 1))
    assert not done(2, commit(0), batch(1, 0), batch(2, 1))


def test_what_a_restore_has_undone_was_not_done() -> None:
    assert not done(1, commit(0), batch(1, 0), batch(2, 1), restore(3, 1), commit(4))
    assert done(0, commit(0), batch(1, 0), batch(2, 1), restore(3, 1))
    assert done(1, commit(0), batch(1, 0), batch(2, 1), restore(3, 1), batch(4, 1))
    assert done(1, commit(0), batch(1, 1), restore(2, 0), restore(3, 1))


def test_what_was_undone_comes_too_late_where_a_later_batch_is_there() -> None:
    log = (commit(0), batch(1, 0), batch(2, 1), batch(3, 2), restore(4, 1), batch(5, 3), batch(6, 4))
    for number in (1, 2):
        with pytest.raises(PreconditionError, match=f"Batch {number} is not in the table .* in version 5: "):
            done(number, *log)
    assert all(done(number, *log) for number in (0, 3, 4))
    assert not done(1, *log, restore(7, 4)), "the later ones were undone as well"
    with pytest.raises(PreconditionError, match="later one"):
        done(1, commit(0), batch(1, 1), batch(2, 2), removal(3, 1))
    assert done(2, commit(0), batch(1, 1), batch(2, 3)), "it changed nothing, and left no commit"


@pytest.mark.parametrize(
    "first", [pytest.param(commit(0, "CREATE TABLE"), id="made"), pytest.param(batch(0, 5), id="written")]
)
def test_what_a_table_made_anew_has_not_had_was_not_done_and_comes_too_late(first: Commit) -> None:
    log = (first, batch(1, 6), batch(2, 7))
    with pytest.raises(PreconditionError, match="Batch 3 is not in the table .* made anew since"):
        done(3, *log)
    assert done(6, *log) and not done(8, *log)


@pytest.mark.parametrize(("upto", "is_same"), [(2, True), (3, False)])
def test_a_batch_is_the_same_only_with_the_same_changes(upto: int, is_same: bool) -> None:
    def told(version: int) -> LineageInput:
        return LineageInput(
            location="file:///s", format="delta", version=version, from_version=1, format_id="s"
        )

    record = LineageRecord(run_id="r", operation=Operation.MERGE, user="ana", inputs=(told(2),))
    made = commit(1, transactions=((APP, 1),), lineage=record, run_id="r")
    now = Read(location="file:///s", format="delta", version=upto, from_version=1, format_id="s")
    outcome: AbstractContextManager[object] = (
        nullcontext() if is_same else pytest.raises(PreconditionError, match="now it has those up to 3")
    )
    with outcome:
        assert was_done(
            OperationFinding(verdict=OperationVerdict.DONE, commit=made), app=APP, number=1, reads=(now,)
        )


def test_what_was_done_before_a_table_was_made_anew_was_not_done() -> None:
    anew = commit(3, "CREATE OR REPLACE TABLE", kind=CommitKind.CREATE)
    assert not done(1, commit(0), batch(1, 0), batch(2, 1), anew, commit(4))
    assert done(1, commit(0), batch(1, 0), batch(2, 1), anew, restore(4, 2))
    assert done(1, commit(0), batch(1, 0), batch(2, 1), anew, batch(4, 1))
    with_rows = commit(3, "CREATE OR REPLACE TABLE AS SELECT", kind=CommitKind.REPLACE)
    assert done(1, commit(0), batch(1, 0), batch(2, 1), with_rows), "these may be the same rows"


def test_a_restore_that_does_not_say_where_it_went_is_looked_up() -> None:
    assert not done(1, commit(0), batch(1, 1), restore(2, None), went_to=0)
    assert done(1, commit(0), batch(1, 1), commit(2), restore(3, None), went_to=1)


def test_a_number_whose_commit_was_cleaned_up_was_done_if_nothing_undid_it() -> None:
    log = [commit(0), batch(1, 5), *(commit(version) for version in range(2, 200))]
    assert done(5, *log)
    assert done(5, *log, first=150)


def test_what_nobody_can_tell_any_more_is_no_guess() -> None:
    with pytest.raises(PreconditionError, match="does not tell any more"):
        done(3, batch(7, 4), restore(8, 2), first=7)


def operation(*commits: Commit, first: int = 0) -> OperationVerdict:
    return finding(*commits, first=first).verdict


def finding(*commits: Commit, first: int = 0) -> OperationFinding:
    """What becomes of an operation that is 1 where it is done, and 0 where it was undone."""
    log = cast("TableReader", Log(commits, first))
    last = known(commits, commits[-1].version)
    assert last is not None
    return found(
        log,
        "file:///t",
        head=commits[-1].version,
        app=APP,
        number=1,
        last=last,
        known=lambda version: known(commits, version),
    )


def test_what_a_later_restore_brings_back_was_done() -> None:
    undone = (commit(0), batch(1, 1), restore(2, 0), batch(3, 0))
    assert operation(*undone) is OperationVerdict.NOT_DONE
    assert operation(*undone, restore(4, 1)) is OperationVerdict.DONE
    assert operation(*undone, restore(4, 1), commit(5), restore(6, 3)) is OperationVerdict.NOT_DONE
    assert operation(*undone, commit(4), restore(5, 4), batch(6, 1)) is OperationVerdict.DONE


def test_what_was_undone_before_the_log_begins_and_stayed_so_was_not_done() -> None:
    undone = (commit(0), batch(1, 1), restore(2, 0), batch(3, 0), commit(4), commit(5))
    assert operation(*undone, first=4) is OperationVerdict.NOT_DONE
    assert operation(*undone, restore(6, 1), first=4) is OperationVerdict.UNTOLD


def test_a_restore_within_what_is_left_of_the_log_is_followed() -> None:
    log = tuple(commit(version) for version in range(12))
    assert operation(*log, batch(12, 1), restore(13, 11), first=10) is OperationVerdict.NOT_DONE
    assert operation(commit(0), batch(1, 1), *log[2:], restore(12, 11), first=10) is OperationVerdict.DONE
    assert (
        operation(commit(0), batch(1, 1), batch(2, 0), *log[3:], restore(12, 11), first=10)
        is OperationVerdict.NOT_DONE
    )


def test_a_restore_to_before_the_log_is_followed_by_numbers_where_they_tell() -> None:
    log = tuple(commit(version) for version in range(12))
    assert operation(*log, batch(12, 1), restore(13, 2), first=10) is OperationVerdict.NOT_DONE, (
        "nothing knew it before"
    )
    assert operation(commit(0), batch(1, 1), *log[2:], restore(12, 2), first=10) is OperationVerdict.UNTOLD
    assert operation(*log, batch(12, 1), rollback(13, 2, told=-1), first=10) is OperationVerdict.NOT_DONE
    assert (
        operation(commit(0), batch(1, 1), *log[2:], rollback(12, 2, told=1), first=10)
        is OperationVerdict.DONE
    )


def test_a_rollback_that_numbers_anew_says_only_what_the_number_was() -> None:
    log = (commit(0), batch(1, 1), rollback(2, 0), epoch(3, -1))
    assert operation(*log) is OperationVerdict.NOT_DONE
    again = (*log, rollback(4, 1), epoch(5, 1))
    assert finding(*again).commit == log[1], "the commit that wrote the rows"
    assert operation(*log, restore(4, 1), commit(5), rollback(6, 5), epoch(7, -1)) is OperationVerdict.DONE, (
        "the number that a version knows is no witness of its rows"
    )


def test_of_a_long_log_no_commit_is_read_twice() -> None:
    log = Log([commit(0), batch(1, 1), *(commit(version) for version in range(2, 1_000))])
    found(
        cast("TableReader", log),
        "file:///t",
        head=999,
        app=APP,
        number=1,
        last=1,
        known=lambda version: known(log.every, version),
    )
    assert log.read == 1_000


def test_what_lost_its_files_was_not_done() -> None:
    log = (commit(0), batch(1, 1), commit(2))
    assert operation(*log, removal(3, 2)) is OperationVerdict.DONE
    assert operation(*log, removal(3, 1), commit(4)) is OperationVerdict.NOT_DONE
    assert operation(*log, commit(3), removal(4, 1, 3), batch(5, 0), batch(6, 1)) is OperationVerdict.DONE
    assert operation(*log, removal(3, 1), restore(4, 2)) is OperationVerdict.DONE
    assert operation(batch(0, 1), commit(1), removal(2, 0)) is OperationVerdict.NOT_DONE
    assert operation(*log, removal(3, 1), first=1) is OperationVerdict.NOT_DONE
    assert operation(*log, commit(3), removal(4, 1), first=2) is OperationVerdict.UNTOLD
    assert operation(*log, commit(3), removal(4, 3), first=2) is OperationVerdict.DONE


def test_a_batch_before_one_whose_files_were_removed_was_done() -> None:
    log = (commit(0), batch(1, 3), batch(2, 4), removal(3, 2))
    assert done(3, *log)
    assert not done(4, *log)


def test_a_removal_that_has_no_room_to_say_what_it_left_tells_nothing() -> None:
    record = LineageRecord(
        run_id="rollback",
        operation=Operation.REMOVE_FILES,
        user="ana",
        inputs=(LineageInput(location="file:///t", format="delta", version=0),),
        missing_inputs=1,
    )
    assert operation(commit(0), batch(1, 1), commit(2, "DELETE", lineage=record)) is OperationVerdict.UNTOLD


def test_versions_that_are_far_apart_are_no_matter() -> None:
    far = [10**12 * number for number in range(1, 6)]
    line = [None, *far]

    def made(place: int, **told: Any) -> Commit:
        return replace(commit(far[place], **told), parent=line[place])

    def read(place: int, after: int | None = None) -> LineageInput:
        since = None if after is None else far[after]
        return LineageInput(location="file:///t", format="x", version=far[place], from_version=since)

    kept_all_but_the_second = LineageRecord(
        run_id="rollback", operation=Operation.REMOVE_FILES, user="ana", inputs=(read(0), read(3, after=1))
    )
    log = (
        made(0),
        made(1, transactions=((APP, 1),)),
        made(2, transactions=((APP, 2),)),
        made(3),
        made(4, operation="DELETE", removed_files=1, lineage=kept_all_but_the_second),
    )
    asked = OperationQuestion(
        app=APP, number=1, last=2, known=lambda version: None, restored=lambda one: None
    )
    assert find(log[:4], asked, whole=True).verdict is OperationVerdict.DONE
    assert (
        find((*log[:2], replace(log[4], parent=far[1])), asked, whole=True).verdict
        is OperationVerdict.NOT_DONE
    )
    assert find(log, replace(asked, number=2), whole=True).commit == log[2]


def statement(*commits: Commit, first: int = 0) -> OperationVerdict:
    """What becomes of a statement under an operation id, whatever its number."""
    log = cast("TableReader", Log(commits, first))
    last = known(commits, commits[-1].version)
    assert last is not None
    return found(
        log,
        "file:///t",
        head=commits[-1].version,
        app=APP,
        number=1,
        last=last,
        known=lambda version: known(commits, version),
        by_parity=True,
    ).verdict


def fence(version: int, number: int) -> Commit:
    """What keeps a session from a change that it has not made."""
    return commit(version, run_id=f"{MARK}1-undo", transactions=((APP, number),))


@pytest.mark.parametrize("first", [0, 3])
def test_a_statement_that_was_fenced_off_was_not_done_and_has_another_number_the_next_time(
    first: int,
) -> None:
    fenced = (commit(0), fence(1, 2))
    assert statement(*fenced, commit(2), commit(3), first=first) is OperationVerdict.NOT_DONE
    again = batch(2, next_number(2))
    assert statement(*fenced, again, commit(3), commit(4), first=first) is OperationVerdict.DONE
    assert (
        statement(*fenced, again, commit(3), rollback(4, 1, told=2), first=first) is OperationVerdict.NOT_DONE
    )


def test_a_statement_is_done_under_another_number_after_a_restore_left_the_first() -> None:
    undone = (commit(0), batch(1, 1), restore(2, 0))
    assert statement(*undone) is OperationVerdict.NOT_DONE
    again = (*undone, batch(3, 3))
    assert statement(*again) is OperationVerdict.DONE
    assert statement(*again, restore(4, 1)) is OperationVerdict.DONE
    assert statement(*again, restore(4, 2)) is OperationVerdict.NOT_DONE
    assert statement(*again, removal(4, 3)) is OperationVerdict.NOT_DONE
    assert statement(*again, commit(4), commit(5), first=4) is OperationVerdict.DONE, (
        "as far as its number tells"
    )


def test_each_try_of_a_statement_has_the_next_odd_number() -> None:
    assert [next_number(last) for last in (None, -1, 0, 1, 2, 3, 4)] == [1, 1, 1, 3, 3, 5, 5]
    assert [fence_of(number) for number in (1, 3)] == [2, 4]


def made_by(statement: str | None, number: int = 1) -> Commit:
    record = LineageRecord(run_id="r", operation=Operation.APPEND, user="ana", statement=statement)
    return commit(1, transactions=((APP, number),), lineage=record)


def test_the_text_behind_an_id_is_told_by_its_commit() -> None:
    one, other = "0a" * 32, "0b" * 32
    assert is_statement(made_by(one), app=APP, last=1, digest=one)
    assert not is_statement(made_by(other), app=APP, last=1, digest=one)
    assert is_statement(None, app=APP, last=1, digest=one)  # nothing is left of it but its number


def test_the_text_behind_an_id_of_an_older_build_is_told_by_its_number() -> None:
    one, other = "0a" * 32, "0b" * 32
    number = int.from_bytes(bytes([0x0A] * 7), "big") + 1
    assert is_statement(made_by(None, number), app=APP, last=number, digest=one)
    assert not is_statement(made_by(None, number), app=APP, last=number, digest=other)
    assert is_statement(None, app=APP, last=number, digest=one)
    assert not is_statement(None, app=APP, last=number, digest=other)
