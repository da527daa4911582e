"""The adversary, for two minutes: what it always plays, and a few histories that nobody has seen before."""

import random
import time
from pathlib import Path

import pytest

from support.adversary.game import played, shrunk, told
from support.adversary.stage import Stage
from support.adversary.themes import chosen

pytestmark = pytest.mark.heavy

SEEDS = range(40)
SECONDS = 100
NEW_SECONDS = 30


def test_nothing_that_is_needed_is_lost_whatever_happens_in_whatever_order(tmp_path: Path) -> None:
    stage, until = Stage(tmp_path), time.monotonic() + SECONDS
    for seed in SEEDS:
        if time.monotonic() < until:
            _nothing_is_wrong(stage, seed)


def test_nor_in_histories_that_nobody_has_seen_before(tmp_path: Path) -> None:
    stage, until, first = Stage(tmp_path), time.monotonic() + NEW_SECONDS, random.randrange(10**9)
    seed = first
    while time.monotonic() < until:
        print(f"python -m bench.adversary --replay {seed}")
        _nothing_is_wrong(stage, seed)
        seed += 1
    assert seed > first


def _nothing_is_wrong(stage: Stage, seed: int) -> None:
    history = played(stage, chosen(seed))
    if history.findings:
        lines = told(shrunk(stage, history.steps, history.findings[0], seconds=30))
        pytest.fail("\n".join([f"python -m bench.adversary --replay {seed}", *lines]))
