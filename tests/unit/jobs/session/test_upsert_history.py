"""Whether an operation was done before: told by the versions that head was made from."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.formats.port import Commit, TableReader
from lakewarden.jobs.session.upserts.history import holds
from support.builders.commits import counted

APP = "query"
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def commit(version: int, operation: str = "WRITE", **told: Any) -> Commit:
    return counted(version=version, committed_at=NOW, operation=operation, **told)


def batch(version: int, number: int) -> Commit:
    return commit(version, transactions=((APP, number),))


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
    return holds(log, "file:///t", head=commits[-1].version, app=APP, number=number)


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
