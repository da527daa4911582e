"""Bucketed Delta tables: made, filled and updated bucket by bucket, and right whatever others do to them."""

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import ConflictError, PreconditionError, UsageError
from lakewarden.jobs.session.delta.buckets.bucketed_changes import BucketedChange
from lakewarden.jobs.session.delta.buckets.rows_changes import RowsChange
from support.builders.bucketed_lakes import (
    BucketedLake,
    bucketed_lake,
    executed,
    swap_names_of_files,
)
from support.cases import mostly_long

pytestmark = pytest.mark.spark

UPDATE = "UPDATE t SET v = s.v FROM s WHERE t.id = s.id"


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BucketedLake]:
    folder = tmp_path_factory.mktemp("buckets")
    with bucketed_lake(spark, folder) as made:
        yield made


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


UPDATED = sorted(((i, f"new{i // 2}") if i % 2 == 0 else (i, str(i)) for i in range(8)), key=repr)


def test_a_bucketed_table_is_made_and_each_of_its_files_names_its_bucket(tables: BucketedLake) -> None:
    properties = tables.log("t").metadata().configuration
    assert {key: value for key, value in properties.items() if key.startswith("lakewarden.buckets.")} == {
        "lakewarden.buckets.columns": "id",
        "lakewarden.buckets.count": "4",
        "lakewarden.buckets.hash": "murmur3",
        "lakewarden.buckets.sort": "id",
    }
    tables.sql("INSERT INTO t VALUES (100, 'a')")
    named = tables.spark.sql(
        "SELECT DISTINCT int(regexp_extract(input_file_name(), 'lw4-[0-9a-f]{8}-part-(\\\\d+)-', 1)) AS told, "
        "pmod(hash(id), 4) AS is FROM t"
    ).collect()
    assert named and all(row["told"] == row["is"] for row in named)


def test_no_file_of_an_overwrite_in_part_names_a_bucket_that_is_not_its(tables: BucketedLake) -> None:
    """Delta writes the rows that stay into files of the same session."""
    tables.sql("INSERT OVERWRITE t WITH ('replaceWhere' = 'id > 5') SELECT 6L AS id, 'six' AS v")
    told = "regexp_extract(input_file_name(), 'lw4-[0-9a-f]{8}-part-(\\\\d+)-', 1)"
    wrong = tables.spark.sql(f"SELECT id FROM t WHERE {told} <> '' AND int({told}) <> pmod(hash(id), 4)")
    assert wrong.collect() == []
    assert tables.rows("t") == [*((i, str(i)) for i in range(6)), (6, "six")]


def test_an_update_joins_bucket_by_bucket_without_an_exchange_in_one_recorded_commit(
    tables: BucketedLake,
) -> None:
    before = tables.log("t").version()
    assert tables.because(UPDATE) == ""
    seen = {number for number, _ in executed(tables.spark)}
    (counts,) = tables.lw.sql(UPDATE).collect()
    assert counts.asDict() | {"num_added_bytes": 0, "num_removed_bytes": 0} == {
        "num_affected_rows": 4, "num_updated_rows": 4, "num_deleted_rows": 0, "num_inserted_rows": 0,
        "num_added_files": 2, "num_removed_files": 2, "num_added_bytes": 0, "num_removed_bytes": 0,
        "version": before + 1,
    }  # fmt: skip
    assert tables.rows("t") == UPDATED
    ran = [text for number, text in executed(tables.spark) if number not in seen]
    ours = [text for text in ran if "_delta_log" not in text]  # Delta reads its own log as it likes
    assert any("Join" in text for text in ours) and not any("Exchange" in text for text in ours)
    (commit,) = tables.services.readers[0].commits((tables.folder / "t").as_uri(), after=before)
    assert commit.operation == "MERGE" and commit.lineage is not None
    (read,) = commit.lineage.inputs
    assert (read.location, read.version) == ((tables.folder / "s").as_uri(), 0)


