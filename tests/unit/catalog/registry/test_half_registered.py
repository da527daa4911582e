"""Once a row is written its table is managed, whatever becomes of its health; and newer health stays."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.model.rows import Finding, HealthRow, Source, TableRow
from lakewarden.catalog.policy.effective import EffectivePolicy
from lakewarden.catalog.registry.batch import register_batch
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.registry.registration import WantedTable
from lakewarden.catalog.registry.service import Inspect, Registered, Registry
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import HEALTH, TABLES, Committed, R, Rows, SystemTable
from support.builders.registries import ANA, NOW, folder, made_registry
from support.builders.tables import FakeReader
from support.fakes.system_store import FakeSystemStore


class Failing(FakeSystemStore):
    """A store that does not take health while `fails` says so of any of its rows."""

    def __init__(self) -> None:
        super().__init__()
        self.tried = 0
        self.fails: Callable[[HealthRow], None] = lambda _: None

    def edit(
        self,
        table: SystemTable[R],
        change: Callable[[Rows[R]], Iterable[R]],
        **named: Any,
    ) -> Committed[R]:
        def tried(rows: Rows[R]) -> Iterator[R]:
            for row in change(rows):
                if isinstance(row, HealthRow):
                    self.fails(row)
                yield row

        self.tried += table is HEALTH
        return super().edit(table, tried, **named)


@pytest.fixture
def reader() -> FakeReader:
    return FakeReader()


@pytest.fixture
def store() -> Failing:
    made = Failing()
    made.create(system_rows(made, now=NOW, actor="root"))
    return made


@pytest.fixture
def registry(reader: FakeReader, store: Failing) -> Registry:
    return replace(made_registry(reader), store=store)


def away(row: HealthRow) -> None:
    raise UnavailableError("The storage of lakewarden.health does not answer.")


def managed(registry: Registry) -> set[str]:
    return {row.name for row in registry.store.rows(TABLES).all() if row.source is not Source.SELF}


def test_a_batch_whose_health_is_not_taken_is_managed_and_says_so(
    registry: Registry, store: Failing, reader: FakeReader, tmp_path: Path
) -> None:
    asked = [WantedTable(where=folder(reader, tmp_path / f"t{number}")) for number in range(8)]
    store.fails = away
    came = register_batch(registry, asked, actor=ANA)
    assert managed(registry) == {f"default.t{number}" for number in range(8)}
    for one in came:
        assert isinstance(one, Registered) and one.created and one.health is None
        assert str(one.unrecorded) == "The storage of lakewarden.health does not answer."
    assert store.tried == 1, "a storage that is away is not asked for each table"
    store.fails = lambda _: None
    again = register_batch(registry, asked, actor=ANA)
    for one in again:
        assert isinstance(one, Registered) and not one.created and one.unrecorded is None
        assert store.rows(HEALTH).get(one.row.table_id) == one.health


def test_one_table_whose_health_cannot_be_written_leaves_the_others_theirs(
    registry: Registry, store: Failing, reader: FakeReader, tmp_path: Path
) -> None:
    asked = [WantedTable(where=folder(reader, tmp_path / f"t{number}")) for number in range(8)]

    def odd(row: HealthRow) -> None:
        if row.name == "default.t5":
            raise ZeroDivisionError("division by zero")

    store.fails = odd
    came = register_batch(registry, asked, actor=ANA)
    assert managed(registry) == {f"default.t{number}" for number in range(8)}
    told = {one.row.name: one for one in came if isinstance(one, Registered)}
    assert [name for name, one in told.items() if one.unrecorded is not None] == ["default.t5"]
    assert str(told["default.t5"].unrecorded) == "Nobody foresaw this: ZeroDivisionError: division by zero."
    assert {row.name for row in store.rows(HEALTH).all()} >= set(told) - {"default.t5"}


def test_a_table_without_health_that_cannot_be_judged_stays_managed_and_is_said(
    registry: Registry, store: Failing, reader: FakeReader, tmp_path: Path
) -> None:
    place = folder(reader, tmp_path / "t")
    store.fails = away
    register_batch(registry, [WantedTable(where=place)], actor=ANA)

    def broken(row: TableRow, policy: EffectivePolicy, seen: Observation | LogProblem) -> tuple[Finding, ...]:
        raise UnavailableError("The metastore does not answer.")

    [came] = register_batch(replace(registry, inspect=broken), [WantedTable(where=place)], actor=ANA)
    assert isinstance(came, Registered) and not came.created
    assert str(came.unrecorded) == "The metastore does not answer."


def test_one_table_alone_is_managed_without_its_health_too(
    registry: Registry, store: Failing, reader: FakeReader, tmp_path: Path
) -> None:
    place = folder(reader, tmp_path / "t")
    store.fails = away
    came = register(registry, place, actor=ANA)
    assert came.created and came.health is None and isinstance(came.unrecorded, UnavailableError)
    assert managed(registry) == {"default.t"}
    store.fails = lambda _: None
    again = register(registry, place, actor=ANA)
    assert not again.created and again.unrecorded is None
    assert store.rows(HEALTH).get(again.row.table_id) == again.health


def sweeping(store: Failing, health: HealthRow) -> Inspect:
    """A validation beside which a sweep writes health."""

    def meanwhile(
        row: TableRow, policy: EffectivePolicy, seen: Observation | LogProblem
    ) -> tuple[Finding, ...]:
        store.edit(HEALTH, lambda _: [health], because="a sweep")
        return ()

    return meanwhile


def test_health_that_was_written_since_the_table_was_read_stays(
    registry: Registry, store: Failing, reader: FakeReader, tmp_path: Path
) -> None:
    place = folder(reader, tmp_path / "t")
    register(registry, place, actor=ANA)
    [health] = store.rows(HEALTH).find(name="default.t")
    newer = replace(health, version=(health.version or 0) + 7)

    came = register(replace(registry, inspect=sweeping(store, newer)), place, actor=ANA)
    assert came.health == newer
    assert store.rows(HEALTH).find(name="default.t") == (newer,)


def test_health_of_a_batch_does_not_replace_what_a_sweep_wrote_first(
    registry: Registry, store: Failing, reader: FakeReader, tmp_path: Path
) -> None:
    asked = [WantedTable(where=folder(reader, tmp_path / f"t{number}")) for number in range(3)]
    store.fails = away
    first = register_batch(registry, asked, actor=ANA)
    store.fails = lambda _: None
    ids = {one.row.name: one.row.table_id for one in first if isinstance(one, Registered)}
    swept = HealthRow(table_id=ids["default.t1"], name="default.t1", version=99, observed_at=NOW)

    came = register_batch(replace(registry, inspect=sweeping(store, swept)), asked, actor=ANA)
    assert store.rows(HEALTH).get(ids["default.t1"]) == swept
    assert [one.health == swept for one in came if isinstance(one, Registered)] == [False, True, False]
    assert all(store.rows(HEALTH).get(table_id) is not None for table_id in ids.values())
