"""Tails `lakewarden.lineage` and sends an event for each version it tells of. Never in the way of a cycle.

One thread per sink. What there is to send stands in the table, so nothing piles up here: a bookmark in the operational
database says up to which commit of the table everything was sent, and moves only behind what a sink has
taken. Hence each event is sent at least once, those of one table in their order, however long a sink was
away. Without a bookmark (a new sink, a deleted database) it begins with what is recorded from now on:
`lakewarden lineage events` prints the rest.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Final

from lakewarden.catalog.errors import (
    LakewardenError,
    NotFoundError,
    RefusedError,
    UnavailableError,
    UnreadableError,
)
from lakewarden.catalog.lineage.openlineage.events import EventMaker, VersionEvent, events_of
from lakewarden.catalog.model.rows import LineageRow
from lakewarden.catalog.state.port import Bookmarks
from lakewarden.catalog.system.port import LINEAGE, SystemStore
from lakewarden.daemon.telemetry.log import get_log
from lakewarden.daemon.telemetry.metrics import Metrics
from lakewarden.daemon.telemetry.openlineage_sinks import Sink

__all__ = ["EventTail"]

_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0
_LOOKS: Final = 10
"""So many looks in a row may find a commit unreadable before it is passed over: storage has its bad moments."""


class EventTail:
    """Sends what is new to one sink, whenever it is told to look. `maker` gives the words as of now.

    `trouble` is what it waits for, None while it has nothing to wait for.
    """

    def __init__(
        self,
        *,
        store: SystemStore,
        bookmarks: Bookmarks,
        sink: Sink,
        maker: Callable[[], EventMaker],
        metrics: Metrics,
        pause: float = _FIRST_PAUSE,
    ) -> None:
        self._store, self._bookmarks, self._sink, self._maker = store, bookmarks, sink, maker
        self._metrics, self._first_pause = metrics, pause
        self._sent: int | None = None
        self._unread = 0
        self._due, self._wake, self._stopping = threading.Event(), threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._work, name=sink.name, daemon=True)
        self.trouble: str | None = None
        self._log = get_log("events").bind(sink=sink.name)

    def start(self) -> None:
        """Find the place to begin at, and begin. What is recorded from here on is sent."""
        self._attempt(self._open)
        self._thread.start()

    def look(self) -> None:
        """There may be something new. Costs the caller nothing."""
        self._due.set()
        self._wake.set()

    def stop(self, wait: timedelta = timedelta(seconds=5)) -> None:
        """Send what is new without retries, for at most `wait`. What is left is sent after the next start."""
        self._stopping.set()
        self._wake.set()
        self._thread.join(wait.total_seconds())

    def _work(self) -> None:
        while not self._stopping.is_set() or self._due.is_set():
            self._wake.wait()
            self._wake.clear()
            if self._due.is_set():
                self._due.clear()
                self._attempt(self._send_news)

    def _attempt(self, do: Callable[[], None]) -> None:
        """Do something now, or at the next look. A trouble is said once, and when it is over."""
        try:
            do()
        except LakewardenError as error:
            self._say(str(error))
        else:
            self._say(None)

    def _open(self) -> None:
        """The bookmark; without one, the present end of the table."""
        if self._sent is None:
            self._sent = self._bookmarks.get(self._sink.name)
        if self._sent is None:
            self._put(self._store.rows(LINEAGE).version)

    def _send_news(self) -> None:
        self._open()
        while self._sent is not None:
            head = self._store.rows(LINEAGE).version
            self._metrics.events_behind.labels(self._sink.name).set(max(head - self._sent, 0))
            if head == self._sent:
                return
            added = self._added(self._sent + 1, head)
            if added is None:
                continue
            if not all(self._sends(event) for event in self._events(added)):
                return
            self._put(self._sent + 1)

    def _added(self, version: int, head: int) -> tuple[LineageRow, ...] | None:
        """The rows that a commit added; None if nobody can tell any more, and the bookmark was moved on."""
        try:
            added = self._store.added(LINEAGE, version)
        except NotFoundError:  # the log was cleaned, or put back from a backup
            self._pass_over(version, head)
            return None
        except UnreadableError:  # files of old versions go before the log does
            self._unread += 1
            if self._unread < _LOOKS:
                raise
            self._pass_over(version, version)
            added = None
        self._unread = 0
        return added

    def _pass_over(self, first: int, last: int) -> None:
        self._log.warning(
            "some events were not sent: old versions of lakewarden.lineage are gone",
            first=first,
            last=last,
            hint="`lakewarden lineage events` prints them.",
        )
        self._put(last)

    def _events(self, added: Iterable[LineageRow]) -> Iterator[VersionEvent]:
        """The events of versions that rows were added to, from all rows of each: some may have been there before."""
        touched = sorted({(row.output_id, row.output_version) for row in added})
        if not touched:
            return
        maker, rows = self._maker(), self._store.rows(LINEAGE)
        for table_id, version in touched:
            yield from events_of(rows.find(output_id=table_id, output_version=version), maker)

    def _sends(self, event: VersionEvent) -> bool:
        """Whether the sink is done with an event. Waits for one that is away; False if the daemon stops meanwhile."""
        pause = self._first_pause
        while True:
            try:
                self._sink.send(event)
            except RefusedError as error:
                self._count("refused")
                self._log.warning(
                    "event refused", table=event.table_id, version=event.version, because=str(error)
                )
                return True
            except UnavailableError as error:
                self._say(str(error))
                if self._stopping.wait(pause):
                    return False
                pause = min(pause * 2, _LONGEST_PAUSE)
            else:
                self._count("sent")
                self._say(None)
                return True

    def _put(self, version: int) -> None:
        self._sent = version  # first: what was sent is not sent again because the database is away
        self._bookmarks.put(self._sink.name, version)

    def _count(self, outcome: str) -> None:
        self._metrics.events.labels(self._sink.name, outcome).inc()

    def _say(self, trouble: str | None) -> None:
        if trouble is not None and self.trouble is None:
            self._log.warning("events wait", because=trouble)
        elif trouble is None and self.trouble is not None:
            self._log.info("events go on")
        self.trouble = trouble
