"""An Iceberg table whose head a real Hive metastore keeps: managed by its name, swept without a JVM of ours."""

import itertools
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewarden.catalog.metastore.hive import HiveMetastore
from lakewarden.catalog.metastore.port import METADATA_FILE, Entry
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from support.builders.iceberg_tables import IcebergWriter
from support.processes.commands import Cli, command

pytestmark = pytest.mark.metastore
NUMBERS = itertools.count()


@dataclass(kw_only=True)
class CatalogWriter(IcebergWriter):
    """A table whose metadata files have names of their own; the metastore's entry says which one is head's."""

    metastore: HiveMetastore
    name: str

    @property
    def head(self) -> Path:
        return self.metadata / f"{self.number:05d}-{self.table_id}.metadata.json"

    def publish(self, *, hint: bool = True) -> None:
        super().publish(hint=False)
        database, table = self.name.split(".")
        before = self.metastore.get(database, table)
        parameters = {
            "table_type": "ICEBERG", "EXTERNAL": "TRUE", METADATA_FILE: f"{self.place}/metadata/{self.head.name}",
        }  # fmt: skip
        if before is None:
            self.metastore.create_database(database)
            entry = Entry(
                database=database, table=table, location=self.place, provider=None,
                table_type="EXTERNAL_TABLE", parameters=parameters,
            )  # fmt: skip
            self.metastore.create(entry)
        else:
            after = replace(before, location=self.place, parameters={**before.parameters, **parameters})
            self.metastore.replace(after, expected=before)

    def append(self, name: str) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"x": pa.array(range(10), pa.int32())}), self.root / name)
        self.commit(add=((name, (self.root / name).stat().st_size),))


@pytest.fixture
def table(tmp_path: Path, metastore: EmbeddedMetastore) -> CatalogWriter:
    name = f"ice_{next(NUMBERS)}.events"
    made = CatalogWriter(root=tmp_path / "wh" / name, metastore=HiveMetastore(metastore.uri), name=name)
    made.append("a.parquet")
    return made


def version(metastore_cli: Cli, home: Path, table: CatalogWriter) -> object:
    said = metastore_cli("tables", "validate", table.name, "-o", "json")
    assert said.code == 0, (said.out, said.err)
    swept = command(home, "daemon", "--once", settings={"LAKEWARDEN_HTTP_PORT": "0"})
    assert swept.returncode == 0, swept.stderr
    return metastore_cli("tables", "show", table.name, "-o", "json").json["version"]


