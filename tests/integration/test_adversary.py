"""The adversary, for two minutes: what it always plays. `bench.adversary` plays what nobody has seen before."""

import time
from pathlib import Path

import pytest

from support.adversary.game import played, shrunk, told
from support.adversary.stage import Stage, leave
from support.adversary.themes import PLAYED, chosen
from support.cases import mostly_long

pytestmark = pytest.mark.heavy

SEEDS = range(17)
FEW = SEEDS[:4]
SECONDS = 100


@pytest.mark.parametrize("seeds", mostly_long([FEW, SEEDS], [FEW]), ids=["few", "many"])
def test_nothing_that_is_needed_is_lost_whatever_happens_in_whatever_order(
    tmp_path: Path, seeds: range
) -> None:
    stage, until = Stage(tmp_path), time.monotonic() + SECONDS
    try:
        for seed in seeds:
            if time.monotonic() < until:
                _nothing_is_wrong(stage, seed)
    finally:
        leave()


def _nothing_is_wrong(stage: Stage, seed: int) -> None:
    history = played(stage, chosen(seed, PLAYED))
    if history.findings:
        lines = told(shrunk(stage, history.steps, history.findings[0], seconds=30))
        command = f"python -m bench.adversary --replay {seed} --themes {','.join(PLAYED)}"
        pytest.fail("\n".join([command, *lines]))
