"""Iceberg tables of declared catalogs (a real PostgreSQL; a REST server), written by real Spark: read, looked after,
undone, on record."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lakewarden
from lakewarden.catalog.errors import ConflictError, RefusedError, UnavailableError
from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.formats.port import CommitKind
from lakewarden.catalog.named_catalogs.declaration import CatalogDeclaration, CatalogKind
from lakewarden.catalog.storage.credentials import StorageOptions
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.jobs.engines.iceberg.java_tables import JavaTable, opened
from lakewarden.jobs.runs.catalog_conf import catalog_conf
from support.builders.spark_iceberg import SparkIceberg
from support.processes.commands import Cli
from support.servers.iceberg_rest import CREDENTIAL, running_rest_catalog
from support.servers.postgres import PostgresServer
from support.servers.spark import set_to

pytestmark = [pytest.mark.spark, pytest.mark.metastore, pytest.mark.postgres]


@pytest.fixture(scope="module")
def sales(
    spark: SparkSession, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CatalogDeclaration]:
    made = CatalogDeclaration(
        name="sales",
        kind=CatalogKind.SQL,
        uri=postgres.fresh_url(),
        warehouse=f"file://{tmp_path_factory.mktemp('sales')}",
    )
    with set_to(spark, dict(catalog_conf([made]))):
        yield made


@pytest.fixture(scope="module")
def served(
    spark: SparkSession, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CatalogDeclaration]:
    with running_rest_catalog(tmp_path_factory.mktemp("served"), postgres.fresh_url()) as uri:
        options = StorageOptions.of({"credential": CREDENTIAL})
        made = CatalogDeclaration(name="served", kind=CatalogKind.REST, uri=uri, options=options)
        with set_to(spark, dict(catalog_conf([made]))):
            yield made


@pytest.fixture(params=["sales", "served"])
def table(spark: SparkSession, request: pytest.FixtureRequest) -> SparkIceberg:
    """Four snapshots."""
    return four_snapshots(spark, request.getfixturevalue(request.param))


def four_snapshots(spark: SparkSession, declared: CatalogDeclaration) -> SparkIceberg:
    made = SparkIceberg(spark, "", declared.name, declared=declared)
    for number in range(3):
        made.append(number, 10 + number)
    made.sql(f"DELETE FROM {made} WHERE id = 1")
    return made


@pytest.mark.few(1)
def test_it_is_read_vacuumed_and_compacted_on_exactly_the_head_that_was_seen(table: SparkIceberg) -> None:
    assert (table.seen.version, table.seen.rows) == (4, 5)
    (before,) = table.reader.newest(table.location, count=1)
    assert (before.branches, before.kind) == (("main",), CommitKind.DELETE)
    done = table.compact()
    assert (table.seen.files, table.rows()) == (1, [0, 2, 10, 11, 12]), done.message
    foretold = table.vacuum(dry_run=True)
    report = table.vacuum()
    assert foretold.files == report.files and report.files, report.message
    assert (table.unnamed(), table.missing()) == (set(), set())
    assert table.rows() == [0, 2, 10, 11, 12]


@pytest.mark.few(1)
@pytest.mark.parametrize("moment", ["looking", "committing", "answer lost"])
def test_a_tag_that_comes_in_the_moment_of_a_vacuum_loses_no_file(
    spark: SparkSession, served: CatalogDeclaration, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A REST catalog does not compare: it takes the snapshots out, and the tag with its own."""
    table = four_snapshots(spark, served)
    expiring, unmoved, files = IcebergReader.expiring, JavaTable.require_unmoved, table.files()

    def tag() -> None:
        java = opened(spark, table.heads, table.location).table
        java.manageSnapshots().createTag("kept", _first(table)).commit()

    def late(java: JavaTable) -> None:
        unmoved(java)
        if moment in ("committing", "answer lost"):
            tag()

    def unknown(java: JavaTable) -> bool:
        raise UnavailableError("The answer is lost.")

    def slow(reader: IcebergReader, location: str, **how: object) -> object:
        found = expiring(reader, location, **how)  # type: ignore[arg-type]  # as they came
        if moment == "looking":
            tag()
        return found

    with monkeypatch.context() as patch:
        patch.setattr(IcebergReader, "expiring", slow)
        patch.setattr(JavaTable, "require_unmoved", late)
        if moment == "answer lost":
            patch.setattr(JavaTable, "is_alone", property(unknown))
        known = "was written to since|No file was deleted|answer is lost"
        with pytest.raises((ConflictError, UnavailableError), match=known):
            table.vacuum()
    assert files <= table.files()
    assert bool(table.sql(f"SELECT * FROM {table}.refs WHERE name = 'kept'")) is (moment == "looking")
    table.vacuum()
    lost = {one for one in files - table.files() if one.endswith(".parquet")}
    assert not lost or moment == "looking"  # then the next one knows the tag, and takes the others


