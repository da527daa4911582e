"""A folder that has the files of two formats, as converters of metadata leave it: which of the tables is meant."""

from dataclasses import replace
from pathlib import Path

import pytest

from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.metastore.port import Entry
from lakewarden.catalog.metastore.table_heads import TableHeads, address_in
from lakewarden.catalog.model.rows import TableFormat
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.registry.service import Registry
from lakewarden.catalog.system.port import TABLES
from support.builders.registries import ANA, folder, made_registry
from support.builders.tables import FakeReader
from support.fakes.metastore import FakeMetastore


class FakeIcebergReader(FakeReader):
    """The same of tables whose heads entries keep."""

    @property
    def format(self) -> TableFormat:
        return "iceberg"


@pytest.fixture
def readers() -> tuple[FakeReader, FakeIcebergReader]:
    return FakeReader(), FakeIcebergReader()


@pytest.fixture
def registry(readers: tuple[FakeReader, FakeIcebergReader], tmp_path: Path) -> Registry:
    """One whose metastore has `db.t`, an Iceberg table, in a folder with a log of another format."""
    place, metastore = folder(readers[0], tmp_path / "t"), FakeMetastore()
    seen = readers[0].tables[place]
    assert isinstance(seen, Observation)
    readers[1].tables[place] = replace(seen, format="iceberg", format_id="of the entry")
    metastore.create_database("db")
    named = {"table_type": "ICEBERG", "metadata_location": f"{place}/metadata/1.metadata.json"}
    metastore.create(
        Entry(
            database="db",
            table="t",
            location=place,
            provider=None,
            table_type="EXTERNAL_TABLE",
            parameters=named,
        )
    )
    made = made_registry(readers[0])
    heads = TableHeads(lambda: metastore, lambda: made.store.rows(TABLES))
    return replace(made, readers=readers, metastore=metastore, heads=heads)


def test_by_the_entry_it_is_the_table_whose_head_the_entry_keeps(registry: Registry) -> None:
    row = register(registry, "db.t", actor=ANA).row
    assert (row.format, row.format_ids) == ("iceberg", ("of the entry",))
    assert str(address_in(row.properties)) == "db.t"
    assert registry.reader_at(row.location or "").format == "iceberg", "whoever asks for it later"


def test_what_the_entry_does_not_name_is_not_taken_for_it(
    registry: Registry, readers: tuple[FakeReader, FakeIcebergReader]
) -> None:
    readers[1].tables.clear()
    with pytest.raises(RefusedError, match="db.t is not a table of a format that lakewarden knows"):
        register(registry, "db.t", actor=ANA)


def test_by_its_folder_it_is_what_its_log_says(registry: Registry, tmp_path: Path) -> None:
    assert register(registry, str(tmp_path / "t"), actor=ANA).row.format == "delta"
