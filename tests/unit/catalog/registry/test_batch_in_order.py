"""In a batch each table is decided on what those before it came to, and on what others ask for."""

from dataclasses import replace
from pathlib import Path

import pytest

from lakewarden.catalog.errors import LakewardenError, UnavailableError
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.model.rows import Finding, Source, TableRow
from lakewarden.catalog.policy.effective import EffectivePolicy
from lakewarden.catalog.registry.batch import Came, foresee_batch, register_batch
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.registry.registration import WantedTable
from lakewarden.catalog.registry.service import Registry
from lakewarden.catalog.system.port import TABLES
from support.builders.registries import ANA, folder, made_registry
from support.builders.tables import FakeReader


@pytest.fixture
def reader() -> FakeReader:
    return FakeReader()


@pytest.fixture
def registry(reader: FakeReader) -> Registry:
    return made_registry(reader)


def said(came: list[Came]) -> list[str]:
    return [str(one) if isinstance(one, LakewardenError) else one.row.name for one in came]


def places(registry: Registry) -> dict[str, str | None]:
    return {
        row.name: row.location for row in registry.store.rows(TABLES).all() if row.source is not Source.SELF
    }


def test_the_old_place_of_a_table_that_moves_is_free_for_the_next_one(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    old = folder(reader, tmp_path / "old", uuid="u")
    register(registry, old, actor=ANA, name="db.moved")
    reader.tables[folder(reader, tmp_path / "new")] = reader.tables.pop(old)
    new = next(iter(reader.tables))
    inside = folder(reader, tmp_path / "old" / "deeper")
    asked = [WantedTable(where=new, moved=True), WantedTable(where=inside, name="db.inside")]
    assert said(foresee_batch(registry, asked, actor=ANA)) == ["db.moved", "db.inside"]
    assert said(register_batch(registry, asked, actor=ANA)) == ["db.moved", "db.inside"]
    assert places(registry) == {"db.moved": new, "db.inside": inside}


def test_a_name_that_a_later_one_asks_for_is_given_to_no_other(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    asked = [
        WantedTable(where=folder(reader, tmp_path / "a" / "events")),
        WantedTable(where=folder(reader, tmp_path / "b" / "events"), name="Default.events"),
        WantedTable(where=folder(reader, tmp_path / "c" / "sales")),
    ]
    expected = ["default.events_2", "default.events", "default.sales_2"]
    later = {"default.sales"}
    assert said(foresee_batch(registry, asked, actor=ANA, asked_for=later)) == expected
    assert said(register_batch(registry, asked, actor=ANA, asked_for=later)) == expected


def test_what_could_not_be_judged_is_in_nobodys_way(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    broken = folder(reader, tmp_path / "broken" / "events", uuid="u")
    twin = folder(reader, tmp_path / "twin" / "events", uuid="u")
    inner = folder(reader, tmp_path / "broken" / "events" / "inner")
    judged = list[str]()

    def inspect(
        row: TableRow, policy: EffectivePolicy, seen: Observation | LogProblem
    ) -> tuple[Finding, ...]:
        judged.append(f"{row.name} {row.location}")
        if row.location == broken:
            raise UnavailableError("The storage does not answer.")
        return ()

    asked = [WantedTable(where=place) for place in (broken, twin, inner)]
    expected = ["The storage does not answer.", "default.events", "default.inner"]
    there = replace(registry, inspect=inspect)
    assert said(foresee_batch(there, asked, actor=ANA)) == expected
    judged.clear()
    assert said(register_batch(there, asked, actor=ANA)) == expected
    assert places(registry) == {"default.events": twin, "default.inner": inner}
    assert judged == [f"default.events {broken}", f"default.events {twin}", f"default.inner {inner}"]
    rows = sorted(row.row for row in registry.store.rows(TABLES).all())
    assert rows == list(range(len(rows)))
