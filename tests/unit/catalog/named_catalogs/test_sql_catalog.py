"""What a catalog in a database is asked, and what its rows are taken for."""

from pathlib import Path

import pytest

from lakewarden.catalog.errors import CatalogAwayError
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


def test_entries_of_other_catalogs_in_the_same_database_are_not_ours(tmp_path: Path) -> None:
    catalog, other = (SqliteCatalog(file=tmp_path / "c.db", name=name) for name in ("prod", "twin"))
    catalog.point("db.t", "file:/t/1.json")
    other.point("db.t", "file:/other/1.json")
    assert asked(catalog.file).metadata_files("db", ["t", "u"]) == {"t": "file:/t/1.json"}
    assert asked(catalog.file).entries() == {"db.t": "file:/t/1.json"}


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
