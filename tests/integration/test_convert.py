"""Conversion on real Spark against a real metastore: what comes out whole, and what is refused before it is touched."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.errors import ConflictError, RefusedError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Observation
from lakewarden.catalog.metastore.hive import HiveMetastore
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.jobs.actions.convert import Convert
from lakewarden.jobs.engines.delta.engine import DeltaEngine
from lakewarden.jobs.executors.convert import convert
from lakewarden.jobs.runs.port import JobContext, Report, Target

pytestmark = [pytest.mark.spark, pytest.mark.metastore]

RUN = "fedcba9876543210"
RETENTION = (
    ("delta.deletedFileRetentionDuration", "interval 30 days"),
    ("delta.logRetentionDuration", "interval 60 days"),
    ("delta.enableExpiredLogCleanup", "false"),
)
READER = DeltaReader()


@pytest.fixture(scope="module")
def hive(metastore: EmbeddedMetastore) -> Iterator[HiveMetastore]:
    client = HiveMetastore(metastore.uri)
    yield client
    client.close()


@pytest.fixture(scope="module")
def db(spark: SparkSession) -> str:
    spark.sql("CREATE DATABASE conv")
    return "conv"


@pytest.fixture
def engine(spark: SparkSession) -> DeltaEngine:
    return DeltaEngine(lambda: spark, storage=lambda _: StorageOptions(), clock=SystemClock())


class Conversions:
    """Runs conversions of one test, by name or by path, with a run id of their own."""

    def __init__(self, engine: DeltaEngine, hive: HiveMetastore) -> None:
        self._engine, self._hive = engine, hive

    def location(self, name: str) -> str:
        entry = self._hive.get(*name.split("."))
        assert entry is not None
        assert entry.location is not None
        return canonical(entry.location)

    def of(
        self,
        name: str | None,
        location: str | None = None,
        *,
        partitioned_by: tuple[tuple[str, str], ...] = (),
        statistics: bool = True,
        run_id: str = RUN,
    ) -> Report:
        place = location or self.location(name or "")
        action = Convert(
            name=name,
            location=place,
            partitioned_by=partitioned_by,
            statistics=statistics,
            properties=RETENTION,
        )
        ctx = JobContext(
            target=Target(table_id="t", name=name or place, location=place),
            run_id=run_id,
            reader=READER,
            clock=SystemClock(),
            engine=self._engine,
            metastore=self._hive,
            still_ours=lambda: None,
        )
        return convert(ctx, action)


@pytest.fixture
def conversions(engine: DeltaEngine, hive: HiveMetastore) -> Conversions:
    return Conversions(engine, hive)


def observed(location: str) -> Observation:
    seen = READER.observe(location)
    assert isinstance(seen, Observation), seen
    return seen


def provider(hive: HiveMetastore, name: str) -> str | None:
    entry = hive.get(*name.split("."))
    assert entry is not None
    return entry.provider


def no_log(location: str) -> bool:
    return (
        not READER.is_table(location) and not (Path(location.removeprefix("file://")) / "_delta_log").exists()
    )


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", ["USING parquet", "STORED AS parquet"], ids=["Spark table", "Hive table"])
def test_a_partitioned_table_keeps_rows_columns_comments_and_gets_its_retention(
    spark: SparkSession, hive: HiveMetastore, conversions: Conversions, db: str, kind: str
) -> None:
    name = f"{db}.{kind.split()[0].lower()}_table"
    stored = f"{kind} PARTITIONED BY (p)" if "USING" in kind else f"PARTITIONED BY (p string) {kind}"
    columns = "id tinyint COMMENT 'the key', p string" if "USING" in kind else "id tinyint COMMENT 'the key'"
    spark.sql(f"CREATE TABLE {name} ({columns}) {stored}")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'a/b'), (2, 'x y'), (3, 'ü%41')")
    before = spark.table(name).collect()
    report = conversions.of(name)
    assert report.committed_version == 1
    assert report.files == 3
    spark.catalog.refreshTable(name)
    assert sorted(spark.table(name).collect()) == sorted(before)
    field = spark.table(name).schema["id"]
    assert (field.dataType.simpleString(), field.metadata.get("comment")) == ("tinyint", "the key")
    assert provider(hive, name) == "delta"
    seen = observed(conversions.location(name))
    assert dict(RETENTION).items() <= seen.properties.items()
    assert [commit.run_id for commit in READER.commits(seen.location, after=-1)] == [RUN, RUN]


def test_null_partitions_stay_null(spark: SparkSession, conversions: Conversions, db: str) -> None:
    name = f"{db}.with_nulls"
    spark.sql(
        f"CREATE TABLE {name} (id tinyint COMMENT 'k') PARTITIONED BY (p string, d date) STORED AS parquet"
    )
    spark.sql(
        f"INSERT INTO {name} VALUES (1, NULL, DATE'2020-01-01'), (2, 'b', NULL), (3, 'c', DATE'2020-01-02')"
    )
    place = Path(conversions.location(name).removeprefix("file://")) / "p=c"
    partition = f"ALTER TABLE {name} PARTITION (p = 'c', d = DATE'2020-01-02') SET LOCATION"
    place.rename(place.with_name("p=c_fixed"))
    spark.sql(f"{partition} '{place}_fixed/d=2020-01-02'")
    with pytest.raises(RefusedError, match="p=c/d=2020-01-02 in p=c_fixed/d=2020-01-02"):
        conversions.of(name)
    place.with_name("p=c_fixed").rename(place)
    spark.sql(f"{partition} '{place}/d=2020-01-02'")
    conversions.of(name)
    spark.catalog.refreshTable(name)
    assert spark.table(name).where("p IS NULL").count() == 1
    assert spark.table(name).where("d IS NULL").count() == 1
    assert spark.table(name).schema["id"].metadata.get("comment") == "k"


def test_null_partitions_are_refused_where_the_files_have_other_columns(
    spark: SparkSession, conversions: Conversions, db: str
) -> None:
    name = f"{db}.evolved"
    spark.sql(f"CREATE TABLE {name} (id int) PARTITIONED BY (p string) STORED AS parquet")
    spark.sql(f"INSERT INTO {name} VALUES (1, NULL)")
    spark.sql(f"ALTER TABLE {name} ADD COLUMNS (later string)")
    with pytest.raises(RefusedError, match="NULL"):
        conversions.of(name)
    assert no_log(conversions.location(name))


@pytest.mark.parametrize(
    "partitioned", [True, pytest.param(False, marks=pytest.mark.long)], ids=["partitioned", "plain"]
)
def test_an_empty_table_becomes_an_empty_delta_table(
    spark: SparkSession, hive: HiveMetastore, conversions: Conversions, db: str, partitioned: bool
) -> None:
    name = f"{db}.empty_{partitioned}"
    clause = "PARTITIONED BY (b)" if partitioned else ""
    spark.sql(f"CREATE TABLE {name} (a int COMMENT 'hi', b string) USING parquet {clause}")
    report = conversions.of(name)
    assert (report.files, report.committed_version) == (0, 1)
    assert provider(hive, name) == "delta"
    spark.catalog.refreshTable(name)
    spark.sql(f"INSERT INTO {name} VALUES (1, 'x')")
    assert spark.table(name).collect() == [(1, "x")]
    assert observed(conversions.location(name)).partition_columns == (("b",) if partitioned else ())


def test_a_folder_is_converted_by_path_with_its_partition_columns(
    spark: SparkSession, conversions: Conversions, tmp_path: Path
) -> None:
    folder = tmp_path / "odd name `t` %20"
    spark.range(6).selectExpr("id", "id % 2 AS k", "'a/b' AS s").write.partitionBy("k", "s").parquet(
        str(folder)
    )
    location = canonical(str(folder))
    with pytest.raises(RefusedError, match="their types were not given") as refused:
        conversions.of(None, location)
    assert "PARTITIONED BY (k STRING, s STRING)" in refused.value.hint
    with pytest.raises(RefusedError, match="does not fit the type"):
        conversions.of(None, location, partitioned_by=(("k", "date"), ("s", "string")))
    with pytest.raises(RefusedError, match=r"k=0 does not fit the type DECIMAL\(10,2\)"):
        conversions.of(None, location, partitioned_by=(("k", "decimal(10, 2)"), ("s", "string")))
    with pytest.raises(RefusedError, match="is not a type for the partition column k"):
        conversions.of(None, location, partitioned_by=(("k", "int) ; drop"), ("s", "string")))
    assert no_log(location)
    (folder / "k=1").rename(folder / "K=1")  # the same column, as Spark has it
    report = conversions.of(
        None, location, partitioned_by=(("k", "decimal(3, 0)"), ("s", "string")), statistics=False
    )
    assert report.files == observed(location).files_without_statistics
    assert spark.read.format("delta").load(f"file:{folder}").where("k = 1 AND s = 'a/b'").count() == 3


@pytest.mark.long
def test_a_decimal_partition_is_converted_as_spark_writes_it_and_refused_as_hive_does(
    spark: SparkSession, hive: HiveMetastore, conversions: Conversions, db: str
) -> None:
    name = f"{db}.prices"
    spark.sql(f"CREATE TABLE {name} (a int) PARTITIONED BY (k decimal(10,2)) STORED AS parquet")
    spark.sql(f"INSERT INTO {name} PARTITION (k = 1.50) VALUES (1)")
    folder = Path(conversions.location(name).removeprefix("file://"))
    (folder / "k=1.50").rename(folder / "k=1.5")
    spark.sql(f"ALTER TABLE {name} DROP PARTITION (k = 1.50)")
    spark.sql(f"ALTER TABLE {name} ADD PARTITION (k = 1.5) LOCATION '{folder}/k=1.5'")
    with pytest.raises(RefusedError, match=r"k=1\.5 does not fit the type DECIMAL\(10,2\)"):
        conversions.of(name)
    (folder / "k=1.5").rename(folder / "k=1.50")
    by_path = (("k", "decimal(10,2)"),)
    with pytest.raises(RefusedError, match=f"in the metastore it is {name}"):
        conversions.of(None, str(folder.as_uri()), partitioned_by=by_path)
    assert no_log(folder.as_uri())
    hive.drop(*name.split("."))
    report = conversions.of(None, str(folder.as_uri()), partitioned_by=by_path)
    assert report.files == 1 and observed(folder.as_uri()).partition_columns == ("k",)


def test_a_conversion_that_was_interrupted_after_its_first_commit_is_finished(
    spark: SparkSession, hive: HiveMetastore, conversions: Conversions, engine: DeltaEngine, db: str
) -> None:
    name = f"{db}.interrupted"
    spark.sql(f"CREATE TABLE {name} (a int) USING parquet")
    spark.sql(f"INSERT INTO {name} VALUES (1)")
    location = conversions.location(name)
    # What a kill between Delta's commit and the entry's change leaves: the same commit, and the entry as it was.
    engine.convert(name=None, location=location, partitioned_by=(), statistics=True, run_id=RUN)
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('owner_note' = 'changed meanwhile')")
    assert provider(hive, name) == "parquet"
    conversions.of(name, run_id="a later attempt")
    assert provider(hive, name) == "delta"
    assert dict(RETENTION).items() <= observed(location).properties.items()
    again = conversions.of(name)
    assert again.committed_version == observed(location).version


def test_a_table_that_somebody_else_made_delta_is_refused(
    spark: SparkSession, conversions: Conversions, tmp_path: Path
) -> None:
    folder = tmp_path / "theirs"
    spark.range(3).write.format("delta").save(str(folder))
    with pytest.raises(RefusedError, match="Delta table already") as refused:
        conversions.of(None, canonical(str(folder)))
    assert "tables register" in refused.value.hint
    assert observed(canonical(str(folder))).version == 0


REFUSED = {
    "an ORC table": ("CREATE TABLE {} USING orc AS SELECT 1 AS a", "not a Parquet table but orc"),
    "buckets and partitions": (
        "CREATE TABLE {} (a INT, p INT) USING parquet PARTITIONED BY (p) CLUSTERED BY (a) INTO 2 BUCKETS",
        "bucketed and partitioned",
    ),
    "buckets by a double": (
        "CREATE TABLE {} USING parquet CLUSTERED BY (a) INTO 2 BUCKETS AS SELECT 1.5D AS a",
        "bucketed in a way",
    ),
    "buckets by Hive's hash": (
        "CREATE TABLE {} (a INT) CLUSTERED BY (a) INTO 2 BUCKETS STORED AS PARQUET",
        "by Hive's hash",
    ),
    "a space in a column name": ("CREATE TABLE {} USING parquet AS SELECT 1 AS `a b`", "column names"),
}


@pytest.mark.parametrize(("statement", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_would_be_spoiled_is_refused_untouched(
    spark: SparkSession, hive: HiveMetastore, conversions: Conversions, db: str, statement: str, sentence: str
) -> None:
    name = f"{db}.refused"
    spark.sql(f"DROP TABLE IF EXISTS {name}")
    spark.sql(statement.format(name))
    before = hive.get(*name.split("."))
    with pytest.raises(RefusedError, match=sentence):
        conversions.of(name)
    assert no_log(conversions.location(name))
    assert hive.get(*name.split(".")) == before


def test_a_view_is_refused(spark: SparkSession, conversions: Conversions, db: str, tmp_path: Path) -> None:
    spark.sql(f"CREATE VIEW {db}.v AS SELECT 1 AS a")
    with pytest.raises((RefusedError, ConflictError)):
        conversions.of(f"{db}.v", canonical(str(tmp_path)))
    assert no_log(canonical(str(tmp_path)))


@pytest.mark.long
def test_folders_the_metastore_does_not_know_are_named(
    spark: SparkSession, conversions: Conversions, db: str
) -> None:
    name = f"{db}.strays"
    spark.sql(f"CREATE TABLE {name} (a int, p string) USING parquet PARTITIONED BY (p)")
    spark.sql(f"INSERT INTO {name} VALUES (1, 'known/one')")
    location = conversions.location(name)
    stray = Path(location.removeprefix("file://")) / "p=stray"
    spark.range(1).selectExpr("cast(id AS int) AS a").write.parquet(str(stray))
    with pytest.raises(RefusedError, match="p=stray") as refused:
        conversions.of(name)
    assert "MSCK REPAIR TABLE" in refused.value.hint
    assert no_log(location)
    spark.sql(f"MSCK REPAIR TABLE {name}")
    assert conversions.of(name).files == 2


def test_a_writer_at_work_is_waited_for(
    spark: SparkSession, conversions: Conversions, tmp_path: Path
) -> None:
    folder = tmp_path / "busy"
    spark.range(3).coalesce(1).write.parquet(str(folder))
    staged = folder / "_temporary" / "0" / "part-00000.parquet"
    staged.parent.mkdir(parents=True)
    staged.write_bytes(b"half a file")
    with pytest.raises(ConflictError, match="_temporary"):
        conversions.of(None, canonical(str(folder)))
    os.utime(staged, (1_600_000_000, 1_600_000_000))  # what a job that crashed long ago left behind
    assert conversions.of(None, canonical(str(folder))).files == 1


def test_files_that_come_during_the_conversion_are_named(
    spark: SparkSession, conversions: Conversions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "late"
    spark.range(3).coalesce(1).write.parquet(str(folder))
    convert_on_spark = DeltaEngine.convert

    def slow(self: DeltaEngine, **how: object) -> int:
        version = convert_on_spark(self, **how)  # type: ignore[arg-type]  # passed on as it came
        spark.range(1).coalesce(1).write.mode("append").parquet(str(folder))
        return version

    monkeypatch.setattr(DeltaEngine, "convert", slow)
    report = conversions.of(None, canonical(str(folder)))
    assert report.files == 1
    assert "1 file that came meanwhile" in report.message
