"""Upserts into Iceberg tables that read nothing of them: keys as equality deletes and rows, in one snapshot."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from lakewarden.catalog import failpoints
from lakewarden.catalog.errors import ConflictError, PreconditionError, RefusedError, UsageError
from lakewarden.catalog.formats.port import CommitKind
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.jobs.session.attached import Attached
from support.builders.spark_iceberg import SparkIceberg
from support.cases import mostly_long
from support.crashes.crashes import points_of
from support.crashes.in_process import killed_here

pytestmark = [pytest.mark.spark, pytest.mark.metastore]

NESTED = (
    "k BIGINT, place STRING, ver BIGINT, gone BOOLEAN, s STRUCT<a: INT, b: ARRAY<STRING>>, m MAP<STRING, INT>"
)
Make = Callable[..., SparkIceberg]


@pytest.fixture
def make(spark: SparkSession, metastore: EmbeddedMetastore) -> Make:
    def made(**more: Any) -> SparkIceberg:
        return SparkIceberg(spark, metastore.uri, "iceberg", **more)

    return made


def nested(table: SparkIceberg, name: str, parts: str = "", version: int = 2) -> str:
    """A table with columns in columns, beside another one."""
    named = f"{table.catalog}.{table.database}.{name}"
    by = f"PARTITIONED BY ({parts})" if parts else ""
    table.sql(
        f"CREATE TABLE {named} ({NESTED}) USING iceberg {by} TBLPROPERTIES ('format-version'='{version}', "
        "'engine.hive.lock-enabled'='false')"
    )
    return named


def inside(spark: SparkSession, name: str) -> Any:
    """The table in Iceberg's own library."""
    jvm: Any = spark._jvm
    return jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)


def frame(spark: SparkSession, *ids: int | None, part: str = "u") -> DataFrame:
    return spark.createDataFrame([(one, part, None) for one in ids], "id BIGINT, part STRING, at TIMESTAMP")


def batch(spark: SparkSession, chance: random.Random, first: int, *, nulls: bool) -> DataFrame:
    """Thirty changes of twenty keys of two columns, some of them deletions, and several of one key."""
    rows: list[tuple[object, ...]] = []
    for ver in range(first, first + 30):
        key = None if nulls and chance.random() < 0.1 else chance.randrange(10)
        inside = None if chance.random() < 0.2 else (ver, [str(ver), None])
        gone = chance.random() < 0.3
        rows.append((key, chance.choice(["n", "s"]), ver, gone, inside, {"x": ver} if ver % 2 else None))
    return spark.createDataFrame(rows, NESTED)


def content(spark: SparkSession, name: str, columns: str = "*") -> Sequence[str]:
    return sorted(str(row) for row in spark.sql(f"SELECT {columns} FROM {name}").collect())


@pytest.mark.parametrize("nulls", mostly_long(["match", "insert"], ["match"]))
def test_the_rows_are_those_of_a_merge(spark: SparkSession, make: Make, lw: Attached, nulls: str) -> None:
    """Also where deletes have to reach files of older specs, and those of all partitions."""
    database = make()
    merged = nested(database, "merged")
    blind = [nested(database, "plain"), nested(database, "hashed", "bucket(4, k)", 3)]
    chance = random.Random(42)
    for turn in range(3):
        changes = batch(spark, chance, turn * 100, nulls=nulls == "match").cache()
        words: dict[str, Any] = {
            "duplicates": "last by ver",
            "delete_when": "gone",
            "null_keys": nulls,
        }
        done = lw.upsert(changes, merged, ["k", "place"], **words)
        for name in blind:
            told = lw.upsert(changes, name, ["k", "place"], write="equality", **words)
            assert told.rows_written == done.rows_written
            assert (told.rows_updated is None) is (turn > 0), "before, there was nothing to replace"
            assert content(spark, name) == content(spark, merged)
        if turn == 0:
            inside(spark, blind[0]).updateSpec().addField("place").commit()
            expressions = spark._jvm.org.apache.iceberg.expressions.Expressions  # type: ignore[union-attr]
            buckets = expressions.bucket("k", 3)
            inside(spark, blind[1]).updateSpec().removeField("k_bucket").addField(buckets).commit()
        changes.unpersist()
    assert sorted(map(str, lw.table(blind[1]).collect())) == content(spark, merged)
    specs = spark.sql(f"SELECT DISTINCT content, spec_id FROM {blind[1]}.all_files").collect()
    assert {tuple(row) for row in specs} == {(0, 0), (0, 1), (2, 0), (2, 1)}
    assert {row[0] for row in spark.sql(f"SELECT spec_id FROM {blind[0]}.all_delete_files").collect()} == {0}


