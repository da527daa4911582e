"""A legal hold, a pause and a promise are escaped by no rename, no drop and no move:
use cases on the stores' in-memory implementations."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from lakewarden.catalog.errors import PreconditionError, RefusedError, UsageError
from lakewarden.catalog.model.pending_purge import MARKER, Purging
from lakewarden.catalog.model.rows import PolicySettings, TableState
from lakewarden.catalog.policy.carried_promises import carried
from lakewarden.catalog.policy.differences import values_set
from lakewarden.catalog.registry.governance import governed, set_hold, set_pause, set_policy
from lakewarden.catalog.registry.purge_mark import Begun
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.registry.removal import begin_purge, drop, rename, undrop
from lakewarden.catalog.registry.service import Registry
from lakewarden.catalog.storage.file_store import canonical, open_store
from lakewarden.catalog.system.port import TABLES
from support.builders.registries import ANA, NOW, ROOT, folder, made_registry
from support.builders.tables import FakeReader, observation


@pytest.fixture
def reader() -> FakeReader:
    return FakeReader()


@pytest.fixture
def registry(reader: FakeReader) -> Registry:
    return made_registry(reader)


@pytest.fixture
def location(registry: Registry, reader: FakeReader, tmp_path: Path) -> str:
    """`db.t` of Ana's."""
    place = folder(reader, tmp_path / "lake" / "t")
    register(registry, place, actor=ANA, name="db.t")
    return place


def test_a_rename_carries_the_hold_and_the_pause_of_the_namespace_along(
    registry: Registry, location: str
) -> None:
    set_hold(registry, "db.*", "case 4711", actor=ROOT)
    set_pause(registry, "db.*", "month end", actor=ROOT)
    row = rename(registry, "db.t", "free.t", actor=ANA)
    assert (row.name, row.hold, row.paused) == ("free.t", "db.*: case 4711", "db.*: month end")
    assert governed(registry, "free.t").hold == "free.t: db.*: case 4711"


def test_a_rename_within_a_held_namespace_writes_no_hold_of_its_own(
    registry: Registry, location: str
) -> None:
    set_hold(registry, "db.*", "case 4711", actor=ROOT)
    row = rename(registry, "db.t", "db.u", actor=ANA)
    assert row.hold is None and governed(registry, "db.u").hold == "db.*: case 4711"


@pytest.mark.parametrize("scope", ["db.t", "db.*", "DB.*", "`Db`.*", "*"])
def test_a_held_table_leaves_only_by_an_admin(registry: Registry, location: str, scope: str) -> None:
    set_hold(registry, scope, "case 4711", actor=ROOT)
    with pytest.raises(PreconditionError, match="legal hold"):
        drop(registry, "db.t", actor=ANA)
    assert drop(registry, "db.t", actor=ROOT).state is TableState.DROPPED


@pytest.mark.parametrize("scope", ["db.t", "db.*", "DB.*", "`Db`.*", "*"])
def test_no_purge_begins_on_a_held_table(registry: Registry, location: str, scope: str) -> None:
    set_hold(registry, scope, "case 4711", actor=ROOT)
    with pytest.raises(PreconditionError, match="legal hold"):
        begin_purge(registry, "db.t", actor=ROOT, expected_version=0, grace=timedelta(0))


def test_a_deletion_that_has_begun_is_not_undropped(
    registry: Registry, location: str, tmp_path: Path
) -> None:
    begin_purge(registry, "db.t", actor=ANA, expected_version=0, grace=timedelta(0))
    (tmp_path / "lake" / "t" / MARKER).write_text("{}")
    with pytest.raises(PreconditionError, match="has begun"):
        undrop(registry, "db.t", actor=ANA)
    assert registry.resolve("db.t", gone=True).state is TableState.PURGING
    (tmp_path / "lake" / "t" / MARKER).unlink()
    assert undrop(registry, "db.t", actor=ANA).state is TableState.ACTIVE


def test_what_is_left_of_the_deletion_of_an_earlier_table_keeps_nobody_from_undropping(
    registry: Registry, location: str, tmp_path: Path
) -> None:
    store = open_store(location)
    begin_purge(registry, "db.t", actor=ANA, expected_version=0, grace=timedelta(0))
    Begun(table_id="the-one-before", log=frozenset()).put(store)
    assert undrop(registry, "db.t", actor=ANA).state is TableState.ACTIVE
    row = begin_purge(registry, "db.t", actor=ANA, expected_version=0, grace=timedelta(0))
    Begun(table_id=row.table_id, log=frozenset()).put(store)
    with pytest.raises(PreconditionError, match="has begun"):
        undrop(registry, "db.t", actor=ANA)


