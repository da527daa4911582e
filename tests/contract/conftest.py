"""The operational database on everything that it runs on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.builders.states import State, database_state, fake_state, own_schema, sqlite_url

_DATABASES = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(params=_DATABASES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Where an empty database is."""
    if request.param == "sqlite":
        yield sqlite_url(tmp_path)
    else:
        with own_schema(request.getfixturevalue("postgres_url")) as found:
            yield found


@pytest.fixture(params=["fake", *_DATABASES])
def state(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[State]:
    """The fake, and both databases."""
    if request.param == "fake":
        yield fake_state()
    elif request.param == "sqlite":
        with database_state(sqlite_url(tmp_path)) as found:
            yield found
    else:
        with own_schema(request.getfixturevalue("postgres_url")) as url, database_state(url) as found:
            yield found
