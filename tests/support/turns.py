"""Tests that are run in turns: long ones that have a shorter relative in every run, and the cases of long tables.

Their marker is `in_turns`. `make test` has one turn of them, a fifth, by the day; five days in a row have all. Who
runs pytest by hand, and `make test-all`, has all of them at once.
"""

import time
from typing import Final

__all__ = ["ALL_TURNS", "TURN", "TURNS", "turn_of_the_day"]

TURNS: Final = 5
ALL_TURNS: Final = "all"
TURN: Final = "SUITE_TURN"
"""The variable that says which turn a run has, where `--turn` does not."""
_SECONDS_OF_A_DAY: Final = 86_400


def turn_of_the_day() -> str:
    """Today's turn, by UTC."""
    return str(int(time.time()) // _SECONDS_OF_A_DAY % TURNS)
