"""Upserts into bucketed Delta tables: new rows go into their buckets, and all comes out as Delta's MERGE makes it."""

import random
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewarden.catalog import failpoints
from lakewarden.catalog.errors import LakewardenError, PreconditionError, UsageError
from support.builders.bucketed_lakes import (
    BUCKETS,
    BucketedLake,
    bucketed_lake,
    executed,
    swap_names_of_files,
)
from support.cases import mostly_long
from support.crashes.in_process import amid

pytestmark = pytest.mark.spark

INSERT = "WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)"
MERGE = f"MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v {INSERT}"
UPSERT = "UPSERT INTO t (id, v) ON (id) SELECT id, v FROM s"
UPSERTED = sorted(
    [*((i, f"new{i // 2}") if i % 2 == 0 else (i, str(i)) for i in range(8)), (8, "new4")], key=repr
)


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BucketedLake]:
    with bucketed_lake(spark, tmp_path_factory.mktemp("upserts")) as found:
        yield found


@pytest.fixture(scope="module")
def made(lake: BucketedLake) -> Path:
    """A folder with the tables that each test has a copy of."""
    lake.make("t", "(SELECT id, CAST(id AS STRING) AS v FROM range(8))")
    lake.make("s", "(SELECT 2 * id AS id, concat('new', id) AS v FROM range(5))")
    return lake.folder


@pytest.fixture
def tables(lake: BucketedLake, made: Path, tmp_path: Path) -> BucketedLake:
    """Eight rows in `t`, and in `s` other values for the even ones and for one that `t` has not."""
    for table in "ts":
        shutil.copytree(made / table, tmp_path / table)
        lake.spark.sql(f"DROP TABLE IF EXISTS {table}")
        lake.spark.sql(f"CREATE TABLE {table} USING delta LOCATION '{tmp_path / table}'")
    return replace(lake, folder=tmp_path)


def test_a_merge_that_inserts_joins_bucket_by_bucket_without_an_exchange_in_one_recorded_commit(
    tables: BucketedLake,
) -> None:
    before = tables.log("t").version()
    assert tables.because(MERGE) == ""
    seen = {number for number, _ in executed(tables.spark)}
    (counts,) = tables.lw.sql(MERGE).collect()
    told = {"num_updated_rows": 4, "num_inserted_rows": 1, "num_deleted_rows": 0, "version": before + 1}
    assert counts.asDict() == counts.asDict() | told
    assert tables.rows("t") == UPSERTED and tables.strays("t") == 0
    ran = [text for number, text in executed(tables.spark) if number not in seen]
    ours = [text for text in ran if "_delta_log" not in text]  # Delta reads its own log as it likes
    assert any("Join" in text for text in ours) and not any("Exchange" in text for text in ours)
    (commit,) = tables.services.readers[0].commits((tables.folder / "t").as_uri(), after=before)
    assert commit.operation == "MERGE" and commit.lineage is not None
    (read,) = commit.lineage.inputs
    assert (read.location, read.version) == ((tables.folder / "s").as_uri(), 0)


@pytest.mark.long
@pytest.mark.parametrize(("count", "is_exchanged"), mostly_long([(8, 0), (2, 0), (12, 0), (6, 1)], [(8, 0)]))
def test_a_source_whose_count_divides_or_is_divided_is_not_exchanged(
    tables: BucketedLake, count: int, is_exchanged: int
) -> None:
    tables.make(
        "s", "(SELECT 2 * id AS id, concat('new', id) AS v FROM range(5))", BUCKETS.replace("4", f"{count}")
    )
    assert tables.because(MERGE) == ""
    seen = {number for number, _ in executed(tables.spark)}
    (counts,) = tables.lw.sql(MERGE).collect()
    assert (counts["num_updated_rows"], counts["num_inserted_rows"]) == (4, 1)
    assert tables.rows("t") == UPSERTED and tables.strays("t") == 0
    assert metrics(tables)["SourceRows"] == "5", "each row is read by one task"
    ran = [text for number, text in executed(tables.spark) if number not in seen]
    ours = [text for text in ran if "_delta_log" not in text]
    assert any("Exchange" in text for text in ours) == bool(is_exchanged)


