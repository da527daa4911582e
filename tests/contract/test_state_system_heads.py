"""The SystemHeads port: what the system tables were when they were last seen: on the fake and on both databases."""

import pytest

from lakewarden.catalog.model.system_head import SystemHead
from lakewarden.catalog.state.port import SystemHeads
from support.builders.states import State


@pytest.fixture
def heads(state: State) -> SystemHeads:
    return state.heads


def test_nothing_is_known_of_tables_that_were_never_seen(heads: SystemHeads) -> None:
    assert heads.get() == {}


def test_a_head_takes_the_place_of_the_one_before_and_leaves_the_others(heads: SystemHeads) -> None:
    old, new = SystemHead(version=3, digest="a" * 15), SystemHead(version=2**40, digest="0b" + "c" * 13)
    heads.put({"tables": old, "audit": old})
    heads.put({"tables": new})
    assert heads.get() == {"tables": new, "audit": old}
