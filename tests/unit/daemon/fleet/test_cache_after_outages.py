"""A storage that goes away between a system table's log and its rows: the daemon forgets nothing, and knows all of it
once the storage is back, though nobody commits anything meanwhile."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.model.rows import RollbackState, RollbackStep
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import (
    HEALTH,
    LINEAGE,
    ROLLBACKS,
    RUNS,
    SCHEMAS,
    TABLES,
    Rows,
    SystemTable,
)
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.jobs.actions.budget import Budget
from lakewarden.jobs.actions.world import World
from support.builders.system_samples import NOW, sample
from support.fakes.clock import ManualClock
from support.fakes.pure_changes import PureStore


class Unreadable:
    """Rows of which only the log can be read."""

    def __init__(self, version: int) -> None:
        self.version = version

    def __getattr__(self, name: str) -> Any:
        def refused(*_: object, **__: object) -> Sequence[object]:
            raise UnavailableError("s3://lake denies access.")

        return refused


class Denied(PureStore):
    """A store that denies access to the data files of one table, as long as it is told to."""

    table: str | None = None

    def rows(self, table: SystemTable[Any], *, version: int | None = None) -> Rows[Any]:
        found = super().rows(table, version=version)
        denied: Any = Unreadable(found.version)
        return denied if table.name == self.table else found


@pytest.fixture
def denied(tmp_path: Path) -> Denied:
    made = Denied(canonical(str(tmp_path / "system")), StorageOptions(), actor="tests")
    made.create(system_rows(made, now=NOW, actor="tests"))
    return made


def fill(store: Denied, numbers: Iterable[int]) -> None:
    """Tables, and of each something in every system table."""
    ids = {number: sample(TABLES, number).table_id for number in numbers}
    store.edit(TABLES, lambda _: [sample(TABLES, number) for number in ids], because="test")
    store.edit(HEALTH, lambda _: [sample(HEALTH, number) for number in ids], because="test")
    store.append(
        SCHEMAS, [replace(sample(SCHEMAS, n), table_id=key) for n, key in ids.items()], because="test"
    )
    edges = [
        replace(sample(LINEAGE, n), output_id=key, input_id=ids[min(ids)])
        for n, key in ids.items()
        if n != min(ids)
    ]
    store.append(LINEAGE, edges, because="test")
    store.append(RUNS, [replace(sample(RUNS, n), table_id=key) for n, key in ids.items()], because="test")
    begun = [
        replace(sample(ROLLBACKS, 0), rollback_id=f"r{n}", table_id=key, kind=RollbackStep.PLAN, state=INTENT)
        for n, key in ids.items()
    ]
    store.append(ROLLBACKS, begun, because="test")


INTENT = RollbackState.INTENT


def seen(cache: FleetCache) -> World:
    return cache.world((), Budget(), has_metastore=True)


@pytest.mark.heavy
@pytest.mark.parametrize(
    "table", [TABLES, HEALTH, SCHEMAS, LINEAGE, ROLLBACKS, RUNS], ids=lambda one: one.name
)
def test_what_could_not_be_read_is_read_again(denied: Denied, table: SystemTable[Any]) -> None:
    fill(denied, range(10, 15))
    fresh, cache = FleetCache(denied, ManualClock(NOW)), FleetCache(denied, ManualClock(NOW))
    cache.refresh()
    before = seen(cache)
    fill(denied, range(15, 20))
    denied.table = table.name
    for _ in range(2):
        with pytest.raises(UnavailableError):
            cache.refresh()
    assert {one.table_id for one in before.tables} <= {one.table_id for one in seen(cache).tables}
    denied.table = None
    cache.refresh()
    fresh.refresh()
    assert seen(cache) == seen(fresh) != before
    assert all(cache.has_schema(one.table_id) for one in seen(cache).tables if one.past)
