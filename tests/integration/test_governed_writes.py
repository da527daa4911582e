"""Governed writes on a real Spark session: what each commit says it read is what was read, whatever came in between."""

import json
import os
import re
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import PySparkException
from pyspark.sql import DataFrameWriter, SparkSession
from pyspark.sql.functions import col, udf

import lakewarden
from lakewarden.catalog.errors import NotAllowedError, UsageError
from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.lineage.versions import version_of
from lakewarden.catalog.model.lineage_record import LineageRecord, Operation
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.state.port import HintKind
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.installation.services import Services, open_services
from lakewarden.daemon.usecases.init import initialise
from lakewarden.jobs.rollback.journal.journal import Journal
from lakewarden.jobs.session.attached import Attached
from lakewarden.jobs.session.spark_writer import SparkWriter
from lakewarden.jobs.session.writes import Observed, Sql
from support.builders.callers import actor
from support.fakes.engine import FakeEngine
from support.fakes.governed_alone import GovernedAlone
from support.fakes.tools import OneFormat

pytestmark = pytest.mark.spark

ANA = actor("ana", admin=True)
USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


@dataclass
class Lake:
    """A database of the test's own, an installation, and a session attached to it."""

    spark: SparkSession
    lw: Attached
    services: Services
    database: str
    folder: Path

    def table(self, name: str, ids: Iterable[int] = range(5), **creation: Any) -> str:
        """A Delta table of (id, v = 10 * id) at version 0, made without Spark."""
        write_deltalake(self.folder / name, _rows(ids), **creation)
        self.spark.sql(f"CREATE TABLE {self.database}.{name} USING delta LOCATION '{self.folder / name}'")
        return f"{self.database}.{name}"

    def location(self, table: str) -> Path:
        """The folder of a table."""
        return self.folder / table.rpartition(".")[2]

    def foreign(self, table: str, *ids: int) -> None:
        """Somebody else, without Spark, appends rows; Spark's caches do not hear of it."""
        write_deltalake(self.location(table), _rows(ids), mode="append")

    def head(self, table: str) -> Commit:
        """The newest commit as the log reader tells it."""
        return self.commits(table)[-1]

    def commits(self, table: str) -> list[Commit]:
        return list(self.services.readers[0].commits(self.location(table).as_uri(), after=-1))

    def record(self, table: str) -> LineageRecord:
        """The record in the newest commit."""
        record = self.head(table).lineage
        assert record is not None
        return record

    def reads(self, table: str) -> list[tuple[str, int | None]]:
        """The inputs of the newest commit: (folder's name or format, version)."""
        return [
            (one.location.rpartition("/")[2] if one.version is not None else one.format, one.version)
            for one in self.record(table).inputs
        ]

    def ids(self, table: str) -> list[int]:
        """What the table holds."""
        return sorted(DeltaTable(self.location(table)).to_pyarrow_table().column("id").to_pylist())


def _rows(ids: Iterable[int]) -> pa.Table:
    chosen = list(ids)
    return pa.table(
        {"id": pa.array(chosen, pa.int64()), "v": pa.array([one * 10 for one in chosen], pa.int64())}
    )


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Services]:
    home = tmp_path_factory.mktemp("home")
    services = open_services(home=home)
    initialise(services, services.user)
    return home, services


@pytest.fixture
def lake(spark: SparkSession, installation: tuple[Path, Services], tmp_path: Path) -> Iterator[Lake]:
    home, services = installation
    database = f"g_{uuid.uuid4().hex[:10]}"
    spark.sql(f"CREATE DATABASE {database}")
    with lakewarden.attach(spark, home=home) as lw:
        yield Lake(spark, lw, services, database, tmp_path)
    spark.catalog.clearCache()
    spark.sql(f"DROP DATABASE {database} CASCADE")


