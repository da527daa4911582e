"""How much a sweep asks of each store: a little until it answers, more as long as it does, nothing while it does not.

In a sweep a store is asked for one table at first; each answer lets one more be asked at once, each error halves that.
After a few errors in a row, or too many, its other tables are left as they are until the next sweep. A store that
answered for no table at all is away: then one table is asked now and again, with pauses that double, and the others
only once that one answers. Tables that answered come before those that did not: a few tables out of reach (another key,
another prefix) do not delay the rest.
"""

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from zlib import crc32

from lakewarden.catalog.clock import Clock

__all__ = ["IN_A_ROW", "Stores"]

IN_A_ROW: Final = 3
"""So many errors one after the other say that it is the store that does not answer."""
_IN_A_SWEEP: Final = 10
"""So many errors, between answers, are what one sweep waits for: each may take as long as requests are repeated."""
_FIRST_PAUSE: Final = timedelta(seconds=30)
"""After the first table that was asked in vain while the store was away."""


@dataclass(slots=True)
class _Store:
    """One store: how many tables may be asked at once, how many errors it gave in this sweep, and in a row, and
    whether it answered."""

    width: int = 1
    answered: bool = False
    errors: int = 0
    in_a_row: int = 0
    enough: bool = False
    silent_since: datetime | None = None
    """Set while it is away."""
    until: datetime | None = None
    """The time until which the store is left alone."""
    pause: timedelta = timedelta(0)
    turns: dict[str, tuple[bool, int]] = field(default_factory=dict)
    """By table: whether its last question was without an answer, and the sweep of that question."""


class Stores:
    """What each store answered, for the next table and for the next sweep. Safe with many threads."""

    def __init__(self, *, clock: Clock, longest_pause: timedelta, threads: int) -> None:
        self._clock, self._longest, self._threads = clock, longest_pause, threads
        self._stores: dict[str, _Store] = {}
        self._sweep = 0
        self._lock = threading.Lock()

    def begin(self, tables: Mapping[str, Collection[str]]) -> None:
        """A sweep begins, of these tables (ids) by store. What is not among them is forgotten."""
        with self._lock:
            self._sweep += 1
            self._stores = {store: self._anew(store, ids) for store, ids in tables.items()}

    def in_order(self, store: str, ids: Sequence[str]) -> list[str]:
        """Who is asked first: those that answered last time or are new, longest waiting first. Else mixed: tables
        that are out of reach together mostly stand together."""
        turns = self._stores[store].turns
        return sorted(ids, key=lambda one: (*turns.get(one, (False, 0)), crc32(one.encode())))

    def width(self, store: str) -> int:
        """How many tables of a store may be asked at once now; 0: no more of it in this sweep."""
        with self._lock:
            known = self._stores[store]
            return 0 if known.enough else known.width

    def is_away(self, store: str) -> bool:
        """Whether the store did not answer for any table when it was last asked."""
        with self._lock:
            known = self._stores.get(store)
            return known is not None and known.silent_since is not None

    def heard(self, store: str, table_id: str, *, answered: bool) -> None:
        """A table was asked for: the store `answered`, whatever it said, or did not."""
        with self._lock:
            known = self._stores[store]
            known.turns[table_id] = (not answered, self._sweep)
            (self._answered if answered else self._silent)(known)

    def _answered(self, known: _Store) -> None:
        known.answered, known.in_a_row = True, 0
        known.enough = known.errors >= _IN_A_SWEEP
        known.width = min(known.width + 1, self._threads)
        known.silent_since, known.until, known.pause = None, None, timedelta(0)

    def _silent(self, known: _Store) -> None:
        known.errors += 1
        known.in_a_row += 1
        known.width = max(known.width // 2, 1)
        now = self._clock.now()
        if known.silent_since is not None:
            known.enough = True
            known.pause = min(max(known.pause * 2, _FIRST_PAUSE), self._longest)
            known.until = now + known.pause
        elif known.in_a_row >= IN_A_ROW or known.errors >= _IN_A_SWEEP:
            known.enough = True
            if not known.answered:
                known.silent_since = now

    def _anew(self, store: str, ids: Collection[str]) -> _Store:
        before = self._stores.get(store, _Store())
        return _Store(
            enough=self._rests(before),
            silent_since=before.silent_since,
            until=before.until,
            pause=before.pause,
            turns={one: before.turns[one] for one in ids if one in before.turns},
        )

    def _rests(self, known: _Store) -> bool:
        """Whether its pause goes on. A clock that was set back makes none longer."""
        left = timedelta(0) if known.until is None else known.until - self._clock.now()
        return timedelta(0) < left <= known.pause
