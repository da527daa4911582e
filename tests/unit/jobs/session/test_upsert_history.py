"""Whether an operation was done before: told by the versions that head was made from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.formats.port import Commit, TableReader
from lakewarden.catalog.model.enums import RollbackStep
from lakewarden.catalog.model.lineage_record import LineageInput, LineageRecord, Operation
from lakewarden.jobs.rollback.execute.commit_records import removal_record
from lakewarden.jobs.rollback.journal.steps import NO_VERSION, TableStep
from lakewarden.jobs.session.upserts.history import found, holds
from lakewarden.jobs.upsert.once import Verdict, is_statement
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
    record = removal_record(step, mark="rollback", user="ana")
    return commit(version, "DELETE", removed_files=1, lineage=record)


def restore(version: int, to: int | None) -> Commit:
    return commit(version, "RESTORE", restored=to)


@dataclass
class Log:
    """A log of which everything before `first` was cleaned up."""

    every: Sequence[Commit]
    first: int = 0
    found: int | None = None

    def commits(self, location: str, *, after: int, upto: int | None = None) -> Iterator[Commit]:
        return (one for one in self.every if one.version > after and one.version >= self.first)

    def restored(self, location: str, *, version: int) -> int | None:
        return self.found


def done(number: int, *commits: Commit, first: int = 0, found: int | None = None) -> bool:
    log = cast("TableReader", Log(commits, first, found))
    last = max(told for one in commits for _, told in one.transactions)
    return holds(log, "file:///t", head=commits[-1].version, app=APP, number=number, last=last)


def test_what_head_was_made_from_was_done() -> None:
    assert done(1, commit(0), batch(1, 0), batch(2, 1), commit(3))
    assert done(0, commit(0), batch(1, 0), batch(2, 1))
    assert not done(2, commit(0), batch(1, 0), batch(2, 1))


def test_what_a_restore_has_undone_was_not_done() -> None:
    assert not done(1, commit(0), batch(1, 0), batch(2, 1), restore(3, 1), commit(4))
    assert done(0, commit(0), batch(1, 0), batch(2, 1), restore(3, 1))
    assert done(1, commit(0), batch(1, 0), batch(2, 1), restore(3, 1), batch(4, 1))
    assert done(1, commit(0), batch(1, 1), restore(2, 0), restore(3, 1))


def test_a_restore_that_does_not_say_where_it_went_is_looked_up() -> None:
    assert not done(1, commit(0), batch(1, 1), restore(2, None), found=0)
    assert done(1, commit(0), batch(1, 1), commit(2), restore(3, None), found=1)


def test_a_number_whose_commit_was_cleaned_up_was_done_if_nothing_undid_it() -> None:
    log = [commit(0), batch(1, 5), *(commit(version) for version in range(2, 200))]
    assert done(5, *log)
    assert done(5, *log, first=150)


def test_what_nobody_can_tell_any_more_is_no_guess() -> None:
    with pytest.raises(PreconditionError, match="does not tell any more"):
        done(3, batch(7, 4), restore(8, 2), first=7)


def operation(*commits: Commit, first: int = 0) -> Verdict:
    """What becomes of an operation that is 1 where it is done, and 0 where it was undone."""
    log = cast("TableReader", Log(commits, first))
    numbers = [told for one in commits for _, told in one.transactions]
    return found(log, "file:///t", head=commits[-1].version, app=APP, number=1, last=numbers[-1]).verdict


def test_what_a_later_restore_brings_back_was_done() -> None:
    undone = (commit(0), batch(1, 1), restore(2, 0), batch(3, 0))
    assert operation(*undone) is Verdict.NOT_DONE
    assert operation(*undone, restore(4, 1)) is Verdict.DONE
    assert operation(*undone, restore(4, 1), commit(5), restore(6, 3)) is Verdict.NOT_DONE
    assert operation(*undone, commit(4), restore(5, 4), batch(6, 1)) is Verdict.DONE


def test_what_was_undone_before_the_log_begins_and_stayed_so_was_not_done() -> None:
    undone = (commit(0), batch(1, 1), restore(2, 0), batch(3, 0), commit(4), commit(5))
    assert operation(*undone, first=4) is Verdict.NOT_DONE
    assert operation(*undone, restore(6, 1), first=4) is Verdict.UNTOLD


def test_what_lost_its_files_was_not_done() -> None:
    log = (commit(0), batch(1, 1), commit(2))
    assert operation(*log, removal(3, 2)) is Verdict.DONE
    assert operation(*log, removal(3, 1), commit(4)) is Verdict.NOT_DONE
    assert operation(*log, commit(3), removal(4, 1, 3), batch(5, 0), batch(6, 1)) is Verdict.DONE
    assert operation(*log, removal(3, 1), restore(4, 2)) is Verdict.DONE
    assert operation(batch(0, 1), commit(1), removal(2, 0)) is Verdict.NOT_DONE
    assert operation(*log, removal(3, 1), first=1) is Verdict.UNTOLD


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
    assert operation(commit(0), batch(1, 1), commit(2, "DELETE", lineage=record)) is Verdict.UNTOLD


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
