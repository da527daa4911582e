"""What real Spark wrote is purged whole, and a commit of Iceberg's own library that comes late is not made."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewarden.catalog import failpoints
from lakewarden.catalog.errors import ConflictError, LakewardenError
from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.metastore.hive import HiveMetastore
from lakewarden.catalog.metastore.table_heads import TableHeads
from lakewarden.catalog.metastore.taken_entries import TakenEntries
from lakewarden.catalog.model.identity import CatalogAddress
from lakewarden.catalog.named_catalogs.catalogs import DeclaredCatalogs
from lakewarden.catalog.named_catalogs.declaration import CatalogDeclaration, CatalogKind
from lakewarden.catalog.storage.file_store import StorageOptions, open_store
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.jobs.actions.purge import Purge
from lakewarden.jobs.deletion.table_folder import look_into
from lakewarden.jobs.engines.iceberg.java_tables import opened
from lakewarden.jobs.executors.purge import purge
from lakewarden.jobs.runs.catalog_conf import catalog_conf
from lakewarden.jobs.runs.port import JobContext
from support.builders.going_tables import listed
from support.builders.spark_iceberg import Make, SparkIceberg
from support.fakes.system_store import FakeRows
from support.servers.postgres import PostgresServer
from support.servers.spark import set_to

pytestmark = [pytest.mark.spark, pytest.mark.metastore, pytest.mark.postgres]
NUMBERS = itertools.count()
EVERYTHING = "'format-version'='{}', 'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read'"


@pytest.fixture(scope="module")
def declared(
    spark: SparkSession, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CatalogDeclaration]:
    made = CatalogDeclaration(
        name="goods",
        kind=CatalogKind.SQL,
        uri=postgres.fresh_url(),
        warehouse=f"file://{tmp_path_factory.mktemp('goods')}",
    )
    with set_to(spark, dict(catalog_conf([made]))):
        yield made


@pytest.fixture(
    params=[
        "by_name",
        pytest.param("by_path", marks=pytest.mark.long),
        pytest.param("goods", marks=pytest.mark.long),
    ]
)
def table(make: Make, declared: CatalogDeclaration, request: pytest.FixtureRequest) -> SparkIceberg:
    """Appends, deletes by file of deletes or by vector, a branch and a tag, statistics."""
    kept_in = {"declared": declared} if request.param == "goods" else {}
    version = 3 if request.param == "goods" else 2
    made = make(request.param, properties=EVERYTHING.format(version), partitioned_by="part", **kept_in)
    for number in range(3):
        made.append(number, 10 + number, 20 + number, part="ab"[number % 2])
    made.sql(f"DELETE FROM {made} WHERE id = 11")
    java = opened(made.spark, made.heads, made.location)
    head = java.table.currentSnapshot().snapshotId()
    java.table.manageSnapshots().createTag("q1", head).createBranch("theirs", head).commit()
    made.sql(f"INSERT INTO {made}.branch_theirs VALUES (77, 'c', TIMESTAMP '2026-03-01 12:00:00')")
    made.describe()
    return made


def context(table: SparkIceberg, metastore: EmbeddedMetastore) -> JobContext:
    """A worker's that may take the table's entry away."""
    client = None if table.declared is not None else HiveMetastore(metastore.uri)
    catalogs = DeclaredCatalogs(() if table.declared is None else [table.declared])
    heads = TableHeads(lambda: client, lambda: FakeRows(TABLES, 0, {}), moment=0.0, declared=catalogs.catalog)
    if table.catalog != "by_path":
        kept_in = None if table.declared is None else table.catalog
        address = CatalogAddress(catalog=kept_in, entry=f"{table.database}.{table.name}")
        heads.know(table.location, address)
    ctx = table.context()
    return replace(
        ctx,
        reader=IcebergReader(lambda _: StorageOptions(), heads),
        entries=TakenEntries(heads=heads, metastore=lambda: client, catalogs=catalogs),
        target=replace(ctx.target, table_id=f"id-{next(NUMBERS)}"),
    )


def agreed(ctx: JobContext, table: SparkIceberg) -> Purge:
    assert ctx.entries is not None
    return Purge(
        requires=table.seen.at, head_file=ctx.entries.file(table.location), files=1, bytes=1, others=None
    )


def late(commit: Callable[[], object], monkeypatch: pytest.MonkeyPatch, point: str) -> list[str]:
    """Commit when a worker comes to a point; what the commit said."""
    said: list[str] = []

    def listener(reached: str) -> None:
        if reached == point and not said:
            try:
                commit()
                said.append("committed")
            except LakewardenError as error:
                said.append(type(error).__name__)

    monkeypatch.setattr(failpoints, "listener", listener)
    return said


def test_it_goes_whole_and_its_name_is_free(
    table: SparkIceberg, metastore: EmbeddedMetastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx, before = context(table, metastore), listed(table.folder)
    look = look_into(open_store(table.location), "iceberg", ctx.reader)
    assert not look.unknown, "every file that Spark wrote is the table's by its metadata"
    assert {one.path for one in (*look.data, *look.log)} == set(before)
    assert any(path.endswith(".crc") for path in before) and any("stats" in path for path in before)
    opened_before = opened(table.spark, table.heads, table.location)
    said = late(
        lambda: opened_before.commit(lambda one: one.setProperties({"a": "b"}), "commit late"),
        monkeypatch,
        "purge.entry_taken",
    )
    report = purge(ctx, agreed(ctx, table))
    assert (report.files, report.bytes) == (len(before), sum(map(len, before.values())))
    assert not before.keys() & listed(table.folder).keys(), "what the late commit left is none of its files"
    if table.catalog != "by_path":
        assert said and said != ["committed"], "the entry had been taken away"
        assert ctx.entries is not None
        assert ctx.entries.naming(table.location, ctx.target.table_id, kept=False) == ()
        assert not ctx.entries.is_taken(table.location, ctx.target.table_id)
    with pytest.raises(PySparkException, match="TABLE_OR_VIEW_NOT_FOUND"):
        table.sql(f"SELECT * FROM {table}")
    assert table.sql(f"SHOW TABLES IN {table.catalog}.{table.database}") == []
    table.sql(
        f"CREATE TABLE {table} (id BIGINT) USING iceberg TBLPROPERTIES ('engine.hive.lock-enabled'='false')"
    )
    assert table.rows() == []


@pytest.mark.long
def test_a_commit_of_icebergs_own_that_comes_first_keeps_it(
    table: SparkIceberg, metastore: EmbeddedMetastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ctx, before = context(table, metastore), listed(table.folder)
    action = agreed(ctx, table)
    said = late(lambda: table.append(500), monkeypatch, "purge.marked")
    with pytest.raises(ConflictError):
        purge(ctx, action)
    assert said == ["committed"] and 500 in table.rows() and len(table.rows()) == 9
    assert before.keys() - {"metadata/version-hint.text"} <= listed(table.folder).keys()
