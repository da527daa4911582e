"""Upserts on a real Spark session: what the table holds, what the commit says, which files were read."""

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import udf

from lakewarden.catalog.errors import ConflictError, PreconditionError, UsageError
from lakewarden.catalog.lineage.versions import Effect, history_of
from lakewarden.catalog.model.lineage_record import Operation
from support.builders.lakes import Lake, running_lake
from support.cases import mostly_long
from support.crashes.crashes import points_of
from support.processes import upsert_process

pytestmark = pytest.mark.spark

VARIABLES = "spark.sql.variable.substitute"


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with running_lake(spark, tmp_path_factory.mktemp("upserts")) as lake:
        yield lake


def test_rows_are_updated_and_inserted_by_their_keys_in_one_governed_commit(lake: Lake) -> None:
    table, source = lake.table((1, "a", 1), (2, "b", 1)), lake.table((2, "B", 2), (3, "c", 2))
    done = lake.lw.upsert(lake.lw.table(source), table, keys=["id"])
    assert lake.held(table) == [(1, "a", 1), (2, "B", 2), (3, "c", 2)]
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (1, 1, 0)
    commit = lake.commits(table)[-1]
    assert commit.operation == "MERGE" and commit.lineage is not None and done.written is not None
    assert (commit.lineage.run_id, commit.lineage.operation) == (done.written.run_id, Operation.MERGE)
    assert [(one.location, one.version) for one in commit.lineage.inputs] == [(Path(source).as_uri(), 0)]
    assert done.written.observed.seen and not done.written.observed.unrecorded


def test_a_missing_table_is_made_with_the_sources_columns(lake: Lake) -> None:
    name = f"{lake.database}.made"
    source = lake.rows((1, "a", 1))
    assert lake.lw.upsert(source, name, keys="id", partitioned=["ts"]).created
    assert not lake.lw.upsert(source, name, keys="id").created
    assert [tuple(row) for row in lake.spark.table(name).collect()] == [(1, "a", 1)]
    properties = {row.key: row.value for row in lake.spark.sql(f"SHOW TBLPROPERTIES {name}").collect()}
    assert properties["lakewarden.keys"] == "id"
    place = str(lake.folder / "made")
    assert lake.lw.upsert(source, place, keys="id").rows_inserted == 1
    assert lake.held(place) == [(1, "a", 1)]


def test_nothing_is_made_for_an_upsert_that_makes_no_sense(lake: Lake) -> None:
    place = lake.folder / "senseless"
    with pytest.raises(UsageError, match="no column nr"):
        lake.lw.upsert(lake.rows((1, "a", 1)), str(place), keys="nr")
    with pytest.raises(PreconditionError, match="2 rows of the source have the key id=1"):
        lake.lw.upsert(lake.rows((1, "a", 1), (1, "b", 1)), str(place), keys="id")
    with pytest.raises(Exception, match="mine alone"):
        failing = lake.rows((1, "a", 1)).selectExpr("id", "CAST(raise_error('mine alone') AS INT) AS v")
        lake.lw.upsert(failing, str(place), keys="id")
    assert not place.exists()


def test_only_a_newer_row_replaces_and_a_tie_changes_nothing(lake: Lake) -> None:
    table = lake.table((1, "a", 5), (2, "b", 5), (3, "c", None), (4, "d", 5), (5, "e", None))
    source = lake.rows(
        (1, "late", 4), (2, "tie", 5), (3, "first", 1), (4, "unknown", None), (5, "same", None)
    )
    done = lake.lw.upsert(source, table, keys="id", when="newer by ts")
    assert done.rows_updated == 1
    assert [row[1] for row in lake.held(table)] == ["a", "b", "first", "d", "e"]


def test_rows_are_deleted_where_the_source_says_so(lake: Lake) -> None:
    table = lake.table((1, "a", 1), (2, "b", 1))
    source = lake.rows((1, "gone", 2), (2, None, 2), (3, "gone", 2))
    done = lake.lw.upsert(source, table, keys="id", delete_when="v = 'gone'")
    assert lake.held(table) == [(2, None, 2)]
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (0, 1, 1)


