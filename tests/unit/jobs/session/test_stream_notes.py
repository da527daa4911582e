"""From a session's progress events to notes: what they say of a batch, gathered, in spite of storages that are away."""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from queue import Empty, SimpleQueue
from typing import Any

import pytest

from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.lineage.streams.offsets import SourceOffsets, StreamBatch
from lakewarden.catalog.lineage.streams.session_notes import StreamNote
from lakewarden.jobs.session.attached import Attached
from lakewarden.jobs.session.stream_carrier import StreamPropagation
from lakewarden.jobs.session.stream_listener import note_of
from support.builders.stream_files import offset
from support.fakes.clock import ManualClock

PROGRESS: dict[str, Any] = {
    "id": "q",
    "runId": "r",
    "batchId": 3,
    "stateOperators": [],
    "sources": [
        {
            "description": "DeltaSource[file:/lake/a]",
            "startOffset": json.loads(offset(1)),
            "endOffset": json.loads(offset(2)),
            "latestOffset": None,
        }
    ],
    "sink": {"description": "DeltaSink[/lake/sink]", "numOutputRows": -1},
}


def progress(**changes: Any) -> str:
    return json.dumps({**PROGRESS, **changes})


def note(epoch: int) -> StreamNote:
    return StreamNote(sink="file:///lake/sink", batch=StreamBatch(query_id="q", epoch=epoch, sources=()))


def test_a_progress_event_tells_of_a_batch_and_its_table() -> None:
    found = note_of(progress())
    assert found is not None
    (source,) = found.batch.sources
    assert (found.sink, found.batch.key, found.batch.stateful) == ("file:///lake/sink", ("q", 3), False)
    assert (json.loads(source.start or ""), json.loads(source.end or "")) == (
        json.loads(offset(1)),
        json.loads(offset(2)),
    )


def test_operators_with_state_are_told() -> None:
    found = note_of(progress(stateOperators=[{"operatorName": "dedupe"}]))
    assert found is not None and found.batch.stateful


@pytest.mark.parametrize(
    "text",
    [
        progress(sink={"description": "ForeachBatchSink"}),
        progress(sink={"description": "DeltaSink[]"}),
        progress(sink=None),
        progress(sources="?"),
        progress(batchId=None),
        "no JSON",
    ],
    ids=["another sink", "no place", "no sink", "odd sources", "no number", "garbage"],
)
def test_what_is_no_batch_of_a_delta_table_is_passed_over(text: str) -> None:
    assert note_of(text) is None


def test_a_sink_that_names_no_place_is_looked_for_once_the_run_is_known() -> None:
    asked: list[tuple[str, str]] = []

    def sink_at(run_id: str, description: str) -> str | None:
        asked.append((run_id, description))
        return "file:///lake/ice" if description == "iceberg.db.t" else None

    found = note_of(progress(sink={"description": "iceberg.db.t"}), sink_at)
    assert found is not None and found.sink == "file:///lake/ice"
    assert note_of(progress(sink={"description": "ForeachBatchSink"}), sink_at) is None
    assert note_of(progress(), sink_at) is not None and asked == [
        ("r", "iceberg.db.t"),
        ("r", "ForeachBatchSink"),
    ]


class FakeEvents:
    """Events a test makes up. Like the JVM's queue, they may be told by one thread and taken by another."""

    def __init__(self) -> None:
        self._seen: SimpleQueue[StreamNote] = SimpleQueue()
        self.ended = self.closed = False

    def tell(self, *notes: StreamNote) -> None:
        for one in notes:
            self._seen.put(one)

    def drain(self) -> Sequence[StreamNote]:
        if self.ended:
            raise UnavailableError("ended")
        seen = []
        with suppress(Empty):
            while True:
                seen.append(self._seen.get_nowait())
        return tuple(seen)

    def close(self) -> None:
        self.closed = True


class FakeSink:
    """A folder that can be away."""

    def __init__(self) -> None:
        self.files: list[tuple[StreamNote, ...]] = []
        self.away = False

    def put(self, notes: Iterable[StreamNote]) -> None:
        if self.away:
            raise UnavailableError("away")
        self.files.append(tuple(notes))


class Clockwork:
    """A carrier whose time the test moves."""

    def __init__(self) -> None:
        self.events, self.sink, self.now = FakeEvents(), FakeSink(), 0.0
        self.carrier = StreamPropagation(self.events, sink=lambda: self.sink, monotonic=lambda: self.now)

    def after(self, seconds: float, *epochs: int, last: bool = False) -> list[list[int]]:
        """Some batches are seen, and it is carried; the files so far, as numbers of batches."""
        self.now += seconds
        self.events.tell(*(note(epoch) for epoch in epochs))
        self.carrier.carry(last=last)
        return [[one.batch.epoch for one in file] for file in self.sink.files]


def test_fast_batches_become_one_file_every_ten_seconds() -> None:
    work = Clockwork()
    assert work.after(0, 0) == [[0]]
    assert work.after(5, 1, 2) == [[0]]
    assert work.after(5, 3) == [[0], [1, 2, 3]]
    assert work.after(60) == [[0], [1, 2, 3]]
    assert (work.carrier.delivered, work.carrier.dropped) == (4, 0)


def test_what_cannot_be_delivered_is_kept_and_tried_again_less_often() -> None:
    work = Clockwork()
    work.sink.away = True
    assert work.after(0, 0) == []
    work.sink.away = False
    assert work.after(19, 1) == []
    assert work.after(1, 2) == [[0, 1, 2]]
    assert work.after(10, 3) == [[0, 1, 2], [3]]


def test_the_last_call_delivers_at_once_even_if_the_session_has_ended() -> None:
    work = Clockwork()
    work.after(0, 0)
    work.after(1, 1)
    work.events.ended = True
    assert work.after(1, last=True) == [[0], [1]]


def test_a_batch_that_is_told_twice_is_noted_as_it_was_at_last() -> None:
    work = Clockwork()
    work.after(0, 0)
    other = StreamNote(
        sink="file:///lake/sink",
        batch=StreamBatch(query_id="q", epoch=1, sources=(SourceOffsets(start=None, end="2"),)),
    )
    work.events.tell(note(1), other)
    work.after(10)
    assert work.sink.files[1:] == [(other,)]


def test_too_many_that_wait_are_dropped_and_counted() -> None:
    work = Clockwork()
    work.sink.away = True
    work.after(0, *range(10_003))
    assert work.carrier.dropped == 3


def test_detaching_delivers_what_was_seen_of_streams() -> None:
    work = Clockwork()

    class Silent:
        def poll(self, timeout: timedelta) -> Sequence[Any]:
            return ()

        def close(self) -> None:
            return

    work.now = 1.0
    attached = Attached(Silent(), sinks=lambda: (), clock=ManualClock(), notes=(work.carrier,))
    work.events.tell(note(0))
    attached.detach(patience=timedelta(minutes=1))  # of a busy machine, not of a user
    assert [[one.batch.epoch for one in file] for file in work.sink.files] == [[0]]
    assert work.events.closed