@pytest.mark.long
def test_a_source_whose_files_name_wrong_buckets_of_another_count_gives_no_other_rows(
    tables: BucketedLake,
) -> None:
    tables.make("s", "(SELECT 2 * id AS id, concat('new', id) AS v FROM range(5))", BUCKETS.replace("4", "2"))
    swap_names_of_files(tables, "s")
    tables.sql(MERGE)
    assert tables.rows("t") == UPSERTED


def test_an_upsert_in_sql_keeps_its_source_and_leaves_each_row_in_its_bucket(tables: BucketedLake) -> None:
    assert tables.because(UPSERT) == ""
    (counts,) = tables.lw.sql(UPSERT).collect()
    assert (counts["num_updated_rows"], counts["num_inserted_rows"]) == (4, 1)
    assert tables.rows("t") == UPSERTED and tables.strays("t") == 0


def test_an_upsert_of_what_the_table_held_undoes_nobodys_commit(
    tables: BucketedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes when the source is computed, and before the buckets are joined."""
    tries: list[str] = []

    def theirs() -> None:
        tables.lw.sql("UPDATE t SET v = 'theirs' WHERE id = 1")

    monkeypatch.setattr(failpoints, "listener", amid("upsert.merging", theirs, tries))
    done = tables.lw.upsert(
        tables.spark.sql("SELECT id, concat(v, '!') AS v FROM t WHERE id < 2"), "t", ["id"]
    )
    assert done.written is not None and done.written.notes == () and len(tries) == 2
    assert tables.rows("t")[:2] == [(0, "0!"), (1, "theirs!")]


@pytest.mark.long
def test_an_upsert_of_a_frame_is_done_bucket_by_bucket(tables: BucketedLake) -> None:
    frame = tables.spark.sql("SELECT id, v, id = 2 AS gone FROM s UNION ALL SELECT NULL, 'nobody', false")
    done = tables.lw.upsert(frame.where("id IS NULL OR id < 9"), "t", ["id"], delete_when="gone", partial="v")
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (2, 3, 1)
    assert done.written is not None and done.written.notes == ()
    expected = [row for row in UPSERTED if row[0] != 2]
    assert tables.rows("t") == sorted([*expected, (None, "nobody")], key=repr)
    assert tables.strays("t") == 0 and tables.because(MERGE) == ""


def test_rows_with_new_keys_are_appended_and_no_file_is_written_anew(tables: BucketedLake) -> None:
    before = tables.files("t")
    done = tables.lw.upsert(tables.spark.range(20, 40).selectExpr("id", "'more' AS v"), "t", "id")
    assert (done.rows_inserted, done.rows_updated, done.files_removed) == (20, 0, 0)
    assert set(before) < set(tables.files("t")) and tables.strays("t") == 0
    (counts,) = tables.lw.sql(f"MERGE INTO t USING s ON t.id = s.id {INSERT}").collect()
    assert (counts["num_inserted_rows"], counts["num_removed_files"]) == (1, 0)
    assert len(tables.rows("t")) == 29 and tables.strays("t") == 0


def test_only_buckets_with_matches_are_written_anew(tables: BucketedLake) -> None:
    before, version = tables.files("t"), tables.log("t").version()
    more = tables.spark.sql("SELECT 4 AS id, 'new' AS v UNION ALL SELECT id + 20, 'more' FROM range(20)")
    done = tables.lw.upsert(more, "t", "id")
    assert (done.rows_inserted, done.rows_updated, done.files_removed) == (20, 1, 1)
    assert len(set(before) - set(tables.files("t"))) == 1 and tables.strays("t") == 0
    assert len(tables.rows("t")) == 28 and (4, "new") in tables.rows("t")
    assert tables.log("t").version() == version + 1


@pytest.mark.long
def test_an_upsert_makes_a_bucketed_table_where_it_is_missing(tables: BucketedLake) -> None:
    rows = tables.spark.range(9).selectExpr("id", "id % 3 AS k", "'x' AS v")
    path = str(tables.folder / "made")
    done = tables.lw.upsert(rows, path, ["id", "k"], buckets=4)
    assert (done.created, done.rows_inserted, tables.strays("made")) == (True, 9, 0)
    assert tables.log("made").metadata().configuration["lakewarden.buckets.columns"] == "id,k"
    assert tables.lw.upsert(rows, path, ["id", "k"], buckets=8).rows_updated == 9, "it is there"
    assert tables.strays("made") == 0


@pytest.mark.parametrize(
    ("buckets", "partitioned", "said"),
    [(0, (), "no 0 buckets"), (True, (), "no True buckets"), (4, ("v",), "is not partitioned")],
)
def test_buckets_that_no_table_has_are_refused(
    tables: BucketedLake, buckets: int, partitioned: tuple[str, ...], said: str
) -> None:
    frame = tables.spark.table("s")
    with pytest.raises(UsageError, match=said):
        tables.lw.upsert(frame, str(tables.folder / "no"), "id", partitioned=partitioned, buckets=buckets)
    assert not (tables.folder / "no").exists()


def test_a_stream_of_upserts_leaves_each_row_in_its_bucket(tables: BucketedLake) -> None:
    expected = UPSERTED
    for number in (20, 21):
        stream = tables.lw.upsert_stream(
            tables.spark.readStream.table("s"), "t", "id", checkpoint=str(tables.folder / "checkpoint"),
            trigger={"availableNow": True},
        )  # fmt: skip
        stream.awaitTermination()
        assert tables.rows("t") == expected and tables.strays("t") == 0
        tables.sql(f"INSERT INTO s VALUES ({number}, 'late')")
        expected = sorted([*expected, (number, "late")], key=repr)


@pytest.mark.long
def test_several_matches_are_an_error_and_nothing_is_changed(tables: BucketedLake) -> None:
    tables.sql("INSERT INTO s VALUES (4, 'other')")
    before = (tables.rows("t"), tables.log("t").version())
    with pytest.raises(PreconditionError, match="has several matches"):
        tables.sql(MERGE)
    with pytest.raises(PreconditionError, match="have the key id=4|have the key 4"):
        tables.lw.upsert(tables.spark.table("s"), "t", "id")
    assert (tables.rows("t"), tables.log("t").version()) == before


@pytest.mark.long
@pytest.mark.parametrize(
    ("table", "way"), mostly_long([("t", MERGE), ("s", MERGE), ("t", "frame")], [("t", "frame")])
)
def test_a_file_that_names_the_wrong_bucket_never_gives_other_rows(
    tables: BucketedLake, table: str, way: str
) -> None:
    swap_names_of_files(tables, table)
    if way == "frame":
        done = tables.lw.upsert(tables.spark.table("s"), "t", "id")
        assert done.written is not None and "in other buckets than its files say" in str(done.written.notes)
    else:
        tables.sql(way)
    assert tables.rows("t") == UPSERTED


REASONS = {
    "another key": (
        MERGE.replace("VALUES (s.id", "VALUES (s.id + 1"),
        "gets rows with another id than they are matched by",
    ),
    "without a source": (
        f"{MERGE} WHEN NOT MATCHED BY SOURCE THEN DELETE",
        "is changed where the source has no row",
    ),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", REASONS)
def test_a_merge_that_is_left_to_delta_says_why(tables: BucketedLake, name: str) -> None:
    statement, because = REASONS[name]
    assert because in tables.because(statement)


CELLS = {
    "INT": ("1", "2", "3", "4"),
    "STRING": ("'a'", "'b'"),
    "string": ("'a'", "'b'", "'c'"),
    "DOUBLE": ("0.0D", "1.5D", "2D"),
}
SOURCES = (
    "s",
    "(SELECT * FROM s WHERE x > 0.5)",
    "(SELECT id, k, max(v) AS v, max(x) AS x FROM s GROUP BY id, k)",
    "(SELECT id, k, v, x FROM (SELECT *, row_number() OVER (PARTITION BY id, k ORDER BY v, x) n FROM s) WHERE n = 1)",
)
MATCHED = (
    "UPDATE SET v = s.v, x = t.x + s.x",
    "UPDATE SET v = concat(t.v, s.v)",
    "DELETE",
    "UPDATE SET x = NULL",
)
WHEN = ("", " AND s.x > 1", " AND t.x < s.x", " AND (t.v = 'a' OR s.v IS NULL)", " AND false")
INSERTS = (
    "INSERT (id, k, v, x) VALUES (s.id, s.k, s.v, s.x)",
    "INSERT (k, id) VALUES (s.k, s.id)",
    "INSERT *",
)


def row(chance: random.Random) -> str:
    cells = (f"CAST({chance.choice(('NULL', *some, *some))} AS {type_})" for type_, some in CELLS.items())
    return f"({', '.join(cells)})"


def merge(chance: random.Random, keys: str) -> str:
    joined = " AND ".join(f"t.{key} = s.{key}" for key in keys.split(", "))
    also = chance.choice(("", "", " AND s.x > 1", " AND t.v <> 'c'"))
    matched = [
        f"WHEN MATCHED{chance.choice(WHEN)} THEN {chance.choice(MATCHED)}"
        for _ in range(chance.randint(0, 2))
    ]
    if len(matched) == 2 and " AND " not in matched[0]:
        del matched[1]
    inserts = [
        f"WHEN NOT MATCHED{chance.choice(('', ' AND s.x > 1'))} THEN {chance.choice(INSERTS)}"
        for _ in range(chance.randint(0 if matched else 1, 1))
    ]
    source = f"{chance.choice(SOURCES)} AS s" if chance.random() < 0.8 else "s"
    return f"MERGE INTO t USING {source} ON {joined}{also} {' '.join((*matched, *inserts))}"


TOLD = ("SourceRows", "TargetRowsInserted", "TargetRowsUpdated", "TargetRowsDeleted")


def metrics(lake: BucketedLake) -> Mapping[str, str]:
    """What the last commit says of its rows."""
    (last,) = lake.log("t").history(1)
    return {name: last["operationMetrics"].get(f"num{name}", "") for name in TOLD}


def play(lake: BucketedLake, seed: int) -> tuple[str, str, bool]:
    """One random MERGE on bucketed tables and on plain ones: what came of each, and whether buckets were used."""
    chance = random.Random(seed)
    keys = chance.choice(("id", "k", "id, k"))
    values = {name: ", ".join(row(chance) for _ in range(chance.randint(1, 9))) for name in "ts"}
    statement, outcomes, used = merge(chance, keys), [], False
    for buckets in (f"CLUSTERED BY ({keys}) INTO {chance.choice((1, 3, 8))} BUCKETS", ""):
        for name, told in values.items():
            lake.make(name, f"VALUES {told} AS r(id, k, v, x)", buckets)
        try:
            (counts,) = lake.lw.sql(statement).collect()
            came = f"{counts['num_affected_rows']} {metrics(lake) if counts['version'] is not None else ''}"
            used = used or (bool(buckets) and all(one.startswith("lw") for one in lake.files("t")))
        except (LakewardenError, PySparkException) as error:
            came = str(error).partition("\n")[0]
        outcomes.append(f"{statement}\n{values}\n{came}: {lake.rows('t')}")
    return outcomes[0], outcomes[1], used


@pytest.mark.long
@pytest.mark.parametrize("seed", mostly_long(range(4), [1]))
def test_a_random_merge_does_the_same_with_buckets_and_without(lake: BucketedLake, seed: int) -> None:
    bucketed, plain, used = play(lake, seed)
    assert bucketed == plain
    assert used or "several matches" in bucketed


@pytest.mark.long
@pytest.mark.parametrize("first", range(2000, 2100, 20))
def test_random_merges_do_the_same_with_buckets_and_without(lake: BucketedLake, first: int) -> None:
    used = 0
    for seed in range(first, first + 20):
        bucketed, plain, is_used = play(lake, seed)
        assert bucketed == plain, seed
        used += is_used
    assert used >= 10, "the others have rows with several matches"
