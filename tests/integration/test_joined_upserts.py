"""Upserts into tables without buckets by one join: all comes out as Delta's own MERGE makes it."""

import json
import random
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession

from lakewarden.catalog import failpoints
from lakewarden.catalog.errors import PreconditionError
from lakewarden.jobs.session.delta.checksums import bytes_of, files_of, listed, numbers_of, only_file
from lakewarden.jobs.session.delta.merges import joined_upserts
from support.builders.lakes import Lake, running_lake
from support.cases import mostly_long
from support.crashes.in_process import amid

pytestmark = pytest.mark.spark

LEFT = {"delta.autoOptimize.autoCompact": "false"}
"""A property by which Delta's own MERGE does an upsert, and which changes nothing of it."""
COUNTED = ("numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted", "numSourceRows")


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with running_lake(spark, tmp_path_factory.mktemp("joined")) as lake:
        yield lake


def made(lake: Lake, chance: random.Random) -> tuple[str, str]:
    """Two tables with the same rows in several files; the second has the property."""
    rows = [
        (chance.choice((None, *range(40))), chance.choice(("a", "b", "", None)), chance.randrange(9), key % 3)
        for key in range(60)
    ]
    parted = chance.random() < 0.5
    paths = []
    for properties in ({}, LEFT):
        path = str(lake.folder / uuid.uuid4().hex[:8])
        told = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        lake.spark.sql(
            f"CREATE TABLE delta.`{path}` (id int, v string, ts int, part int) USING delta"
            + (" PARTITIONED BY (part)" if parted else "")
            + (f" TBLPROPERTIES ({told})" if told else "")
        )
        for number in range(3):  # rows of one key may lie in several files
            frame = lake.rows(*rows[number::3], schema="id int, v string, ts int, part int").coalesce(1)
            frame.write.format("delta").mode("append").save(path)
        paths.append(path)
    return paths[0], paths[1]


def batch(lake: Lake, chance: random.Random) -> tuple[DataFrame, dict[str, Any]]:
    """Rows to upsert, and the options."""
    count = chance.choice((0, 3, 25))
    some = [
        (
            chance.choice((None, *range(60))),
            chance.choice(("x", "y")),
            chance.randrange(9),
            chance.randrange(3),
        )
        for _ in range(count)
    ]
    options: dict[str, Any] = {
        "keys": chance.choice((["id"], ["id", "part"])),
        "duplicates": chance.choice(("any", "any", "last by ts")),
        "null_keys": chance.choice(("insert", "match")),
    }
    if chance.random() < 0.5:
        options["when"] = "newer by ts"
    if chance.random() < 0.4:
        options["delete_when"] = "v = 'y'"
    if chance.random() < 0.3:
        options["partial"] = ["v"]
    return lake.rows(*some, schema="id int, v string, ts int, part int"), options


def play(lake: Lake, seed: int, batches: int) -> int:
    """The same upserts into two tables; how many of them changed something by one join."""
    chance = random.Random(seed)
    ours, theirs = made(lake, chance)
    joined = 0
    for number in range(batches):
        frame, options = batch(lake, chance)
        said = f"seed {seed}, batch {number}: {options}"
        outcomes = [outcome(lake, frame, path, options) for path in (ours, theirs)]
        assert outcomes[0] == outcomes[1], said
        assert rows(lake, ours) == rows(lake, theirs), said
        joined += isinstance(outcomes[0], tuple) and any(outcomes[0])
    return joined


def outcome(lake: Lake, frame: DataFrame, path: str, options: dict[str, Any]) -> object:
    """What was counted, or how the source was refused."""
    head = len(lake.commits(path))
    try:
        done = lake.lw.upsert(frame, path, **options)
    except PreconditionError as error:
        return str(error)
    is_left = (
        lake.spark.sql(f"SHOW TBLPROPERTIES delta.`{path}`").where(f"key = '{next(iter(LEFT))}'").count()
    )
    assert bool(done.left_because) == bool(is_left), done.left_because
    counts = (done.rows_inserted, done.rows_updated, done.rows_deleted)
    if any(counts):
        (commit,) = lake.commits(path)[head:]
        assert commit.lineage is not None and commit.operation == "MERGE"
        told = [int(commit.metrics.get(name, 0)) for name in COUNTED]
        assert told[:3] == list(counts)
        return (*counts, told[3])
    return counts


def rows(lake: Lake, path: str) -> list[Any]:
    return sorted(map(tuple, lake.spark.read.format("delta").load(path).collect()), key=repr)


def test_random_upserts_leave_the_rows_and_counts_of_deltas_own_merge(lake: Lake) -> None:
    assert play(lake, 1, 2) >= 1


@pytest.mark.long
def test_many_random_upserts_leave_the_rows_and_counts_of_deltas_own_merge(lake: Lake) -> None:
    assert sum(play(lake, seed, 6) for seed in range(2, 10)) > 20