def test_a_condition_is_one_expression_and_nothing_behind_it(lake: Lake) -> None:
    table = lake.table((1, "a", 1))
    with pytest.raises(Exception, match="PARSE_SYNTAX_ERROR"):
        lake.lw.upsert(lake.rows((1, "b", 1)), table, keys="id", delete_when="true), (false")
    with pytest.raises(UsageError, match="takes no query"):
        lake.lw.upsert(
            lake.rows((1, "b", 1)), table, keys="id", delete_when=f"id IN (SELECT id FROM delta.`{table}`)"
        )
    assert lake.held(table) == [(1, "a", 1)]


TWICE = ((1, "x", 1), (1, "y", 2), (7, "z", 1), (7, "z", 1))


def test_two_rows_with_one_key_are_refused_even_if_the_key_is_new(lake: Lake) -> None:
    table = lake.table((1, "a", 1))
    with pytest.raises(PreconditionError, match="2 rows of the source have the key id=") as caught:
        lake.lw.upsert(lake.rows(*TWICE), table, keys="id")
    assert "duplicates=" in caught.value.hint
    assert lake.held(table) == [(1, "a", 1)] and len(lake.commits(table)) == 1


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("rule", "chosen"),
    mostly_long([("any", "x"), ("last by ts", "y"), ("LAST BY v", "y")], [("any", "x"), ("last by ts", "y")]),
)
def test_one_of_several_rows_is_taken_as_the_rule_says(lake: Lake, rule: str, chosen: str) -> None:
    table = lake.table((1, "a", 1))
    lake.lw.upsert(lake.rows(*TWICE), table, keys="id", duplicates=rule)
    assert [row[1] for row in lake.held(table)] == [chosen, "z"]


def test_what_is_last_twice_and_differs_is_refused(lake: Lake) -> None:
    table = lake.table((1, "a", 1))
    with pytest.raises(PreconditionError, match="2 rows of the source have the key id=1"):
        lake.lw.upsert(lake.rows((1, "x", 2), (1, "y", 2)), table, keys="id", duplicates="last by ts")


def test_a_null_key_is_a_new_row_a_mistake_or_a_match(lake: Lake) -> None:
    table = lake.table((None, "a", 1))
    source = lake.rows((None, "b", 2))
    with pytest.raises(PreconditionError, match="1 rows? of the source"):
        lake.lw.upsert(source, table, keys="id", null_keys="refuse")
    lake.lw.upsert(source, table, keys="id", null_keys="match")
    assert lake.held(table) == [(None, "b", 2)]
    lake.lw.upsert(lake.rows((None, "c", 3), (None, "c", 3)), table, keys="id", duplicates="any")
    assert lake.held(table) == [(None, "b", 2), (None, "c", 3), (None, "c", 3)]


def test_a_partial_upsert_leaves_the_other_columns_alone(lake: Lake) -> None:
    table = lake.table((1, "a", 1))
    lake.lw.upsert(lake.rows((1, "b", 9), (2, "c", 9)), table, keys="id", partial=["v"])
    assert lake.held(table) == [(1, "b", 1), (2, "c", None)]


