"""Writes on a real Spark session that a second writer, delta-rs, overtakes: tried again on what is there by then."""

import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.formats.port import Commit
from lakewarden.daemon.installation.services import Services
from lakewarden.jobs.session.attached import Attached
from lakewarden.jobs.session.plans import Plans
from support.builders.lakes import attached_database
from support.cases import mostly_long

pytestmark = pytest.mark.spark

AGAIN = "Trying again"
RETRIES = "lakewarden.conflicts.retries"


@dataclass
class Lake:
    spark: SparkSession
    lw: Attached
    services: Services
    folder: Path
    database: str

    def named(self, table: str) -> str:
        """The table at a path, as SQL names it."""
        name = f"{self.database}.t{Path(table).name}"
        self.spark.sql(f"CREATE TABLE IF NOT EXISTS {name} USING delta LOCATION '{table}'")
        return name

    def table(self, *rows: tuple[int, int]) -> str:
        path = str(self.folder / uuid.uuid4().hex[:8])
        write_deltalake(path, columns(*rows))
        return path

    def held(self, table: str) -> list[tuple[int, int]]:
        rows = DeltaTable(table).to_pyarrow_table().to_pylist()
        return sorted((row["k"], row["v"]) for row in rows)

    def commits(self, table: str) -> list[Commit]:
        return list(self.services.readers[0].commits(Path(table).as_uri(), after=-1))

    def governed(self, table: str) -> list[Commit]:
        return [one for one in self.commits(table) if one.lineage is not None]


def columns(*rows: tuple[int, int]) -> pa.Table:
    keys, values = [row[0] for row in rows], [row[1] for row in rows]
    return pa.table({"k": pa.array(keys, pa.int32()), "v": pa.array(values, pa.int32())})


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    folder = tmp_path_factory.mktemp("races")
    with attached_database(spark, folder) as (lw, services, database):
        yield Lake(spark, lw, services, folder, database)


@pytest.fixture(autouse=True)
def as_it_was(lake: Lake) -> Iterator[None]:
    yield
    for key in (RETRIES, "lakewarden.operation"):
        lake.spark.conf.unset(key)


