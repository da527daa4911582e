"""A conversion by name that was interrupted: what the metastore's entries say decides whether it goes on or is taken
back, whenever the server completes what it was asked for."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.metastore.port import METADATA_FILE, Entry, head_file
from lakewarden.catalog.model.lineage_record import RUN_ID
from lakewarden.catalog.storage.file_store import StorageOptions, canonical, open_store
from lakewarden.jobs.engines.iceberg.conversion import NamedConversion
from support.fakes.metastore import FakeMetastore

OWN = "__lakewarden_converting_t_0123456789ab"
NOTE = "lakewarden.converted_by"
FIRST = "metadata/00000-01234567-89ab-cdef-0123-456789abcdef.metadata.json"


class LateMetastore(FakeMetastore):
    """Completes the removal of `db.t`, whose answer was lost, as soon as its entry has been read once more."""

    is_removing = False

    def metadata_files(self, database: str, tables: Sequence[str]) -> Mapping[str, str]:
        if self.is_removing:
            self.is_removing = False
            self.drop("db", "t")
        return super().metadata_files(database, tables)


@pytest.fixture
def metastore() -> LateMetastore:
    made = LateMetastore()
    made.create_database("db")
    return made


@pytest.fixture
def conversion(metastore: LateMetastore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NamedConversion:
    """Of a table of which a try has registered its Iceberg table beside."""

    def rename(self: NamedConversion, name: str) -> None:
        entry = metastore.get("db", name)
        assert entry is not None
        metastore.create(replace(entry, table="t"))
        metastore.drop("db", name)

    monkeypatch.setattr(NamedConversion, "_rename", rename)
    (tmp_path / "metadata").mkdir()
    (tmp_path / FIRST).write_text(json.dumps({"snapshots": [{"summary": {RUN_ID: "0" * 32}}]}))
    place = canonical(str(tmp_path))
    parquet = Entry(database="db", table="t", location=place, provider="parquet", table_type="MANAGED_TABLE")
    metastore.create(parquet)
    told = {"table_type": "ICEBERG", METADATA_FILE: f"{place}/{FIRST}"}
    metastore.create(replace(parquet, table=OWN, provider=None, parameters=told))
    store = open_store(place, StorageOptions())
    return NamedConversion(spark=None, store=store, metastore=metastore, name="db.t")  # type: ignore[arg-type]  # not asked


def entry_of(metastore: FakeMetastore) -> Entry:
    found = metastore.get("db", "t")
    assert found is not None
    return found


def note(metastore: FakeMetastore, name: str = OWN) -> None:
    entry = entry_of(metastore)
    metastore.replace(replace(entry, parameters={**entry.parameters, NOTE: name}), expected=entry)


@pytest.mark.parametrize("is_removing", [True, False])
def test_a_removal_that_was_decided_on_is_gone_on_with_whenever_it_comes(
    metastore: LateMetastore, conversion: NamedConversion, is_removing: bool, tmp_path: Path
) -> None:
    note(metastore)
    metastore.is_removing = is_removing
    conversion.resume()
    assert head_file(entry_of(metastore).parameters) is not None and metastore.tables("db") == ("t",)
    assert (tmp_path / FIRST).exists()


def test_who_had_not_decided_yet_cannot_any_more_once_it_is_taken_back(
    metastore: LateMetastore, conversion: NamedConversion, tmp_path: Path
) -> None:
    before = entry_of(metastore)
    conversion.resume()
    assert metastore.tables("db") == ("t",) and not (tmp_path / FIRST).exists()
    with pytest.raises(ConflictError):
        metastore.replace(replace(before, parameters={**before.parameters, NOTE: OWN}), expected=before)


def test_a_metadata_file_that_any_entry_names_stays(
    metastore: LateMetastore, conversion: NamedConversion, tmp_path: Path
) -> None:
    metastore.create_database("other")
    own = metastore.get("db", OWN)
    assert own is not None
    metastore.create(replace(own, database="other", table="copy"))
    conversion.resume()
    assert metastore.get("db", OWN) is None and (tmp_path / FIRST).exists()


def test_who_wakes_late_removes_no_entry_of_somebody_else(
    metastore: LateMetastore, conversion: NamedConversion
) -> None:
    note(metastore)
    conversion.resume()
    made = entry_of(metastore)
    with pytest.raises(ConflictError, match="another one by now"):
        conversion._exchange(OWN)
    assert entry_of(metastore) == made


def test_what_takes_its_place_and_is_not_there_changes_nothing(
    metastore: LateMetastore, conversion: NamedConversion, tmp_path: Path
) -> None:
    note(metastore, "__lakewarden_converting_t_ba9876543210")
    with pytest.raises(ConflictError, match="is being replaced by"):
        conversion.resume()
    assert entry_of(metastore).provider == "parquet" and (tmp_path / FIRST).exists()
