"""What a user's own Spark session sees of tables coming and going, carried to the daemon as hints.

Nothing here may slow or break the user's job. Spark's side only drops events into a bounded queue of the JVM; one
background thread takes them out and delivers them, to the inbox or, where the database is out of reach, to the spool
folder. What cannot be delivered is kept for a while, then dropped: the sweep finds what no hint told of.
"""

import atexit
import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from types import TracebackType
from typing import Any, Final, Protocol, Self, Unpack

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import LakewardenError, UsageError
from lakewarden.catalog.policy.rows_write import way_named
from lakewarden.catalog.state.port import Hint, HintKind, HintSink
from lakewarden.jobs.session.stream_carrier import StreamPropagation
from lakewarden.jobs.session.upserts.batch_reads import query_of
from lakewarden.jobs.session.writes import Upsert, Upserted, UpsertStream, Write, Writer
from lakewarden.jobs.upsert.classic import UpsertOrSinkWords, asked_of
from lakewarden.jobs.upsert.upsert_options import buckets_asked

__all__ = ["Attached", "CatalogEvents", "Sighting"]

_POLL: Final = timedelta(seconds=5)
_KEPT: Final = 10_000
"""Hints that wait for a database or a storage that is away. They take about 5 MB."""
_BATCH: Final = 1_000
_FIRST_PAUSE: Final = timedelta(seconds=1)
_LONGEST_PAUSE: Final = timedelta(minutes=1)
_PATIENCE: Final = timedelta(seconds=2)
"""How long the end of a job may wait for the last delivery."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """Something happened."""

    subject: str
    """`db.t`, `db.*` for a whole database, or a location."""
    kind: HintKind


class CatalogEvents(Protocol):
    """The events of one Spark application's catalog (jobs/session/catalog_listener.py)."""

    def poll(self, timeout: timedelta) -> Sequence[Sighting]:
        """What was seen since the last call; waits up to `timeout` for the first. Raises a `LakewardenError` once the
        Spark application has ended."""

    def close(self) -> None:
        """See nothing more, and end a `poll` that waits. What was seen before can still be polled."""


