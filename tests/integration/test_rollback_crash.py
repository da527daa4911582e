"""Rollbacks killed after every step: the next attempt completes them, or their undo leaves all as before."""

import json
from pathlib import Path

import pytest

from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.rows import RollbackState as State
from lakewarden.catalog.model.rows import RollbackStep as Kind
from support.builders.rollbacks import Lake
from support.crashes.crashes import points_of
from support.crashes.in_process import killed_here
from support.processes.rollback_process import killed_at

pytestmark = pytest.mark.crash

NAMES = ("source", "derived", "leaf")
BEFORE = {"source": [1, 2, 3], "derived": [1, 2, 3], "leaf": [1, 2, 3]}
AFTER = {"source": [1, 2], "derived": [1], "leaf": [1, 2]}
KEPT = [("delta.deletedFileRetentionDuration", "interval 30 days")]

FORWARDS = points_of("test_killed_forwards_the_next_attempt_completes_it_once")
BACK = points_of("test_killed_on_the_way_back_the_next_attempt_completes_it_once")
EDGES = ("rollback.drained", "rollback.finished")
"""Before anything was done, and when all is."""
JOURNAL = ("system.commit", "system.committed", "system.commit:2", "system.committed:2")
"""In front of and after the first commits of the journal."""


def filled(folder: Path) -> Lake:
    """A source with properties of ours, and two tables derived from it."""
    lake = Lake(folder)
    for number in (1, 2, 3):
        for name in NAMES:
            lake.append(name, number)
    lake.engine.set_properties(lake.location("source"), requires=Head(2), properties=KEPT, run_id="before")
    return lake


def begin(lake: Lake) -> None:
    """A rollback of the source, and of what is derived from it one wave later, just begun."""
    lake.begin(lake.step("source", 1), lake.step("derived", 0, wave=1), lake.step("leaf", 1, wave=1))


def leave_to_spark(folder: Path) -> None:
    """Give a table a feature that delta-rs does not write."""
    log = folder / "_delta_log"
    version = len(list(log.glob("*.json")))
    features = ["appendOnly", "invariants", "domainMetadata"]
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": features}
    (log / f"{version:020d}.json").write_text(json.dumps({"protocol": protocol}) + "\n")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """A rollback just begun."""
    lake = filled(tmp_path)
    begin(lake)
    return lake


def restores(lake: Lake, name: str) -> int:
    return sum(commit.operation == "RESTORE" for commit in lake.reader.commits(lake.location(name), after=-1))


def killed(lake: Lake, point: str) -> None:
    """Go on, by objects that nobody else has, until a failpoint."""
    killed_here(point, Lake(lake.folder).go_on)


def test_killed_by_sigkill_the_next_attempt_completes_it_once(lake: Lake) -> None:
    killed_at(lake, "rollback.restored:2")
    assert lake.go_on().head.state is State.DONE
    assert lake.contents(*NAMES) == AFTER
    assert [restores(lake, name) for name in NAMES] == [1, 1, 1]


@pytest.mark.parametrize("point", [*FORWARDS, *JOURNAL])
def test_killed_forwards_the_next_attempt_completes_it_once(lake: Lake, point: str) -> None:
    killed(lake, point)
    assert lake.go_on().head.state is State.DONE
    assert lake.contents(*NAMES) == AFTER
    assert [restores(lake, name) for name in NAMES] == [1, 1, 1]
    assert lake.seen("source").properties["delta.deletedFileRetentionDuration"] == "interval 30 days"


@pytest.mark.parametrize("point", [one for one in FORWARDS if one not in EDGES])
def test_killed_forwards_an_undo_leaves_everything_as_before(lake: Lake, point: str) -> None:
    killed(lake, point)
    assert lake.undo().head.state is State.COMPENSATED
    assert lake.contents(*NAMES) == BEFORE


@pytest.mark.parametrize("point", ["rollback.drained", *BACK, "system.committed:2"])
def test_killed_on_the_way_back_the_next_attempt_completes_it_once(lake: Lake, point: str) -> None:
    lake.go_on()
    lake.begin_undo()
    killed(lake, point)
    assert lake.go_on().head.state is State.COMPENSATED
    assert lake.contents(*NAMES) == BEFORE
    assert [restores(lake, name) for name in NAMES] == [2, 2, 2]


MENDED = {"source": [1, 4, 5], "derived": [1, 3], "leaf": [1, 2, 3], "other": [1, 2, 3]}
"""What is left when two appends to `source` came again, `derived` lost a bad one, and the others were set aside."""
WHOLE = {"source": [1, 2, 3, 4, 5], "derived": [1, 2, 3], "leaf": [1, 2, 3], "other": [1, 2, 3]}


@pytest.fixture
def mends(tmp_path: Path) -> Lake:
    """A rollback just begun that does everything but merely rewind."""
    lake = filled(tmp_path)
    for number in (1, 2, 3):
        lake.append("other", number)
    for number in (4, 5):
        lake.append("source", number)
    for name in ("leaf", "other"):
        lake.manage(name)
    lake.begin(
        *(lake.step("source", 0), lake.again("source", 4), lake.again("source", 5)),
        lake.without("derived", 1, wave=1),
        *(lake.aside("leaf", Kind.QUARANTINE, wave=1), lake.aside("other", Kind.DROP, wave=1)),
    )
    return lake