def test_it_is_managed_by_its_name_and_follows_the_metastores_pointer(
    metastore_cli: Cli, table: CatalogWriter, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    said = metastore_cli("tables", "register", table.name, "-o", "json")
    assert said.code == 0, said.err
    assert (said.json["name"], said.json["format"], said.json["version"]) == (table.name, "iceberg", 1)
    table.append("b.parquet")
    assert version(metastore_cli, home, table) == 2
    lost = replace(table, number=9, snapshots=[], current=None)
    IcebergWriter.publish(lost, hint=False)
    assert lost.head.exists() and version(metastore_cli, home, table) == 2, (
        "a file that the entry does not name is never head"
    )


def test_doctor_says_whether_it_can_be_committed_to(metastore_cli: Cli, table: CatalogWriter) -> None:
    def asked() -> dict[str, str]:
        found = metastore_cli("doctor", "-o", "json").json
        return {one["check"]: f"{one['verdict']}: {one['message']}" for one in found}

    assert "iceberg commits" not in asked()
    assert metastore_cli("tables", "register", table.name).code == 0
    assert f"no lock on {table.name}: " in asked()["iceberg commits"]
    entry = table.metastore.get(*table.name.split("."))
    assert entry is not None
    without = replace(entry, parameters={**entry.parameters, "engine.hive.lock-enabled": "false"})
    table.metastore.replace(without, expected=entry)
    assert asked()["iceberg commits"].startswith("warn: The metastore refuses changes of columns")


def test_by_its_path_alone_nobody_knows_its_head(metastore_cli: Cli, table: CatalogWriter) -> None:
    said = metastore_cli("tables", "register", str(table.root), "--name", "db.by_path", "-o", "json")
    assert said.json["state"] == "quarantined" and "Only a catalog knows" in said.json["state_reason"]


def test_it_is_found_by_a_pattern_of_names(metastore_cli: Cli, table: CatalogWriter) -> None:
    said = metastore_cli("tables", "register", f"{table.name.partition('.')[0]}.*", "-o", "json")
    assert [(one["name"], one["outcome"]) for one in said.json] == [(table.name, "registered")]


def test_a_view_of_icebergs_is_no_table(metastore_cli: Cli, table: CatalogWriter) -> None:
    """Its entry names a metadata file, and its folder has one."""
    database = table.name.partition(".")[0]
    other = CatalogWriter(
        root=table.root.with_name("shown"), metastore=table.metastore, name=f"{database}.shown"
    )
    other.append("a.parquet")
    entry = table.metastore.get(database, "shown")
    assert entry is not None
    view = replace(
        entry,
        table_type="VIRTUAL_VIEW",
        parameters={**entry.parameters, "table_type": "ICEBERG-VIEW"},
    )
    table.metastore.drop(database, "shown")
    table.metastore.create(view)
    assert metastore_cli("tables", "adopt").code == 0
    found = metastore_cli("tables", "list", "-o", "json").json
    assert [one["name"] for one in found if one["name"].startswith(f"{database}.")] == [table.name]
    said = metastore_cli("tables", "register", f"{database}.shown")
    assert said.code == 5 and f"{database}.shown is a view." in said.err
    table.metastore.drop(database, "shown")


def test_an_entry_that_points_to_nothing_is_a_finding(metastore_cli: Cli, table: CatalogWriter) -> None:
    table.append("b.parquet")
    assert metastore_cli("tables", "register", table.name).code == 0
    table.head.unlink()
    said = metastore_cli("tables", "validate", table.name, "-o", "json")
    (finding,) = [one for one in said.json if one["check"] == "log_contiguous"]
    assert f"is missing, which the metastore's entry of {table.name} names." in finding["message"]


def test_it_is_followed_when_it_is_renamed_and_a_second_name_is_refused(
    metastore_cli: Cli, table: CatalogWriter
) -> None:
    before = metastore_cli("tables", "register", table.name, "-o", "json").json
    old, table.name = table.name, f"{table.name}_renamed"
    table.append("b.parquet")
    said = metastore_cli("tables", "register", table.name)
    assert said.code == 5 and f"is managed as {old}, by {old}, and {table.name} names it, too" in said.err
    table.metastore.drop(*old.split("."))
    gone = metastore_cli("tables", "validate", old, "-o", "json").json
    assert [one["message"] for one in gone] == [
        f"The metastore has no Iceberg table {old} any more. Its folder is that of {table.name} now."
    ]
    after = metastore_cli("tables", "register", table.name, "-o", "json").json
    assert (after["table_id"], after["name"], after["version"]) == (before["table_id"], old, 2)
    assert metastore_cli("tables", "validate", old, "-o", "json").json == []


def test_two_tables_that_changed_their_names_are_followed(
    metastore_cli: Cli, table: CatalogWriter, tmp_path: Path
) -> None:
    other = CatalogWriter(root=tmp_path / "wh" / "other", metastore=table.metastore, name=f"{table.name}_2")
    other.append("a.parquet")
    ids = [
        metastore_cli("tables", "register", one.name, "-o", "json").json["table_id"] for one in (table, other)
    ]
    names = table.name, other.name
    other.name, table.name = names
    for one in (table, other):
        one.append("b.parquet")
    (said,) = metastore_cli("tables", "validate", names[0], "-o", "json").json
    assert said["message"] == (
        f"The metastore's entry of {names[0]} names another table now, which lies at {other.place}. "
        f"Its folder is that of {names[1]} now."
    )
    found = [metastore_cli("tables", "register", one.name, "-o", "json").json for one in (table, other)]
    assert [(one["table_id"], one["name"], one["version"]) for one in found] == [
        (ids[0], names[0], 2), (ids[1], names[1], 2),
    ]  # fmt: skip
    assert [metastore_cli("tables", "validate", one, "-o", "json").json for one in names] == [[], []]