def test_an_append_of_a_derived_table_carries_its_edge_in_the_commit(lake: Lake) -> None:
    source, derived = (
        lake.table("source"),
        lake.table("derived", [0]),
    )
    managed = register(lake.services.registry, str(lake.location(source)), actor=ANA, name=source).row
    lake.spark.sql(f"INSERT INTO {source} VALUES (7, 70)")
    written = lake.lw.write(lake.lw.table(source).where("id > 2")).append(derived)
    record = lake.record(derived)
    assert (record.run_id, record.operation) == (written.run_id, Operation.APPEND)
    assert [(one.table_id, one.format, one.version) for one in record.inputs] == [
        (managed.table_id, "delta", 1)
    ]
    assert record.inputs[0].format_id == managed.format_ids[-1]
    assert written.observed.seen and written.observed.unrecorded == () == written.observed.unused
    assert not record.reads_self
    assert lake.ids(derived) == [0, 3, 4, 7]


@pytest.mark.long
def test_nothing_that_is_made_of_literals_counts_as_an_input(lake: Lake) -> None:
    table = lake.table("t", [1])
    lake.lw.sql(f"INSERT INTO {table} VALUES (2, 2)")
    assert lake.record(table).inputs == ()
    lake.lw.sql(f"INSERT INTO {table} SELECT id, id FROM range(3, 5)")
    assert lake.record(table).inputs == ()
    lake.lw.write(lake.spark.createDataFrame([(5, 5)], "id BIGINT, v BIGINT")).append(table)
    assert lake.record(table).inputs == ()
    lake.lw.write(lake.spark.createDataFrame(pa.table({"id": [6], "v": [6]}))).append(table)
    assert lake.record(table).inputs == ()
    assert lake.ids(table) == [1, 2, 3, 4, 5, 6]


@pytest.mark.long
def test_what_is_no_table_is_an_input_by_its_kind(lake: Lake) -> None:
    table = lake.table("t")
    raw = str(lake.folder / "raw")
    lake.spark.sql("SELECT 8L AS id, 8L AS v").write.parquet(raw)
    lake.lw.write(lake.spark.read.parquet(raw)).append(table)
    (file,) = lake.record(table).inputs
    assert (file.format, file.location, file.version, file.table_id) == (
        "parquet",
        f"file://{raw}",
        None,
        None,
    )
    lake.lw.write(lake.spark.createDataFrame(lake.spark.read.parquet(raw).rdd)).append(table)
    assert lake.reads(table) == [("rdd", None)]
    lake.lw.write(lake.spark.table(table).localCheckpoint()).append(table)
    assert lake.reads(table) == [("rdd", None)]


STATEMENTS = [
    pytest.param("INSERT INTO {t} SELECT id, v FROM {s}", Operation.APPEND, id="insert"),
    pytest.param(
        "INSERT OVERWRITE {t} SELECT id, v FROM {s}",
        Operation.OVERWRITE,
        id="insert overwrite",
        marks=pytest.mark.long,
    ),
    pytest.param(
        "INSERT INTO {t} REPLACE WHERE id = 4 SELECT id, v FROM {s} WHERE id = 4",
        Operation.PARTIAL_OVERWRITE,
        id="replace where",
    ),
    pytest.param(
        "MERGE INTO {t} USING {s} ON {t}.id = {s}.id WHEN MATCHED THEN UPDATE SET * "
        "WHEN NOT MATCHED THEN INSERT *",
        Operation.MERGE,
        id="merge",
    ),
    pytest.param(
        "WITH q AS (SELECT * FROM {s}) INSERT INTO {t} SELECT id, v FROM q WHERE id IN (SELECT id FROM q)",
        Operation.APPEND,
        id="common table expression",
        marks=pytest.mark.long,
    ),
    pytest.param(
        "CREATE OR REPLACE TABLE {t} USING delta AS SELECT * FROM {s}", Operation.REPLACE, id="replace"
    ),
]


def test_a_managed_table_that_is_read_as_plain_parquet_is_an_input_of_unknown_version(lake: Lake) -> None:
    source, derived = lake.table("source"), lake.table("derived", [0])
    managed = register(lake.services.registry, str(lake.location(source)), actor=ANA, name=source).row
    lake.lw.write(lake.spark.read.parquet(str(lake.location(source)))).append(derived)
    [one] = lake.record(derived).inputs
    assert (one.table_id, one.format, one.version) == (managed.table_id, "parquet", None)
    assert not version_of(lake.head(derived)).known


@dataclass
class Interloper(GovernedAlone):
    """A `Directory` that is asked between pin and execution, and then commits to what was pinned."""

    commit: Callable[[], None]
    asked: int = 0

    def table_ids(self, locations: Sequence[str]) -> Mapping[str, str]:
        self.asked += 1
        self.commit()
        return {}

    def require_writable(self, location: str) -> None:
        return


