"""Places that users share: how many things run at once, how many of them are one user's, and whose turn it is."""

import math
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from lakewarden.catalog.errors import CancelledError

__all__ = ["Share", "Slots", "next_of", "part_of", "share_of"]

_ALL: Final = 100
_LOOK_SECONDS: Final = 0.25
"""Interval at which a waiting call checks whether it is still wanted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """How many may be at once."""

    places: int
    """So many there are."""
    each: int
    """So many are of one user at most."""
    kept: int
    """The last so many are for users who have none yet."""


def part_of(whole: int, percent: int) -> int:
    """One user's part, at least one."""
    return max(whole * percent // 100, 1)


def share_of(places: int, percent: int) -> Share:
    """So much of so many places; with less than all for one user, the last (one of a hundred) is kept for another."""
    kept = math.ceil(places / _ALL) if percent < _ALL else 0
    return Share(places=places, each=part_of(places, percent), kept=kept)


def next_of(waiting: Sequence[str], running: Mapping[str, int], share: Share) -> int | None:
    """The index of the waiting call that is next, given the users in order of arrival: the first one whose user has the
    fewest places. None while nobody may have one."""
    free = share.places - sum(running.values())
    fit = [
        (running.get(user, 0), number)
        for number, user in enumerate(waiting)
        if free > 0 and (running.get(user, 0) == 0 or (running[user] < share.each and free > share.kept))
    ]
    return min(fit)[1] if fit else None


class Slots:
    """Places that threads wait for."""

    def __init__(self, share: Share) -> None:
        self._share = share
        self._waiting: list[tuple[str, object]] = []
        self._running = Counter[str]()
        self._changed = threading.Condition()

    @contextmanager
    def taken(self, user: str, wanted: Callable[[], bool]) -> Iterator[None]:
        """In the block one is this user's. Raises `CancelledError` once it is not `wanted` any more."""
        ticket = (user, object())
        with self._changed:
            self._waiting.append(ticket)
            try:
                while not self._is_next(ticket):
                    if not wanted():
                        raise CancelledError("The statement was given up before it was read.")
                    self._changed.wait(_LOOK_SECONDS)
                self._running[user] += 1
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._running[user] -= 1
                self._running = +self._running
                self._changed.notify_all()

    def _is_next(self, ticket: tuple[str, object]) -> bool:
        number = next_of([user for user, _ in self._waiting], self._running, self._share)
        return number is not None and self._waiting[number] is ticket
