"""Whoever waits for another run to end says for which, since when and until when; and waits no longer."""

from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from lakewarden.catalog.model.rows import Action, Outcome
from lakewarden.catalog.state.port import Result, Run, RunRequest
from lakewarden.jobs.rollback.execute.interference import Clearing
from support.fakes.clock import ManualClock
from support.fakes.state import FakeQueue

DONE = Result(outcome=Outcome.SUCCEEDED)
LONG = timedelta(hours=1)
TWO_MINUTES = timedelta(minutes=2)


def request(name: str) -> RunRequest:
    return RunRequest(
        run_id=f"run of {name}",
        table_id=f"id-{name}",
        name=f"db.{name}",
        location=f"file:///lake/{name}",
        action=Action.COMPACT,
        payload="{}",
        because="test",
    )


@dataclass
class Scene:
    """A queue whose time goes by while somebody waits for it."""

    clock: ManualClock = field(default_factory=ManualClock)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.queue = FakeQueue(self.clock)
        self.begun = self.clock.now()

    def running(self, name: str, lease: timedelta = LONG) -> Run:
        self.queue.enqueue([request(name)])
        run = self.queue.claim(f"worker-{name}", lease)
        assert run is not None and self.queue.start(run.request.run_id, f"worker-{name}", lease)
        return run

    def pass_by(self, seconds: float) -> None:
        self.clock.advance(timedelta(seconds=seconds))

    def clearing(self) -> Clearing:
        return Clearing(
            queue=self.queue,
            clock=self.clock,
            patience=TWO_MINUTES,
            tell=self.said.append,
            monotonic=lambda: (self.clock.now() - self.begun).total_seconds(),
            pause=lambda: self.pass_by(1.0),
        )


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_wait_says_for_what_since_when_and_until_when(scene: Scene) -> None:
    scene.running("a")
    left = scene.clearing().clear({"id-a"}, ours=lambda _: False, look=lambda: None)
    assert left is not None and left.request.run_id == "run of a"
    assert scene.clock.now() - scene.begun == TWO_MINUTES
    assert scene.said[0] == (
        "Waiting for the compact of db.a to end (worker-a has had it since 00:00:00 UTC): "
        "asked to at 00:00:00 UTC, waited for until 00:02:00 UTC."
    )
    assert len(scene.said) == 4, "the same again every 30 seconds"


def test_several_runs_are_waited_for_one_after_the_other(scene: Scene) -> None:
    runs = [scene.running("a"), scene.running("b")]
    looks = iter(range(100))

    def look() -> None:
        if next(looks) % 10 == 9 and runs:
            one = runs.pop(0)
            scene.queue.finish(one, one.worker or "", DONE)

    assert scene.clearing().clear({"id-a", "id-b"}, ours=lambda _: False, look=look) is None
    assert [text.split(" to end")[0] for text in scene.said] == [
        "Waiting for the compact of db.a and 1 more run",
        "Waiting for the compact of db.b",
    ]


def test_what_ends_at_once_is_no_wait(scene: Scene) -> None:
    scene.queue.enqueue([request("a")])
    scene.running("b", lease=timedelta(seconds=-1))
    assert scene.clearing().clear({"id-a", "id-b"}, ours=lambda _: False, look=lambda: None) is None
    assert scene.said == []


def test_only_what_is_in_the_way_is_ended(scene: Scene) -> None:
    scene.running("elsewhere")
    own = scene.running("a")
    clear = scene.clearing()
    assert clear.clear({"id-a"}, ours=lambda run: run.run_id == own.request.run_id, look=lambda: None) is None
    assert [run.cancel_requested for run in scene.queue.unfinished()] == [False, False]