def _first(table: SparkIceberg) -> int:
    return int(str(table.sql(f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at")[0][0]))


@pytest.mark.few(1)
@pytest.mark.parametrize("catalog", ["sales", "iceberg"])
def test_a_table_with_a_second_name_is_not_touched(
    spark: SparkSession, sales: CatalogDeclaration, metastore: EmbeddedMetastore, catalog: str
) -> None:
    table = SparkIceberg(spark, metastore.uri, catalog, declared=sales if catalog == sales.name else None)
    for number in range(3):
        table.append(number)
    table.sql(f"DELETE FROM {table} WHERE id = 0")
    told = table.heads(table.location)
    assert told is not None and told.file is not None and told.others() == ()
    second = f"{table.database}.second"
    table.sql(f"CALL {catalog}.system.register_table(table => '{second}', metadata_file => '{told.file}')")
    before = table.files()
    # What a database says is part of each look; a metastore is asked by whoever acts.
    with pytest.raises(
        (ConflictError, RefusedError), match="now uses a second name|has another name, .*second"
    ):
        table.vacuum()
    with pytest.raises(RefusedError, match="has another name, .*second"):
        table.engine.compact(
            table.location, requires=table.seen.at, partitions=None, target_bytes=2**20, run_id="0" * 32
        )
    assert table.files() == before
    table.sql(f"DROP TABLE {catalog}.{second}")
    assert table.vacuum().files, "one of two names is gone"
    assert table.rows() == [1, 2]


@pytest.mark.few(1)
def test_it_goes_back_and_whoever_commits_first_wins(table: SparkIceberg) -> None:
    head = table.seen.at
    table.append(99)
    with pytest.raises(ConflictError):
        table.engine.restore(table.location, requires=head, to=2, apps=(), run_id="0" * 32)
    made = table.engine.restore(table.location, requires=table.seen.at, to=2, apps=(), run_id="0" * 32)
    assert (made, table.rows()) == (6, [0, 1, 10, 11])
    (last,) = table.reader.newest(table.location, count=1)
    assert (last.kind, last.restored, last.run_id) == (CommitKind.RESTORE, 2, "0" * 32)


@pytest.mark.long
def test_what_a_governed_statement_reads_of_it_is_on_record(
    spark: SparkSession,
    sales: CatalogDeclaration,
    metastore: EmbeddedMetastore,
    metastore_cli: Cli,
    tmp_path: Path,
) -> None:
    table = four_snapshots(spark, sales)
    home, name = tmp_path / "home", f"{table.database}.{table.name}"
    section = f'[catalogs.sales]\ntype = "sql"\nuri = "{sales.uri}"\n'
    (home / "lakewarden.toml").write_text(section)
    said = metastore_cli("tables", "register", f"sales.{name}", "-o", "json")
    assert (said.code, said.json["name"]) == (0, name), said.err
    derived = f"spark_catalog.{table.database}.sums"
    table.spark.sql(f"CREATE DATABASE spark_catalog.{table.database}")
    with lakewarden.attach(table.spark, home=home, settings={"metastore.uri": metastore.uri}) as lw:
        lw.sql(f"CREATE TABLE {derived} USING delta AS SELECT id FROM {table}")
    assert metastore_cli("tables", "register", f"{table.database}.sums").code == 0
    assert metastore_cli("daemon", "--once", "--set", "http.port=0").code == 0
    shown = metastore_cli("lineage", "show", name, "--downstream", "--versions", "-o", "json").json
    edges = [(one["input"], one["input_version"], one["output"]) for one in shown["edges"]]
    assert edges == [(name, 4, f"{table.database}.sums")]
    table.spark.sql(f"DROP DATABASE spark_catalog.{table.database} CASCADE")
