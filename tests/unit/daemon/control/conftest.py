"""What the tests of this room share."""

import pytest

from support.builders.daemons import World


@pytest.fixture
def world() -> World:
    """Everything a cycle touches, in memory."""
    return World()