@pytest.mark.few(1)
@pytest.mark.parametrize(("statement", "operation"), STATEMENTS)
def test_a_statement_reads_what_it_recorded_whoever_commits_in_between(
    lake: Lake, statement: str, operation: Operation
) -> None:
    source, table = lake.table("s"), lake.table("t", [9])
    interloper = Interloper(lambda: lake.foreign(source, 4, 77))
    services = lake.services
    writer = SparkWriter(
        lake.spark,
        directory=interloper,
        user="ana",
        tools=OneFormat(services.readers[0], FakeEngine(services.clock)),
        journal=Journal(store=services.store, clock=services.clock),
        storage=services.storage,
        clock=services.clock,
    )
    done = writer.run(Sql(text=statement.format(s=source, t=table)))
    assert interloper.asked == 1
    record = lake.record(table)
    assert (record.operation, record.reads_self, lake.reads(table)) == (operation, False, [("s", 0)])
    assert 77 not in lake.ids(table) and lake.ids(table).count(4) == 1
    assert done[1] is not None and done[1].observed == Observed(seen=True)


def test_a_new_table_records_what_it_was_made_from(lake: Lake) -> None:
    source = lake.table("s")
    where = f"LOCATION '{lake.folder / 'n'}'"
    lake.lw.sql(f"CREATE TABLE {lake.database}.n USING delta {where} AS SELECT * FROM {source}")
    assert lake.head(f"{lake.database}.n").version == 0
    assert lake.record(f"{lake.database}.n").operation is Operation.REPLACE
    assert lake.reads(f"{lake.database}.n") == [("s", 0)]


def test_a_managed_table_that_was_changed_is_told_to_the_daemon_and_no_other(lake: Lake) -> None:
    managed, other = lake.table("managed"), lake.table("other")
    register(lake.services.registry, str(lake.location(managed)), actor=ANA, name=managed)
    lake.services.inbox.done([hint.hint_id for hint in lake.services.inbox.claim(1_000)])
    for table in (managed, other):
        lake.lw.sql(f"INSERT INTO {table} VALUES (7, 70)")
    lake.lw.sql(f"DELETE FROM {managed} WHERE id = 99")
    lake.lw.detach()
    # Once or twice: what was delivered in between is told again.
    told = {hint.subject for hint in lake.services.inbox.claim(1_000) if hint.kind is HintKind.WRITTEN}
    assert told == {lake.location(managed).as_uri()}


def test_update_and_delete_read_nothing_but_their_table(lake: Lake) -> None:
    table = lake.table("t")
    lake.lw.sql(f"UPDATE {table} SET v = v + 1 WHERE id = 2")
    assert (lake.record(table).operation, lake.record(table).inputs) == (Operation.UPDATE, ())
    lake.lw.sql(f"DELETE FROM {table} WHERE id = 3")
    assert (lake.record(table).operation, lake.record(table).inputs) == (Operation.DELETE, ())
    lake.lw.sql(f"DELETE FROM {table} WHERE id = 3")
    assert lake.head(table).version == 2, "a DELETE without a match makes no commit"


def test_the_deeds_of_a_frame_overwrite_and_merge(lake: Lake) -> None:
    source, table = lake.table("s"), lake.table("t", [8, 9], partition_by=["v"])
    frame = lake.spark.table(source)
    lake.lw.write(frame).overwrite(table)
    assert (lake.record(table).operation, lake.ids(table)) == (Operation.OVERWRITE, [0, 1, 2, 3, 4])
    moved = frame.where("id < 2").selectExpr("id + 100 AS id", "v")
    lake.lw.write(moved).overwrite(table, partitions=True)
    assert (lake.record(table).operation, lake.ids(table)) == (
        Operation.PARTIAL_OVERWRITE,
        [2, 3, 4, 100, 101],
    )
    lake.lw.write(frame.where("id = 2")).overwrite(table, where="v <= 20")
    assert (lake.record(table).operation, lake.ids(table)) == (Operation.PARTIAL_OVERWRITE, [2, 3, 4])
    lake.lw.write(frame).merge(table, on="target.id = source.id")
    assert (lake.record(table).operation, lake.ids(table)) == (Operation.MERGE, [0, 1, 2, 3, 4])
    assert lake.reads(table) == [("s", 0)]
    lake.lw.write(frame).merge(
        table, on="target.id = source.id", clauses=["WHEN MATCHED AND source.id > 1 THEN DELETE"]
    )
    assert lake.ids(table) == [0, 1]
    asks = f"WHEN MATCHED THEN UPDATE SET v = (SELECT max(v) FROM {source})"
    with pytest.raises(UsageError, match="take no query"):
        lake.lw.write(frame).merge(table, on="target.id = source.id", clauses=[asks])
    assert lake.ids(table) == [0, 1]
    with pytest.raises(UsageError):
        lake.lw.write(frame).overwrite(table, where="v = 0", partitions=True)


