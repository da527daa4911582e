"""`rows.write`: the way in which the rows of a statement are written, of Iceberg and of Delta tables."""

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaProtocolError
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import ConflictError, PreconditionError, RefusedError, UsageError
from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.model.lineage_record import LineageRecord
from lakewarden.catalog.policy.rows_write import ROWS_WRITE
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.jobs.session.attached import Attached
from lakewarden.jobs.session.conflicts.retries import RETRIES_KEY
from lakewarden.jobs.session.row_counts import counts_of
from support.builders.lakes import Lake, running_lake
from support.builders.spark_iceberg import SparkIceberg
from support.builders.staged_races import before_publishing
from support.cases import mostly_long

pytestmark = [pytest.mark.spark, pytest.mark.metastore]

Make = Callable[..., SparkIceberg]
STATEMENTS = (
    "UPDATE {t} SET part = concat(part, 'u') WHERE id % {m} = {r}",
    "DELETE FROM {t} WHERE id % {m} = {r}",
    "DELETE FROM {t} WHERE id IN (SELECT id + 1 FROM {t} WHERE id % {m} = {r})",
    "UPDATE {t} SET part = s.p FROM (SELECT {r} AS k, 'f' AS p) s WHERE {n}.id = s.k",
    (
        "MERGE INTO {t} USING (SELECT explode(sequence({r}, {m} * 9, {m})) AS id) s ON {n}.id = s.id "
        "WHEN MATCHED AND s.id % 2 = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET part = 'm' "
        "WHEN NOT MATCHED THEN INSERT (id, part) VALUES (s.id, 'n')"
    ),
    "UPDATE {t} SET at = TIMESTAMP '2026-02-02 00:00:00' WHERE part LIKE 'm%' OR id = {r}",
)
"""Of the table `{t}`, by numbers: `{n}` is its bare name."""
KINDS = {2: {"rewrite": None, "position": "position"}, 3: {"rewrite": None, "vector": "vector"}}
"""By format version, the deletes that a way leaves."""


@pytest.fixture
def make(spark: SparkSession, metastore: EmbeddedMetastore) -> Make:
    def made(version: int = 2, more: str = "", **words: Any) -> SparkIceberg:
        table = SparkIceberg(
            spark, metastore.uri, "iceberg", properties=f"'format-version'='{version}'{more}", **words
        )
        table.sql(f"INSERT INTO {table} SELECT id, 'a', NULL FROM range(0, 40, 1, 2)")
        return table

    return made


def content(table: SparkIceberg) -> list[str]:
    return sorted(map(str, table.sql(f"SELECT * FROM {table}")))


def properties(table: SparkIceberg) -> dict[object, object]:
    """All of them, but for the snapshot that the list tells, too."""
    told = {row[0]: row[1] for row in table.sql(f"SHOW TBLPROPERTIES {table}")}
    told.pop("current-snapshot-id")
    return told


def kinds(table: SparkIceberg) -> set[str]:
    return {one.kind for one in table.seen.deletes}


def newest(table: SparkIceberg) -> Commit:
    (commit,) = table.reader.newest(table.location, count=1)
    return commit


def record(table: SparkIceberg) -> LineageRecord:
    found = newest(table).lineage
    assert found is not None
    return found


def property_set(table: SparkIceberg, way: str) -> None:
    table.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{ROWS_WRITE}'='{way}')")


@pytest.mark.parametrize(
    ("version", "seed", "count"),
    mostly_long([(2, 9, 2), (2, 7, 4), (3, 8, 4), (2, 100, 40), (3, 200, 40)], [(2, 9, 2)]),
)
def test_each_way_leaves_the_same_rows_and_deletes_of_its_kind(
    make: Make, lw: Attached, version: int, seed: int, count: int
) -> None:
    chance = random.Random(seed)
    tables = {way: make(version) for way in KINDS[version]}
    told = {way: properties(one) for way, one in tables.items()}
    for turn in range(count):
        text, m = STATEMENTS[(seed + turn) % len(STATEMENTS)], chance.randint(3, 7)
        r = chance.randrange(m)
        for way, one in tables.items():
            before = one.seen.version
            lw.sql(text.format(t=one, n=one.name, m=m, r=r), write=way)
            if one.seen.version > before:
                assert record(one).rows_write == way and record(one).because == "the statement asks for it"
        left = {way: content(one) for way, one in tables.items()}
        assert left["rewrite"] == left[list(left)[1]], text
    for way, one in tables.items():
        assert kinds(one) == ({KINDS[version][way]} - {None}), way
        assert properties(one) == told[way]


