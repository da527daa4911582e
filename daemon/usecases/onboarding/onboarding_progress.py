"""How far a long search or registration is: a line now and then, none where it ends soon."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeVar

from lakewarden.catalog.units import about_seconds, count_of

__all__ = ["OnboardingProgress", "found_among"]

T = TypeVar("T")
_EVERY: Final = 5.0
"""Seconds between two lines, and before the first."""


@dataclass(kw_only=True, slots=True)
class OnboardingProgress:
    """Counts what was looked at and what is on record."""

    total: int
    tell: Callable[[str], None]
    """Gets the lines."""
    monotonic: Callable[[], float] = time.monotonic
    _looked: int = 0
    _on_record: int = 0
    _begun: float = field(init=False)
    _told_at: float = field(init=False)

    def __post_init__(self) -> None:
        self._begun = self._told_at = self.monotonic()

    def looked(self) -> None:
        """One more table was looked at."""
        self._looked += 1
        now = self.monotonic()
        if now - self._told_at < _EVERY:
            return
        self._told_at = now
        left = (now - self._begun) / self._looked * max(0, self.total - self._looked)
        self.tell(
            f"Looked at {self._looked:,} of {count_of(self.total, 'table')}, {self._on_record:,} on record; "
            f"about {about_seconds(left)} left."
        )

    def on_record(self, count: int) -> None:
        """So many are on record by now, refused ones included."""
        self._on_record = count


def found_among(
    looks: Iterable[T | None], *, tell: Callable[[str], None], monotonic: Callable[[], float] = time.monotonic
) -> Iterator[T]:
    """What a search found; None is a look that found nothing."""
    found, told_at = 0, monotonic()
    for number, one in enumerate(looks, start=1):
        if one is not None:
            found += 1
            yield one
        now = monotonic()
        if now - told_at >= _EVERY:
            told_at = now
            tell(f"Looked at {count_of(number, 'place')}, found {count_of(found, 'table')} so far.")
