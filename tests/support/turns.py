"""Tests that are run in turns: long ones that have a shorter relative in every run, and the cases of long tables.

Their marker is `in_turns`. `make test` has one turn of them, a seventh, by the day of the week; a week has all. Who
runs pytest by hand, and `make test-all`, has all of them at once.
"""

from datetime import UTC, datetime
from typing import Final

__all__ = ["ALL_TURNS", "EVEN", "TURNS", "turn_of_the_day"]

TURNS: Final = 7
EVEN: Final = "3612 "
"""Put before a test's name, it gives turns of nearly the same length: 450 to 530 s of work each by the times of
2026-11-27; without it, 320 to 740 s."""
ALL_TURNS: Final = "all"


def turn_of_the_day() -> str:
    """Today's turn, by UTC: Monday is 0."""
    return str(datetime.now(UTC).weekday())
