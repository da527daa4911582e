"""Older system tables in the place of newer ones: what the database has seen tells."""

import pytest

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import AUDIT, HEALTH, SYSTEM_TABLES, TABLES
from lakewarden.catalog.system.recovery.damage import Damage
from lakewarden.catalog.validation.system_history import SystemHistory
from support.fakes.state import FakeSystemHeads
from support.fakes.system_store import FakeSystemStore


class Home:
    """System tables, a database that outlives them, and whoever compares the two."""

    def __init__(self) -> None:
        self.store, self.heads = FakeSystemStore(), FakeSystemHeads()
        self.store.create(system_rows(self.store, now=SystemClock().now(), actor="root"))
        self.history = SystemHistory(self.store, self.heads)
        self.write()

    def write(self) -> None:
        """A commit to each table."""
        self.store.raise_fence("one", at_least=1)

    def older(self) -> list[str]:
        found = list(self.history.problems())
        assert all(one.damage is Damage.OLDER for one in found)
        return [one.table.name for one in found]


@pytest.fixture
def home() -> Home:
    return Home()


def test_a_database_that_never_saw_them_knows_nothing_against_them(home: Home) -> None:
    home.history.require()
    assert home.older() == []


def test_tables_that_went_on_are_those_that_were_seen(home: Home) -> None:
    home.history.follow()
    home.write()
    home.history.follow()
    assert home.older() == []


@pytest.mark.parametrize("table", SYSTEM_TABLES, ids=lambda table: table.name)
def test_an_older_table_is_noticed_whichever_it_is(home: Home, table: object) -> None:
    home.history.follow()
    [moved] = [one for one in SYSTEM_TABLES if one is table]
    home.store.put_back(moved, home.store.rows(moved).version - 1)
    assert home.older() == [moved.name]
    with pytest.raises(PreconditionError, match="has seen version") as refused:
        home.history.follow()
    assert "system repair" in refused.value.hint
    assert home.older() == [moved.name], "what is refused is not what is remembered"


def test_an_older_table_that_was_written_to_since_is_noticed_by_its_commits(home: Home) -> None:
    home.history.follow()
    home.store.put_back(TABLES, home.store.rows(TABLES).version - 1)
    for _ in range(3):
        home.write()
    assert home.older() == [TABLES.name]


def test_a_commit_that_went_with_the_audit_window_is_not_missed(home: Home) -> None:
    home.history.follow()
    home.write()
    home.store.forget(AUDIT, home.store.rows(AUDIT).version - 1)
    assert home.older() == []


def test_what_a_person_accepts_is_what_is_known_from_then_on(home: Home) -> None:
    home.history.follow()
    home.store.put_back(HEALTH, 0)
    home.history.accept()
    home.history.require()
