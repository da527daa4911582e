"""From what a session sees to hints at the daemon: once each, in spite of databases and storages that are away."""

import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

import pytest

from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.state.port import Hint, HintKind, HintSink
from lakewarden.jobs.session.attached import Attached, Sighting
from support.fakes.clock import ManualClock
from support.fakes.state import FakeInbox

CREATED = HintKind.CREATED


class FakeEvents:
    """Events a test makes up."""

    def __init__(self) -> None:
        self.seen: queue.SimpleQueue[Sighting | None] = queue.SimpleQueue()
        self.closed = self.stopped = False

    def say(self, *subjects: str, kind: HintKind = CREATED) -> None:
        for subject in subjects:
            self.seen.put(Sighting(subject, kind))

    def stop(self) -> None:
        """The Spark application ends."""
        self.stopped = True
        self.seen.put(None)

    def poll(self, timeout: timedelta) -> Sequence[Sighting]:
        try:
            first = self.seen.get(timeout=max(timeout.total_seconds(), 0.001))
        except queue.Empty:
            first = None
        if first is None:
            if self.stopped:
                raise UnavailableError("ended")
            return ()
        return (first,)

    def close(self) -> None:
        self.closed = True
        self.seen.put(None)


class Sink:
    """A sink that can be away, or hang."""

    def __init__(self, *, away: bool = False) -> None:
        self.away, self.hints, self.tried = away, list[Hint](), 0
        self.free = threading.Event()
        self.free.set()

    def put(self, hints: Iterable[Hint]) -> None:
        self.tried += 1
        self.free.wait(20)
        if self.away:
            raise UnavailableError("away")
        self.hints += hints

    @property
    def subjects(self) -> list[str]:
        return [hint.subject for hint in self.hints]


@pytest.fixture
def events() -> FakeEvents:
    return FakeEvents()


def attached(events: FakeEvents, *sinks: HintSink) -> Attached:
    return Attached(events, sinks=lambda: sinks, clock=ManualClock())


def eventually(true: Callable[[], bool]) -> bool:
    until = time.monotonic() + 10
    while not true() and time.monotonic() < until:
        time.sleep(0.005)
    return true()


def test_what_is_seen_becomes_a_hint(events: FakeEvents) -> None:
    inbox = FakeInbox()
    with attached(events, inbox):
        events.say("db.t", kind=HintKind.DROPPED)
        assert eventually(lambda: len(inbox.claim(10)) == 1)
    (hint,) = inbox.claim(10)
    assert (hint.subject, hint.kind, hint.at) == ("db.t", HintKind.DROPPED, ManualClock().now())


def test_detaching_delivers_what_was_seen_and_stops(events: FakeEvents) -> None:
    inbox = FakeInbox()
    with attached(events, inbox) as handle:
        events.say(*(f"db.t{number}" for number in range(50)))
    assert len(inbox.claim(100)) == 50
    assert (events.closed, handle.delivered, handle.dropped) == (True, 50, 0)
    handle.detach()
    events.say("db.later")
    assert len(inbox.claim(100)) == 50


def test_a_governed_write_has_its_table_looked_at_and_many_in_a_row_do_once(events: FakeEvents) -> None:
    inbox = FakeInbox()
    with attached(events, inbox) as handle:
        for place in ("file:///lake/t", "file:///lake/u", *["file:///lake/t"] * 100):
            handle.wrote(place)
    told = [(hint.subject, hint.kind) for hint in inbox.claim(200)]
    assert sorted(told) == [
        ("file:///lake/t", HintKind.WRITTEN),
        ("file:///lake/u", HintKind.WRITTEN),
    ]


def test_a_write_does_not_wait_for_a_daemon_that_is_away(events: FakeEvents) -> None:
    inbox = Sink(away=True)
    handle = attached(events, inbox)
    for _ in range(3):
        handle.wrote("file:///lake/t")
        events.say("db.t")
    assert eventually(lambda: inbox.tried >= 1 and events.seen.empty())
    inbox.away = False
    handle.detach()
    assert sorted(inbox.subjects) == ["db.t", "file:///lake/t"]


def test_the_spool_takes_what_the_inbox_cannot(events: FakeEvents) -> None:
    inbox, spool = Sink(away=True), Sink()
    with attached(events, inbox, spool):
        events.say("db.t")
    assert spool.subjects == ["db.t"]


def test_with_everything_away_hints_wait_and_are_said_once(
    events: FakeEvents, caplog: pytest.LogCaptureFixture
) -> None:
    inbox = Sink(away=True)
    handle = attached(events, inbox)
    for _ in range(3):
        events.say("db.a", "db.b")
    assert eventually(lambda: inbox.tried >= 1 and events.seen.empty())
    inbox.away = False
    handle.detach()
    assert inbox.subjects == ["db.a", "db.b"]
    assert caplog.text.count("its sweep finds them") == 1


def test_while_everything_is_away_nothing_is_tried_before_the_pause_is_over(events: FakeEvents) -> None:
    inbox = Sink(away=True)
    handle = Attached(events, sinks=lambda: [inbox], clock=ManualClock(), monotonic=lambda: 0.0)
    events.say(*(f"db.t{number}" for number in range(200)))
    assert eventually(events.seen.empty)
    assert inbox.tried == 1
    handle.detach()
    assert inbox.tried == 2


def test_a_sink_that_hangs_holds_up_neither_the_job_nor_its_end(events: FakeEvents) -> None:
    inbox = Sink()
    inbox.free.clear()
    handle = attached(events, inbox)
    events.say("db.t")
    assert eventually(lambda: inbox.tried == 1)
    begun = time.monotonic()
    handle.detach(timedelta(milliseconds=50))
    assert time.monotonic() - begun < 2
    inbox.free.set()


def test_only_so_many_hints_are_kept(events: FakeEvents) -> None:
    inbox = Sink(away=True)
    handle = attached(events, inbox)
    events.say(*(f"db.t{number}" for number in range(10_050)))
    assert eventually(lambda: handle.dropped == 50)
    inbox.away = False
    handle.detach()
    assert handle.delivered == len(inbox.hints) == 10_000


def test_the_end_of_the_session_ends_the_thread_after_the_last_delivery(events: FakeEvents) -> None:
    inbox = FakeInbox()
    handle = attached(events, inbox)
    events.say("db.t")
    events.stop()
    assert eventually(lambda: handle.delivered == 1)
    assert eventually(lambda: not any(thread.name == "lakewarden-hints" for thread in threading.enumerate()))
    handle.detach()
