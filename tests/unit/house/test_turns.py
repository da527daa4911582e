"""What is run in turns is run: each such test in one turn, all others in every one."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from support.turns import ALL_TURNS, TURNS, turn_of_the_day

TESTS = Path(__file__).parents[2]
FILES = ("test_compaction.py", "test_restore_exactly.py", "test_tpch_refresh.py")


COLLECT = """
import sys, pytest
for turn in sys.argv[1].split():
    print("turn", turn)
    assert pytest.main(["--collect-only", "-q", f"--turn={turn}", *sys.argv[2:]]) == 0
"""


def collected(*turns: str) -> Iterator[frozenset[str]]:
    """The tests of these files that a run with each of these turns has. One process: it has the libraries once."""
    files = [str(TESTS / "integration" / name) for name in FILES]
    told = subprocess.run(
        [sys.executable, "-c", COLLECT, " ".join(turns), *files],
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    for turn, said in zip(turns, told.stdout.split("turn ")[1:], strict=True):
        assert said.startswith(f"{turn}\n")
        yield frozenset(line for line in said.splitlines() if "::" in line)


def test_each_turn_has_its_share_and_all_turns_have_all() -> None:
    *turns, everything = collected(*map(str, range(TURNS)), ALL_TURNS)
    assert frozenset().union(*turns) == everything
    seen = Counter(test for turn in turns for test in turn)
    assert set(seen.values()) == {1, TURNS}
    in_turns = {test for test, times in seen.items() if times == 1}
    assert {test.partition("::")[2].partition("[")[0] for test in in_turns} == {
        "test_a_table_whose_paths_delta_rs_would_spell_otherwise_goes_back_by_spark",
        "test_clustered_tables_are_compacted_without_a_predicate",
        "test_deletion_vectors_are_purged",
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
