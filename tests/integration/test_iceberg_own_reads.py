"""A write that reads its own Iceberg table reads it as of the write, by whichever name and whenever it was analysed:
what others have committed is in what it reads, or the write is not made."""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import lakewarden
from lakewarden.catalog.errors import ConflictError, PreconditionError
from lakewarden.catalog.model.lineage_record import LineageRecord
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.jobs.session.attached import Attached
from support.builders.spark_iceberg import SparkIceberg
from support.builders.staged_races import before_publishing
from support.processes.commands import Cli
from support.servers.spark import set_to

pytestmark = [pytest.mark.spark, pytest.mark.metastore]
NUMBERS = itertools.count()


@dataclass
class Site:
    """An Iceberg table with the rows 1, 2, 3, a session, and another catalog of the session that keeps the tables of
    the same metastore in mind."""

    spark: SparkSession
    lw: Attached
    raw: SparkIceberg
    kept: str
    """The table's name there."""

    @property
    def record(self) -> LineageRecord:
        (last,) = self.raw.reader.newest(self.raw.location, count=1)
        assert last.lineage is not None
        return last.lineage

    @property
    def is_from_itself(self) -> bool:
        return self.record.reads_self and self.record.inputs == ()


@pytest.fixture
def site(
    spark: SparkSession, metastore: EmbeddedMetastore, metastore_cli: Cli, tmp_path: Path
) -> Iterator[Site]:
    raw = SparkIceberg(spark, metastore.uri, "iceberg")
    raw.append(1, 2, 3)
    prod = f"prod{next(NUMBERS)}"
    keys = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hive", ".uri": metastore.uri}
    with (
        set_to(spark, {f"spark.sql.catalog.{prod}{key}": value for key, value in keys.items()}),
        lakewarden.attach(spark, home=tmp_path / "home", settings={"metastore.uri": metastore.uri}) as lw,
    ):
        yield Site(spark, lw, raw, f"{prod}.{raw.database}.{raw.name}")


def test_the_name_of_another_catalog_means_the_table_as_of_the_write(site: Site) -> None:
    raw, kept = site.raw, site.kept
    assert site.spark.table(kept).count() == 3  # from now on the catalog keeps it
    raw.append(4)
    site.lw.sql(f"INSERT OVERWRITE {raw} SELECT * FROM {kept} WHERE id > 1")
    assert raw.rows() == [2, 3, 4] and site.is_from_itself
    new = "(SELECT explode(array(4, 9)) AS id) AS new"
    with before_publishing(lambda: raw.append(9)):
        site.lw.sql(
            f"INSERT INTO {raw} SELECT new.id, 'b', NULL FROM {new} LEFT ANTI JOIN {kept} AS old ON new.id = old.id"
        )
    assert raw.rows() == [2, 3, 4, 9]


@pytest.mark.long
@pytest.mark.parametrize(
    "read",
    [
        lambda site: site.spark.read.format("iceberg").load(str(site.raw)),
        lambda site: site.spark.read.option("split-size", "1000000").table(str(site.raw)),
        lambda site: site.spark.sql(f"SELECT * FROM {site.raw} WITH (`split-size` = 1000000)"),
        lambda site: site.spark.table(site.kept),
        lambda site: site.spark.table(f"{site.raw}.branch_main"),
    ],
    ids=["by load", "with an option", "WITH in SQL", "by a catalog that keeps it", "its main branch"],
)
def test_a_frame_from_before_others_commits_has_their_rows(
    site: Site, read: Callable[[Site], DataFrame]
) -> None:
    raw = site.raw
    frame = read(site)
    assert frame.count() == 3
    raw.append(4)
    site.lw.write(frame.where("id > 1")).overwrite(str(raw))
    assert raw.rows() == [2, 3, 4] and site.is_from_itself
    with before_publishing(lambda: raw.append(5)):
        site.lw.write(frame.where("id > 2")).overwrite(str(raw))
    assert raw.rows() == [3, 4, 5]
    site.lw.sql(f"INSERT INTO {raw} VALUES (6, 'a', NULL)")  # in the same session
    with before_publishing(lambda: raw.append(7)):
        site.lw.write(frame.selectExpr("id + 10 AS id", "part", "at").where("id > 5")).append(str(raw))
    assert raw.rows() == [3, 4, 5, 6, 7, 13, 14, 15, 16, 17]