@pytest.mark.long
def test_what_is_the_same_for_all_matches_is_no_error_and_what_differs_is(tables: BucketedLake) -> None:
    tables.sql("INSERT INTO s VALUES (4, 'new2')")
    tables.sql(UPDATE)
    assert tables.rows("t") == UPDATED
    tables.sql("INSERT INTO s VALUES (4, 'other')")
    before = tables.log("t").version()
    with pytest.raises(PreconditionError, match="has several matches"):
        tables.sql(UPDATE)
    assert (tables.rows("t"), tables.log("t").version()) == (UPDATED, before)


@pytest.mark.long
def test_under_an_operation_id_it_is_done_once(tables: BucketedLake) -> None:
    for done_before in (False, True):
        tables.spark.conf.set("lakewarden.operation", "load-1")
        (result,) = tables.lw.sql(UPDATE).collect()
        assert (result["operation"], result["done_before"]) == ("load-1", done_before)
    assert tables.log("t").version() == 1


def test_an_update_that_finds_nothing_makes_no_commit(tables: BucketedLake) -> None:
    before = tables.log("t").version()
    (counts,) = tables.lw.sql(f"{UPDATE} AND s.id > 90").collect()
    assert (counts["num_affected_rows"], tables.log("t").version()) == (0, before)


def test_only_buckets_that_the_source_is_about_are_written_anew(tables: BucketedLake) -> None:
    before, where = tables.files("t"), "t.id = s.id AND s.id = 4"
    (counts,) = tables.lw.sql(f"UPDATE t SET v = s.v FROM s WHERE {where}").collect()
    assert (counts["num_updated_rows"], counts["num_removed_files"], counts["num_added_files"]) == (1, 1, 1)
    assert len(set(before) - set(tables.files("t"))) == 1
    assert tables.because(f"DELETE FROM t USING s WHERE {where}") == ""
    (counts,) = tables.lw.sql(f"DELETE FROM t USING s WHERE {where}").collect()
    assert (counts["num_deleted_rows"], counts["num_removed_files"]) == (1, 1)
    assert tables.rows("t") == [(i, str(i)) for i in range(8) if i != 4]


@pytest.mark.few(1)
@pytest.mark.parametrize("table", mostly_long(["t", "s"], ["s"]))
def test_what_others_append_is_used_all_the_same(tables: BucketedLake, table: str) -> None:
    more = pa.table({"id": pa.array([5], pa.int64()), "v": ["foreign"]})
    write_deltalake(tables.folder / table, more, mode="append")
    foreign = (5, "foreign")
    expected = [*UPDATED, foreign] if table == "t" else [row for row in UPDATED if row[0] != 5] + [foreign]
    assert tables.because(UPDATE).startswith("the table has 1 files" if table == "t" else "")
    tables.sql(UPDATE)
    assert tables.rows("t") == sorted(expected, key=repr)