class Attached:
    """A Spark session whose conversions, creations and drops the daemon hears of. A context manager.

    `sinks` opens, without waiting for anything, where hints go: tried in order, the first that takes a batch has it.
    `writer` runs statements and governed writes; `notes` take along what batches of streams read, and plain writes.
    `delivered` and `dropped` count hints.
    """

    def __init__(
        self,
        events: CatalogEvents,
        *,
        sinks: Callable[[], Sequence[HintSink]],
        clock: Clock,
        writer: Writer | None = None,
        notes: Sequence[StreamPropagation[Any]] = (),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._events, self._clock, self._monotonic = events, clock, monotonic
        self._writer, self._notes = writer, notes
        self._wrote: deque[str] = deque(maxlen=_KEPT)
        self._pending: dict[Sighting, Hint] = {}
        self._pause, self._not_before = _FIRST_PAUSE, 0.0
        self._warned = False
        self._ending = threading.Event()
        self.delivered = self.dropped = 0
        self._thread = threading.Thread(
            target=self._carry, args=(sinks,), name="lakewarden-hints", daemon=True
        )
        self._thread.start()
        atexit.register(self.detach)

    def sql(self, text: str, *, write: str | None = None) -> Any:
        """Run one statement; its result as a Spark DataFrame.

        The daemon's (CONVERT TO DELTA, ROLLBACK TABLE, VACUUM, SHOW MANAGED TABLES, SELECT on system tables, all in
        docs/sql.md) do what the `lakewarden` command does. INSERT, MERGE, UPDATE, DELETE and CREATE TABLE (AS) on Delta
        tables record in their commit what they read. The session runs everything else as it is. `write` is how an
        UPDATE, DELETE or MERGE writes the rows that it changes (docs/governed-writes.md). Raises a `LakewardenError`,
        or Spark's own errors.
        """
        if self._writer is None:
            raise self._only_listens()
        return self._writer.sql(text, None if write is None else way_named(write, "write"))

    def table(self, name: str, *, version: int | None = None) -> Any:
        """A DataFrame of `name` (a table, a view or a path) that stays at today's version, or at `version`."""
        if self._writer is None:
            raise self._only_listens()
        return self._writer.table(name, version)

    def write(self, frame: Any, *, options: Mapping[str, str] | None = None) -> Write:
        """Write a DataFrame to a Delta table: `lw.write(df).append("db.t")`, see `Write`.

        `options` are those of Spark's writer, such as `mergeSchema`; `userMetadata` is kept in the record.
        """
        if self._writer is None:
            raise self._only_listens()
        return Write(self._writer, frame, dict(options or {}))

    def upsert(
        self,
        frame: Any,
        table: str,
        keys: Sequence[str] | str | None = None,
        *,
        partitioned: Sequence[str] = (),
        buckets: int | None = None,
        operation: str | None = None,
        **options: Unpack[UpsertOrSinkWords],
    ) -> Upserted:
        """Bring the rows of a DataFrame into `table` (a name or a path; made if it is missing) by its key columns.

        With an `operation` id it is done once: the same call again does nothing, and says so (`done_before`).
        docs/upsert.md has the options, and those of the classic sink, which are taken, too. Raises a `LakewardenError`,
        or Spark's own errors; then nothing was changed.
        """
        if self._writer is None:
            raise self._only_listens()
        query = query_of(frame) if "batchId" in options else None
        asked = asked_of(keys, operation, query=query, **options)
        request = Upsert(
            frame=frame,
            table=table,
            options=asked.options,
            partitioned=tuple(partitioned),
            buckets=buckets_asked(buckets, partitioned),
            operation=asked.operation,
            number=asked.number,
            query=query,
        )
        return self._writer.upsert(request)

    def upsert_stream(
        self,
        frame: Any,
        table: str,
        keys: Sequence[str] | str | None = None,
        *,
        checkpoint: str,
        trigger: Mapping[str, Any] | None = None,
        output_mode: str = "append",
        partitioned: Sequence[str] = (),
        buckets: int | None = None,
        operation: str | None = None,
        **options: Unpack[UpsertOrSinkWords],
    ) -> Any:
        """Start a streaming query that upserts each of its batches once, whatever is repeated; its handle.

        `trigger` is what Spark's writer takes, such as `{"availableNow": True}`; the options are those of `upsert`, but
        for an operation's id: batches have their own.
        """
        if self._writer is None:
            raise self._only_listens()
        asked = asked_of(keys, operation, is_stream=True, **options)
        each = Upsert(
            frame=frame,
            table=table,
            options=asked.options,
            partitioned=tuple(partitioned),
            buckets=buckets_asked(buckets, partitioned),
        )
        stream = UpsertStream(
            each=each, checkpoint=checkpoint, trigger=dict(trigger or {}), output_mode=output_mode
        )
        return self._writer.upsert_stream(stream)

    def wrote(self, location: str) -> None:
        """Let the daemon look at a managed table after a governed write: the size in its metastore entry is then soon
        right. Costs nothing; several within five seconds are one."""
        self._wrote.append(location)

    @staticmethod
    def _only_listens() -> UsageError:
        return UsageError(
            "This session only listens.", hint="Use `lakewarden.attach(spark)` to run statements."
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.detach()

    def detach(self, patience: timedelta = _PATIENCE) -> None:
        """Stop listening. Waits at most `patience` for what was seen to be delivered. May be called twice."""
        if self._ending.is_set():
            return
        for each in self._notes:
            each.close()  # first: what Spark has not told yet is still to be carried
        self._ending.set()
        atexit.unregister(self.detach)
        self._events.close()
        self._thread.join(patience.total_seconds())

    def _carry(self, open_sinks: Callable[[], Sequence[HintSink]]) -> None:
        """The background thread: from the events to the sinks, until detached or the session has ended."""
        sinks = open_sinks()  # here, because importing a database library takes longer than attaching should
        ended = False
        while not ended:
            ending = self._ending.is_set()
            try:
                seen = self._events.poll(timedelta(0) if ending else self._wait())
                ended = ending and not seen
            except LakewardenError:
                seen, ended = (), True  # the session is gone; what was seen before is still delivered
            self._gather((*seen, *self._written()))
            for each in self._notes:
                each.carry(last=ended)
            if ended or self._monotonic() >= self._not_before:
                self._deliver(sinks)

    def _wait(self) -> timedelta:
        if not self._pending:
            return _POLL
        return min(_POLL, timedelta(seconds=max(self._not_before - self._monotonic(), 0.0)))

    def _written(self) -> Sequence[Sighting]:
        places = [self._wrote.popleft() for _ in range(len(self._wrote))]
        return [Sighting(place, HintKind.WRITTEN) for place in dict.fromkeys(places)]

    def _gather(self, seen: Iterable[Sighting]) -> None:
        now = self._clock.now()
        for sighting in seen:
            if sighting in self._pending:
                continue  # "look again" said twice is said once
            if len(self._pending) >= _KEPT:
                self.dropped += 1
                continue
            self._pending[sighting] = Hint(
                hint_id=uuid.uuid4().hex, subject=sighting.subject, kind=sighting.kind, at=now
            )

    def _deliver(self, sinks: Sequence[HintSink]) -> None:
        while batch := dict(islice(self._pending.items(), _BATCH)):
            if not self._put(tuple(batch.values()), sinks):
                self._not_before = self._monotonic() + self._pause.total_seconds()
                self._pause = min(2 * self._pause, _LONGEST_PAUSE)
                return
            self.delivered += len(batch)
            self._pause, self._not_before = _FIRST_PAUSE, 0.0
            for sighting in batch:
                del self._pending[sighting]

    def _put(self, hints: Sequence[Hint], sinks: Sequence[HintSink]) -> bool:
        problem: LakewardenError | None = None
        for sink in sinks:
            try:
                sink.put(hints)
            except LakewardenError as error:
                problem = error
            else:
                return True
        if not self._warned:
            self._warned = True
            logging.getLogger("lakewarden").warning(
                "lakewarden is not told of tables that come and go here (%s); its sweep finds them.", problem
            )
        return False