def test_columns_are_added_and_widened_only_if_that_is_agreed(lake: Lake) -> None:
    schema = "id bigint, v string, ts bigint, w int"
    table = lake.table((1, "a", 1))
    source = lake.rows((1, "b", 2**40, 5), schema=schema)
    with pytest.raises(PreconditionError, match="no column w"):
        lake.lw.upsert(source, table, keys="id")
    lake.spark.sql(f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')")
    lake.lw.upsert(source, table, keys="id", drift="widen")
    rows = lake.spark.read.format("delta").load(table)
    assert rows.dtypes == [("id", "bigint"), ("v", "string"), ("ts", "bigint"), ("w", "int")]
    assert [tuple(row) for row in rows.collect()] == [(1, "b", 2**40, 5)]


@pytest.mark.long
def test_what_is_nested_is_added_like_a_column_and_narrowed_never(lake: Lake) -> None:
    path, sql = str(lake.folder / "nested"), lake.spark.sql
    sql("SELECT 1L AS id, named_struct('a', 1) AS s, array(1) AS l").write.format("delta").save(path)
    with pytest.raises(PreconditionError, match="l is array<double> in the source"):
        lake.lw.upsert(sql("SELECT 1L AS id, named_struct('a', 1) AS s, array(1.7D) AS l"), path, keys="id")
    more = sql("SELECT 1L AS id, named_struct('a', 2, 'b', 'x') AS s, array(3) AS l")
    with pytest.raises(PreconditionError, match=r"no column s\.b"):
        lake.lw.upsert(more, path, keys="id")
    lake.lw.upsert(more, path, keys="id", drift="add")
    (row,) = lake.spark.read.format("delta").load(path).collect()
    assert row.asDict(recursive=True) == {"id": 1, "s": {"a": 2, "b": "x"}, "l": [3]}


def test_files_and_partitions_without_the_keys_are_not_read(lake: Lake) -> None:
    path = str(lake.folder / "parts")
    whole = lake.spark.range(0, 1000, 1, 10).selectExpr("id", "CAST(id DIV 250 AS INT) AS part", "'old' AS v")
    whole.write.format("delta").partitionBy("part").save(path)
    few = lake.spark.range(0, 10).selectExpr("id", "0 AS part", "'new' AS v")
    done = lake.lw.upsert(few, path, keys=["id", "part"])
    assert done.files_before >= 10 and done.files_read == 1 and done.files_added == 1
    clusters = lake.spark.range(0, 300).selectExpr("IF(id < 150, id, id + 700) AS id", "'newer' AS v")
    merged = lake.lw.upsert(clusters, path, keys="id")
    assert "BETWEEN" in merged.pruning and " OR " in merged.pruning
    assert merged.files_read <= 5 and (merged.rows_updated, merged.rows_inserted) == (300, 0)
    ends = lake.lw.upsert(
        lake.spark.sql("SELECT explode(array(0L, 999L)) AS id, 'newest' AS v"), path, keys="id"
    )
    assert (ends.files_read, ends.rows_updated) == (2, 2)
    fresh = lake.spark.range(5000, 5100).selectExpr("id", "9 AS part", "'x' AS v").repartition(50)
    lake.spark.conf.set("spark.sql.adaptive.enabled", "false")
    added = lake.lw.upsert(fresh, path, keys="id")
    lake.spark.conf.unset("spark.sql.adaptive.enabled")
    assert added.files_read == 0 and added.files_added == 1


@pytest.mark.long
def test_a_small_table_of_many_partitions_is_written_by_few_tasks(lake: Lake) -> None:
    path, parts = str(lake.folder / "many"), 100
    rows = lake.spark.range(0, 5 * parts, 1, 2).selectExpr("id", f"id % {parts} AS part", "'old' AS v")
    rows.write.format("delta").partitionBy("part").save(path)
    tracker = lake.spark.sparkContext.statusTracker()
    lake.spark.sparkContext.setJobGroup("many partitions", "")
    news = lake.spark.range(parts).selectExpr("id", f"id % {parts} AS part", "'new' AS v")
    lake.spark.conf.set("spark.sql.adaptive.enabled", "false")  # what is as small as this would be one task's
    done = lake.lw.upsert(news, path, keys=["part", "id"])
    lake.spark.conf.unset("spark.sql.adaptive.enabled")
    assert done.pruning == "target.`part` BETWEEN 0L AND 99L AND target.`id` BETWEEN 0L AND 99L"
    assert (done.rows_updated, done.files_added) == (parts, parts)
    jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup("many partitions")]
    lake.spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # as py4j takes it
    stages = [tracker.getStageInfo(number) for job in jobs if job is not None for number in job.stageIds]
    assert 1 < max(one.numTasks for one in stages if one is not None) < parts / 2