@pytest.mark.long
def test_what_is_written_anew_is_in_its_buckets_again(tables: BucketedLake) -> None:
    tables.sql("ALTER TABLE t CLUSTERED BY (id) INTO 3 BUCKETS")
    assert "in no bucket" in tables.because(UPDATE)
    tables.sql("INSERT OVERWRITE t SELECT * FROM t")
    assert tables.because(UPDATE) == "" and {one[:4] for one in tables.files("t")} == {"lw3-"}
    assert tables.rows("t") == [(i, str(i)) for i in range(8)]
    tables.sql(UPDATE)
    assert tables.rows("t") == UPDATED, "with a source of four buckets, which is exchanged"
    tables.sql("ALTER TABLE t NOT CLUSTERED")
    assert "buckets" not in str(tables.log("t").metadata().configuration)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE made (id INT, x DOUBLE) USING delta CLUSTERED BY (x) INTO 4 BUCKETS",
        "CREATE TABLE made (id INT, x DOUBLE) USING delta CLUSTERED BY (idd) INTO 4 BUCKETS",
        "CREATE TABLE made USING delta CLUSTERED BY (x) INTO 4 BUCKETS AS SELECT id, CAST(id AS FLOAT) AS x FROM t",
        "CREATE OR REPLACE TABLE t USING delta CLUSTERED BY (idd) INTO 4 BUCKETS AS SELECT id FROM s",
        "ALTER TABLE t CLUSTERED BY (idd) INTO 4 BUCKETS",
    ],
)
def test_buckets_by_columns_that_are_not_hashed_are_refused(tables: BucketedLake, statement: str) -> None:
    before = tables.log("t").version(), tables.rows("t")
    with pytest.raises(UsageError, match="no columns .* of types that are hashed"):
        tables.sql(statement)
    assert (tables.log("t").version(), tables.rows("t")) == before
    assert tables.sql("SHOW TABLES LIKE 'made'") == []


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("table", "few"),
    mostly_long(
        [("t", ""), ("s", ""), ("t", " AND s.id = 4"), ("s", " AND s.id = 4")],
        [("t", " AND s.id = 4")],
    ),
)
def test_a_file_that_names_the_wrong_bucket_never_gives_other_rows(
    tables: BucketedLake, table: str, few: str
) -> None:
    swap_names_of_files(tables, table)
    assert tables.because(UPDATE) == "", "nobody can see it from the names"
    tables.sql(UPDATE + few)
    expected = UPDATED if not few else sorted(((i, "new2" if i == 4 else str(i)) for i in range(8)), key=repr)
    assert tables.rows("t") == expected


@pytest.mark.long
@pytest.mark.parametrize(
    "statement",
    mostly_long(
        ["UPDATE t SET v = 'z' WHERE id < 4", "DELETE FROM t WHERE id < 4"],
        ["UPDATE t SET v = 'z' WHERE id < 4"],
    ),
)
def test_rows_of_other_buckets_than_their_files_say_are_left_to_delta(
    tables: BucketedLake, statement: str
) -> None:
    swap_names_of_files(tables, "t")
    tables.sql(statement)
    left = [(i, str(i)) for i in range(4, 8)]
    assert tables.rows("t") == [*((i, "z") for i in range(4) if statement.startswith("UPDATE")), *left]