class Heard(logging.Handler):
    """Counts the races that the session's writes say they have lost, and tells of each."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.losses: list[str] = []
        self.first = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        if AGAIN in record.getMessage():
            self.losses.append(record.getMessage())
            self.first.set()


@contextmanager
def a_rival(lake: Lake, commit: Callable[[int], object], forever: bool = False) -> Iterator[Heard]:
    """Somebody who commits whenever Spark has begun another job, until a write has lost to it; or `forever`: until the
    block ends."""
    heard, ended = Heard(), threading.Event()
    problems: list[Exception] = []
    tracker = lake.spark.sparkContext.statusTracker()

    def go_on() -> None:
        seen, number = set[int](), 0
        try:
            while not ended.is_set() and (forever or not heard.first.is_set()):
                begun = set(tracker.getActiveJobsIds()) - seen
                if begun:
                    seen |= begun
                    commit(number)
                    number += 1
                ended.wait(0.005)
        except (DeltaError, OSError) as problem:
            problems.append(problem)

    log = logging.getLogger("lakewarden")
    before = log.level
    log.addHandler(heard)
    log.setLevel(logging.INFO)
    rival = threading.Thread(target=go_on)
    rival.start()
    try:
        yield heard
    finally:
        ended.set()
        rival.join()
        log.removeHandler(heard)
        log.setLevel(before)
    assert not problems, problems


def adding(table: str, first: int = 1000) -> Callable[[int], object]:
    return lambda number: write_deltalake(table, columns((first + number, 0)), mode="append")


def added(held: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [row for row in held if row[0] >= 1000]


STATEMENTS = {
    "update from": "UPDATE {t} AS t FROM {s} AS s SET v = t.v + s.v WHERE t.k = s.k",
    "upsert": "UPSERT INTO {t} (k, v) ON (k) SELECT k, 11 FROM {s}",
}


@pytest.mark.parametrize("name", mostly_long(STATEMENTS, ["update from"]))
def test_a_statement_that_loses_a_race_is_done_on_what_the_winner_left(lake: Lake, name: str) -> None:
    table, source = lake.table((1, 10), (2, 20)), lake.table((1, 1))
    statement = STATEMENTS[name].format(t=lake.named(table), s=lake.named(source))
    with a_rival(lake, adding(table)) as heard:
        (row,) = lake.lw.sql(statement).collect()
    held = lake.held(table)
    assert len(heard.losses) == 1 and "WRITE with delta-rs" in heard.losses[0]
    assert [row for row in held if row[0] < 1000] == [(1, 11), (2, 20)]
    assert [key for key, _ in added(held)] == list(range(1000, 1000 + len(added(held)))) != []
    assert len(lake.governed(table)) == 1 and row["version"] == lake.governed(table)[0].version


@pytest.mark.long
def test_a_delete_takes_away_what_the_winner_added_too(lake: Lake) -> None:
    table = lake.table((1, 10), (2, 20))
    with a_rival(lake, adding(table)) as heard:
        (row,) = lake.lw.sql(f"DELETE FROM delta.`{table}` WHERE v = 0 OR k % 2 = 1").collect()
    rivals = [
        one for one in lake.commits(table) if one.operation == "WRITE" and 0 < one.version < row["version"]
    ]
    assert len(heard.losses) == 1 and row["num_deleted_rows"] == len(rivals) + 1
    assert [row for row in lake.held(table) if row[0] < 1000] == [(2, 20)]


@pytest.mark.long
def test_each_try_reads_its_sources_anew_and_the_record_says_what_was_read(lake: Lake) -> None:
    table, source = lake.table((1, 10)), lake.table((1, 0))

    def change_both(number: int) -> None:
        write_deltalake(source, columns((1, number + 1)), mode="overwrite")
        write_deltalake(table, columns((1000 + number, 0)), mode="append")

    with a_rival(lake, change_both):
        lake.lw.sql(
            f"MERGE INTO delta.`{table}` t USING delta.`{source}` s ON t.k = s.k WHEN MATCHED "
            "THEN UPDATE SET v = s.v"
        )
    (commit,) = lake.governed(table)
    assert commit.lineage is not None
    (read,) = commit.lineage.inputs
    assert read.version is not None and read.version > 0
    assert dict(lake.held(table))[1] == read.version  # version n of the source has the value n


def test_who_gives_up_names_the_commit_that_won(lake: Lake) -> None:
    table = lake.table((1, 10), (2, 20))
    lake.lw.sql(f"SET {RETRIES} = 1")
    with (
        a_rival(lake, adding(table), forever=True) as heard,
        pytest.raises(
            ConflictError, match=r"first: version \d+, WRITE with delta-rs.*tried 2 times\.$"
        ) as caught,
    ):
        lake.lw.sql(f"UPDATE delta.`{table}` SET v = v + 1")
    assert len(heard.losses) == 1 and f"SET {RETRIES}" in caught.value.hint
    assert lake.governed(table) == []


@pytest.mark.long
def test_a_change_of_the_schema_in_between_is_taken_along(lake: Lake) -> None:
    table, source = lake.table((1, 10)), lake.table((1, 5), (2, 6))

    def alter(number: int) -> None:
        DeltaTable(table).alter.set_table_properties({"delta.checkpointInterval": str(number + 10)})

    with a_rival(lake, alter) as heard:
        lake.lw.write(lake.spark.read.format("delta").load(source)).merge(table, on="target.k = source.k")
    assert len(heard.losses) == 1 and "SET TBLPROPERTIES" in heard.losses[0]
    assert lake.held(table) == [(1, 5), (2, 6)]


def test_a_frame_with_a_fixed_version_of_its_own_target_is_not_written_over_a_newer_one(lake: Lake) -> None:
    table = lake.table((1, 10), (2, 20))
    frame = lake.lw.table(table).selectExpr("k", "v + 1 AS v")
    with (
        a_rival(lake, adding(table), forever=True) as heard,
        pytest.raises(ConflictError, match="WRITE with delta-rs", check=lambda error: "undo" in error.hint),
    ):
        lake.lw.write(frame).merge(table, on="target.k = source.k")
    assert heard.losses == []
    assert lake.governed(table) == [] and dict(lake.held(table))[1] == 10


@pytest.mark.long
def test_an_upsert_is_tried_again(lake: Lake) -> None:
    table = lake.table((1, 10), (2, 20))
    with a_rival(lake, adding(table)) as heard:
        done = lake.lw.upsert(rows(lake, (2, 21), (3, 30)), table, keys="k", operation="load 1")
    assert len(heard.losses) == 1 and (done.rows_inserted, done.rows_updated) == (1, 1)
    assert [row for row in lake.held(table) if row[0] < 1000] == [(1, 10), (2, 21), (3, 30)]
    assert lake.lw.upsert(rows(lake, (9, 9)), table, keys="k", operation="load 1").done_before


@pytest.mark.long
def test_a_statement_under_an_id_is_tried_again_and_done_once(lake: Lake) -> None:
    table = lake.table((1, 10), (2, 20))
    for done_before in (False, True):
        lake.lw.sql("SET lakewarden.operation = 'close 7'")
        with a_rival(lake, adding(table, 1000 + 1000 * done_before)) as heard:
            (row,) = lake.lw.sql(f"UPDATE delta.`{table}` SET v = v + 1 WHERE k < 1000").collect()
        assert row["done_before"] is done_before and len(heard.losses) == 1 - done_before
    assert [row for row in lake.held(table) if row[0] < 1000] == [(1, 11), (2, 21)]


def rows(lake: Lake, *given: tuple[int, int]) -> DataFrame:
    return lake.spark.createDataFrame(list(given), "k int, v int")


@pytest.mark.long
def test_a_stream_goes_on_after_races_that_its_batch_has_lost(lake: Lake) -> None:
    source, table = lake.table((1, 11), (3, 30)), lake.table((1, 10), (2, 20))
    with a_rival(lake, adding(table)) as heard:
        query = lake.lw.upsert_stream(
            lake.spark.readStream.format("delta").load(source),
            table,
            keys="k",
            checkpoint=str(lake.folder / uuid.uuid4().hex[:8]),
            trigger={"availableNow": True},
        )
        query.awaitTermination()
    assert len(heard.losses) == 1 and query.exception() is None
    assert [row for row in lake.held(table) if row[0] < 1000] == [(1, 11), (2, 20), (3, 30)]
    assert [one.transactions[0][1] for one in lake.commits(table) if one.transactions] == [0]


@pytest.mark.few(1)
@pytest.mark.parametrize("deed", ["statement", "upsert"])
def test_a_write_whose_answer_got_lost_is_not_done_twice(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, deed: str
) -> None:
    """A commit whose answer is lost is taken by Delta for somebody else's."""
    table, run = lake.table((1, 10)), Plans.run

    def run_and_lose_the_answer(plans: Plans, session: Any, plan: Any) -> DataFrame:
        run(plans, session, plan)
        raise PySparkException("[DELTA_CONCURRENT_APPEND.WITHOUT_HINT] committed at version 1.")

    monkeypatch.setattr(Plans, "run", run_and_lose_the_answer)
    if deed == "upsert":
        done = lake.lw.upsert(rows(lake, (1, 11), (2, 20)), table, keys="k")
        assert (done.rows_inserted, done.rows_updated, done.done_before) == (1, 1, False)
    else:
        (row,) = lake.lw.sql(f"INSERT INTO delta.`{table}` VALUES (2, 20)").collect()
        assert (row["num_inserted_rows"], row["version"]) == (1, 1)
    assert len(lake.commits(table)) == 2 and dict(lake.held(table))[2] == 20