def test_a_condition_that_is_a_text_asks_no_query(lake: Lake) -> None:
    """What Delta's own DELETE reads for it would be on no record."""
    source, table = lake.table("s"), lake.table("t", [8, 9])
    asks = f"EXISTS (SELECT 1 FROM {source} AS s(k, w) WHERE k = id - 5)"
    frame, head = lake.spark.table(source).where("false"), lake.head(table).version
    for option in ("replaceWhere", "REPLACEWHERE", "replaceOn"):
        with pytest.raises(UsageError, match="(?i)replace.* takes no query"):
            lake.lw.write(frame, options={option: asks}).overwrite(table)
    for statement in (
        f"INSERT OVERWRITE {table} WITH ('replaceWhere' = '{asks}') SELECT * FROM {source} WHERE false",
        f"INSERT INTO {table} WITH ('ReplaceWhere' = 'id IN (SELECT id FROM {source})') VALUES (1, 1)",
        f"CREATE OR REPLACE TABLE {table} USING delta OPTIONS ('replaceWhere' = '{asks}') AS SELECT 1 AS id",
    ):
        with pytest.raises(UsageError, match="(?i)replace.* takes no query"):
            lake.lw.sql(statement)
    with pytest.raises(PySparkException):
        lake.lw.write(frame).overwrite(table, where=asks)
    assert (lake.ids(table), lake.head(table).version) == ([8, 9], head)
    lake.lw.sql(
        f"INSERT OVERWRITE {table} WITH ('replaceWhere' = 'id = 8') SELECT * FROM {source} WHERE false"
    )
    assert lake.ids(table) == [9]


@pytest.mark.long
def test_an_overwrite_of_some_partitions_never_counts_as_one_of_all(lake: Lake) -> None:
    source, table = lake.table("s"), lake.table("t", partition_by=["v"])
    moved = lake.spark.table(source).where("id < 2").selectExpr("id + 100 AS id", "v")

    def plain() -> DataFrameWriter:
        return moved.write.format("delta").mode("overwrite")

    lake.lw.write(moved, options={"partitionOverwriteMode": "dynamic"}).overwrite(table)
    lake.foreign(table, 7)
    plain().option("partitionOverwriteMode", "dynamic").save(str(lake.location(table)))
    plain().option("replaceUsing", "v").saveAsTable(table)
    plain().save(str(lake.location(table)))
    made = [version_of(commit).operation for commit in lake.commits(table)[1:]]
    assert made == ["partial overwrite", "append", *["partial overwrite"] * 2, "overwrite"]


@pytest.mark.long
def test_a_table_may_be_given_by_its_path(lake: Lake) -> None:
    source, table = lake.table("s"), lake.table("t")
    where = str(lake.location(table))
    lake.lw.write(lake.lw.table(str(lake.location(source)))).append(where)
    lake.lw.write(lake.lw.table(source).limit(1)).merge(where, on="target.id = source.id")
    assert [one.lineage.operation.value for one in lake.commits(table)[1:] if one.lineage] == [
        "append",
        "merge",
    ]
    assert lake.reads(table) == [("s", 0)]


