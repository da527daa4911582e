"""What a user's session sees of its streams' batches, and of its plain writes, carried to the folders of notes
(catalog/lineage/streams/session_notes.py, catalog/lineage/write_notes.py).

They are gathered and left as one file every ten seconds at most, however fast they come. What cannot be delivered is
kept for a while, then dropped: a declared checkpoint still tells of it.
"""

import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final, Generic, Protocol, TypeVar

from lakewarden.catalog.errors import LakewardenError

__all__ = ["NoteSink", "SessionEvents", "SessionNote", "StreamPropagation"]

_EVERY: Final = timedelta(seconds=10)
_LONGEST_PAUSE: Final = timedelta(minutes=5)
_KEPT: Final = 10_000
"""Notes that wait for a storage that is away. They take about 10 MB."""


class SessionNote(Protocol):
    """Something that a session saw."""

    @property
    def key(self) -> Hashable:
        """What tells it from others. Of several of one key the last one counts."""


Note = TypeVar("Note", bound=SessionNote)
Seen_co = TypeVar("Seen_co", bound=SessionNote, covariant=True)
Left_contra = TypeVar("Left_contra", bound=SessionNote, contravariant=True)


class SessionEvents(Protocol[Seen_co]):
    """The progress of the streaming queries of one session (jobs/session/stream_listener.py), or its plain writes
    (jobs/session/write_plans/write_listener.py)."""

    def drain(self) -> Sequence[Seen_co]:
        """What was seen since the last call; waits for nothing. Raises a `LakewardenError` if the session has ended."""

    def close(self) -> None:
        """See nothing more. What was seen before can still be drained."""


class NoteSink(Protocol[Left_contra]):
    """Where notes are left."""

    def put(self, notes: Iterable[Left_contra]) -> None:
        """Leave notes, all or none. Raises a `LakewardenError` if that is not possible."""


class StreamPropagation(Generic[Note]):
    """Takes notes from `events` to a sink, now and then. Not thread-safe. `delivered` and `dropped` count notes."""

    def __init__(
        self,
        events: SessionEvents[Note],
        *,
        sink: Callable[[], NoteSink[Note]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._events, self._open, self._monotonic = events, sink, monotonic
        self._sink: NoteSink[Note] | None = None
        self._pending: dict[Hashable, Note] = {}
        self._pause, self._not_before = _EVERY, 0.0
        self.delivered = self.dropped = 0

    def carry(self, *, last: bool = False) -> None:
        """Gather what was seen, and deliver it if it is time, or if this is the `last` call. Raises nothing."""
        with suppress(LakewardenError):  # the session has ended: what was seen before is still delivered
            while seen := self._events.drain():
                self._gather(seen)
        if self._pending and (last or self._monotonic() >= self._not_before):
            self._deliver()

    def close(self) -> None:
        """See nothing more; `carry(last=True)` delivers what was seen."""
        self._events.close()

    def _gather(self, notes: Iterable[Note]) -> None:
        for note in notes:
            key = note.key
            if key not in self._pending and len(self._pending) >= _KEPT:
                self.dropped += 1
                continue
            self._pending[key] = note  # a batch that was tried again is told as it was at last

    def _deliver(self) -> None:
        notes = tuple(self._pending.values())
        try:
            if self._sink is None:
                self._sink = self._open()
            self._sink.put(notes)
        except LakewardenError:
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        else:
            self._pending.clear()
            self._pause = _EVERY
            self.delivered += len(notes)
        self._not_before = self._monotonic() + self._pause.total_seconds()
