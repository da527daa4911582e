"""The Bookmarks port: how far something was read, by name: on the fake and on both databases."""

import pytest

from lakewarden.catalog.state.port import Bookmarks
from support.builders.states import State


@pytest.fixture
def bookmarks(state: State) -> Bookmarks:
    return state.bookmarks


def test_what_was_never_put_is_not_there(bookmarks: Bookmarks) -> None:
    assert bookmarks.get("a") is None


def test_each_name_has_its_own_and_moves_both_ways(bookmarks: Bookmarks) -> None:
    bookmarks.put("a", 7)
    bookmarks.put("b", 0)
    assert (bookmarks.get("a"), bookmarks.get("b")) == (7, 0)
    bookmarks.put("a", 2**40)
    assert bookmarks.get("a") == 2**40
    bookmarks.put("a", 3)
    assert (bookmarks.get("a"), bookmarks.get("b")) == (3, 0)
