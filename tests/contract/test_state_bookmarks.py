"""The Bookmarks port: how far something was read, by name: on the fake and on both databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from lakewarden.catalog.state.port import Bookmarks
from support.builders.states import database_state, fake_state, own_schema, sqlite_url


@pytest.fixture(params=["fake", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def bookmarks(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bookmarks]:
    if request.param == "fake":
        yield fake_state().bookmarks
    elif request.param == "sqlite":
        with database_state(sqlite_url(tmp_path)) as state:
            yield state.bookmarks
    else:
        with own_schema(request.getfixturevalue("postgres_url")) as url, database_state(url) as state:
            yield state.bookmarks


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