def test_cut_off_before_its_commit_it_has_changed_nothing(
    tables: BucketedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (tables.rows("t"), tables.log("t").version())

    def cut_off(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(BucketedChange, "_commit", cut_off)
        with pytest.raises(KeyboardInterrupt):
            tables.sql(UPDATE)
    assert (tables.rows("t"), tables.log("t").version()) == before
    tables.sql(UPDATE)
    assert tables.rows("t") == UPDATED


def test_who_commits_meanwhile_is_not_overwritten(
    tables: BucketedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = BucketedChange._commit
    waiting = [pa.table({"id": pa.array([2], pa.int64()), "v": ["meanwhile"]})]

    def after_somebody_else(change: BucketedChange, *done: Any) -> None:
        while waiting:
            write_deltalake(tables.folder / "t", waiting.pop(), mode="append")
        commit(change, *done)

    monkeypatch.setattr(BucketedChange, "_commit", after_somebody_else)
    tables.sql(UPDATE)
    assert tables.rows("t") == sorted([*UPDATED, (2, "new1")], key=repr)


@pytest.mark.long
def test_without_another_try_the_race_is_lost_and_said(
    tables: BucketedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = BucketedChange._commit

    def after_somebody_else(change: BucketedChange, *done: Any) -> None:
        write_deltalake(
            tables.folder / "t", pa.table({"id": pa.array([9], pa.int64()), "v": ["x"]}), mode="append"
        )
        commit(change, *done)

    monkeypatch.setattr(BucketedChange, "_commit", after_somebody_else)
    tables.spark.conf.set("lakewarden.conflicts.retries", "0")
    try:
        with pytest.raises(ConflictError, match="committed to .* first"):
            tables.sql(UPDATE)
    finally:
        tables.spark.conf.unset("lakewarden.conflicts.retries")
    assert len(tables.rows("t")) == 9 and not any("new" in row[1] for row in tables.rows("t"))


CHANGES: dict[str, tuple[str, tuple[int, int], list[tuple[int, str | None]]]] = {
    "a row": ("UPDATE t SET v = concat(v, '!') WHERE id = 3", (1, 1), [(3, "3!")]),
    "every row": ("UPDATE t SET v = 'x'", (8, 3), [(i, "x") for i in range(8)]),
    "by another column": ("UPDATE t SET v = NULL WHERE v IN ('1', '5')", (2, 0), [(1, None), (5, None)]),
    "deleted": ("DELETE FROM t WHERE id BETWEEN 2 AND 3", (2, 0), []),
    "none of NULL": ("DELETE FROM t WHERE v > NULL", (0, 0), []),
}  # fmt: skip
"""Statements, how many rows they change, how many files they write (0: as many as buckets have such rows), and the rows
that come out otherwise."""


@pytest.mark.few(1)
@pytest.mark.parametrize("name", mostly_long(CHANGES, ["a row"]))
def test_a_change_of_one_table_leaves_its_rows_in_their_buckets(tables: BucketedLake, name: str) -> None:
    statement, (changed, files), other = CHANGES[name]
    before, version = {one[0]: one for one in tables.rows("t")}, tables.log("t").version()
    (counts,) = tables.lw.sql(statement).collect()
    assert counts["num_affected_rows"] == changed
    gone = {2, 3} if name == "deleted" else set[int]()
    expected = {**before, **{row[0]: row for row in other}}
    assert tables.rows("t") == sorted((row for key, row in expected.items() if key not in gone), key=repr)
    assert tables.log("t").version() == version + (1 if changed else 0)
    if files:
        assert counts["num_added_files"] == files
    assert tables.because(UPDATE) == "", "no file is in no bucket"


@pytest.mark.long
@pytest.mark.parametrize(
    "query", mostly_long(["SELECT v, id FROM t", "SELECT * FROM t"], ["SELECT v, id FROM t"])
)
def test_a_change_through_a_view_comes_to_what_it_says(tables: BucketedLake, query: str) -> None:
    tables.spark.sql(query).createOrReplaceTempView("seen")
    tables.sql("DELETE FROM seen WHERE id = 5")
    now = "3"
    with suppress(PySparkException):  # Delta takes some views and not others
        tables.sql("UPDATE seen SET v = 'x' WHERE id = 3")
        now = "x"
    assert tables.rows("t") == [(i, now if i == 3 else str(i)) for i in range(8) if i != 5]


@pytest.mark.long
def test_a_change_under_an_operation_id_is_done_once(tables: BucketedLake) -> None:
    for _ in range(2):
        tables.spark.conf.set("lakewarden.operation", "once-by-buckets")
        tables.sql("UPDATE t SET v = concat(v, '!') WHERE id = 3")
    assert (3, "3!") in tables.rows("t")
    history = tables.log("t").history(1)[0]
    assert (history["operation"], history["operationMetrics"]["numUpdatedRows"]) == ("UPDATE", "1")


@pytest.mark.long
def test_a_change_of_one_table_beside_another_writer_is_tried_again(
    tables: BucketedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, more = RowsChange._commit, pa.table({"id": pa.array([3], pa.int64()), "v": ["late"]})
    others = iter([more])

    def after_somebody_else(change: RowsChange, *done: Any) -> None:
        for rows in others:
            write_deltalake(tables.folder / "t", rows, mode="append")
        commit(change, *done)

    monkeypatch.setattr(RowsChange, "_commit", after_somebody_else)
    tables.sql("UPDATE t SET v = 'z' WHERE id = 3")
    assert [row for row in tables.rows("t") if row[0] == 3] == [(3, "z"), (3, "z")]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("statement", "because"),
    [
        ("UPDATE t SET id = id + 1 WHERE id = 3", "gets another id"),
        ("DELETE FROM t WHERE id < hour(current_timestamp()) - 24", "may be another thing"),
        ("DELETE FROM t", "takes no reading"),
    ],
)
def test_a_change_that_is_left_to_delta_says_why(
    tables: BucketedLake, caplog: pytest.LogCaptureFixture, statement: str, because: str
) -> None:
    tables.sql(statement)
    assert because in caplog.text
    changed = [(4 if i == 3 and "SET" in statement else i, str(i)) for i in range(8)]
    assert tables.rows("t") == ([] if because == "takes no reading" else sorted(changed, key=repr))


REASONS = {
    "the bucket column is set": ("UPDATE t SET id = s.id + 1 FROM s WHERE t.id = s.id", "gets another id"),
    "not by the bucket column": (
        "UPDATE t SET v = s.v FROM s WHERE t.v = s.v", "is not joined by its bucket columns"
    ),
    "of the table itself": (
        "UPDATE t SET v = x.v FROM t x WHERE t.id = x.id", "is read by the statement itself"
    ),
}  # fmt: skip


@pytest.mark.few(1)
@pytest.mark.parametrize("name", REASONS)
def test_a_statement_that_is_left_to_merge_says_why(tables: BucketedLake, name: str) -> None:
    statement, because = REASONS[name]
    tables.spark.conf.set("lakewarden.dialect", "postgres")
    try:
        assert because in tables.because(statement)
    finally:
        tables.spark.conf.unset("lakewarden.dialect")


PROPERTIES = {
    "delta.enableChangeDataFeed": "has the feature changeDataFeed",
    "delta.autoOptimize.optimizeWrite": "has the property delta.autoOptimize.optimizeWrite",
}


@pytest.mark.parametrize("name", mostly_long(PROPERTIES, ["delta.enableChangeDataFeed"]))
def test_a_table_that_is_left_to_merge_says_why_and_comes_out_right(tables: BucketedLake, name: str) -> None:
    tables.spark.sql(f"ALTER TABLE t SET TBLPROPERTIES ('{name}' = 'true')")
    assert PROPERTIES[name] in tables.because(UPDATE)
    tables.sql(UPDATE)
    assert tables.rows("t") == UPDATED


@pytest.mark.long
def test_a_constraint_holds_and_nothing_is_changed(tables: BucketedLake) -> None:
    tables.spark.sql("ALTER TABLE t ADD CONSTRAINT short CHECK (length(v) < 4)")
    assert tables.because(UPDATE) == ""
    with pytest.raises(PreconditionError, match="A row cannot be written"):
        tables.sql(UPDATE)
    assert tables.rows("t") == [(i, str(i)) for i in range(8)]


def test_a_source_without_buckets_is_exchanged_alone(tables: BucketedLake) -> None:
    tables.spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW loose AS SELECT 2 * id AS id, concat('new', id) AS v FROM range(5)"
    )
    statement = UPDATE.replace(" s", " loose").replace("s.", "loose.")
    assert tables.because(statement) == ""
    tables.sql(statement)
    assert tables.rows("t") == UPDATED
    assert tables.because(UPDATE) == "", "each file is in its bucket still"


KEYS = ("id", "k", "n", "at", "id, k")
SETS = ("v = s.v", "x = t.x + s.x, v = concat(t.v, s.k)", "n = s.n * 2", "v = NULL", "at = s.at, x = s.id")
CONDITIONS = (
    "",
    " AND s.x > 1",
    " AND t.x < s.x",
    " AND s.v <> 'b'",
    " AND (t.v = 'a' OR s.v IS NULL)",
    " AND false",
)
SOURCES = (
    "s",
    "(SELECT * FROM s WHERE x > 0.5) s",
    "(SELECT id, k, n, at, max(v) v, max(x) x FROM s GROUP BY id, k, n, at) s",
)
ALONE = ("id = 1", "k = 'a'", "n > 0", "x <> 1.5D", "v = 'a' OR id IS NULL", "NOT id < 2")
ALSO = ("", " AND v IS NOT NULL", " OR at > '2000-01-01'")
CELLS = {
    "INT": ("1", "2", "3", "-7"),
    "STRING": ("'a'", "''", "'é'"),
    "DECIMAL(10,2)": ("1.5", "2.50", "-3"),
    "TIMESTAMP": ("'1970-01-01'", "'2026-11-28 12:00:01'"),
    "string": ("'a'", "'b'"),
    "DOUBLE": ("0.0D", "1.5D", "-0.0D", "2D"),
}


def row(chance: random.Random) -> str:
    cells = (f"CAST({chance.choice(('NULL', *some))} AS {type_})" for type_, some in CELLS.items())
    return f"({', '.join(cells)})"


def play(lake: BucketedLake, seed: int) -> tuple[str, str]:
    """One random statement on bucketed tables and on plain ones: what came of each."""
    chance = random.Random(seed)
    keys = chance.choice(KEYS)
    values = {name: ", ".join(row(chance) for _ in range(chance.randint(1, 12))) for name in "ts"}
    joined = " AND ".join(f"t.{key} = s.{key}" for key in keys.split(", "))
    source, where = chance.choice(SOURCES), f"{joined}{chance.choice(CONDITIONS)}"
    statement = f"UPDATE t SET {chance.choice(SETS)} FROM {source} WHERE {where}"
    if chance.random() < 0.3:
        statement = f"DELETE FROM t USING {source} WHERE {where}"
    if chance.random() < 0.3:  # of one table
        alone = f"{chance.choice(ALONE)}{chance.choice(ALSO)}"
        change = chance.choice(("DELETE FROM t", "UPDATE t SET v = concat(v, '!'), x = x + 1"))
        statement = f"{change} WHERE {alone}"
    lake.spark.conf.set("lakewarden.matches", chance.choice(("error", "any")))
    outcomes, buckets = [], f"CLUSTERED BY ({keys}) INTO {chance.choice((1, 3, 8))} BUCKETS"
    times = chance.choice((1, 2))  # the second time, vectors are read
    for how in (f"{buckets} TBLPROPERTIES ('delta.enableDeletionVectors' = '{times == 2}')", ""):
        for name, told in values.items():
            lake.make(name, f"VALUES {told} AS r(id, k, n, at, v, x)", how)
        came = ""
        for _ in range(times):
            try:
                (counts,) = lake.lw.sql(statement).collect()
                came += str(counts["num_affected_rows"])
            except (PreconditionError, PySparkException) as error:
                came += str(error).partition("\n")[0]
        outcomes.append(f"{came}: {lake.rows('t')}")
    bucketed, plain = outcomes
    return f"{statement}\n{values}\n{bucketed}", f"{statement}\n{values}\n{plain}"


@contextmanager
def settled(lake: BucketedLake) -> Iterator[None]:
    try:
        yield
    finally:
        lake.spark.conf.unset("lakewarden.matches")


@pytest.mark.long
@pytest.mark.parametrize("seed", mostly_long(range(3), [1]))
def test_a_random_statement_does_the_same_with_buckets_and_without(lake: BucketedLake, seed: int) -> None:
    with settled(lake):
        bucketed, plain = play(lake, seed)
    assert bucketed == plain


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 1200, 40))
def test_random_statements_do_the_same_with_buckets_and_without(lake: BucketedLake, first: int) -> None:
    with settled(lake):
        for seed in range(first, first + 40):
            bucketed, plain = play(lake, seed)
            assert bucketed == plain, seed