def test_an_undrop_that_a_worker_is_faster_than_changes_nothing(
    registry: Registry, location: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark comes up while the row is written: the worker has asked, and may be deleting."""
    begin_purge(registry, "db.t", actor=ANA, expected_version=0, grace=timedelta(0))
    edit = registry.store.edit

    def slow(*arguments: Any, **more: Any) -> Any:
        done: Any = edit(*arguments, **more)
        if not (tmp_path / "lake" / "t" / MARKER).exists():
            (tmp_path / "lake" / "t" / MARKER).write_text("{}")
            set_hold(registry, "db.t", "case 4711", actor=ROOT)
        return done

    monkeypatch.setattr(registry.store, "edit", slow)
    with pytest.raises(PreconditionError, match="has begun"):
        undrop(registry, "db.t", actor=ANA)
    row = registry.resolve("db.t", gone=True)
    assert (row.state, row.hold) == (TableState.PURGING, "case 4711"), "what others asked for meanwhile stays"
    assert Purging.of(row).version == 0


def test_a_dropped_and_rescued_table_is_not_taken_for_moved(
    registry: Registry, reader: FakeReader, location: str, tmp_path: Path
) -> None:
    begin_purge(registry, "db.t", actor=ANA, expected_version=0, grace=timedelta(days=7))
    reader.tables.pop(location)
    (tmp_path / "lake" / "t").rename(tmp_path / "lake" / "rescued")
    rescued = canonical(str(tmp_path / "lake" / "rescued"))
    reader.tables[rescued] = observation(location, NOW)
    with pytest.raises(PreconditionError, match="was dropped"):
        register(registry, rescued, actor=ANA)
    assert registry.resolve("db.t", gone=True).location == location


def test_a_move_is_followed_only_where_the_old_place_answers_or_somebody_says_so(
    registry: Registry, reader: FakeReader, location: str, tmp_path: Path
) -> None:
    reader.tables.pop(location)
    (tmp_path / "lake" / "t").rmdir()  # nothing else there: it may be a mount without its disk
    there = folder(reader, tmp_path / "new")
    reader.tables[there] = observation(location, NOW)
    with pytest.raises(RefusedError, match="its disk may be away"):
        register(registry, there, actor=ANA)
    assert registry.resolve("db.t").location == location
    assert register(registry, there, actor=ANA, moved=True).row.location == there


@pytest.mark.parametrize("scope", ["a b.*", "db.in.*", ".*", "db..*", "/lake.*"])
def test_what_could_be_no_database_is_no_scope(registry: Registry, scope: str) -> None:
    with pytest.raises(UsageError, match="is not a scope"):
        set_hold(registry, scope, "case 4711", actor=ROOT)


PROMISED = {"rollback.promise": 90 * 86_400}


def test_a_rename_takes_back_nothing_that_the_namespace_promised(registry: Registry, location: str) -> None:
    set_policy(registry, "db.*", PROMISED, actor=ROOT)
    row = rename(registry, "db.t", "free.t", actor=ANA)
    assert values_set(row.policy) == PROMISED
    policy = governed(registry, "free.t").policy
    assert policy.vacuum_retention_seconds == policy.log_retention_seconds == PROMISED["rollback.promise"]
    assert registry.store.rows(TABLES).find(name="free.t") == (row,)
    assert carried(PolicySettings(), row.policy) == "rollback.promise = 90 days"


def test_what_its_namespace_closed_to_readers_stays_closed(registry: Registry, location: str) -> None:
    set_policy(registry, "db.*", {"access.closed": True}, actor=ROOT)
    row = rename(registry, "db.t", "free.t", actor=ANA)
    assert values_set(row.policy) == {"access.closed": True}
    assert carried(PolicySettings(), row.policy) == "access.closed = yes"


def test_a_rename_takes_the_retentions_along_that_would_be_shorter(registry: Registry, location: str) -> None:
    retentions = {"vacuum.retention": 30 * 86_400, "log.retention": 60 * 86_400}
    set_policy(registry, "db.*", retentions, actor=ROOT)
    set_policy(registry, "free.*", {"vacuum.retention": 40 * 86_400, "log.retention": 86_400}, actor=ROOT)
    row = rename(registry, "db.t", "free.t", actor=ANA)
    assert values_set(row.policy) == {"log.retention": 60 * 86_400}


def test_a_promise_that_came_along_goes_before_a_retention_of_the_new_namespace(
    registry: Registry, location: str
) -> None:
    set_policy(registry, "db.*", PROMISED, actor=ROOT)
    set_policy(registry, "free.*", {"rollback.promise": 86_400, "vacuum.retention": 86_400}, actor=ROOT)
    row = rename(registry, "db.t", "free.t", actor=ANA)
    assert values_set(row.policy) == PROMISED | {"vacuum.retention": 90 * 86_400}
    set_policy(registry, "free.t", {"rollback.promise": 80 * 86_400}, actor=ANA)


@pytest.mark.parametrize("scope", ["free.*", "*"])
def test_a_rename_to_a_namespace_that_promises_as_much_writes_nothing_into_the_row(
    registry: Registry, location: str, scope: str
) -> None:
    set_policy(registry, "db.*", PROMISED, actor=ROOT)
    set_policy(registry, scope, PROMISED, actor=ROOT)
    assert values_set(rename(registry, "db.t", "free.t", actor=ANA).policy) == {}
