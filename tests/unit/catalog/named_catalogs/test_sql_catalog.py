"""What a catalog in a database is asked, and what its rows are taken for."""

from pathlib import Path

import pytest

from lakewarden.catalog.errors import CatalogAwayError, ConflictError
from lakewarden.catalog.named_catalogs.declaration import CatalogDeclaration, CatalogKind
from lakewarden.catalog.named_catalogs.sql_catalog import SqlCatalog
from lakewarden.catalog.storage.file_store import canonical
from support.builders.sql_catalogs import SqliteCatalog


def asked(file: Path, uri: str | None = None) -> SqlCatalog:
    return SqlCatalog(CatalogDeclaration(name="prod", kind=CatalogKind.SQL, uri=uri or f"sqlite:///{file}"))


@pytest.mark.parametrize("folder", ["plain", "with space", "100%_odd", "o'clock", "grün"])
def test_every_name_of_a_folder_is_found_whatever_its_letters(tmp_path: Path, folder: str) -> None:
    (tmp_path / "a b").mkdir()
    file = tmp_path / "a b" / "c.db"
    catalog, other = (SqliteCatalog(file=file, name=name) for name in ("prod", "twin"))
    place = tmp_path / folder
    catalog.point("db.t", f"file:{place}/metadata/1.metadata.json")
    other.point("db.second", f"file://{place}/metadata/2.metadata.json")
    catalog.point("db.next", f"file:{place}_too/metadata/1.metadata.json")
    told = asked(catalog.file).naming(canonical(str(place)))
    assert sorted(told) == ["prod.db.t", "twin.db.second"]


def test_every_name_of_a_folder_is_found_whatever_it_calls_the_storage(tmp_path: Path) -> None:
    catalog = SqliteCatalog(file=tmp_path / "c.db")
    catalog.point("db.t", "hdfs://nn/w/t/metadata/1.metadata.json")
    catalog.point("db.other", "hdfs://nn/w/u/metadata/1.metadata.json")
    assert asked(catalog.file).naming("hdfs://nn:8020/w/t") == ("prod.db.t",)


def test_entries_of_other_catalogs_in_the_same_database_are_not_ours(tmp_path: Path) -> None:
    catalog, other = (SqliteCatalog(file=tmp_path / "c.db", name=name) for name in ("prod", "twin"))
    catalog.point("db.t", "file:/t/1.json")
    other.point("db.t", "file:/other/1.json")
    assert asked(catalog.file).metadata_files("db", ["t", "u"]) == {"t": "file:/t/1.json"}
    assert asked(catalog.file).entries().files == {"db.t": "file:/t/1.json"}


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("sqlite:////no/such/place/c.db", "The catalog prod does not answer: unable to open database file."),
        ("nosuch://host/db", "The catalog prod cannot be asked: "),
        ("postgresql+psycopg://127.0.0.1:1/db", "The catalog prod does not answer: "),
    ],
    ids=["no file", "no such system", "no server"],
)
def test_what_does_not_answer_is_said_in_one_sentence(tmp_path: Path, uri: str, message: str) -> None:
    with pytest.raises(CatalogAwayError) as away:
        asked(tmp_path, uri).metadata_files("db", ["t"])
    assert message in str(away.value) and "\n" not in str(away.value)
    assert "Check catalogs.prod.uri" in away.value.hint


def test_a_database_without_icebergs_table_is_no_empty_catalog(tmp_path: Path) -> None:
    file = tmp_path / "c.db"
    file.write_bytes(b"")
    with pytest.raises(CatalogAwayError, match="no such table: iceberg_tables"):
        asked(file).entries()


@pytest.mark.parametrize("schema", [0, 1])
def test_an_entry_is_taken_away_put_back_and_dropped(tmp_path: Path, schema: int) -> None:
    catalog = SqliteCatalog(file=tmp_path / "c.db", schema=schema)
    other = SqliteCatalog(file=tmp_path / "c.db", name="twin", schema=schema)
    for one in (catalog, other):
        one.point("db.t", "file:/t/1.json")
    ours = asked(catalog.file)
    ours.take_away("db", "t", name="__taken", file="file:/t/1.json")
    assert ours.entries().files == {"db.__taken": "file:/t/1.json"}
    with pytest.raises(ConflictError, match="does not name"):
        ours.take_away("db", "t", name="__other", file="file:/t/1.json")
    ours.put_back("db", "__taken", table="t", file="file:/t/1.json")
    assert ours.entries().files == {"db.t": "file:/t/1.json"}
    ours.drop("db", "t")
    ours.drop("db", "t")
    assert ours.entries().files == {}
    assert asked(catalog.file).naming(canonical("/t")) == ("twin.db.t",)


def test_an_entry_that_moved_is_not_taken_away_nor_put_over_another(tmp_path: Path) -> None:
    catalog = SqliteCatalog(file=tmp_path / "c.db")
    catalog.point("db.t", "file:/t/2.json")
    ours = asked(catalog.file)
    with pytest.raises(ConflictError, match="does not name"):
        ours.take_away("db", "t", name="__taken", file="file:/t/1.json")
    assert ours.entries().files == {"db.t": "file:/t/2.json"}
    ours.take_away("db", "t", name="__taken", file="file:/t/2.json")
    catalog.point("db.t", "file:/anew/1.json")
    with pytest.raises(ConflictError, match="has another table"):
        ours.put_back("db", "__taken", table="t", file="file:/t/2.json")
    assert ours.entries().files == {"db.__taken": "file:/t/2.json", "db.t": "file:/anew/1.json"}