def test_what_somebody_commits_after_the_pin_is_not_read(lake: Lake) -> None:
    source, table = lake.table("s"), lake.table("t", [9])
    pinned = lake.lw.table(source)
    lake.foreign(source, 100)
    written = lake.lw.write(pinned).append(table)
    assert (lake.reads(table), lake.ids(table)) == ([("s", 0)], [0, 1, 2, 3, 4, 9])
    assert written.observed.unrecorded == ()
    lake.lw.write(lake.spark.table(source)).overwrite(table)
    assert (lake.reads(table), lake.ids(table)) == ([("s", 1)], [0, 1, 2, 3, 4, 100])


@pytest.mark.long
def test_a_pinned_head_stays_readable_however_old_it_is_when_somebody_commits(lake: Lake) -> None:
    old, table = lake.table("s"), lake.table("t", [9])
    long_ago = time.time() - timedelta(days=400).total_seconds()
    os.utime(lake.location(old) / "_delta_log" / f"{0:020d}.json", (long_ago, long_ago))
    pinned = lake.lw.table(old)
    lake.foreign(old, 5)
    with pytest.raises(PySparkException):
        lake.spark.sql(f"SELECT * FROM {old} VERSION AS OF 0").collect()
    lake.lw.write(pinned).overwrite(table)
    assert (lake.reads(table), lake.ids(table)) == ([("s", 0)], [0, 1, 2, 3, 4])


def test_temporary_views_and_views_over_views_are_seen_through(lake: Lake) -> None:
    source, other = lake.table("s"), lake.table("o", [3])
    table = lake.table("t", [9])
    lake.spark.sql(f"CREATE VIEW {lake.database}.inner_view AS SELECT * FROM {source} WHERE id > 1")
    lake.spark.sql(f"CREATE VIEW {lake.database}.outer_view AS SELECT * FROM {lake.database}.inner_view")
    lake.spark.table(other).createOrReplaceTempView("small")
    lake.spark.sql(
        f"CREATE OR REPLACE TEMP VIEW both AS SELECT a.* FROM {lake.database}.outer_view "
        "a JOIN small USING (id)"
    )
    lake.foreign(source, 3)
    lake.lw.sql(f"INSERT OVERWRITE {table} SELECT * FROM both")
    assert (lake.reads(table), lake.ids(table)) == ([("o", 0), ("s", 1)], [3, 3])
    view = lake.lw.table("both")
    lake.foreign(source, 3)
    lake.lw.write(view).overwrite(table)
    assert (lake.reads(table), lake.ids(table)) == ([("o", 0), ("s", 1)], [3, 3])


@pytest.mark.long
def test_two_versions_of_one_table_are_two_inputs(lake: Lake) -> None:
    source, table = lake.table("s"), lake.table("t", [9])
    lake.foreign(source, 5)
    lake.foreign(source, 6)
    first, last = lake.lw.table(source, version=1), lake.lw.table(source)
    written = lake.lw.write(last.join(first, "id", "left_anti")).append(table)
    assert (lake.reads(table), lake.ids(table)) == ([("s", 1), ("s", 2)], [6, 9])
    assert written.observed.unrecorded == () == written.observed.unused
    lake.lw.sql(f"INSERT INTO {table} SELECT * FROM {source} MINUS SELECT * FROM {source} VERSION AS OF 0")
    assert (lake.reads(table), lake.ids(table)) == ([("s", 0), ("s", 2)], [5, 6, 6, 9])


@pytest.mark.long
def test_python_functions_change_nothing_about_what_is_read(lake: Lake) -> None:
    source, table = lake.table("s"), lake.table("t", [9])
    shifted = udf(lambda value: value + 1000, "BIGINT")
    written = lake.lw.write(lake.spark.table(source).withColumn("id", shifted(col("id")))).append(table)
    assert (lake.reads(table), lake.ids(table)) == ([("s", 0)], [9, 1000, 1001, 1002, 1003, 1004])
    assert written.observed.seen and not written.observed.unrecorded


@pytest.mark.long
def test_a_cached_frame_is_an_input_at_the_version_it_was_cached_from(lake: Lake) -> None:
    source, table = lake.table("s"), lake.table("t", [9])
    cached = lake.spark.table(source).where("id < 100").cache()
    assert cached.count() == 5
    lake.foreign(source, 50)
    written = lake.lw.write(cached.where("id > 3")).overwrite(table)
    assert (lake.reads(table), lake.ids(table)) == ([("s", 0)], [4])
    assert written.observed.unrecorded == ()
    again = lake.lw.write(lake.lw.table(source).where("id > 3")).overwrite(table)
    assert (lake.reads(table), lake.ids(table)) == ([("s", 1)], [4, 50])
    assert again.observed.unrecorded == ()