@pytest.mark.long
def test_a_source_without_rows_or_of_many_tasks_is_merged_by_one(lake: Lake) -> None:
    table, rows = lake.table((1, "a", 1)), ("id", "'b' AS v", "2 AS ts")
    for nothing in (lake.spark.range(0), lake.spark.range(0, 9, 1, 9).where("id > hash(id, 0) + 1e10")):
        done = lake.lw.upsert(nothing.selectExpr(*rows), table, keys="id")
        assert (done.rows_inserted, done.rows_updated, done.files_added) == (0, 0, 0)
    many = lake.spark.range(0, 100, 1, 50).selectExpr(*rows)
    for rule in ("any", "error"):
        done = lake.lw.upsert(many.union(many) if rule == "any" else many, table, keys="id", duplicates=rule)
        assert done.rows_written == 100 and done.files_added == 1
    assert lake.held(table) == sorted(((number, "b", 2) for number in range(100)), key=repr)


@pytest.mark.long
def test_keys_that_look_like_variables_of_sparks_are_matched_as_they_are(lake: Lake) -> None:
    name = "${env:HOME}"
    schema, told = f"`{name}` string, v string", ("${env:HOME}", "${spark.app.name}", "x")
    table = lake.table(*((key, "old") for key in told), schema=schema)
    source = lake.rows(*((key, "new") for key in told), schema=schema)
    lake.spark.conf.set(VARIABLES, "true")  # as in a session that users start
    done = lake.lw.upsert(
        source, table, keys=[name], duplicates="last by v", delete_when=f"`{name}` = '${{spark.app.name}}'"
    )
    lake.spark.conf.unset(VARIABLES)
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (0, 2, 1)
    assert lake.held(table) == [("${env:HOME}", "new"), ("x", "new")]


def test_a_source_that_says_something_else_each_time_is_asked_once(lake: Lake) -> None:
    table = lake.table(*((number, "a", 1) for number in range(20)))
    source = lake.spark.range(0, 10).selectExpr("CAST(rand() * 1e15 AS bigint) AS id", "'r' AS v", "1 AS ts")
    done = lake.lw.upsert(source, table, keys="id")
    assert (done.rows_inserted, len(lake.held(table))) == (10, 30)


@pytest.mark.long
def test_names_dates_and_moments_of_any_kind_are_keys(lake: Lake) -> None:
    schema = "n date, lacking timestamp, `rank` string, v int"
    query = (
        "SELECT DATE'{0}-01-01' + CAST(id AS INT) AS n, TIMESTAMP'2026-01-01' + make_interval(0, "
        "0, 0, id) AS lacking, "
    )
    query += "concat('it\\'s ', id) AS `rank`, 1 AS v FROM range(0, {1})"
    table = lake.table(schema=schema)
    lake.lw.upsert(lake.spark.sql(query.format("2026", 150)), table, keys=["n", "lacking", "rank"])
    lake.spark.sql(f"INSERT INTO delta.`{table}` VALUES (DATE'2020-01-01', TIMESTAMP'2020-01-01', 'x', 1)")
    done = lake.lw.upsert(lake.spark.sql(query.format("2026", 200)), table, keys=["n", "lacking", "rank"])
    assert (done.rows_updated, done.rows_inserted) == (150, 50)
    assert "DATE'2026-01-01'" in done.pruning and "TIMESTAMP'" in done.pruning and "it\\'s 0" in done.pruning
    far = lake.lw.upsert(lake.spark.sql(query.format("+12026", 200)), table, keys=["n", "lacking", "rank"])
    assert far.rows_inserted == 200


def test_the_target_may_be_its_own_source(lake: Lake) -> None:
    table = lake.table((1, "a", 1), (2, "b", 1))
    done = lake.lw.upsert(lake.lw.table(table).selectExpr("id + 1 AS id", "v", "ts"), table, keys="id")
    assert (done.rows_updated, done.rows_inserted) == (1, 1)
    assert lake.held(table) == [(1, "a", 1), (2, "a", 1), (3, "b", 1)]
    record = lake.commits(table)[-1].lineage
    assert record is not None and [one.version for one in record.inputs] == [0]


