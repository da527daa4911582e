"""A worker whose run somebody else ended is ended itself: it hangs, and nothing else would run in its place."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.model.rows import Outcome, RunRow
from lakewarden.catalog.state.port import Result, Run
from lakewarden.catalog.state.run_record import run_row
from lakewarden.daemon.workers.pool import WorkerPool
from lakewarden.jobs.rollback.execute.interference import end_run
from support.builders.states import request
from support.fakes.clock import ManualClock
from support.fakes.state import FakeQueue

LEASE = timedelta(seconds=60)
DONE = Result(outcome=Outcome.SUCCEEDED, message="done", actual_seconds=1.5)


def sleeper(name: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)


@dataclass
class Yard:
    """A pool of one worker, a queue, and the runs on record."""

    clock: ManualClock = field(default_factory=ManualClock)
    rows: dict[str, RunRow] = field(default_factory=dict)
    queue: FakeQueue = field(init=False)
    pool: WorkerPool = field(init=False)

    def __post_init__(self) -> None:
        self.queue = FakeQueue(self.clock)
        self.pool = WorkerPool(sleeper, count=1, prefix="w", recorded=self.rows.get)
        self.queue.enqueue([request("t")])
        self.pool.tend(1)

    def taken(self, worker: str = "w-0", *, start: bool = True) -> Run:
        """A worker takes the run, and the pool sees that."""
        run = self.queue.claim(worker, LEASE)
        assert run is not None
        if start:
            assert self.queue.start(run.request.run_id, worker, LEASE)
        self.pool.look(self.queue)
        return run

    def forget(self) -> None:
        """The leader records what has ended."""
        for run in self.queue.finished(9):
            self.rows[run.request.run_id] = run_row(run, now=self.clock.now())
            self.queue.forget([run.request.run_id])


@pytest.fixture
def yard() -> Iterator[Yard]:
    made = Yard()
    yield made
    made.pool.drain(timedelta(0))


def cancelled(yard: Yard, run: Run) -> None:
    """By a rollback that clears the table, while its worker hangs."""
    end_run(yard.queue, run)
    yard.clock.advance(LEASE * 2)
    end_run(yard.queue, run)


def settled(yard: Yard, run: Run) -> None:
    """By a command that finds the run's commit, or gives it up."""
    yard.clock.advance(LEASE * 2)
    assert yard.queue.close(run.request.run_id, Result(outcome=Outcome.SUCCEEDED, committed_version=2))


def done_by_another(yard: Yard, run: Run) -> None:
    yard.clock.advance(LEASE * 2)
    assert yard.queue.requeue(run.request.run_id, attempt=2)
    again = yard.queue.claim("another", LEASE)
    assert again is not None and yard.queue.finish(again, "another", DONE)


def done(yard: Yard, run: Run) -> None:
    assert yard.queue.finish(run, "w-0", DONE)


def failed(yard: Yard, run: Run) -> None:
    assert yard.queue.finish(run, "w-0", replace(DONE, outcome=Outcome.CANCELLED))


@pytest.mark.parametrize("forgotten", [False, True], ids=["in the queue", "on record"])
@pytest.mark.parametrize(
    ("end", "alive"),
    [(cancelled, 0), (settled, 0), (done_by_another, 0), (done, 1), (failed, 1)],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_the_worker_is_ended_unless_it_ended_the_run_itself(
    yard: Yard, end: Callable[[Yard, Run], None], alive: int, forgotten: bool
) -> None:
    run = yard.taken()
    end(yard, run)
    if forgotten:
        yard.forget()
    yard.queue.enqueue([request("other")])
    yard.pool.look(yard.queue)
    assert (yard.pool.alive, yard.pool.held) == (alive, 0)
    yard.pool.look(yard.queue)
    assert yard.pool.alive == alive


def test_a_worker_whose_run_is_cancelled_before_it_began_goes_on(yard: Yard) -> None:
    run = yard.taken(start=False)
    assert yard.queue.cancel(run.request.run_id)
    yard.pool.look(yard.queue)
    assert yard.pool.alive == 1


def test_a_run_that_could_not_be_stored_as_it_was_tells_nothing_against_its_worker(yard: Yard) -> None:
    run = yard.taken()
    done(yard, run)
    yard.forget()
    yard.rows = {key: replace(row, actual_seconds=None, payload=None) for key, row in yard.rows.items()}
    yard.pool._recorded = yard.rows.get
    yard.pool.look(yard.queue)
    assert yard.pool.alive == 1


def test_while_nobody_can_tell_who_ended_a_run_it_is_asked_again(yard: Yard) -> None:
    run = yard.taken()
    cancelled(yard, run)
    yard.forget()

    def away(run_id: str) -> RunRow | None:
        raise UnavailableError("The storage does not answer.")

    yard.pool._recorded = away
    with pytest.raises(UnavailableError):
        yard.pool.look(yard.queue)
    assert (yard.pool.alive, yard.pool.held) == (1, 1)
    yard.pool._recorded = yard.rows.get
    yard.pool.look(yard.queue)
    assert (yard.pool.alive, yard.pool.held) == (0, 0)
