"""A rollback while its tables are dropped, purged, moved, held or paused: what each of them keeps from being done."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from shutil import rmtree

import pytest

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.formats.files_elsewhere import Look
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.rows import Outcome, Source, TableRow, TableState
from lakewarden.catalog.model.rows import RollbackState as State
from lakewarden.catalog.policy.scopes import govern
from lakewarden.catalog.state.port import Result
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.catalog.system.port import TABLES
from lakewarden.jobs.actions.rollback import RollBack
from lakewarden.jobs.actions.world import Standing
from lakewarden.jobs.rollback.execute.run import JournaledRollbacks
from lakewarden.jobs.rollback.execute.table_steps import mark_of
from support.builders.rollbacks import Lake
from support.builders.runs import Bench, request_of


@dataclass(frozen=True)
class Rows:
    """What the system tables say of a table: its row, without scopes."""

    lake: Lake

    def of(self, table_id: str) -> Standing | None:
        row = self.lake.store.rows(TABLES).find(table_id=table_id)
        return Standing(governed=govern(row[0], {})) if row else None

    def readers_of(self, location: str) -> tuple[TableRow, ...]:
        return ()

    def moved(self, look: Look) -> tuple[TableRow, ...]:
        return ()


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    """`source`, by which a rollback goes, and `derived`, both managed."""
    lake = Lake(tmp_path)
    for name in ("source", "derived"):
        for number in (1, 2, 3):
            lake.append(name, number)
        lake.manage(name)
    lake.begin(lake.step("source", 1), lake.step("derived", 0, wave=1))
    return lake


def changed(lake: Lake, name: str, **changes: object) -> None:
    row = replace(lake.row(name), **changes)  # type: ignore[arg-type]  # by name
    lake.store.edit(TABLES, lambda _: [row], because="test")


def run(lake: Lake) -> Result:
    """The rollback's run, as a worker takes it from the queue."""
    bench = Bench()
    rollbacks = JournaledRollbacks(
        journal=lake.journal,
        tools=bench.tools,
        storage=lambda _: StorageOptions(),
        undo_for=timedelta(days=7),
    )
    action = RollBack(rollback_id="r1")
    bench.queue.enqueue([request_of(lake.location("source"), action, table_id="id-source")])
    finished = bench.runner(rollbacks=rollbacks, standings=Rows(lake)).run_next()
    assert finished is not None
    return finished.result


def drop(lake: Lake) -> None:
    changed(lake, "source", state=TableState.DROPPED)


def purge(lake: Lake) -> None:
    changed(lake, "source", state=TableState.DROPPED)
    rmtree(lake.path("source"))


def move(lake: Lake) -> None:
    changed(lake, "source", location=lake.location("moved"))
    lake.path("source").rename(lake.path("moved"))


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("end", "said"),
    [(drop, "is dropped"), (purge, "no longer shows"), (move, "no longer shows")],
    ids=["dropped", "purged", "moved"],
)
def test_an_undo_takes_back_the_others_and_reports_the_leading_table_that_is_gone(
    lake: Lake, end: Callable[[Lake], None], said: str
) -> None:
    assert run(lake).outcome is Outcome.SUCCEEDED
    end(lake)
    lake.begin_undo()
    undone = run(lake)
    assert undone.outcome is Outcome.FAILED and said in (undone.message or "")
    assert lake.states() == {
        "*": [State.CONFLICT],
        "source": [State.CONFLICT],
        "derived": [State.COMPENSATED],
    }
    assert lake.rows("derived") == [1, 2, 3]


@pytest.mark.heavy
def test_a_rollback_goes_on_with_the_others_once_its_leading_table_is_done_and_dropped(lake: Lake) -> None:
    changed(lake, "derived", hold="case 4711")
    stopped = run(lake)
    assert "db.derived is under legal hold" in (stopped.message or "")
    drop(lake)
    changed(lake, "derived", hold=None)
    rollback = lake.journal.get("r1")
    again = rollback.with_rows(
        replace(row, state=State.PLANNED) for row in rollback.steps if row.state is State.CONFLICT
    ).with_head(State.INTENT, message=None)
    lake.journal.save(again, expects=State.CONFLICT, because="test")
    assert run(lake).outcome is Outcome.SUCCEEDED
    assert lake.contents("source", "derived") == {"source": [1, 2], "derived": [1]}


def test_a_system_table_is_not_rewound_whatever_a_plan_of_old_says(lake: Lake) -> None:
    changed(lake, "derived", source=Source.SELF)
    assert "db.derived is a system table" in (run(lake).message or "")
    assert lake.rows("derived") == [1, 2, 3]


def test_a_rollback_that_nobody_began_with_waits_while_its_leading_table_is_paused(lake: Lake) -> None:
    changed(lake, "source", paused="month end")
    assert "is paused" in (run(lake).message or "")
    assert lake.states() == {"*": [State.INTENT], "source": [State.PLANNED], "derived": [State.PLANNED]}
    changed(lake, "source", paused=None)
    assert run(lake).outcome is Outcome.SUCCEEDED


@pytest.mark.heavy
@pytest.mark.parametrize("forbidden", ["hold", "paused"])
def test_what_an_earlier_attempt_may_be_about_to_commit_is_kept_off_a_table_under_hold(
    lake: Lake, forbidden: str
) -> None:
    """The attempt sleeps right before its restore; the next one finds the table forbidden, and stops for both."""
    rollback = lake.journal.get("r1")
    (row, *_) = rollback.steps
    asleep = rollback.with_rows([replace(row, state=State.INTENT)])
    lake.journal.save(asleep, expects=State.INTENT, because="test")
    changed(lake, "source", **{forbidden: "case 4711"})
    assert "case 4711" in (run(lake).message or "")
    assert lake.states() == {"*": [State.CONFLICT], "source": [State.CONFLICT], "derived": [State.PLANNED]}
    assert (lake.head("source"), lake.rows("source")) == (3, [1, 2, 3])
    with pytest.raises(ConflictError):
        lake.engine.restore(lake.location("source"), requires=Head(2), to=1, apps=(), run_id=mark_of(row))
    changed(lake, "source", **{forbidden: None})
    assert lake.undo().head.state is State.COMPENSATED
    assert lake.contents("source", "derived") == {"source": [1, 2, 3], "derived": [1, 2, 3]}
