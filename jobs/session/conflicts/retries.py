"""A write that lost a race is tried again: a few times, after a pause that differs from everybody else's. Pure but for
the pause."""

import logging
import random
import time
from collections.abc import Callable
from typing import Final, TypeVar

from lakewarden.catalog.errors import ConflictError, UsageError
from lakewarden.jobs.session.conflicts.lost_races import LostRaceError

__all__ = ["RETRIES", "RETRIES_KEY", "RETRIES_OF_BATCHES", "retried", "retries_of"]

RETRIES_KEY: Final = "lakewarden.conflicts.retries"
RETRIES: Final = 3
"""Tries after the first. Each computes the whole statement again, and somebody waits for it: what has lost four races
writes to a table that is too busy for it."""
RETRIES_OF_BATCHES: Final = 10
"""Those of a stream's batch: nobody waits for it, and the query would end."""
_MOST: Final = 100
_FIRST_PAUSE: Final = 0.2
_LONGEST_PAUSE: Final = 5.0

Result = TypeVar("Result")


def retries_of(text: str | None, *, default: int = RETRIES) -> int:
    """What a session says under `RETRIES_KEY`. Raises `UsageError` for what is no such number."""
    said = "" if text is None else text.strip().strip("'\"")
    if not said:
        return default
    if not (said.isascii() and said.isdecimal() and int(said) <= _MOST):
        raise UsageError(
            f"{RETRIES_KEY} = {said} is not a number of tries.",
            hint=f"It is a whole number from 0 (never try again) to {_MOST}.",
        )
    return int(said)


def retried(
    attempt: Callable[[], Result],
    *,
    retries: int,
    pause: Callable[[float], None] = time.sleep,
    chance: Callable[[float, float], float] = random.uniform,
) -> Result:
    """The result of `attempt`, called again after a lost race that can be mended. Raises `ConflictError`, with the
    commit that won last, when that is of no use, or was of none `retries` times."""
    longest = _FIRST_PAUSE
    for tries in range(1, retries + 2):
        try:
            return attempt()
        except LostRaceError as lost:
            if not lost.is_mendable:
                raise
            if tries > retries:
                raise _given_up(lost, tries) from lost
            logging.getLogger("lakewarden").info("%s Trying again (%d of %d).", lost, tries, retries)
        # Two that lost to one another must not meet again.
        pause(chance(longest / 2, longest))
        longest = min(2 * longest, _LONGEST_PAUSE)
    raise AssertionError(retries)


def _given_up(lost: LostRaceError, tries: int) -> ConflictError:
    times = f" It was tried {tries} times." if tries > 1 else ""
    return ConflictError(
        f"{lost}{times}",
        hint="Nothing of it is in the table: run it again, or allow more tries: "
        f"SET {RETRIES_KEY} = {max(2 * tries, 10)}.",
    )