@pytest.mark.long
def test_only_changes_read_from_a_change_feed_are_an_incremental_input(lake: Lake) -> None:
    source = lake.table("s", configuration={"delta.enableChangeDataFeed": "true"})
    table = lake.table("t", [9])
    for identity in (10, 11, 12):
        lake.spark.sql(f"INSERT INTO {source} VALUES ({identity}, 0)")
    lake.lw.sql(f"INSERT INTO {table} SELECT id, v FROM table_changes('{source}', 2)")
    (one,) = lake.record(table).inputs
    assert (one.from_version, one.version, lake.ids(table)) == (1, 3, [9, 11, 12])
    lake.lw.sql(f"INSERT INTO {table} SELECT id, v FROM table_changes('{source}', 3, 1000)")
    (one,) = lake.record(table).inputs  # a table that has come to version 3 was read up to that
    assert (one.from_version, one.version, lake.ids(table)) == (2, 3, [9, 11, 12, 12])


def test_a_write_that_reads_its_own_table_says_so(lake: Lake) -> None:
    source, table = lake.table("s", [1]), lake.table("t")
    lake.lw.sql(f"INSERT OVERWRITE {table} SELECT t.* FROM {table} t LEFT ANTI JOIN {source} USING (id)")
    record = lake.record(table)
    assert (record.operation, record.reads_self) == (Operation.OVERWRITE, True)
    assert (lake.reads(table), lake.ids(table)) == ([("s", 0)], [0, 2, 3, 4])
    lake.lw.write(lake.lw.table(table, version=0)).overwrite(table)
    assert (lake.record(table).reads_self, lake.reads(table), lake.ids(table)) == (
        False,
        [("t", 0)],
        [0, 1, 2, 3, 4],
    )
    lake.lw.sql(f"CREATE OR REPLACE TABLE {table} USING delta AS SELECT * FROM {table} WHERE id > 3")
    assert (lake.record(table).reads_self, lake.ids(table)) == (True, [4])


@pytest.mark.long
def test_what_users_want_in_user_metadata_is_kept_character_by_character(lake: Lake) -> None:
    source, table = lake.table("s"), lake.table("t")
    words = 'ticket "42"\n{größe: \\u0000}'
    lake.lw.write(lake.spark.table(source), options={"userMetadata": words}).append(table)
    assert lake.record(table).user_metadata == words
    lake.spark.conf.set(USER_METADATA, "of the session")
    try:
        lake.lw.sql(f"INSERT INTO {table} SELECT * FROM {source}")
        lake.spark.sql(f"INSERT INTO {table} VALUES (1, 1)")
    finally:
        lake.spark.conf.unset(USER_METADATA)
    ours, plain = lake.commits(table)[-2:]
    assert ours.lineage is not None and ours.lineage.user_metadata == "of the session"
    assert (plain.user_metadata, plain.lineage) == ("of the session", None)


def test_threads_of_one_session_do_not_see_one_anothers_records(lake: Lake) -> None:
    sources = [lake.table(f"s{number}", [number]) for number in range(3)]
    tables = [lake.table(f"t{number}", [9]) for number in range(3)]
    start = threading.Barrier(4)

    def write(number: int) -> list[str]:
        start.wait()
        return [
            lake.lw.write(lake.spark.table(sources[number])).append(tables[number]).run_id for _ in range(2)
        ]

    with ThreadPoolExecutor(4) as pool:
        running = [pool.submit(write, number) for number in range(3)]
        start.wait()
        plain = lake.table("plain")
        lake.spark.sql(f"INSERT INTO {plain} VALUES (1, 1)")
        run_ids = [one.result() for one in running]
    for number, table in enumerate(tables):
        made = [one.lineage for one in lake.commits(table)[1:] if one.lineage is not None]
        assert [record.run_id for record in made] == run_ids[number]
        assert {record.inputs[0].location.rpartition("/")[2] for record in made} == {f"s{number}"}
    assert [one.lineage for one in lake.commits(plain)] == [None, None]