def test_it_is_one_snapshot_with_its_record_and_reads_nothing(
    spark: SparkSession, make: Make, lw: Attached
) -> None:
    table, source = make(), make()
    table.append(1, 2, 3)
    source.append(2, 7, part="u")
    before = table.seen.version
    done = lw.upsert(lw.table(str(source)), str(table), "id", write="equality", operation="load")
    (commit,) = table.reader.newest(table.location, count=1)
    assert (commit.version, commit.kind) == (table.seen.version, CommitKind.MERGE) and commit.version > before
    assert commit.lineage is not None and not commit.lineage.reads_self
    assert [one.location for one in commit.lineage.inputs] == [source.location]
    assert done.written is not None and commit.run_id == done.written.run_id
    assert "pyiceberg, refuse it until a compaction" in done.written.notes[0]
    assert (done.rows_written, done.rows_inserted, done.rows_updated, done.rows_deleted) == (2, *[None] * 3)
    assert lw.upsert(lw.table(str(source)), str(table), "id", write="equality", operation="load").done_before
    assert sorted(table.sql(f"SELECT id, part FROM {table}")) == [(1, "a"), (2, "u"), (3, "a"), (7, "u")]
    assert (table.seen.deletes[0].kind, table.unnamed(), table.missing()) == ("equality", set(), set())
    nothing = frame(spark).where("id > 0")
    at = table.seen.version
    assert lw.upsert(nothing, str(table), "id", write="equality").rows_written == 0
    assert table.seen.version == at, "nothing to change is no snapshot"


@pytest.mark.long
def test_keys_of_every_type_and_name_are_told_apart(spark: SparkSession, make: Make, lw: Attached) -> None:
    """Columns that must have a value, that were renamed, in another order than the source's, and narrower there."""
    database = make()
    name = f"{database.catalog}.{database.database}.typed"
    database.sql(
        f"CREATE TABLE {name} (v ARRAY<STRUCT<x: INT>>, n BIGINT NOT NULL, d DECIMAL(9, 2), t TIMESTAMP_NTZ, "
        "z TIMESTAMP, b BINARY, day DATE, s STRING, yes BOOLEAN) USING iceberg "
        "PARTITIONED BY (days(z), truncate(1, s)) "
        "TBLPROPERTIES ('format-version'='2', 'write.format.default'='orc', 'engine.hive.lock-enabled'='false')"
    )
    keys = ["s2", "n", "d", "t", "z", "b", "day", "yes"]
    made = (
        "SELECT CAST(id AS SMALLINT) AS N, CAST(id AS DECIMAL(5, 1)) AS d, "
        "TIMESTAMP_NTZ '2026-01-01 00:00:00.000001' AS t, "
        "TIMESTAMP '2026-01-01 00:00:00.000001' + make_dt_interval(id % 3) AS z, CAST('x' AS BINARY) AS b, "
        "DATE '2026-01-01' AS day, concat('ä', id) AS {s}, id % 2 = 0 AS yes, "
        "array(named_struct('x', {x})) AS v FROM range({a}, {b})"
    )
    first = spark.sql(made.format(s="s", x="0", a=0, b=9))
    lw.upsert(first, name, [one.replace("2", "") for one in keys], write="equality")
    inside(spark, name).updateSchema().renameColumn("s", "s2").commit()
    again = spark.sql(made.format(s="s2", x="1", a=6, b=12))
    lw.upsert(again, name, keys, write="equality")
    found = [(row.n, row.v[0].x) for row in spark.table(name).orderBy("n").collect()]
    assert found == [*((one, 0) for one in range(6)), *((one, 1) for one in range(6, 12))]


def test_what_needs_the_table_is_refused(
    spark: SparkSession, make: Make, lw: Attached, tmp_path: Path
) -> None:
    table = make()
    table.append(1, 2, 3)
    rows = frame(spark, 1, 4)

    def refused(why: str, rows: DataFrame = rows, into: str = str(table), **words: Any) -> None:
        with pytest.raises((UsageError, PreconditionError, RefusedError), match=why):
            lw.upsert(rows, into, words.pop("keys", "id"), write="equality", **words)

    refused("newer by", when="newer by at")
    refused("partial", partial=["part"])
    refused("has no at", rows.drop("at"))
    refused("have the key", frame(spark, 4, 4))
    refused("NULL in a key", frame(spark, None), null_keys="refuse")
    refused("not an Iceberg table", into=str(tmp_path / "new"))
    made = "USING iceberg TBLPROPERTIES ('format-version'='{}', 'engine.hive.lock-enabled'='false')"
    table.sql(f"CREATE TABLE {table}_old (id BIGINT) {made.format(1)}")
    refused("not an Iceberg table of format version 2", rows.select("id"), f"{table}_old")
    table.sql(f"CREATE TABLE {table}_f (id DOUBLE) {made.format(2)}")
    refused("do not tell all values apart", rows.selectExpr("CAST(id AS DOUBLE) AS id"), f"{table}_f")
    assert table.rows() == [1, 2, 3] and table.unnamed() == set()


