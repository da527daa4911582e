"""Each hole in rollbacks has a short history that shows it: something is wrong while it is open, nothing once it is closed."""

import pytest

from support.adversary.game import played, told
from support.adversary.holes import Hole, opened
from support.adversary.moves import Step
from support.adversary.rollback_holes import ROLLBACK_HOLES
from support.adversary.stage import Stage
from support.adversary.themes import ROLLBACKS

pytestmark = pytest.mark.heavy

HOLES = {hole.name: hole for hole in ROLLBACK_HOLES}
TWO = "found found load make_from"
"""A table with a bad load, and one that was made from it."""
WITNESSES = {
    "3.1": f"{TWO} cascade:4 apply_cascade!205 make_from:3 resume_cascade undo_cascade",
    "3.2": f"{TWO} cascade:4 apply_cascade!205 resume_cascade",
    "3.3": f"{TWO} append@1 cascade:4 apply_cascade",
    "3.4": f"{TWO} cascade:1 apply_cascade!205 load@1 wake",
    "3.5": f"{TWO} note load cascade",
    "3.6": f"{TWO} empty:1 empty cascade:4 apply_cascade",
    "3.7": "found load sweep recreate:1 sweep",
    "4 door": "found spoil_policy",
    "4 names": "found trespass",
}


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(tmp_path_factory.mktemp("adversary"))


@pytest.mark.parametrize("name", WITNESSES)
def test_a_hole_is_seen_while_it_is_open_and_only_then(stage: Stage, name: str) -> None:
    hole, steps = HOLES[name], [_step(word) for word in WITNESSES[name].split()]
    sound = played(stage, steps)
    assert not sound.findings, "\n".join(told(sound))
    assert _seen(stage, hole, steps)


def test_every_hole_in_rollbacks_has_a_witness() -> None:
    assert set(WITNESSES) == set(HOLES)
    assert {theme for hole in ROLLBACK_HOLES for theme in hole.themes} == set(ROLLBACKS)


def _seen(stage: Stage, hole: Hole, steps: list[Step]) -> bool:
    with opened(hole):
        history = played(stage, steps)
    return any(hole.shows in str(one) for one in history.findings)


def _step(word: str) -> Step:
    """`name:y@x!n`: its two numbers, and the failpoint at which its actor stands still."""
    told_, _, fault = word.partition("!")
    named, _, x = told_.partition("@")
    name, _, y = named.partition(":")
    return name, int(x or 0), int(y or 0), int(fault or 0)
