"""Each known hole has a short history that shows it: something is wrong while it is open, nothing once it is closed."""

from collections.abc import Iterator

import pytest

from support.adversary.game import played, told
from support.adversary.holes import Hole
from support.adversary.stage import Stage, leave
from support.adversary.witnesses import EVERY_HOLE, ICE_HOLES, WITNESSES, is_seen, steps_of
from support.cases import mostly_long

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    yield Stage(tmp_path_factory.mktemp("adversary"))
    leave()


@pytest.mark.few(2)
@pytest.mark.parametrize("hole", mostly_long(EVERY_HOLE, EVERY_HOLE[::4]), ids=lambda hole: hole.name)
def test_a_hole_is_seen_while_it_is_open_and_only_then(stage: Stage, hole: Hole) -> None:
    sound = played(stage, steps_of(hole.name))
    assert not sound.findings, "\n".join(told(sound))
    assert is_seen(stage, hole) is not None


def test_every_hole_has_a_witness() -> None:
    assert set(WITNESSES) == {hole.name for hole in (*EVERY_HOLE, *ICE_HOLES)}
