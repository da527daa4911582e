"""Bucketed Delta tables that lose rows by deletion vectors: no bucket is written anew, and all comes out as without."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakewarden.catalog import failpoints
from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.model.bucket_layout import BucketedFiles
from lakewarden.catalog.units import MIB
from lakewarden.jobs.actions.compact import Compact
from support.builders.bucketed_lakes import BucketedLake, bucketed_lake
from support.builders.delta_runs import DeltaTableOnDisk
from support.crashes.crashes import points_of
from support.crashes.in_process import killed_here
from support.own_rows.delta_rows import delta_rows
from support.servers.spark import set_to

pytestmark = pytest.mark.spark

BUCKETS = (
    "CLUSTERED BY (id) SORTED BY (id) INTO 4 BUCKETS TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
)
UPDATE = "UPDATE t SET v = s.v FROM s WHERE t.id = s.id"
ROWS = {i: str(i) for i in range(40)}
NEW = {2 * i: f"new{i}" for i in range(25)}


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BucketedLake]:
    folder = tmp_path_factory.mktemp("vectors ü")
    with bucketed_lake(spark, folder) as made:
        made.make("t", "(SELECT id, CAST(id AS STRING) AS v FROM range(40))", BUCKETS)
        made.make("s", "(SELECT 2 * id AS id, concat('new', id) AS v FROM range(25))", BUCKETS)
        yield made


@pytest.fixture
def tables(lake: BucketedLake, tmp_path: Path) -> BucketedLake:
    """Forty rows in `t`, and in `s` other values for the even ones and for five that `t` has not."""
    for table in "ts":
        shutil.copytree(lake.folder / table, tmp_path / table)
        lake.spark.sql(f"DROP TABLE IF EXISTS {table}")
        lake.spark.sql(f"CREATE TABLE {table} USING delta LOCATION '{tmp_path / table}'")
    return replace(lake, folder=tmp_path)


def named(rows: dict[int, str]) -> list[tuple[Any, ...]]:
    return sorted(rows.items(), key=repr)


def rows_of(tables: BucketedLake) -> list[tuple[Any, ...]]:
    """What Spark reads, and an own reader as well."""
    found = tables.rows("t")
    assert sorted(delta_rows(tables.folder / "t"), key=repr) == found
    return found


def stages_of_newest_write(spark: SparkSession) -> int:
    """Of the newest job that wrote files."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    each = (jobs.apply(number) for number in range(jobs.size()))
    newest = max((one for one in each if "writeFiles" in str(one.name())), key=lambda one: int(one.jobId()))
    return int(newest.stageIds().size())


def measures(tables: BucketedLake) -> dict[str, str]:
    """What Delta's own history says of the newest commit."""
    told = tables.spark.sql("DESCRIBE HISTORY t LIMIT 1").first()
    assert told is not None
    return dict(told["operationMetrics"])


def test_changes_mark_rows_and_write_changed_ones_alone_into_their_buckets(tables: BucketedLake) -> None:
    before, files = tables.log("t").version(), set(tables.files("t"))
    (counts,) = tables.lw.sql(UPDATE).collect()
    assert (counts["num_updated_rows"], counts["num_affected_rows"], counts["version"]) == (
        20,
        20,
        before + 1,
    )
    assert rows_of(tables) == named(ROWS | {key: NEW[key] for key in range(0, 40, 2)})
    assert files < set(tables.files("t")), "the files are there as they were"
    assert stages_of_newest_write(tables.spark) == 1, "no rows are exchanged"
    told = measures(tables)
    assert (told["numTargetRowsCopied"], told["numTargetRowsUpdated"], told["numTargetFilesRemoved"]) == (
        "0",
        "20",
        "0",
    )

    tables.sql(
        "UPDATE t SET v = concat(s.v, '!') FROM s WHERE t.id = s.id AND s.id < 20"
    )  # vectors are read, too
    assert tables.because(UPDATE) == "", "each file is in its bucket still"
    tables.sql("DELETE FROM t USING s WHERE t.id = s.id AND s.id >= 30")
    expected = ROWS | {key: f"{NEW[key]}!" if key < 20 else NEW[key] for key in range(0, 30, 2)}
    expected = {key: value for key, value in expected.items() if key < 30 or key % 2}
    assert rows_of(tables) == named(expected)
    tables.sql(
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.id > 20 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED THEN INSERT *"
    )
    expected = {
        key: "m" if key % 2 == 0 else value for key, value in expected.items() if key % 2 or key <= 20
    }
    assert rows_of(tables) == named(expected | {key: NEW[key] for key in range(30, 50, 2)})
    whole = "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.id = 30 THEN UPDATE SET *"
    assert tables.because(whole) == "", "its key is what it was"
    tables.sql("UPDATE t SET v = 'alone' WHERE id < 3")
    tables.sql("DELETE FROM t WHERE id = 5")
    told = measures(tables)
    assert (told["numDeletedRows"], told["numCopiedRows"]) == ("1", "0")
    assert [row for row in rows_of(tables) if row[0] < 6] == [
        (0, "alone"),
        (1, "alone"),
        (2, "alone"),
        (3, "3"),
        (4, "m"),
    ]
    assert tables.because(UPDATE) == ""