def test_a_source_that_read_the_target_before_others_committed_is_computed_again(
    lake: Lake, tmp_path: Path
) -> None:
    table, begun = lake.table((1, "a", 1)), str(tmp_path / "begun")

    def counted(ts: int) -> int:
        """Somebody else commits while the source is computed for the first time."""
        if not os.path.exists(begun):
            with open(begun, "w"):
                row = {"id": [2], "v": ["b"], "ts": pa.array([1], pa.int32())}
                write_deltalake(table, pa.table(row), mode="append")
        return ts + 1

    source = lake.spark.read.format("delta").load(table).withColumn("ts", udf(counted, "int")("ts"))
    assert lake.lw.upsert(source, table, keys="id").rows_updated == 2
    assert lake.held(table) == [(1, "a", 2), (2, "b", 2)]


@pytest.mark.long
def test_a_source_that_reads_the_target_at_an_older_version_as_well_is_computed_again(
    lake: Lake, tmp_path: Path
) -> None:
    table, begun = lake.table((1, "a", 1)), str(tmp_path / "begun")
    lake.lw.upsert(lake.rows((1, "b", 1)), table, keys="id")

    def counted(ts: int) -> int:
        """Somebody else commits while the source is computed for the first time."""
        if not os.path.exists(begun):
            with open(begun, "w"):
                row = {"id": [2], "v": ["c"], "ts": pa.array([1], pa.int32())}
                write_deltalake(table, pa.table(row), mode="append")
        return ts + 1

    first = lake.spark.read.format("delta").option("versionAsOf", 0).load(table).select("id", "v")
    head = lake.spark.read.format("delta").load(table).select("id", udf(counted, "int")("ts").alias("ts"))
    assert lake.lw.upsert(head.join(first, "id", "left"), table, keys="id").rows_updated == 2
    assert lake.held(table) == [(1, "a", 2), (2, None, 2)]


@pytest.mark.long
def test_a_text_of_bytes_that_are_no_utf8_is_found_again(lake: Lake) -> None:
    table, schema = lake.table((1, "tea"), schema="n int, k string"), "CAST(X'636166E9' AS STRING) AS k"
    for n in (2, 3):
        lake.lw.upsert(lake.spark.range(1).selectExpr(f"{n} AS n", schema), table, keys="k")
    assert sorted(row.n for row in lake.spark.read.format("delta").load(table).collect()) == [1, 3]


SPECIAL = """SELECT * FROM VALUES
    (1.50BD, TIMESTAMP'0001-01-01 00:00:00 UTC', TIMESTAMP_NTZ'2026-03-29 02:30:00', X'FF80', true, 'a '),
    (-0.01BD, TIMESTAMP'9999-12-31 23:59:59 UTC', TIMESTAMP_NTZ'1582-10-10 00:00:00', X'', false, 'A%/=: ?'),
    (0BD, TIMESTAMP'2026-10-25 00:30:00 UTC', TIMESTAMP_NTZ'0001-01-01 00:00:00', X'00', true, 'it\\'s \\\\'),
    (1BD, TIMESTAMP'2026-10-25 01:30:00 UTC', TIMESTAMP_NTZ'9999-12-31 00:00:00', X'', true, repeat('z', 99))
    AS t(d, t, n, x, b, s)"""


def test_keys_of_any_kind_are_found_again_in_files_and_in_partitions(lake: Lake) -> None:
    kinds = lake.spark.sql(SPECIAL).selectExpr(
        "*", "IF(d = 0, double('NaN'), 0D) AS f", "named_struct('f', 0D, 'n', CAST(NULL AS INT)) AS r"
    )
    keys, parted = kinds.columns, str(lake.folder / "parted")
    again = kinds.withColumn("f", -kinds.f)  # zeros below zero are zeros
    for table in (parted, str(lake.folder / "kinds")):
        made = lake.lw.upsert(
            kinds, table, keys=keys, null_keys="match", partitioned=["t", "s"] * (table == parted)
        )
        lake.spark.conf.set("spark.sql.session.timeZone", "Asia/Kathmandu")
        done = lake.lw.upsert(again, table, keys=keys, delete_when="b", null_keys="match")
        lake.spark.conf.unset("spark.sql.session.timeZone")
        assert (made.rows_inserted, done.rows_inserted, done.rows_deleted) == (4, 0, 3)