@pytest.mark.long
def test_two_threads_that_append_to_one_table_each_have_their_own_commit(lake: Lake) -> None:
    source, table = lake.table("s"), lake.table("t", [9])
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(lake.lw.write(lake.spark.table(source)).append, table) for _ in range(4)]
        run_ids = {one.result().run_id for one in running}
    assert {one.run_id for one in lake.commits(table)[1:]} == run_ids
    assert len(run_ids) == 4


@pytest.mark.long
def test_a_failed_write_leaves_no_commit_and_its_repetition_has_a_record_of_its_own(lake: Lake) -> None:
    source, table = lake.table("s"), lake.table("t", [9])
    broken = udf(lambda value: 1 // (value - value), "BIGINT")
    pinned = lake.lw.table(source)
    with pytest.raises(PySparkException):
        lake.lw.write(pinned.withColumn("v", broken(col("id")))).append(table)
    assert lake.head(table).version == 0
    lake.foreign(source, 77)
    written = lake.lw.write(pinned).append(table)
    assert (lake.head(table).version, lake.record(table).run_id) == (1, written.run_id)
    assert lake.reads(table) == [("s", 0)]
    with pytest.raises(PySparkException):
        lake.lw.sql(f"INSERT INTO {table} SELECT nothing FROM {source}")
    assert lake.spark.conf.get(USER_METADATA, None) is None


@pytest.mark.long
def test_what_writes_no_delta_table_goes_to_spark_unchanged(lake: Lake) -> None:
    table = lake.table("t")
    assert lake.lw.sql(f"SELECT count(*) AS n FROM {table}").collect()[0]["n"] == 5
    lake.lw.sql(f"CREATE TABLE {lake.database}.p USING parquet AS SELECT * FROM {table}")
    lake.lw.sql(f"INSERT INTO {lake.database}.p SELECT * FROM {table}")
    assert lake.spark.table(f"{lake.database}.p").count() == 10
    lake.lw.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('a' = 'b')")
    assert lake.head(table).lineage is None
    with pytest.raises(PySparkException):
        lake.lw.write(lake.spark.table(table)).append(f"{lake.database}.p")


def test_system_tables_are_out_of_reach(lake: Lake) -> None:
    with pytest.raises(NotAllowedError):
        lake.lw.write(lake.spark.range(1)).append(
            lake.services.store.location(TABLES).removeprefix("file://")
        )


@pytest.mark.long
def test_the_record_is_where_it_is_said_to_be(lake: Lake) -> None:
    table = lake.table("t", [9])
    lake.lw.write(lake.spark.range(1).selectExpr("id", "id AS v")).append(table)
    lines = (lake.location(table) / "_delta_log" / f"{1:020d}.json").read_text().splitlines()
    info: dict[str, Any] = next(json.loads(line)["commitInfo"] for line in lines if "commitInfo" in line)
    assert json.loads(info["userMetadata"])["lakewarden"]["operation"] == "append"


@pytest.mark.long
def test_the_examples_of_the_page_run(
    lake: Lake, installation: tuple[Path, Services], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEWARDEN_HOME", str(installation[0]))
    page = (Path(__file__).parents[2] / "docs" / "governed-writes.md").read_text()
    place = f"USING delta LOCATION '{lake.folder}"
    columns = "(id BIGINT, day BIGINT, amount BIGINT)"
    lake.spark.sql("CREATE DATABASE shop")
    try:
        lake.spark.sql(f"CREATE TABLE shop.orders {columns} {place}/orders'")
        lake.spark.sql(f"CREATE TABLE shop.days {columns} {place}/days' PARTITIONED BY (day)")
        lake.spark.sql("INSERT INTO shop.orders VALUES (1, 1, 100), (2, 2, 200), (3, 2, 0)")
        names: dict[str, Any] = {"spark": lake.spark}
        for example in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
            exec(example, names)  # noqa: S102  # the examples are ours
        names["lw"].detach()
        assert sorted(row["id"] for row in lake.spark.table("shop.big").collect()) == [1, 1, 2, 2, 3]
        history = lake.spark.sql("DESCRIBE HISTORY shop.big").collect()
        assert len(history) == 10
        assert all("lakewarden" in row["userMetadata"] for row in history)
    finally:
        lake.spark.sql("DROP DATABASE shop CASCADE")