@pytest.mark.long
def test_a_statement_may_write_buckets_anew_and_vectors_go_with_them(tables: BucketedLake) -> None:
    tables.sql("DELETE FROM t WHERE id < 10")
    tables.lw.sql(UPDATE, write="rewrite")
    assert rows_of(tables) == named({key: NEW.get(key, value) for key, value in ROWS.items() if key >= 10})
    assert len(tables.files("t")) == 4 and int(measures(tables)["numTargetRowsCopied"]) == 15


@pytest.mark.long
def test_a_file_without_statistics_has_those_that_a_vector_needs(tables: BucketedLake) -> None:
    with set_to(tables.spark, {"spark.databricks.delta.stats.collect": "false"}):
        tables.lw.sql("INSERT OVERWRITE t SELECT * FROM t")
    tables.sql(UPDATE)
    tables.sql("DELETE FROM t WHERE id < 4")
    expected = ROWS | {key: NEW[key] for key in range(0, 40, 2)}
    assert rows_of(tables) == named({key: value for key, value in expected.items() if key >= 4})
    live = [one for one in DeltaReader().files(str(tables.folder / "t")) if one.has_deletion_vector]
    assert live and all(one.rows is not None for one in live)


def test_bounds_of_decimals_are_what_they_were(tables: BucketedLake) -> None:
    """Their digits are more than a double has: a bound that was rounded would hide the row from whoever looks for
    it."""
    value = "CAST(1 AS DECIMAL(38, 18)) / 3"
    tables.make("d", f"(SELECT id, CAST({value} AS DECIMAL(38, 18)) AS r FROM range(8))", BUCKETS)
    tables.lw.sql("UPDATE d SET r = 0 WHERE id = 3")
    tables.lw.sql("DELETE FROM d WHERE id = 5")
    marked = [one for one in DeltaReader().files(str(tables.folder / "d")) if one.has_deletion_vector]
    assert marked, "rows are marked, in files that have the value"
    assert tables.spark.sql(f"SELECT * FROM d WHERE r = CAST({value} AS DECIMAL(38, 18))").count() == 6
    commit = max((tables.folder / "d" / "_delta_log").glob("*.json")).read_text().splitlines()
    told = [json.loads(json.loads(line)["add"]["stats"]) for line in commit if line.startswith('{"add"')]
    assert told and all(one["tightBounds"] is False for one in told)


@pytest.mark.long
def test_several_matches_are_an_error_and_nothing_is_changed(tables: BucketedLake) -> None:
    before = tables.log("t").version()
    tables.sql("INSERT INTO s VALUES (2, 'twice')")
    with pytest.raises(PreconditionError):
        tables.sql(UPDATE)
    assert (tables.log("t").version(), rows_of(tables)) == (before, named(ROWS))
    tables.sql("DELETE FROM t USING s WHERE t.id = s.id")  # each row goes once
    assert rows_of(tables) == named({key: value for key, value in ROWS.items() if key % 2})


def test_killed_before_its_commit_it_leaves_files_alone(tables: BucketedLake) -> None:
    before = tables.log("t").version()
    (point,) = points_of("test_killed_before_its_commit_it_leaves_files_alone")
    killed_here(point, lambda: tables.sql(UPDATE))
    assert (tables.log("t").version(), rows_of(tables)) == (before, named(ROWS))
    tables.sql(UPDATE)
    assert rows_of(tables) == named(ROWS | {key: NEW[key] for key in range(0, 40, 2)})


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE t SET v = 'theirs' WHERE id = 2",
        pytest.param("DELETE FROM t WHERE id = 1", marks=pytest.mark.long),
        pytest.param("INSERT INTO t VALUES (48, 'theirs')", marks=pytest.mark.long),
    ],
)
def test_whoever_commits_first_is_not_lost(
    tables: BucketedLake, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """The statement is made anew, on what the other one has left."""

    def listener(point: str) -> None:
        if point == "buckets.marked":
            monkeypatch.undo()
            tables.spark.sql(change)

    monkeypatch.setattr(failpoints, "listener", listener)
    tables.sql(UPDATE)
    expected = ROWS | {key: NEW[key] for key in range(0, 40, 2)}
    if change.startswith("DELETE"):
        del expected[1]
    if change.startswith("INSERT"):
        expected[48] = NEW[48]
    assert rows_of(tables) == named(expected)


def test_compaction_takes_the_rows_out_within_their_buckets(tables: BucketedLake) -> None:
    tables.sql(UPDATE)
    tables.sql("DELETE FROM t WHERE id = 7")
    rows = rows_of(tables)
    table = DeltaTableOnDisk(tables.spark, tables.folder / "t")
    seen = table.observe()
    assert seen.buckets is not None and sum(one.rows or 0 for one in seen.deletes) == 21
    action = Compact(requires=seen.at, target_bytes=MIB, min_small_files=2, quiet_seconds=0, purge=True)
    table.run(action, now=seen.committed_at + timedelta(hours=1))
    now = table.observe()
    placed = BucketedFiles.of(seen.buckets, DeltaReader().files(table.location), lambda one: str(one.path))
    assert (now.deletes, placed.strays, [len(one) for one in placed.placed]) == ((), (), [1, 1, 1, 1])
    assert rows_of(tables) == rows and tables.because(UPDATE) == ""
