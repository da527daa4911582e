"""A worker that sleeps right before its commit, loses its rollback to somebody else, and wakes: nothing comes of it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from lakewarden.catalog.model.rows import RollbackState as State
from lakewarden.catalog.model.rows import RollbackStep as Kind
from lakewarden.catalog.model.rows import TableState
from support.builders.rollbacks import Lake
from support.crashes.crashes import points_of
from support.processes import rollback_process
from support.processes.rollback_process import killed_at

NAMES = ("source", "derived")
BEFORE = {"source": [1, 2, 3], "derived": [1, 2, 3]}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path)
    for name in NAMES:
        for number in (1, 2, 3):
            lake.append(name, number)
    return lake


@contextmanager
def asleep(lake: Lake, at: str) -> Iterator[subprocess.Popen[bytes]]:
    """A worker that goes on with the rollback and is frozen right before the commit `at`; woken and seen to end."""
    path = os.pathsep.join(filter(None, sys.path))
    process = subprocess.Popen(
        [sys.executable, rollback_process.__file__, str(lake.folder), "sleepy"],
        env={**os.environ, "PYTHONPATH": path, "FROZEN_AT": at},
        stderr=subprocess.PIPE,
    )
    try:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), status
        yield process
        process.send_signal(signal.SIGCONT)
        _, told = process.communicate(timeout=60)
        assert process.returncode == 1, "it says that the rollback is not its own any more"
        assert b"Error: " in told
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("at", ["restore", "remove_files"])
def test_asleep_before_its_commit_while_somebody_undoes_the_undo_stands(lake: Lake, at: str) -> None:
    lake.begin(lake.without("source", 1) if at == "remove_files" else lake.step("source", 1))
    with asleep(lake, at):
        assert lake.undo().head.state is State.COMPENSATED
        assert lake.rows("source") == [1, 2, 3]
    assert (lake.rows("source"), lake.head("source")) == ([1, 2, 3], 3)
    assert lake.states()["*"] == [State.COMPENSATED]


def test_asleep_on_the_second_table_while_somebody_undoes_both_are_as_before(lake: Lake) -> None:
    lake.begin(lake.step("source", 1))
    lake.go_on()
    lake.begin_undo()
    with asleep(lake, "restore"):
        assert lake.go_on().head.state is State.COMPENSATED
        lake.append("source", 4)
    assert lake.rows("source") == [1, 2, 3, 4], "the sleeper's undo does not come after the other's"


def test_asleep_before_its_restore_while_the_table_is_left_out_of_the_plan(lake: Lake) -> None:
    """The next attempt stops over another table and plans again; nobody asks for this one any more."""
    lake.begin(lake.step("derived", 1), lake.step("source", 1))
    with asleep(lake, "restore"):
        lake.append("derived", 9)
        assert lake.go_on(extend=lambda _: []).head.state is State.DONE
    assert lake.contents(*NAMES) == {"source": [1, 2, 3], "derived": [1, 2, 3, 9]}


def test_asleep_before_its_restore_while_somebody_resumes_it_is_done_once(lake: Lake) -> None:
    lake.begin(lake.step("source", 1), lake.step("derived", 0, wave=1))
    with asleep(lake, "restore"):
        assert lake.go_on().head.state is State.DONE
    assert lake.contents(*NAMES) == {"source": [1, 2], "derived": [1]}
    assert [lake.head(name) for name in NAMES] == [3, 3]
    assert lake.states() == {"*": [State.DONE], "source": [State.DONE], "derived": [State.DONE]}


def test_asleep_before_it_adds_files_again_while_somebody_undoes(lake: Lake) -> None:
    lake.begin(lake.step("source", 0), lake.again("source", 2))
    with asleep(lake, "add_again"):
        assert lake.undo().head.state is State.COMPENSATED
    assert (lake.rows("source"), lake.head("source")) == ([1, 2, 3], 4)


def test_a_table_that_nobody_began_with_gets_no_commit_from_the_undo(lake: Lake) -> None:
    lake.begin(lake.step("source", 1), lake.step("derived", 0, wave=1))
    lake.begin_undo()
    assert lake.go_on().head.state is State.COMPENSATED
    assert [lake.head(name) for name in NAMES] == [2, 2]


def test_a_table_that_was_to_be_set_aside_while_the_worker_slept_stays(lake: Lake) -> None:
    """The sleeper's edit of the row finds it changed, asks again, and is refused."""
    lake.manage("source")
    lake.begin(lake.aside("source", Kind.QUARANTINE))
    rollback = lake.journal.get("r1")
    begun = rollback.with_rows(replace(row, state=State.INTENT) for row in rollback.steps)
    lake.journal.save(begun, expects=State.INTENT, because="test")
    before = lake.row("source").updated_at
    time.sleep(0.001)
    assert lake.undo().head.state is State.COMPENSATED
    row = lake.row("source")
    assert row.state is TableState.ACTIVE and row.updated_at > before


@pytest.mark.parametrize("point", points_of("test_killed_after_its_fence_the_undo_goes_on"))
def test_killed_after_its_fence_the_undo_goes_on(lake: Lake, point: str) -> None:
    lake.begin(lake.step("source", 1))
    killed_at(lake, "rollback.intent")
    lake.begin_undo()
    killed_at(lake, point)
    assert lake.go_on().head.state is State.COMPENSATED
    assert (lake.rows("source"), lake.head("source")) == ([1, 2, 3], 3), "one fence, not two"