@pytest.mark.few(1)
@pytest.mark.parametrize("version", mostly_long([2, 3], [3]))
def test_whole_files_and_all_rows_go_in_any_way(make: Make, lw: Attached, version: int) -> None:
    for way in KINDS[version]:
        table = make(version, partitioned_by="part")
        table.sql(f"INSERT INTO {table} VALUES (77, 'b', NULL)")
        for text, gone, left in (
            ("DELETE FROM {t} WHERE part = 'b'", 1, 40),
            ("DELETE FROM {t} USING (VALUES (1), (1), (2), (3)) AS s(k) WHERE {n}.id % 20 = s.k", 6, 34),
            ("DELETE FROM {t}", 34, 0),
            ("DELETE FROM {t} WHERE true", 0, 0),
        ):
            before, deletes = table.seen.version, kinds(table)
            lw.sql(text.format(t=table, n=table.name), write=way)
            assert len(content(table)) == left, text
            assert (table.seen.version > before) == bool(gone)
            if gone:
                assert record(table).rows_write == way
                assert counts_of(newest(table)).num_deleted_rows == (None if deletes else gone), text


@pytest.mark.long
def test_a_statement_comes_before_its_session_its_table_and_its_namespace(
    spark: SparkSession, make: Make, lw: Attached
) -> None:
    table = make(more=", 'write.delete.mode'='copy-on-write'")

    def deleted(one: int, **words: Any) -> tuple[str | None, str | None]:
        lw.sql(f"DELETE FROM {table} WHERE id = {one}", **words)
        return record(table).rows_write, record(table).because

    assert deleted(0) == (None, None) and kinds(table) == set()
    spark.sql(
        f"ALTER DATABASE {table.catalog}.{table.database} SET DBPROPERTIES ('{ROWS_WRITE}' = 'position')"
    )
    assert deleted(1) == ("position", "its namespace asks for it") and kinds(table) == {"position"}
    property_set(table, "table")
    assert deleted(2)[0] == "table"
    property_set(table, "rewrite")
    assert deleted(3) == ("rewrite", "the table asks for it")
    lw.sql(f"SET {ROWS_WRITE} = position")
    try:
        assert deleted(4) == ("position", "the statement asks for it")
        assert deleted(5, write="rewrite")[0] == "rewrite"
    finally:
        spark.conf.unset(ROWS_WRITE)
    rows = spark.createDataFrame([(6, "u", None)], "id BIGINT, part STRING, at TIMESTAMP")
    assert lw.upsert(rows, str(table), "id", write="position").written is not None
    assert record(table).rows_write == "position"
    lw.upsert(rows, str(table), "id")
    assert (record(table).rows_write, record(table).because) == ("rewrite", "the table asks for it")
    (step,) = lw.sql(f"EXPLAIN GOVERNED DELETE FROM {table} WHERE id = 9").collect()
    assert step.notes == "Rows are written: rewrite (the table asks for it)."
    (step,) = lw.sql(
        f"EXPLAIN GOVERNED UPDATE {table} SET part = s.p FROM (SELECT 1 AS k, 'x' AS p) s WHERE id = s.k",
        write="auto",
    ).collect()
    assert "rewrite (auto, as the statement asks: the table has" in step.notes
    property_set(table, "quickly")
    with pytest.raises(PreconditionError, match="'quickly', which says nothing"):
        lw.sql(f"DELETE FROM {table} WHERE id = 10")
    assert 10 in table.rows()


def test_an_upsert_by_equality_is_a_policy_too_and_left_out_where_it_cannot_be(
    spark: SparkSession, make: Make, lw: Attached
) -> None:
    table = make()
    property_set(table, "equality")
    rows = spark.createDataFrame([(1, "u", None)], "id BIGINT, part STRING, at TIMESTAMP")
    assert lw.upsert(rows, str(table), "id").rows_updated is None
    assert kinds(table) == {"equality"} and record(table).rows_write == "equality"
    done = lw.upsert(rows.withColumn("part", rows.part), str(table), "id", partial=["part"])
    assert done.rows_updated == 1 and done.written is not None
    assert "asks for rows to be written by equality, which is left out: `partial`" in done.written.notes[0]
    lw.sql(f"DELETE FROM {table} WHERE id = 2")
    assert record(table).rows_write == "table"
    assert "Only an upsert writes by equality deletes" in str(record(table).because)


