"""Compaction of bucketed tables: what others wrote is put into its buckets, and no bucket is taken apart."""

from collections.abc import Mapping
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Head, Observation
from lakewarden.catalog.model.bucket_layout import LAYOUT_CHECK, BucketLayout
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.catalog.units import MIB
from lakewarden.jobs.actions.compact import Compact
from lakewarden.jobs.engines.delta import bucket_compaction
from lakewarden.jobs.engines.delta.engine import DeltaEngine
from lakewarden.jobs.engines.delta.sessions.bucket_files import as_set, naming
from lakewarden.jobs.runs.port import Report
from support.builders.delta_runs import DeltaTableOnDisk

pytestmark = pytest.mark.spark

LAYOUT = BucketLayout(columns=("id",), count=4, sort=("v",))


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> DeltaTableOnDisk:
    """Thirty rows in three files that Spark has written, of a table whose buckets are on record."""
    made = DeltaTableOnDisk(spark, tmp_path / "t ü")
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in LAYOUT.properties.items())
    made.sql(f"CREATE TABLE {{t}} (id BIGINT, v STRING) USING delta TBLPROPERTIES ({properties})")
    add(made, 0)
    return made


def add(table: DeltaTableOnDisk, first: int) -> None:
    query = f"SELECT /*+ REPARTITION(3) */ id, CAST(-id AS STRING) FROM range({first}, {first + 30})"
    table.sql(f"INSERT INTO {{t}} {query}")


def compacted(table: DeltaTableOnDisk) -> Report:
    seen = table.observe()
    action = Compact(requires=seen.at, target_bytes=MIB, min_small_files=2, quiet_seconds=600)
    return table.run(action, now=seen.committed_at + timedelta(hours=1))


def uris(table: DeltaTableOnDisk) -> list[str]:
    return [str(table.folder / file.path) for file in DeltaReader().files(table.location)]


def spread(table: DeltaTableOnDisk) -> Mapping[int | None, list[set[int]]]:
    """By the bucket that files name, which buckets the rows of each are in."""
    found: dict[int | None, list[set[int]]] = {}
    for one in uris(table):
        rows = table.spark.read.parquet(one).selectExpr(f"pmod(hash(id), {LAYOUT.count})").collect()
        found.setdefault(LAYOUT.bucket_of(one), []).append({row[0] for row in rows})
    return found


def problems(seen: Observation) -> list[str]:
    return [one.message for one in seen.warnings if one.check == LAYOUT_CHECK]


def test_rows_of_others_are_put_into_their_buckets_in_their_order_and_only_once(
    table: DeltaTableOnDisk,
) -> None:
    rows, seen = table.rows(), table.observe()
    assert problems(seen) == [
        "3 of 3 files in no bucket: until compaction puts them in order, statements do without the buckets."
    ]
    assert sum(seen.sizes.counts) == 3
    report = compacted(table)
    assert (report.committed_version, report.files) == (seen.version + 1, 3)
    assert table.rows() == rows
    assert spread(table) == {bucket: [{bucket}] for bucket in range(4)}
    for one in uris(table):
        values = [row["v"] for row in table.spark.read.parquet(one).collect()]
        assert values == sorted(values)
    (commit,) = DeltaReader().commits(table.location, after=seen.version)
    assert (commit.operation, commit.data_change) == ("OPTIMIZE", False)
    after = table.observe()
    assert problems(after) == [] and sum(after.sizes.counts) == 0, "four small files, and none to be joined"
    assert compacted(table).skipped and table.observe().version == after.version


def test_what_comes_later_is_joined_with_what_is_in_its_bucket(table: DeltaTableOnDisk) -> None:
    compacted(table)
    add(table, 30)
    assert problems(table.observe())[0].startswith("3 of 7 files")
    rows = table.rows()
    assert compacted(table).files == 7
    assert table.rows() == rows and len(rows) == 60
    assert spread(table) == {bucket: [{bucket}] for bucket in range(4)}


def test_files_that_share_a_bucket_are_joined_and_the_others_are_left_alone(
    table: DeltaTableOnDisk,
) -> None:
    compacted(table)
    before = set(uris(table))
    (other,) = (one for one in before if LAYOUT.bucket_of(one) == 2)
    table.spark.read.parquet(other).createOrReplaceTempView("twice")
    session = table.spark._jsparkSession
    with as_set(session, naming(session, LAYOUT)):
        table.sql("INSERT INTO {t} SELECT /*+ REPARTITION(4, id) */ * FROM twice")
    assert problems(table.observe()) == [] and sum(table.observe().sizes.counts) == 1
    assert compacted(table).files == 2
    assert len(before & set(uris(table))) == 3
    assert spread(table) == {bucket: [{bucket}] for bucket in range(4)}


def test_it_loses_against_a_commit_that_came_first_unless_it_may_come_behind(
    table: DeltaTableOnDisk,
) -> None:
    before = table.observe().at
    engine = DeltaEngine(lambda: table.spark, storage=lambda _: StorageOptions(), clock=SystemClock())
    add(table, 30)
    with pytest.raises(ConflictError):
        engine.compact(table.location, requires=before, partitions=None, target_bytes=MIB, run_id="r1")
    rows = table.rows()
    change = engine.compact(
        table.location, requires=Head(before.version), partitions=None, target_bytes=MIB, run_id="r2",
        beside_writers=True,
    )  # fmt: skip
    assert (change.files_removed, change.files_added) == (6, 4)
    assert table.rows() == rows and table.observe().version == change.version


@pytest.mark.parametrize(
    ("change", "wins"),
    [
        pytest.param("DELETE FROM {t} WHERE id = 1", True, marks=pytest.mark.long),
        ("INSERT INTO {t} VALUES (99, 'z')", True),
        ("DELETE FROM {t} WHERE id = 31", False),
        ("ALTER TABLE {t} SET TBLPROPERTIES ('lakewarden.buckets.count' = '8')", False),
    ],
    ids=["of other files", "an append", "of its files", "of the layout"],
)
def test_beside_writers_it_gives_way_only_to_who_touches_its_files_or_the_layout(
    table: DeltaTableOnDisk, monkeypatch: pytest.MonkeyPatch, change: str, wins: bool
) -> None:
    compacted(table)
    add(table, 30)
    spread_out = bucket_compaction._spread

    def beside_somebody(rows: DataFrame, layout: BucketLayout) -> DataFrame:
        table.sql(change)
        return spread_out(rows, layout)

    monkeypatch.setattr(bucket_compaction, "_spread", beside_somebody)
    engine = DeltaEngine(lambda: table.spark, storage=lambda _: StorageOptions(), clock=SystemClock())
    outcome = pytest.raises(ConflictError) if not wins else nullcontext()
    with outcome:
        engine.compact(
            table.location, requires=table.observe().at, partitions=None, target_bytes=2, run_id="r",
            beside_writers=True,
        )  # fmt: skip
    expected = {*range(60)} - ({1} if "id = 1" in change else {31} if "id = 31" in change else set())
    assert {row["id"] for row in table.rows()} == expected | ({99} if "99" in change else set())
    assert len(table.rows()) == len(expected) + ("99" in change)


@pytest.mark.long
def test_a_table_that_is_not_worked_on_by_buckets_is_compacted_like_any_other(
    table: DeltaTableOnDisk,
) -> None:
    table.sql("ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    add(table, 30)
    add(table, 60)
    rows = table.rows()
    assert problems(table.observe()) == [] and sum(table.observe().sizes.counts) == 9
    assert compacted(table).files == 9
    assert table.rows() == rows and len(uris(table)) == 1
