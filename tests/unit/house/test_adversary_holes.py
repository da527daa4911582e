"""The holes that the adversary has to find are opened at seams that are there."""

import pytest

from support.adversary.holes import Hole, opened, owner_of
from support.adversary.themes import THEMES
from support.adversary.witnesses import EVERY_HOLE, ICE_HOLES

ALL = (*EVERY_HOLE, *ICE_HOLES)


@pytest.mark.parametrize("hole", ALL, ids=lambda hole: hole.name)
def test_a_hole_is_open_only_as_long_as_somebody_looks_for_it(hole: Hole) -> None:
    owners = [owner_of(seam) for seam, _ in hole.seams]
    before = [getattr(owner, name) for owner, name in owners]
    with opened(hole):
        assert all(getattr(owner, name) is not was for (owner, name), was in zip(owners, before, strict=True))
    assert [getattr(owner, name) for owner, name in owners] == before


def test_holes_are_looked_for_in_themes_that_there_are() -> None:
    assert {theme for hole in ALL for theme in hole.themes} <= set(THEMES)
