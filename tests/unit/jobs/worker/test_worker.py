"""The worker's loop: when it goes on, and when it ends with which code."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.state.port import Run
from lakewarden.catalog.storage.credentials import StorageOptions
from lakewarden.catalog.storage.options import StorageMap
from lakewarden.jobs.actions.properties import SetProperties
from lakewarden.jobs.runs.s3a import s3_conf
from lakewarden.jobs.runs.spark_settings import SparkSettings
from lakewarden.jobs.runs.worker_config import WorkerConfig
from lakewarden.jobs.worker import process
from lakewarden.jobs.worker.loop import WorkLoop
from support.builders.runs import Bench, delta_table, request_of
from support.fakes.state import FakeQueue

SOON = timedelta(milliseconds=5)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def worker(bench: Bench, *, idle: timedelta = timedelta(milliseconds=50), broken: bool = False) -> WorkLoop:
    return WorkLoop(bench.runner(), idle=idle, poll=SOON, is_broken=lambda: broken)


def enqueue(bench: Bench, folder: Path, count: int) -> None:
    for number in range(count):
        location = delta_table(folder / str(number))
        action = SetProperties(requires=Head(0), properties=(("delta.appendOnly", "false"),))
        bench.queue.enqueue([request_of(location, action, run_id=f"run-{number}")])


def test_it_does_all_there_is_and_ends_when_idle(bench: Bench, tmp_path: Path) -> None:
    enqueue(bench, tmp_path, 3)
    assert worker(bench).work() == 0
    assert len(bench.queue.finished(9)) == 3


def test_a_drained_worker_ends_after_the_run_in_hand(bench: Bench, tmp_path: Path) -> None:
    queue = bench.queue = TellingQueue(bench.clock)
    enqueue(bench, tmp_path, 3)
    drained = worker(bench, idle=timedelta(hours=1))
    queue.on_start = drained.drain
    assert drained.work() == 0
    assert len(bench.queue.finished(9)) == 1
    assert len(bench.queue.unfinished()) == 2


def test_a_broken_session_ends_it_with_a_failure(bench: Bench, tmp_path: Path) -> None:
    enqueue(bench, tmp_path, 2)
    assert worker(bench, broken=True).work() == 1
    assert len(bench.queue.finished(9)) == 1


def test_executors_that_were_told_a_key_are_replaced_once_it_was_rotated(
    bench: Bench, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    key.write_text("first")
    options = StorageOptions.of({}, {"aws_secret_access_key": str(key)})
    storage = StorageMap(prefixes=(("s3://a", options),))
    told = (*s3_conf(storage), ("spark.hadoop.fs.s3a.bucket.a.secret.key", "the operator's own"))

    def outdated(master: str) -> Callable[[], bool]:
        spark = SparkSettings(master=master, conf=told)
        return process._outdated(WorkerConfig(name="w", database_url="", spark=spark, storage=storage))

    here, elsewhere = outdated("local[2]"), outdated("yarn")
    assert not here() and not elsewhere()
    key.write_text("second, and longer")
    assert not here() and elsewhere()
    enqueue(bench, tmp_path, 2)
    ended = WorkLoop(bench.runner(), idle=timedelta(hours=1), poll=SOON, is_outdated=elsewhere)
    assert ended.work() == 0 and len(bench.queue.unfinished()) == 2, "its successor does them"


def test_a_queue_that_is_away_is_asked_again(bench: Bench, tmp_path: Path) -> None:
    bench.queue = AwayOnce(bench.clock)
    enqueue(bench, tmp_path, 1)
    assert worker(bench).work() == 0
    assert len(bench.queue.finished(9)) == 1


class TellingQueue(FakeQueue):
    """A queue that tells when a run is started."""

    on_start: Callable[[], None] = staticmethod(lambda: None)

    def start(self, run_id: str, worker: str, lease: timedelta) -> bool:
        self.on_start()
        return super().start(run_id, worker, lease)


class AwayOnce(FakeQueue):
    """A queue that does not answer the first claim."""

    away = True

    def claim(self, worker: str, lease: timedelta, **how: object) -> Run | None:
        if self.away:
            self.away = False
            raise UnavailableError("The database is away.")
        return super().claim(worker, lease, **how)  # type: ignore[arg-type]  # passed on as they came
