"""Random histories on real Delta tables, rolled back for real, compared row by row; for half of them somebody writes
meanwhile. `python -m bench.histories` runs more."""

from collections import Counter
from pathlib import Path

import pytest

from support.cases import mostly_long
from support.histories.history_runs import Company, local_case

pytestmark = pytest.mark.heavy

SEEDS = range(50, 90)
"""Among them is each kind of history."""
SEEN: Counter[str] = Counter()


@pytest.mark.parametrize("seed", mostly_long(SEEDS, SEEDS[:4]))
def test_what_a_rollback_gives_back_depends_on_nothing_bad_and_is_the_newest_such(
    tmp_path: Path, seed: int
) -> None:
    case = local_case(tmp_path, seed)
    case.run((Company.NOBODY, Company.BETWEEN, Company.NOBODY, Company.RACING)[seed % 4])
    assert not case.wrong
    SEEN.update(case.seen)


@pytest.mark.long
def test_every_kind_of_history_was_among_them() -> None:
    print(dict(SEEN))
    for what in ("undone", "cascaded", "with_collateral", "healed", "born_tainted", "with_writer", "stopped"):
        assert SEEN[what] >= 1, SEEN