@pytest.mark.long
def test_a_frame_from_before_the_columns_changed_is_refused(site: Site) -> None:
    raw = site.raw
    frame = site.spark.table(str(raw))
    raw.sql(f"ALTER TABLE {raw} ALTER COLUMN part COMMENT 'which'")
    raw.append(4)
    with pytest.raises(PreconditionError, match="before its columns changed"):
        site.lw.write(frame.where("id > 1")).overwrite(str(raw))
    assert raw.rows() == [1, 2, 3, 4]
    site.lw.write(site.spark.table(str(raw)).where("id > 1")).overwrite(str(raw))
    assert raw.rows() == [2, 3, 4] and site.is_from_itself


@pytest.mark.long
def test_what_tells_of_the_table_is_of_the_write_or_nothing_is_written(site: Site) -> None:
    raw = site.raw
    told = (
        "INSERT INTO {} SELECT sequence + 100, 'a', NULL FROM (SELECT count(*) AS sequence FROM {}.snapshots)"
    )
    for name in (str(raw), site.kept):
        site.spark.table(f"{name}.snapshots").count()
        with before_publishing(lambda: raw.append(4)):
            site.lw.sql(told.format(raw, name))
        assert site.record.reads_self and [one.version for one in site.record.inputs] == [None]
    assert raw.rows() == [1, 2, 3, 4, 4, 102, 104]
    columns = ("record_count AS id", "'a' AS part", "CAST(NULL AS TIMESTAMP) AS at")
    frame = site.spark.table(f"{raw}.files").selectExpr(*columns)
    raw.append(5)
    rows = raw.rows()
    with pytest.raises(ConflictError, match="before somebody else's commit"):
        site.lw.write(frame).append(str(raw))
    assert raw.rows() == rows


@pytest.mark.long
def test_an_entry_of_its_own_with_older_metadata_and_a_named_version_are_inputs(site: Site) -> None:
    raw, copy = site.raw, f"iceberg.{site.raw.database}.copy"
    (file,) = raw.sql(f"SELECT file FROM {raw}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1")[0]
    raw.sql(f"CALL iceberg.system.register_table(table => '{raw.database}.copy', metadata_file => '{file}')")
    raw.append(4)
    (version,) = raw.sql(f"SELECT snapshot_id FROM {copy}.snapshots")[0]
    for query in (
        f"SELECT * FROM {copy}",
        f"SELECT * FROM {raw} VERSION AS OF {version}",
    ):
        site.lw.sql(f"INSERT OVERWRITE {raw} {query}")
        assert raw.rows() == [1, 2, 3]
        assert not site.record.reads_self and [one.version for one in site.record.inputs] == [1]
        raw.append(4)
    frame = site.spark.read.option("versionAsOf", str(version)).table(str(raw))
    site.lw.write(frame).overwrite(str(raw))
    assert raw.rows() == [1, 2, 3] and not site.record.reads_self
    raw.sql(f"DROP TABLE {copy}")


@pytest.mark.long
def test_a_name_with_a_dot_is_that_of_the_table_alone(site: Site, tmp_path: Path) -> None:
    catalog = f"folders{next(NUMBERS)}"
    keys = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "hadoop",
        ".warehouse": f"file:{tmp_path}/w",
    }
    with set_to(site.spark, {f"spark.sql.catalog.{catalog}{key}": value for key, value in keys.items()}):
        table = f"{catalog}.ns.`a.b`"
        site.spark.sql(f"CREATE TABLE {table} (id BIGINT) USING iceberg")
        site.spark.sql(f"INSERT INTO {table} VALUES (1), (2)")
        frame = site.spark.table(table)
        site.spark.sql(f"INSERT INTO {table} VALUES (3)")
        site.lw.write(frame.where("id > 1")).overwrite(table)
        assert sorted(row.id for row in site.spark.table(table).collect()) == [2, 3]
        by_place = site.spark.read.format("iceberg").load(f"file:{tmp_path}/w/ns/a.b")
        site.spark.sql(f"INSERT INTO {table} VALUES (4)")
        site.lw.write(by_place.where("id > 2")).overwrite(table)
        assert sorted(row.id for row in site.spark.table(table).collect()) == [3, 4]
