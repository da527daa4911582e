"""What piles up in Iceberg tables is counted, shown, and cleaned up: deletes of every kind, manifests, metadata."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakewarden.catalog.model.table_deletes import DeleteKind
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from support.builders.equality_deletes import delete_by_equality
from support.builders.spark_iceberg import SparkIceberg, iceberg_catalogs
from support.processes.commands import caller
from support.servers.metastores import without_system_tables

pytestmark = [pytest.mark.spark, pytest.mark.metastore]
Make = Callable[..., SparkIceberg]
MERGE_ON_READ = "'format-version'='{}', 'write.delete.mode'='merge-on-read'"


@pytest.fixture(scope="module")
def make(
    spark: SparkSession, metastore: EmbeddedMetastore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Make]:
    with iceberg_catalogs(spark, metastore.uri, tmp_path_factory.mktemp("iceberg")):
        yield lambda catalog, **how: SparkIceberg(spark, metastore.uri, catalog, **how)


def merge_on_read(make: Make, version: int = 2, catalog: str = "by_name", **how: str) -> SparkIceberg:
    """Forty rows, each fourth of them deleted beside its file."""
    table = make(catalog, properties=MERGE_ON_READ.format(version), **how)
    table.append(*range(20))
    table.append(*range(20, 40))
    table.sql(f"DELETE FROM {table} WHERE id % 4 = 1")
    return table


@pytest.mark.parametrize(("version", "kind"), [(2, DeleteKind.POSITION), (3, DeleteKind.VECTOR)])
def test_deletes_are_counted_by_kind(make: Make, version: int, kind: DeleteKind) -> None:
    table = merge_on_read(make, version)
    seen = table.seen
    assert [(one.kind, one.rows) for one in seen.deletes] == [(kind, 10)]
    assert (seen.stored_rows, seen.backlog.snapshots, seen.backlog.manifests) == (40, 3, 3)
    ((size,),) = table.sql(
        f"SELECT sum(size) FROM (SELECT DISTINCT file_path, file_size_in_bytes AS size FROM {table}.delete_files)"
    )
    assert seen.deletes[0].bytes == size


def test_what_has_piled_up_is_shown_to_people_and_programs(
    make: Make,
    metastore: EmbeddedMetastore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    table = merge_on_read(make, name="events")
    delete_by_equality(table, 2, 3, 1000)
    monkeypatch.setenv("LAKEWARDEN_METASTORE_URI", without_system_tables(metastore.uri))
    cli, name = caller(tmp_path / "home", monkeypatch, capfdbinary), f"{table.database}.events"
    assert cli("init").code == 0
    assert cli("tables", "register", name, "--owner", "ana").code == 0
    deletes = cli("tables", "show", name, "-o", "json").json["deletes"]
    assert {one["kind"]: one["rows"] for one in deletes} == {"position": 10, "equality": 3}
    shown = cli("tables", "show", name).out
    assert "equality: 3 in 1 files" in shown and "position: 10 in " in shown
    assert "snapshots=4" in shown
    asked = "SELECT backlog.snapshots AS n, size(deletes) AS kinds FROM lakewarden.health WHERE name = '{}'"
    assert cli("sql", asked.format(name), "-o", "json").json == [{"n": 4, "kinds": 2}]
    assert cli("tables", "list", "-o", "json").json[-1]["stored_rows"] == 40