def test_uuids_are_keys_of_a_merge_which_leaves_no_file_out_by_them(
    spark: SparkSession, make: Make, lw: Attached
) -> None:
    """Spark takes them for texts; Iceberg orders them as signed numbers, and so leaves files out that have them."""
    table = make()
    jvm: Any = spark._jvm
    inside(spark, str(table)).updateSchema().addColumn(
        "u", jvm.org.apache.iceberg.types.Types.UUIDType.get()
    ).commit()
    ids = [f"{first}0000000-0000-4000-8000-000000000000" for first in "029af"]
    table.sql(f"INSERT INTO {table} (id, u) SELECT 0, explode(array({', '.join(map(repr, ids))}))")
    rows = spark.createDataFrame([(7, None, None, ids[1])], "id BIGINT, part STRING, at TIMESTAMP, u STRING")
    with pytest.raises(UsageError, match="The key u is uuid"):
        lw.upsert(rows, str(table), "u", write="equality")
    done = lw.upsert(rows, str(table), "u")
    assert (done.rows_updated, done.rows_inserted, done.pruning) == (1, 0, "")
    assert sorted((row[0] for row in table.sql(f"SELECT id FROM {table}")), key=str) == [0, 0, 0, 0, 7]


def test_a_row_that_may_have_moved_is_deleted_everywhere_or_it_is_refused(
    spark: SparkSession, make: Make, lw: Attached
) -> None:
    table = make(partitioned_by="part")
    assert (
        lw.upsert(frame(spark, 1, 2), str(table), "id", write="equality").rows_inserted == 2
    )  # none are there
    with pytest.raises(RefusedError, match="partitioned by more than the keys"):
        lw.upsert(frame(spark, 1, part="moved"), str(table), "id", write="equality")
    lw.upsert(frame(spark, 2, 3), str(table), ["id", "part"], write="equality")
    assert sorted(table.sql(f"SELECT id, part FROM {table}")) == [(1, "u"), (2, "u"), (3, "u")]
    other = make()
    inside(spark, str(other)).updateSpec().addField("part").commit()
    other.append(1, 2)
    lw.upsert(frame(spark, 1, part="moved"), str(other), "id", write="equality")
    assert sorted(other.sql(f"SELECT id, part FROM {other}")) == [(1, "moved"), (2, "a")]