@pytest.mark.long
def test_long_keys_are_not_written_into_the_commit(lake: Lake) -> None:
    keys = [(f"{number:03}{'x' * 20_000}", number) for number in range(100)]
    table = lake.table(*keys, schema="k string, n int")
    done = lake.lw.upsert(lake.rows(*keys, schema="k string, n int"), table, keys="k")
    assert (done.rows_updated, done.rows_inserted, done.pruning) == (100, 0, "")
    newest = max(Path(table, "_delta_log").glob("*.json"))
    assert newest.stat().st_size < 20_000


def test_other_tables_than_deltas_are_refused(lake: Lake) -> None:
    lake.spark.sql(f"CREATE TABLE {lake.database}.plain (id bigint) USING parquet")
    with pytest.raises(UsageError, match="not a Delta table"):
        lake.lw.upsert(lake.spark.range(1), f"{lake.database}.plain", keys="id")


def test_an_operation_is_done_once_and_again_when_it_was_undone(lake: Lake) -> None:
    table, source = lake.table((1, "a", 1)), lake.rows((2, "b", 1))
    assert lake.lw.upsert(source, table, keys="id", operation="load 7").rows_inserted == 1
    assert lake.lw.upsert(source, table, keys="id", operation="load 7").done_before
    assert len(lake.commits(table)) == 2
    lake.spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF 0")  # leaves the number of what it undoes
    assert lake.lw.upsert(source, table, keys="id", operation="load 7").rows_inserted == 1
    assert lake.lw.upsert(source, table, keys="id", operation="load 7").done_before
    assert lake.held(table) == [(1, "a", 1), (2, "b", 1)]
    history = history_of(lake.commits(table))
    assert [one.effect for one in history[-3:]] == [Effect.RESTORE, Effect.ALIAS, Effect.CHANGE]


@pytest.mark.long
def test_an_operation_ends_with_the_table_that_is_made_anew(lake: Lake) -> None:
    name, source = f"{lake.database}.anew", lake.rows((2, "b", 1))
    for _ in range(2):
        lake.spark.sql(f"CREATE OR REPLACE TABLE {name} (id BIGINT, v STRING, ts INT) USING delta")
        assert not lake.lw.upsert(source, name, keys="id", operation="load 9").done_before
        assert lake.lw.upsert(source, name, keys="id", operation="load 9").done_before
    assert lake.spark.table(name).count() == 1


def test_each_batch_of_a_stream_is_applied_once_and_again_when_it_was_undone(lake: Lake) -> None:
    source, table = lake.table((1, "a", 1), (2, "b", 1)), str(lake.folder / "sink")
    checkpoint = lake.folder / "checkpoint"

    def flow() -> None:
        stream = lake.spark.readStream.format("delta").load(source)
        query = lake.lw.upsert_stream(
            stream, table, keys="id", checkpoint=str(checkpoint), trigger={"availableNow": True}
        )
        query.awaitTermination()

    def forget(batch: int) -> None:
        """As if Spark had died before it noted the batch."""
        for name in (f"commits/{batch}", f"commits/.{batch}.crc"):
            (checkpoint / name).unlink(missing_ok=True)

    flow()
    write_deltalake(
        source, pa.table({"id": [2, 3], "v": ["B", "c"], "ts": pa.array([2, 2], pa.int32())}), mode="append"
    )
    flow()
    whole = [(1, "a", 1), (2, "B", 2), (3, "c", 2)]
    assert lake.held(table) == whole
    commits = lake.commits(table)
    assert [number for one in commits for _, number in one.transactions] == [0, 1]
    forget(1)
    flow()
    assert len(lake.commits(table)) == len(commits)
    DeltaTable(table).restore(commits[-2].version)  # which takes Spark ten times as long
    forget(1)
    flow()
    assert lake.held(table) == whole


