"""The pulse of a run, on a clock that the test moves."""

import threading
import time
from datetime import timedelta

import pytest

from lakewarden.catalog.errors import ConflictError, LakewardenError, OutdatedError, UnavailableError
from lakewarden.catalog.model.rows import Action
from lakewarden.catalog.state.port import Run, RunRequest
from lakewarden.jobs.worker.heartbeat import Heartbeat
from support.fakes.clock import ManualClock
from support.fakes.state import FakeQueue

LEASE = timedelta(seconds=60)


class SilentQueue(FakeQueue):
    """A queue that stops answering, or answers something else, when told."""

    silent = False
    trouble: LakewardenError = UnavailableError("The database is away.")

    def heartbeat(self, run: Run, worker: str, lease: timedelta) -> bool:
        if self.silent:
            raise self.trouble
        return super().heartbeat(run, worker, lease)


class Pulse:
    """A running run with its heartbeat; seconds pass when the test says so."""

    def __init__(self, longest: timedelta = timedelta(days=1)) -> None:
        self.clock, self.seconds, self.lost_calls = ManualClock(), 0.0, threading.Event()
        self.queue = SilentQueue(self.clock)
        self.queue.enqueue([request()])
        claimed = self.queue.claim("w", LEASE)
        assert claimed is not None
        self.queue.start("r", "w", LEASE)
        self.run = claimed
        self.heartbeat = Heartbeat(
            self.queue,
            claimed,
            "w",
            lease=LEASE,
            interval=timedelta(milliseconds=5),
            longest=longest,
            on_lost=self.lost_calls.set,
            monotonic=lambda: self.seconds,
        )


def request() -> RunRequest:
    return RunRequest(
        run_id="r",
        table_id="t",
        name="db.t",
        location="file:///t",
        action=Action.VACUUM,
        payload="",
        because="",
    )


def test_reports_keep_the_lease_alive() -> None:
    pulse = Pulse()
    with pulse.heartbeat:
        pulse.clock.advance(timedelta(seconds=59))
        wait_until(lambda: pulse.queue.unfinished()[0].lease_until == pulse.clock.now() + LEASE)
        pulse.heartbeat.still_ours()
    assert not pulse.lost_calls.is_set()


def test_a_run_whose_queue_is_a_newer_lakewardens_is_lost_and_what_hangs_is_told() -> None:
    pulse = Pulse()
    with pulse.heartbeat:
        pulse.queue.trouble = OutdatedError("The operational database has schema version 99.")
        pulse.queue.silent = True
        assert pulse.lost_calls.wait(5)
        with pytest.raises(ConflictError, match="lease was lost"):
            pulse.heartbeat.still_ours()


def test_a_cancelled_run_is_lost_and_what_hangs_is_told() -> None:
    pulse = Pulse()
    with pulse.heartbeat:
        pulse.queue.cancel("r")
        assert pulse.lost_calls.wait(5)
        with pytest.raises(ConflictError, match="cancelled"):
            pulse.heartbeat.still_ours()


def test_a_database_that_is_away_for_less_than_the_lease_loses_nothing() -> None:
    pulse = Pulse()
    with pulse.heartbeat:
        pulse.queue.silent = True
        pulse.seconds = 59
        pulse.heartbeat.still_ours()
        pulse.queue.silent = False
        for _ in range(2):  # the second report proves that the first was taken note of
            pulse.clock.advance(timedelta(seconds=1))
            wait_until(lambda: pulse.queue.unfinished()[0].lease_until == pulse.clock.now() + LEASE)
        pulse.seconds = 100
        pulse.heartbeat.still_ours()
    assert not pulse.lost_calls.is_set()


def test_a_database_that_is_away_for_longer_than_the_lease_loses_the_run() -> None:
    pulse = Pulse()
    with pulse.heartbeat:
        pulse.queue.silent = True
        pulse.seconds = 61
        assert pulse.lost_calls.wait(5)
        assert pulse.heartbeat.lost


def test_a_run_that_takes_too_long_is_lost() -> None:
    pulse = Pulse(longest=timedelta(hours=1))
    with pulse.heartbeat:
        pulse.seconds = 3_601
        assert pulse.lost_calls.wait(5)
        assert pulse.heartbeat.lost


def wait_until(holds: object, seconds: float = 5) -> None:
    assert callable(holds)
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.005)