def deleted(path: str) -> None:
    DeltaTable(path).delete("id = 1")


def compacted(path: str) -> None:
    DeltaTable(path).optimize.compact()


def appended(path: str) -> None:
    row = {"id": [77], "v": ["other"], "ts": pa.array([1], pa.int32())}
    write_deltalake(path, pa.table(row), mode="append")


OTHERS: tuple[Callable[[str], None], ...] = (deleted, compacted, appended)


@pytest.mark.parametrize("other", mostly_long(OTHERS, [deleted]))
def test_what_others_commit_meanwhile_is_kept_and_the_upsert_tried_again(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, other: Callable[[str], None]
) -> None:
    table = lake.table((1, "a", 1), (2, "b", 1))
    lake.lw.upsert(lake.rows((3, "c", 1)), table, keys="id")
    tries: list[str] = []

    def between(point: str) -> None:
        tries.append(point)
        if len(tries) == 1:
            other(table)

    monkeypatch.setattr(joined_upserts, "reach", between)
    done = lake.lw.upsert(lake.rows((1, "A", 2), (3, "C", 2), (4, "d", 2)), table, keys="id")
    monkeypatch.undo()
    expected = [(1, "A", 2), (2, "b", 1), (3, "C", 2), (4, "d", 2)]
    if other is appended:
        expected.append((77, "other", 1))
    assert lake.held(table) == sorted(expected, key=repr) and done.left_because == ""
    if other is not appended:
        assert tries == ["upsert.joined"] * 2


def test_nothing_is_committed_where_nothing_changes_and_files_without_matches_stay(lake: Lake) -> None:
    path = str(lake.folder / "still and odd")
    whole = lake.spark.range(0, 40_000, 1, 4).selectExpr(
        "id % 10000 * 4 + id DIV 10000 AS id", "uuid() AS v", "5 AS ts", "'a b%:é' AS p"
    )
    whole.write.format("delta").partitionBy("p").save(path)
    few = lake.spark.sql("SELECT explode(array(1L, 39997L)) AS id, 'x' AS v, 5 AS ts, 'a b%:é' AS p")
    still = lake.lw.upsert(few, path, keys="id", when="newer by ts")
    assert (still.rows_written, still.left_because, len(lake.commits(path))) == (0, "", 1)
    done = lake.lw.upsert(few, path, keys="id")
    assert (done.files_before, done.files_read, done.files_removed, done.rows_updated) == (4, 4, 1, 2)
    fresh = lake.lw.upsert(few.selectExpr("id * 2 + 100000 AS id", "v", "ts", "p"), path, keys="id")
    assert (fresh.files_removed, fresh.rows_inserted) == (0, 2)
    assert lake.spark.read.format("delta").load(path).count() == 40_002


@pytest.mark.long
@pytest.mark.parametrize(
    ("properties", "because"),
    [
        ({"delta.enableDeletionVectors": "true"}, "deletionVectors"),
        ({"delta.enableChangeDataFeed": "true"}, "changeDataFeed"),
        ({"delta.columnMapping.mode": "name"}, ""),
        ({"delta.enableRowTracking": "true"}, "feature"),
    ],
)
def test_what_is_not_known_to_come_out_the_same_is_left_to_deltas_own_merge(
    lake: Lake, properties: dict[str, str], because: str
) -> None:
    table = lake.table((1, "a", 1), **properties)
    done = lake.lw.upsert(lake.rows((1, "b", 2), (2, "c", 2)), table, keys="id")
    assert (
        done.left_because
        and because in done.left_because
        and (done.rows_updated, done.rows_inserted) == (1, 1)
    )
    assert rows(lake, table) == [(1, "b", 2), (2, "c", 2)]


def snapshot(lake: Lake, table: str) -> Any:
    jvm: Any = lake.spark._jvm
    none = jvm.scala.Option.empty()
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(lake.spark._jsparkSession, table)
    return log.update(False, none, none)


def test_a_small_table_is_upserted_by_one_task_and_its_state_is_not_put_together(lake: Lake) -> None:
    table = lake.table((1, "a", 1), (2, "b", 1))
    lake.lw.upsert(lake.rows((3, "c", 1)).coalesce(1), table, keys="id", operation="first")
    lake.spark.sql(f"OPTIMIZE delta.`{table}`")
    before = snapshot(lake, table)
    assert only_file(before) is not None and not before._computedStateTriggered()
    done = lake.lw.upsert(
        lake.rows((1, "A", 2), (4, "d", 2)).coalesce(1), table, keys="id", operation="second"
    )
    assert not before._computedStateTriggered()
    assert (done.left_because, done.files_before, done.files_read, done.files_added) == ("", 1, 1, 1)
    again = lake.lw.upsert(lake.rows((1, "B", 3)), table, keys="id", operation="second")
    assert again.done_before
    assert lake.held(table) == [(1, "A", 2), (2, "b", 1), (3, "c", 1), (4, "d", 2)]
    apart = lake.lw.upsert(lake.rows((9, "i", 2)), table, keys="id")
    assert (apart.files_read, apart.files_removed, apart.files_added) == (0, 0, 1)


