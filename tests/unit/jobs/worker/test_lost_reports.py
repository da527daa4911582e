"""What a worker has reported and a leader has not recorded yet outlives its database: on a real one, deleted."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.state.db import open_database
from lakewarden.catalog.state.port import Queue
from lakewarden.catalog.state.queue import DatabaseQueue
from lakewarden.jobs.actions.properties import SetProperties
from lakewarden.jobs.worker.runner import Runner
from support.builders.runs import Bench, delta_table, request_of
from support.builders.states import sqlite_url

KEEP = (("delta.deletedFileRetentionDuration", "interval 30 days"),)


@dataclass(frozen=True, kw_only=True)
class Office:
    """A worker, its queue, and tables for its runs."""

    queue: Queue
    runner: Runner
    delete_database: Callable[[], None]
    order: Callable[[str], None]

    def work(self, *names: str) -> None:
        """Have a run done on each of these new tables."""
        for name in names:
            self.order(name)
            assert self.runner.run_next() is not None

    def waiting(self) -> list[str]:
        """The runs that wait for a leader, oldest first."""
        return [run.request.run_id for run in self.queue.finished(9)]


@pytest.fixture
def office(tmp_path: Path) -> Office:
    queue = DatabaseQueue(open_database(sqlite_url(tmp_path)))

    def delete_database() -> None:
        for path in tmp_path.glob("state.db*"):
            path.unlink()

    def order(name: str) -> None:
        action = SetProperties(requires=Head(0), properties=KEEP)
        queue.enqueue([request_of(delta_table(tmp_path / name), action, run_id=name)])

    runner = Bench().runner(queue=queue)
    return Office(queue=queue, runner=runner, delete_database=delete_database, order=order)


def test_what_was_on_no_record_is_reported_again_as_it_was(office: Office) -> None:
    office.work("a", "b", "c")
    before = office.queue.finished(9)
    office.delete_database()
    assert office.waiting() == []
    assert office.runner.run_next() is None
    after = office.queue.finished(9)
    assert [(run.request, run.worker, run.result, run.queued_at) for run in after] == [
        (run.request, run.worker, run.result, run.queued_at) for run in before
    ]
    for then, now in zip(before, after, strict=True):
        assert then.started_at and then.finished_at and now.started_at and now.finished_at
        assert abs((now.started_at - then.started_at).total_seconds()) < 1
        assert abs((now.finished_at - then.finished_at).total_seconds()) < 1


def test_it_is_reported_as_often_as_the_database_is_lost(office: Office) -> None:
    office.work("a")
    for _ in range(3):
        office.delete_database()
        office.runner.run_next()
        assert office.waiting() == ["a"]


def test_what_a_leader_has_recorded_is_reported_no_more(office: Office) -> None:
    office.work("a", "b")
    office.queue.forget(["a"])
    office.runner.run_next()
    assert office.waiting() == ["b"]
    office.delete_database()
    office.runner.run_next()
    assert office.waiting() == ["b"]


def test_nothing_is_reported_twice_while_the_database_is_there(office: Office) -> None:
    office.work("a", "b")
    office.runner.run_next()
    office.queue.forget(office.waiting())
    office.runner.run_next()
    assert office.waiting() == []
