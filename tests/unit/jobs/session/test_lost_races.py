"""A write that somebody else has overtaken: whose commit that was, and whether another try means the same."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from lakewarden.catalog.errors import ConflictError, UnavailableError, UsageError
from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.model.lineage_record import LineageRecord, Operation
from lakewarden.jobs.session.conflicts.lost_races import LostRaceError, look_for_own_commit, told_of
from lakewarden.jobs.session.conflicts.retries import RETRIES, retried, retries_of
from support.builders.commits import counted
from support.fakes.table_reader import FakeReader, FakeTable

PLACE = "file:///lake/t"
NOW = datetime(2026, 11, 24, tzinfo=UTC)
APPENDED = (
    "[DELTA_CONCURRENT_APPEND.WITHOUT_HINT] a concurrent WRITE added data to table t committed at version 1."
)
CHANGED = (
    "[DELTA_METADATA_CHANGED] The metadata of the Delta table t has been changed by a concurrent update."
)


def reader(*commits: Commit) -> FakeReader:
    found = FakeReader()
    found.tables[PLACE] = FakeTable(format_id="one", commits=list(commits))
    return found


def commit(version: int, operation: str = "WRITE", **told: object) -> Commit:
    return counted(version=version, committed_at=NOW, operation=operation, **told)


def look(found: FakeReader, said: str = APPENDED, *, fixed: bool = False, makes: bool = False) -> Commit:
    return look_for_own_commit(
        found, PLACE, since=0, run_id="mine", said=said, reads_fixed=fixed, makes_table=makes
    )


def test_the_commit_that_delta_names_has_won_whatever_came_after_it() -> None:
    found = reader(commit(0), commit(1, "MERGE", user="bob", engine="Spark"), commit(2, "OPTIMIZE"))
    with pytest.raises(LostRaceError, match=r"file:///lake/t first: version 1, MERGE by bob with Spark\.$"):
        look(found)


def test_where_delta_names_none_the_last_commit_is_told() -> None:
    with pytest.raises(LostRaceError, match=r"version 2, SET TBLPROPERTIES with delta-rs\.$"):
        look(reader(commit(0), commit(1), commit(2, "SET TBLPROPERTIES", engine="delta-rs")), CHANGED)


def test_a_governed_write_and_a_run_of_ours_say_who_they_were() -> None:
    record = LineageRecord(run_id="r7", operation=Operation.APPEND, user="ana", inputs=(), reads_self=False)
    governed = commit(3, "WRITE", lineage=record, run_id="r7", engine="Spark", user="root")
    assert told_of(governed) == "version 3, WRITE by ana in run r7"
    assert told_of(commit(4, "OPTIMIZE", run_id="r8", engine="Spark")) == "version 4, OPTIMIZE in run r8"


def test_a_write_whose_answer_got_lost_finds_its_own_commit() -> None:
    own = commit(1, run_id="mine")
    assert look(reader(commit(0), own, commit(2, "DELETE", user="bob"))) == own


def test_a_commit_of_the_same_run_from_before_is_not_this_write() -> None:
    with pytest.raises(LostRaceError):
        look(reader(commit(0, run_id="mine"), commit(1)))


@pytest.mark.parametrize(
    ("fixed", "makes", "mendable", "hint"),
    [
        (False, False, True, ""),
        (True, False, False, "would undo what was committed since"),
        (False, True, False, "would replace it"),
    ],
    ids=["reads anew", "reads its own table at a fixed version", "makes a table"],
)
def test_another_try_is_made_where_it_means_the_same(
    fixed: bool, makes: bool, mendable: bool, hint: str
) -> None:
    with pytest.raises(LostRaceError) as caught:
        look(reader(commit(0), commit(1)), fixed=fixed, makes=makes)
    assert caught.value.is_mendable is mendable and hint in caught.value.hint


def test_nothing_is_tried_again_while_the_log_does_not_tell_whether_it_is_done() -> None:
    class Silent(FakeReader):
        def commits(self, location: str, *, after: int, upto: int | None = None) -> Iterator[Commit]:
            raise UnavailableError("The storage does not answer.")

    with pytest.raises(LostRaceError, match="does not tell just now: The storage does not answer") as caught:
        look(Silent())
    assert not caught.value.is_mendable


@dataclass
class Attempts:
    """Loses some races, then is done."""

    losses: int
    is_mendable: bool = True
    made: int = 0
    pauses: list[float] = field(default_factory=list)

    def __call__(self) -> str:
        self.made += 1
        if self.made <= self.losses:
            raise LostRaceError(f"Lost to version {self.made}.", is_mendable=self.is_mendable)
        return "done"

    def run(self, retries: int, chance: Callable[[float, float], float] = max) -> str:
        return retried(self, retries=retries, pause=self.pauses.append, chance=chance)


@pytest.mark.parametrize("losses", range(RETRIES + 1))
def test_a_write_is_tried_again_until_it_is_done(losses: int) -> None:
    attempts = Attempts(losses)
    assert attempts.run(RETRIES) == "done"
    assert attempts.made == losses + 1 and len(attempts.pauses) == losses


def test_the_last_winner_and_the_tries_are_in_the_error() -> None:
    attempts = Attempts(9)
    with pytest.raises(ConflictError, match=r"^Lost to version 3\. It was tried 3 times\.$") as caught:
        attempts.run(2)
    assert attempts.made == 3
    assert "Nothing of it is in the table" in caught.value.hint
    assert "SET lakewarden.conflicts.retries" in caught.value.hint


def test_without_retries_the_first_loss_is_told() -> None:
    with pytest.raises(ConflictError, match=r"^Lost to version 1\.$"):
        Attempts(1).run(0)


def test_what_another_try_would_make_worse_is_not_tried() -> None:
    attempts = Attempts(1, is_mendable=False)
    with pytest.raises(LostRaceError):
        attempts.run(RETRIES)
    assert attempts.made == 1


def test_pauses_grow_up_to_a_limit_and_are_left_to_chance() -> None:
    longest, shortest = Attempts(8), Attempts(8)
    longest.run(10)
    shortest.run(10, chance=min)
    assert longest.pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    assert shortest.pauses == [one / 2 for one in longest.pauses]


@pytest.mark.parametrize(
    ("text", "retries"), [(None, 3), ("", 3), ("0", 0), (" '12' ", 12), ("100", 100)], ids=repr
)
def test_a_session_says_how_often(text: str | None, retries: int) -> None:
    assert retries_of(text) == retries


@pytest.mark.parametrize("text", ["-1", "many", "1.5", "101", "٣"])
def test_what_is_no_number_of_tries_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"lakewarden\.conflicts\.retries"):
        retries_of(text)


def test_a_streams_batch_has_a_default_of_its_own() -> None:
    assert (retries_of(None, default=10), retries_of("2", default=10)) == (10, 2)