def states_of_rows(lake: Lake) -> list[str]:
    return [lake.row(name).state.value for name in ("leaf", "other")]


@pytest.mark.parametrize("point", points_of("test_killed_while_it_mends_the_next_attempt_completes_it_once"))
def test_killed_while_it_mends_the_next_attempt_completes_it_once(mends: Lake, point: str) -> None:
    killed(mends, point)
    assert mends.go_on().head.state is State.DONE
    assert mends.contents(*MENDED) == MENDED
    assert [mends.head(name) for name in MENDED] == [9, 3, 2, 2], "each commit was made once"
    assert states_of_rows(mends) == ["quarantined", "dropped"]


@pytest.mark.parametrize("point", ["rollback.added_again", "rollback.set_aside"])
def test_killed_while_it_mends_an_undo_leaves_everything_as_before(mends: Lake, point: str) -> None:
    killed(mends, point)
    assert mends.undo().head.state is State.COMPENSATED
    assert mends.contents(*WHOLE) == WHOLE
    assert states_of_rows(mends) == ["active", "active"]


def test_killed_after_setting_a_table_aside_it_counts_as_done_whoever_writes_then(mends: Lake) -> None:
    killed(mends, "rollback.set_aside")
    mends.append("leaf", 99)
    assert mends.go_on().head.state is State.DONE
    assert mends.undo().head.state is State.COMPENSATED
    assert states_of_rows(mends) == ["active", "active"]
    assert mends.rows("leaf") == [1, 2, 3, 99]


@pytest.mark.parametrize("point", points_of("test_killed_while_a_table_is_taken_in_the_next_attempt_goes_on"))
def test_killed_while_a_table_is_taken_in_the_next_attempt_goes_on(mends: Lake, point: str) -> None:
    mends.go_on()
    mends.begin_undo()
    killed(mends, point)
    assert mends.go_on().head.state is State.COMPENSATED
    assert mends.contents(*WHOLE) == WHOLE
    assert states_of_rows(mends) == ["active", "active"]


@pytest.mark.parametrize("point", ("rollback.intent:2", "rollback.restored", "rollback.restored:2"))
def test_killed_and_then_written_to_by_somebody_nothing_of_theirs_is_lost(lake: Lake, point: str) -> None:
    killed(lake, point)
    lake.append("leaf", 99)
    stopped = lake.go_on()
    assert stopped.head.state is State.CONFLICT
    assert stopped.head.message is not None and "db.leaf" in stopped.head.message
    assert lake.rows("leaf") == [1, 2, 3, 99]
    assert lake.undo().head.state is State.COMPENSATED
    assert lake.contents(*NAMES) == {**BEFORE, "leaf": [1, 2, 3, 99]}


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize(
    "point", points_of("test_killed_after_spark_restored_the_next_attempt_finds_its_commit")
)
def test_killed_after_spark_restored_the_next_attempt_finds_its_commit(tmp_path: Path, point: str) -> None:
    lake = filled(tmp_path)
    leave_to_spark(lake.path("leaf"))
    begin(lake)
    killed_at(lake, point, engine="spark")
    assert [restores(lake, name) for name in NAMES] == [1, 1, 1]
    assert lake.go_on().head.state is State.DONE
    assert lake.contents(*NAMES) == AFTER
    assert [restores(lake, name) for name in NAMES] == [1, 1, 1]


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.heavy
def test_killed_again_and_again_on_spark_each_deed_is_done_once(tmp_path: Path) -> None:
    """By the engine of real workers: only it takes files out by Spark. Killed where a commit is made, or a row is
    written, and the journal does not know. Each attempt gets one deed further."""
    lake = filled(tmp_path)
    for number in (1, 2, 3):
        lake.append("other", number)
    for name in ("leaf", "other"):
        lake.manage(name)
    aside = (lake.aside("leaf", Kind.QUARANTINE), lake.aside("other", Kind.DROP))
    lake.begin(lake.without("derived", 1), *aside)
    done: list[tuple[int, list[str]]] = []
    for point in ("rollback.files_removed", "rollback.set_aside", "rollback.set_aside"):
        killed_at(lake, point, engine="spark")
        done.append((lake.head("derived"), states_of_rows(lake)))
        assert not {State.DONE} & {state for states in lake.states().values() for state in states}, point
    assert done == [
        (3, ["active", "active"]),
        (3, ["quarantined", "active"]),
        (3, ["quarantined", "dropped"]),
    ]
    assert lake.go_on().head.state is State.DONE
    assert (lake.rows("derived"), lake.head("derived")) == ([1, 3], 3), "nothing was left to do"
    lake.begin_undo()
    for point in ("rollback.taken_back", "rollback.taken_in:2"):
        killed_at(lake, point, engine="spark")
    assert lake.go_on().head.state is State.COMPENSATED
    assert (lake.rows("derived"), lake.head("derived")) == ([1, 2, 3], 4)
    assert states_of_rows(lake) == ["active", "active"]