def test_whoever_commits_in_between_comes_first(
    spark: SparkSession, make: Make, lw: Attached, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make()
    table.append(1, 2, 3)
    acts: list[Callable[[], object]] = [lambda: table.append(1, 10)]

    def listener(point: str) -> None:
        if point == "upsert.written" and acts:
            acts.pop()()

    monkeypatch.setattr(failpoints, "listener", listener)
    lw.upsert(frame(spark, 1, 10), str(table), "id", write="equality")
    assert sorted(table.sql(f"SELECT id, part FROM {table}")) == [(1, "u"), (2, "a"), (3, "a"), (10, "u")]
    acts.append(lambda: inside(spark, str(table)).updateSpec().addField("part").commit())
    lw.upsert(frame(spark, 2), str(table), "id", write="equality")
    acts.append(lambda: table.sql(f"ALTER TABLE {table} ADD COLUMN more INT"))
    with pytest.raises(UsageError, match="has no more"):
        lw.upsert(frame(spark, 3), str(table), "id", write="equality")  # judged again
    assert sorted(table.sql(f"SELECT id, part FROM {table}")) == [(1, "u"), (2, "u"), (3, "a"), (10, "u")]


@pytest.mark.parametrize(
    "point", points_of("test_killed_before_its_commit_it_leaves_files_that_a_vacuum_removes")
)
def test_killed_before_its_commit_it_leaves_files_that_a_vacuum_removes(
    spark: SparkSession, make: Make, lw: Attached, point: str
) -> None:
    table = make()
    table.append(1, 2, 3)
    killed_here(point, lambda: lw.upsert(frame(spark, 1, 4), str(table), "id", write="equality"))
    assert (table.rows(), len(table.unnamed())) == ([1, 2, 3], 2)
    lw.upsert(frame(spark, 1, 4), str(table), "id", write="equality")
    table.vacuum(full=True)
    assert (table.unnamed(), table.missing(), table.rows()) == (set(), set(), [1, 2, 3, 4])


def test_a_compaction_beside_it_gives_way_and_applies_it_later(
    spark: SparkSession, make: Make, lw: Attached, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rewrite that began before brings replaced rows back where it is published after."""
    table = make()
    for one in range(3):
        table.append(one, one + 10)
    lw.upsert(frame(spark, 0), str(table), "id", write="equality")

    def listener(point: str) -> None:
        if point == "iceberg.rewritten":
            monkeypatch.undo()
            lw.upsert(frame(spark, 1, 11), str(table), "id", write="equality")
            lw.upsert(frame(spark, 11, part="v"), str(table), "id", write="equality")

    monkeypatch.setattr(failpoints, "listener", listener)
    with pytest.raises(ConflictError):
        table.compact(purge=True)
    left = sorted([(0, "u"), (1, "u"), (2, "a"), (10, "a"), (11, "v"), (12, "a")])
    assert sorted(table.sql(f"SELECT id, part FROM {table}")) == left
    table.compact(purge=True)
    assert (sorted(table.sql(f"SELECT id, part FROM {table}")), table.seen.deletes) == (left, ())


def test_each_batch_of_a_stream_is_written_once(
    spark: SparkSession, make: Make, lw: Attached, tmp_path: Path
) -> None:
    table, checkpoint = make(), tmp_path / "checkpoint"
    table.append(1, 2, 3)
    source = f"{table.database}.source"
    lw.sql(f"CREATE TABLE {source} USING delta AS SELECT 3L AS id, 's' AS part, TIMESTAMP '2026-01-01' AS at")

    def run() -> None:
        query = lw.upsert_stream(
            spark.readStream.table(source),
            str(table),
            "id",
            checkpoint=str(checkpoint),
            trigger={"availableNow": True},
            write="equality",
        )
        query.awaitTermination()
        assert query.exception() is None

    def listener(point: str) -> None:
        if point == "upsert.written":
            raise RuntimeError(point)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(failpoints, "listener", listener)
        with pytest.raises(StreamingQueryException, match="upsert.written"):
            run()
    assert table.sql(f"SELECT part FROM {table} WHERE id = 3") == [("a",)]
    run()
    assert table.sql(f"SELECT part FROM {table} WHERE id = 3") == [("s",)]
    (commit,) = table.reader.newest(table.location, count=1)
    assert commit.transactions[0][1] == 0
    table.sql(f"UPDATE {table} SET part = 'mine' WHERE id = 3")
    for file in (checkpoint / "commits").iterdir():
        file.unlink()  # as if it had died before it noted that the batch was done
    run()
    assert table.sql(f"SELECT part FROM {table} WHERE id = 3") == [("mine",)]
    lw.sql(f"INSERT INTO {source} VALUES (4, 's', NULL), (3, 't', NULL)")
    run()
    assert sorted(table.sql(f"SELECT id, part FROM {table}")) == [(1, "a"), (2, "a"), (3, "t"), (4, "s")]


@pytest.mark.long
def test_a_merge_writes_files_anew_or_positions_as_the_statement_says(
    spark: SparkSession, make: Make, lw: Attached
) -> None:
    """Whatever the table says, and without changing what it says."""
    for mode in ("merge-on-read", None):
        told = "" if mode is None else f", 'write.merge.mode'='{mode}'"
        table = make(properties=f"'format-version'='2'{told}")
        table.append(1, 2, 3)
        for number, (write, deletes) in enumerate([("position", "1"), ("rewrite", None)]):
            done = lw.upsert(
                frame(spark, 2, 7 + number, part=write), str(table), "id", write=write, delete_when="id = 7"
            )
            assert (done.rows_inserted, done.rows_updated) == (number, 1)
            added = f"SELECT summary['added-delete-files'] FROM {table}.snapshots ORDER BY committed_at DESC LIMIT 1"
            assert table.sql(added) == [(deletes,)]
            assert sorted(table.sql(f"SELECT part FROM {table} WHERE id = 2")) == [(write,)]
        assert inside(spark, str(table)).properties().get("write.merge.mode") == mode
        assert table.rows() == [1, 2, 3, 8]