def test_new_rows_alone_take_no_file_out(lake: Lake) -> None:
    """Whoever reads the table as a stream would get all rows of the file again, or none of this commit."""
    table = lake.table((1, "a", 1), (9, "b", 1))
    lake.spark.sql(f"INSERT INTO delta.`{table}` VALUES (5, 'c', 1)")
    lake.spark.sql(f"OPTIMIZE delta.`{table}`")
    assert only_file(snapshot(lake, table)) is not None
    known = parquet_files(table)
    done = lake.lw.upsert(lake.rows((3, "new", 2), (4, "new", 2)), table, keys="id")
    assert (done.left_because, done.files_removed, done.files_added, done.rows_inserted) == ("", 0, 1, 2)
    assert len(parquet_files(table) - known) == 1, "what was written in vain is not left behind"
    gone = lake.lw.upsert(
        lake.rows((2, "x", 2), (3, "older", 1)), table, keys="id", when="newer by ts", delete_when="v = 'x'"
    )
    assert (gone.rows_written, gone.rows_deleted) == (0, 0)
    assert len(parquet_files(table) - known) == 1
    assert [row[0] for row in lake.held(table)] == [1, 3, 4, 5, 9]


def parquet_files(table: str) -> set[str]:
    return {one.name for one in Path(table).glob("*.parquet")}


@pytest.mark.parametrize("is_left", [False, True])
def test_an_upsert_of_what_the_table_held_undoes_nobodys_commit(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, is_left: bool
) -> None:
    """The source was computed before somebody else's commit, which comes as late as it can before the MERGE."""
    table = lake.table((1, "1", 1), (2, "2", 1), **(LEFT if is_left else {"overwriteSchema": "true"}))
    source = lake.spark.sql(f"SELECT id, concat(v, '!') AS v, ts FROM delta.`{table}`")
    tries: list[str] = []

    def theirs() -> None:
        DeltaTable(table).update(updates={"v": "'theirs'"}, predicate="id = 1")

    monkeypatch.setattr(failpoints, "listener", amid("upsert.merging", theirs, tries))
    done = lake.lw.upsert(source, table, keys="id")
    assert (bool(done.left_because), len(tries)) == (is_left, 2)
    assert lake.held(table) == [(1, "theirs!", 1), (2, "2!", 1)]


def test_a_checksum_of_another_commit_is_not_believed(lake: Lake) -> None:
    """One writer's commit took the place of another's, whose checksum stayed."""
    table = lake.table((1, "a", 1), overwriteSchema="true")
    lake.lw.upsert(lake.rows((2, "b", 1)), table, keys="id", operation="op")
    made = snapshot(lake, table)
    assert numbers_of(made) and listed(made) is not None
    commit = Path(table) / "_delta_log" / f"{int(made.version()):020d}.json"
    said = json.loads(commit.read_text().splitlines()[0])["commitInfo"]["txnId"]
    commit.write_text(commit.read_text().replace(said, str(uuid.uuid4())))
    assert numbers_of(made) is None and listed(made) is None
    commit.unlink()
    assert numbers_of(made) is None and listed(made) is None


def test_what_a_checksum_tells_is_what_the_state_of_the_table_is(lake: Lake) -> None:
    table = lake.table((1, "a", 1))
    for number in range(3):
        lake.lw.upsert(lake.rows((number, "x", number)), table, keys="id", operation=f"op {number}")
        made = snapshot(lake, table)
        told = numbers_of(made), bytes_of(made), files_of(made)
        assert told[0] is not None and not made._computedStateTriggered()
        known = made.transactions()
        assert told[0] == {app: int(known.get(app).get()) for app in told[0]} and len(told[0]) == known.size()
        assert told[1:] == (int(made.sizeInBytes()), int(made.numOfFiles()))
    DeltaTable(table).delete("id = 1")  # of somebody who leaves no checksum
    foreign = snapshot(lake, table)
    assert only_file(foreign) is None or files_of(foreign) == 1
    assert (bytes_of(foreign), files_of(foreign)) == (int(foreign.sizeInBytes()), int(foreign.numOfFiles()))
    done = lake.lw.upsert(lake.rows((2, "y", 9)), table, keys="id", operation="op 2")
    assert done.done_before
    lake.spark.sql(
        f"ALTER TABLE delta.`{table}` SET TBLPROPERTIES ('delta.setTransactionRetentionDuration' = '30 days')"
    )
    assert numbers_of(snapshot(lake, table)) is None  # ids that expire