@pytest.mark.long
@pytest.mark.crash
@pytest.mark.parametrize(
    "point",
    mostly_long(points_of("test_a_query_killed_at_any_step_of_a_batch_applies_it_once"), ["upsert.merging"]),
)
def test_a_query_killed_at_any_step_of_a_batch_applies_it_once(
    lake: Lake, tmp_path: Path, point: str
) -> None:
    source, sink, checkpoint = (str(tmp_path / name) for name in ("source", "sink", "checkpoint"))
    write_deltalake(source, pa.table({"id": [1, 2], "n": [1, 1]}))
    killed = subprocess.run(
        [sys.executable, upsert_process.__file__, str(tmp_path), str(lake.services.settings.home)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "LAKEWARDEN_FAILPOINT": point,
        },
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL
    assert lake.held(sink) == ([(1, 1), (2, 1)] if point == "upsert.batch" else [])
    assert not (tmp_path / "checkpoint" / "commits" / "0").exists()
    write_deltalake(sink, pa.table({"id": [3], "n": [1]}), mode="append")
    for _ in range(2):
        query = lake.lw.upsert_stream(
            lake.spark.readStream.format("delta").load(source),
            sink,
            keys="id",
            checkpoint=checkpoint,
            trigger={"availableNow": True},
        )
        query.awaitTermination()
        assert (tmp_path / "checkpoint" / "commits" / "0").exists()
        assert lake.held(sink) == [(1, 1), (2, 1), (3, 1)]
        batches = [one.transactions for one in lake.commits(sink) if one.operation == "MERGE"]
        assert [[number for _, number in told] for told in batches] == [[0]]


@pytest.mark.long
def test_the_options_of_the_classic_sink_are_taken(lake: Lake) -> None:
    table = lake.table((1, "a", 1), (2, "b", 1))
    words: dict[str, Any] = {
        "idCols": "id",
        "dropDuplicate": "true",
        "keepFileNum": "true",
        "batchId": "load 8",
    }
    done = lake.lw.upsert(
        lake.rows((2, "B", 2), (3, "c", 2), (3, "d", 2)), table, operation="upsert", **words
    )
    assert (done.rows_inserted, done.rows_updated) == (1, 1)
    assert lake.held(table) == [(1, "a", 1), (2, "B", 2), (3, "c", 2)]
    assert lake.lw.upsert(lake.rows((9, "z", 9)), table, operation="upsert", **words).done_before
    done = lake.lw.upsert(lake.rows((2, None, 0), (7, None, 0)), table, idCols="id", operation="delete")
    assert (done.rows_deleted, lake.held(table)) == (1, [(1, "a", 1), (3, "c", 2)])


def test_a_batch_by_its_number_in_foreach_batch_is_done_once(lake: Lake) -> None:
    source, table = lake.table((1, "a", 1)), lake.table((1, "old", 0))
    done: list[bool] = []

    def upsert(frame: DataFrame, number: int) -> None:
        for _ in range(2):
            done.append(lake.lw.upsert(frame, table, idCols="id", batchId=number).done_before)

    stream = lake.spark.readStream.format("delta").load(source).writeStream.foreachBatch(upsert)
    checkpoint = str(lake.folder / uuid.uuid4().hex[:8])
    query = stream.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    assert done == [False, True] and lake.held(table) == [(1, "a", 1)]
    assert lake.commits(table)[-1].transactions == ((str(query.id), 0),)


@pytest.mark.long
def test_a_batch_is_known_in_a_thread_that_its_function_starts_and_each_change_of_it_is_done(
    lake: Lake,
) -> None:
    source, table = lake.table((1, "a", 1), (2, "b", 1)), lake.table((1, "old", 0), (3, "gone", 0))
    done: list[bool] = []

    def upsert(frame: DataFrame, number: int) -> None:
        gone = frame.where("id = 2").selectExpr("id + 1 AS id", "v", "ts")
        for rows, operation in ((frame, "upsert"), (gone, "delete")):
            made = lake.lw.upsert(rows, table, idCols="id", operation=operation, batchId=number)
            done.append(made.done_before)

    def spread(frame: DataFrame, number: int) -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(upsert, frame, number).result()

    stream = lake.spark.readStream.format("delta").load(source).writeStream.foreachBatch(spread)
    checkpoint = str(lake.folder / uuid.uuid4().hex[:8])
    query = stream.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    assert done == [False, False] and lake.held(table) == [(1, "a", 1), (2, "b", 1)]
    apps = [commit.transactions[0][0].partition(" ")[0] for commit in lake.commits(table)[-2:]]
    assert apps == [str(query.id)] * 2


@pytest.mark.long
def test_a_late_row_replaces_nothing_where_only_some_columns_are_updated(lake: Lake) -> None:
    table = lake.table((1, "first", 1))
    for v, ts in (("newest", 10), ("late", 5)):
        lake.lw.upsert(lake.rows((1, v, ts)), table, keys=["id"], when="newer by ts", partial=["v"])
    assert lake.held(table) == [(1, "newest", 10)]
    with pytest.raises(UsageError, match="names no column"):
        lake.lw.upsert(lake.rows((1, "x", 11)), table, keys=["id"], partial=[])
    assert lake.held(table) == [(1, "newest", 10)]


@pytest.mark.parametrize("rule", ["error", "any", "last by ts"])
def test_refused_nulls_are_counted(lake: Lake, rule: str) -> None:
    table = lake.table((1, "a", 1))
    source = lake.rows((None, "x", 1), (None, "y", 2), (None, "y", 2), (2, "b", 1))
    with pytest.raises(PreconditionError, match="3 rows of the source have NULL in a key"):
        lake.lw.upsert(source, table, keys="id", duplicates=rule, null_keys="refuse")


@pytest.mark.long
def test_an_empty_text_in_a_partition_is_the_null_that_it_is_kept_as(lake: Lake) -> None:
    schema = "k string, v string"
    table = lake.table(("", "old"), ("a", "old"), schema=schema, partitioned="k")
    source = lake.rows(("", "new"), ("a", "new"), schema=schema)
    with pytest.raises(PreconditionError, match="1 rows of the source have NULL in a key"):
        lake.lw.upsert(source, table, keys=["k"], null_keys="refuse")
    done = lake.lw.upsert(source, table, keys=["k"], null_keys="match")
    assert (done.rows_inserted, done.rows_updated) == (0, 2)
    assert sorted(lake.held(table), key=repr) == [("a", "new"), (None, "new")]


@pytest.mark.parametrize("words", [{"keys": ["nope"]}, {"keys": ["id"], "duplicates": "last by nope"}])
def test_a_column_that_is_not_there_is_named(lake: Lake, words: dict[str, Any]) -> None:
    table = lake.table((1, "a", 1))
    with pytest.raises(UsageError, match="The source has no column nope"):
        lake.lw.upsert(lake.rows((1, "b", 2)), table, **words)


@pytest.mark.long
def test_the_same_operation_at_the_same_time_is_done_once(lake: Lake) -> None:
    table = lake.table((7, "x", 1))

    def one(number: int) -> bool:
        rows = lake.rows((number, "x", 1))
        return lake.lw.upsert(rows, table, keys=["id"], operation="at once").done_before

    with ThreadPoolExecutor(3) as pool:
        assert sorted(pool.map(one, range(3))) == [False, True, True]
    assert len(lake.held(table)) == 2


@pytest.mark.long
def test_a_folder_with_other_files_becomes_no_table(lake: Lake) -> None:
    place = lake.folder / "occupied"
    place.mkdir()
    (place / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"could not be made.*", check=lambda error: "empty" in error.hint):
        lake.lw.upsert(lake.rows((1, "a", 1)), str(place), keys="id")
    assert [one.name for one in place.iterdir()] == ["notes.txt"]


@pytest.mark.long
def test_a_missing_table_may_be_made_by_several_at_once(lake: Lake) -> None:
    table = str(lake.folder / "several")
    with ThreadPoolExecutor(3) as pool:
        done = [pool.submit(lake.lw.upsert, lake.rows((n, "x", 1)), table, keys=["id"]) for n in range(3)]
    refused = [one.exception() for one in done if one.exception() is not None]
    assert all(isinstance(one, ConflictError) for one in refused), [str(one)[:600] for one in refused]
    assert len(lake.held(table)) == 3 - len(refused)
