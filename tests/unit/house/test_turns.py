"""What is run in turns is run: each such test in one turn, all others in every one."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

from support.turns import ALL_TURNS, TURNS, turn_of_the_day

TESTS = Path(__file__).parents[2]
FILES = ("test_compaction.py", "test_restore_exactly.py", "test_tpch_refresh.py")


def collected(turn: str) -> frozenset[str]:
    """The tests of these files that a run with this turn has."""
    files = [str(TESTS / "integration" / name) for name in FILES]
    told = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", f"--turn={turn}", *files],
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return frozenset(line for line in told.stdout.splitlines() if "::" in line)


def test_each_turn_has_its_share_and_all_turns_have_all() -> None:
    turns = [collected(str(turn)) for turn in range(TURNS)]
    everything = collected(ALL_TURNS)
    assert frozenset().union(*turns) == everything
    seen = Counter(test for turn in turns for test in turn)
    assert set(seen.values()) == {1, TURNS}
    in_turns = {test for test, times in seen.items() if times == 1}
    assert {test.partition("::")[2].partition("[")[0] for test in in_turns} == {
        "test_partitions_are_found_again",
        "test_it_commits_what_sparks_own_restore_commits",
        "test_new_orders_come_in_once_however_often_they_are_brought",
        "test_old_orders_go_with_their_lines",
        "test_what_a_refresh_did_is_rolled_back_exactly",
    }
    together = {test for test in in_turns if "test_tpch_refresh" in test}
    assert sum(together <= turn for turn in turns) == sum(bool(together & turn) for turn in turns) == 1


def test_the_day_says_which_turn_it_is() -> None:
    assert turn_of_the_day() in {str(turn) for turn in range(TURNS)}