def test_position_means_vectors_in_format_version_3(make: Make, lw: Attached) -> None:
    table = make(3)
    lw.sql(f"UPDATE {table} SET part = 'x' WHERE {table.name}.id = 3", write="position")
    assert kinds(table) == {"vector"} and record(table).rows_write == "vector"
    assert record(table).because == "the statement asks for position, which is a vector in format version 3"


@pytest.mark.long
def test_what_others_commit_meanwhile_counts_and_their_properties_stay(
    spark: SparkSession, make: Make, lw: Attached
) -> None:
    table = make(more=", 'write.update.mode'='copy-on-write'")
    mode = "ALTER TABLE {0} SET TBLPROPERTIES ('write.merge.mode'='copy-on-write', 'theirs'='1')"
    with before_publishing(lambda: table.sql(mode.format(table))):
        lw.sql(f"UPDATE {table} SET part = 'x' WHERE id < 3", write="position")
    with before_publishing(lambda: table.append(41)):
        lw.sql(f"UPDATE {table} SET part = 'y' WHERE id > 38", write="position")
    told = properties(table)
    modes = {key: value for key, value in told.items() if str(key).endswith(".mode") or key == "theirs"}
    assert modes == {
        "write.update.mode": "copy-on-write",
        "write.merge.mode": "copy-on-write",
        "theirs": "1",
    }
    assert kinds(table) == {"position"}
    assert len(table.sql(f"SELECT id FROM {table} WHERE part = 'y' AND id IN (39, 41)")) == 2
    spark.conf.set(RETRIES_KEY, "0")
    try:
        with before_publishing(lambda: table.append(42)), pytest.raises(ConflictError, match="first"):
            lw.sql(f"DELETE FROM {table} WHERE id = 41", write="position")
    finally:
        spark.conf.unset(RETRIES_KEY)
    assert 41 in table.rows() and properties(table) == told


def test_what_cannot_be_is_refused_and_nothing_is_changed(make: Make, lw: Attached) -> None:
    table = make()
    head = table.seen.head

    def refused(text: str, why: str, write: Any, error: type[Exception] = UsageError) -> None:
        with pytest.raises(error, match=why):
            lw.sql(text.replace("{}", str(table)), write=write)

    refused("DELETE FROM {} WHERE id = 1", "'fast' says nothing", "fast")
    refused(
        "DELETE FROM {} WHERE id = 1", "has format version 2, which has no vectors", "vector", RefusedError
    )
    refused("UPDATE {} SET part = 'x'", "Only an upsert writes by equality", "equality")
    for text in ("INSERT INTO {} VALUES (99, 'a', NULL)", "SELECT * FROM {}", "SHOW MANAGED TABLES"):
        refused(text, "which this statement is not", "rewrite")
    for odd in (1, ["rewrite"], b"rewrite"):
        refused("DELETE FROM {} WHERE id = 1", "says nothing: it is one of table, rewrite", odd)
    refused("UPDATE {}.branch_main SET id = 1", "at most three parts", "rewrite")
    refused("DELETE FROM {} USING {}.files AS f WHERE id = 1", "at most three parts", "rewrite")
    with pytest.raises(UsageError, match="says nothing"):
        lw.sql(f"SET {ROWS_WRITE} = fast")
    assert table.seen.head == head


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with running_lake(spark, tmp_path_factory.mktemp("lake")) as made:
        yield made


VECTORS = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"


def with_vectors(lake: Lake, name: str, more: str = VECTORS) -> Callable[[], int]:
    """Make a table of forty rows in two files; how many vectors its last commit has added."""
    lake.lw.sql(
        f"CREATE TABLE {lake.database}.{name} USING delta {more} LOCATION '{lake.folder / name}' AS "
        "SELECT id, 'a' AS v FROM range(0, 40, 1, 2)"
    )

    def added() -> int:
        told = lake.commits(str(lake.folder / name))[-1].metrics
        return sum(int(told.get(f"num{of}DeletionVectorsAdded", 0)) for of in ("", "Target"))

    return added


def of_last(lake: Lake, name: str) -> LineageRecord:
    found = lake.commits(str(lake.folder / name))[-1].lineage
    assert found is not None
    return found


def test_a_delta_table_is_written_with_vectors_or_without(lake: Lake) -> None:
    lw, database = lake.lw, lake.database
    added = with_vectors(lake, "d")
    table = f"{database}.d"
    merge = (
        f"MERGE INTO {table} t USING (SELECT 3L AS id UNION ALL SELECT 77L) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET v = 'm' WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'n')"
    )
    for text in (f"UPDATE {table} SET v = 'x' WHERE id = 1", merge, f"DELETE FROM {table} WHERE id = 77"):
        lw.sql(text, write="rewrite")
        assert added() == 0 and of_last(lake, "d").rows_write == "rewrite"
    lw.sql(merge.replace("77", "78"), write="vector")
    assert added() > 0 and of_last(lake, "d").rows_write == "vector"
    rows = lake.spark.createDataFrame([(4, "u"), (79, "u")], "id BIGINT, v STRING")
    assert lw.upsert(rows, table, "id", write="rewrite").rows_updated == 1 and added() == 0
    assert lw.upsert(rows, table, "id", write="vector").rows_updated == 2 and added() > 0
    lake.spark.sql(f"ALTER DATABASE {database} SET DBPROPERTIES ('{ROWS_WRITE}' = 'rewrite')")
    try:
        lw.sql(f"DELETE FROM {table} WHERE id = 5")
        assert (added(), of_last(lake, "d").because) == (0, "its namespace asks for it")
        lw.upsert(rows, table, "id")
        assert (added(), of_last(lake, "d").because) == (0, "its namespace asks for it")
    finally:
        lake.spark.sql(f"ALTER DATABASE {database} UNSET DBPROPERTIES ('{ROWS_WRITE}')")
    lw.sql(f"DELETE FROM {table} WHERE id = 6")
    assert added() > 0 and of_last(lake, "d").rows_write is None
    held = {row[0] for row in lake.spark.sql(f"SELECT id FROM {table}").collect()}
    assert held == ({*range(40)} - {5, 6}) | {78, 79}
    told = {row[0] for row in lake.spark.sql(f"SHOW TBLPROPERTIES {table}").collect()}
    assert ROWS_WRITE not in told
    with pytest.raises(DeltaProtocolError, match="deletionVectors"):  # as the page says of delta-rs
        DeltaTable(lake.folder / "d").to_pyarrow_table()
    (step,) = lw.sql(f"EXPLAIN GOVERNED DELETE FROM {table} WHERE id = 9", write="vector").collect()
    assert step.notes == "Rows are written: vector (the statement asks for it)."


@pytest.mark.long
def test_a_statement_switches_no_vectors_on(lake: Lake) -> None:
    lw, database = lake.lw, lake.database
    with_vectors(lake, "plain", "")
    with_vectors(
        lake,
        "hashed",
        "CLUSTERED BY (id) INTO 2 BUCKETS TBLPROPERTIES ('delta.enableDeletionVectors' = 'false')",
    )
    rows = lake.spark.createDataFrame([(4, "u")], "id BIGINT, v STRING")

    def refused(name: str, why: str, write: str, error: type[Exception] = RefusedError) -> None:
        with pytest.raises(error, match=why):
            lw.sql(f"DELETE FROM {database}.{name} WHERE id = 1", write=write)
        with pytest.raises((UsageError, RefusedError)):
            lw.upsert(rows, f"{database}.{name}", "id", write=write)

    refused("plain", "has no deletion vectors, and a statement does not switch them on", "vector")
    refused("plain", "no deletes by position", "position", UsageError)
    refused("plain", "no deletes by equality", "equality", UsageError)
    refused("hashed", "has no deletion vectors, and a statement does not switch them on", "vector")
    with pytest.raises(RefusedError, match="is not there"):
        lw.upsert(rows, f"{database}.missing", "id", write="vector")
    for name in ("plain", "hashed"):
        assert len(lake.commits(str(lake.folder / name))) == 1
        lake.spark.sql(f"ALTER TABLE {database}.{name} SET TBLPROPERTIES ('{ROWS_WRITE}' = 'vector')")
        lw.sql(f"DELETE FROM {database}.{name} WHERE id = 1")
        told = of_last(lake, name)
        assert told.rows_write == "table" and str(told.because).startswith("the table asks for vector, but")
        lw.sql(f"DELETE FROM {database}.{name} WHERE id = 2", write="auto")
        assert of_last(lake, name).rows_write == "rewrite"
        assert str(of_last(lake, name).because).startswith("auto, as the statement asks: ")
