"""UPDATE and DELETE as warehouses write them, run on Spark and on a real PostgreSQL: the same rows, the same counts."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import LakewardenError, PreconditionError, UsageError
from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.jobs.sql.compile.values import Dialect, MatchPolicy
from support.builders.warehouse_changes import CASES
from support.cases import mostly_long
from support.servers.mariadb import MariadbServer
from support.servers.postgres import PostgresServer
from support.two_databases.meaning import meaning, theirs
from support.two_databases.rehearsal import SeveralMatchesError
from support.two_databases.sides import ROWS, Both, create, two_sides

pytestmark = [pytest.mark.spark, pytest.mark.postgres]


VARIABLES = "spark.sql.variable.substitute"


@pytest.fixture(scope="module")
def tables(
    spark: SparkSession, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Both]:
    with two_sides(spark, postgres, tmp_path_factory.mktemp("changes")) as both:
        yield both


@pytest.fixture
def both(tables: Both) -> Iterator[Both]:
    tables.fill({"t": ROWS["t"]})
    tables.spark.conf.set(VARIABLES, "true")  # as in a session that users start
    yield tables
    for key in ("lakewarden.dialect", "lakewarden.matches", VARIABLES):
        tables.spark.conf.unset(key)


@pytest.mark.parametrize("name", mostly_long(CASES, list(CASES)[::4]))
def test_a_statement_means_what_a_warehouse_means_by_it(tables: Both, name: str) -> None:
    statement, their_words = CASES[name]
    ours = meaning(tables.spark, statement, Dialect(name.partition(":")[0]))
    assert ours == theirs(tables.connection, their_words or statement, "t")


WRITTEN = (
    "postgres: FROM",
    "mysql: JOIN before SET",
    "mysql: the first rows deleted",
    "teradata: DEL",
    "tsql: DELETE x FROM",
    "tsql: a query behind WITH, without what is there twice",
)
"""Of each dialect a change that Delta really runs, in every run; the others in the long one."""


@pytest.mark.parametrize("name", mostly_long(CASES, WRITTEN))
def test_what_a_warehouse_would_do_is_done(both: Both, name: str) -> None:
    dialect = name.partition(":")[0]
    statement, theirs = CASES[name]
    both.spark.conf.set("lakewarden.dialect", dialect)
    result = both.lw.sql(statement).collect()[0]
    done = both.connection.execute((theirs or statement).encode())
    assert (result["num_affected_rows"], both.ours()) == (done.rowcount, both.theirs())


@pytest.mark.long
@pytest.mark.mariadb
def test_mysqls_own_words_mean_on_mariadb_what_they_mean_here(
    spark: SparkSession, mariadb: MariadbServer
) -> None:
    statements = [ours for name, (ours, _) in CASES.items() if name.startswith("mysql:")]
    assert len(statements) >= 5
    with mariadb.connected() as connection:
        create(mariadb, connection)
        for statement in statements:
            ours = meaning(spark, statement, Dialect.MYSQL)
            assert ours == theirs(connection, statement, "t"), statement


@pytest.mark.long
@pytest.mark.mariadb
def test_mysqls_own_words_do_on_mariadb_what_they_do_here(
    spark: SparkSession, mariadb: MariadbServer, tmp_path: Path
) -> None:
    statements = [ours for name, (ours, _) in CASES.items() if name.startswith("mysql:")]
    done, there = [], []
    with two_sides(spark, mariadb, tmp_path) as both:
        spark.conf.set("lakewarden.dialect", "mysql")
        for statement in statements:
            both.fill({"t": ROWS["t"]})
            rows = both.lw.sql(statement).collect()[0]["num_affected_rows"]
            done.append((statement, rows, both.ours()))
            there.append((statement, both.connection.execute(statement.encode()).rowcount, both.theirs()))
        spark.conf.unset("lakewarden.dialect")
    assert done == there and len(done) >= 5


TIED = "WITH c AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id) AS n FROM t) DELETE FROM c WHERE n > 1"


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("dialect", "statement"),
    mostly_long(
        [
            ("mysql", "DELETE FROM t ORDER BY id DESC LIMIT 1"),
            ("mysql", "UPDATE t SET a = 0 WHERE k = 7 ORDER BY s LIMIT 1"),
            ("tsql", TIED),
            ("tsql", "WITH c AS (SELECT *, ROW_NUMBER() OVER (ORDER BY id) AS n FROM t) UPDATE c SET a = n"),
            ("tsql", "WITH c AS (SELECT TOP (1) * FROM t ORDER BY id DESC) DELETE FROM c"),
        ],
        [("mysql", "DELETE FROM t ORDER BY id DESC LIMIT 1"), ("tsql", TIED)],
    ),
)
def test_rows_alike_on_both_sides_of_a_limit_are_an_error_and_nothing_is_changed(
    both: Both, dialect: str, statement: str
) -> None:
    before = both.ours()
    both.spark.conf.set("lakewarden.dialect", dialect)
    with pytest.raises(PreconditionError, match="are on both sides of a limit"):
        both.lw.sql(statement).collect()
    assert both.ours() == before


def test_teradatas_update_is_one_governed_merge(both: Both) -> None:
    (result,) = both.lw.sql("UPDATE t FROM s SET a = s.b + t.a WHERE t.k = s.k AND s.b > 150").collect()
    commit = both.head()
    counted = result.asDict()
    sizes = {counted.pop("num_added_bytes"), counted.pop("num_removed_bytes")}
    assert counted == {
        "num_affected_rows": 1,
        "num_updated_rows": 1,
        "num_deleted_rows": 0,
        "num_inserted_rows": 0,
        "num_added_files": 1,
        "num_removed_files": 1,
        "version": commit.version,
    }
    assert None not in sizes
    assert commit.operation == "MERGE" and commit.lineage is not None
    assert commit.lineage.operation is Operation.MERGE
    assert [(one.location.rpartition("/")[2], one.version) for one in commit.lineage.inputs] == [("s", 0)]
    assert not commit.lineage.reads_self


@pytest.mark.long
def test_the_record_says_that_the_target_was_asked_about_itself(both: Both) -> None:
    both.lw.sql("DELETE FROM t WHERE k IN (SELECT k FROM u WHERE u.e = 5)").collect()
    record = both.head().lineage
    assert record is not None and record.reads_self
    assert [one.location.rpartition("/")[2] for one in record.inputs] == ["u"]


TWICE = "UPDATE t SET a = u.e FROM u WHERE t.k = u.k"


def test_a_row_with_several_matches_is_an_error_and_changes_nothing(both: Both) -> None:
    before = both.ours()
    with pytest.raises(PreconditionError, match="several matches") as caught:
        both.lw.sql(TWICE)
    assert "lakewarden.matches = any" in caught.value.hint
    assert both.ours() == before


AGREEING = {
    "constants": "UPDATE t SET a = 1 FROM u WHERE t.k = u.k",
    "its own columns": "UPDATE t SET a = t.id + 1, s = upper(t.s) FROM u WHERE t.k <= u.k",
    "sources that agree": "UPDATE t SET a = u.e / 100 FROM u WHERE t.k = u.k",
    "sources that agree, beside queries": (
        "UPDATE t SET a = u.e / 100 FROM u WHERE t.k = u.k AND EXISTS (SELECT 1 FROM s WHERE s.k = u.k)"
    ),
    "a MERGE that leaves rows alone": (
        "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED AND t.a < 0 THEN DO NOTHING WHEN MATCHED AND s.b > 150 "
        "THEN DELETE WHEN NOT MATCHED AND s.b IS NULL THEN DO NOTHING WHEN MATCHED THEN UPDATE SET a = s.b "
        "WHEN NOT MATCHED THEN INSERT (id, a) VALUES (8, s.b)"
    ),
    "a MERGE of which no clause is about the other match": (
        "MERGE INTO t USING u ON t.k = u.k WHEN MATCHED AND u.e > 6 THEN UPDATE SET a = u.e "
        "WHEN NOT MATCHED THEN INSERT (id, k, a) VALUES (9, u.k, u.e)"
    ),
    "a MERGE with a query, of which no clause is about the other match": (
        "MERGE INTO t USING u ON t.k = u.k WHEN MATCHED AND u.e > (SELECT 6) AND t.id < 9 THEN DELETE "
        "WHEN NOT MATCHED AND u.e < (SELECT max(b) FROM s WHERE s.b > u.e) THEN INSERT (id) VALUES (u.e)"
    ),
}
"""Several matches of a row that say the same, or of which one alone is to be made."""


@pytest.mark.few(2)
@pytest.mark.parametrize("name", AGREEING)
def test_matches_that_say_the_same_are_one(tables: Both, name: str) -> None:
    agreeing = MatchPolicy(agreeing=True)
    ours = meaning(tables.spark, AGREEING[name], Dialect.POSTGRES, policy=agreeing)
    assert ours == theirs(tables.connection, AGREEING[name], "t")


def test_matches_that_differ_stay_several(tables: Both) -> None:
    with pytest.raises(SeveralMatchesError):
        meaning(tables.spark, TWICE, Dialect.POSTGRES, policy=MatchPolicy(agreeing=True))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["constants", "a MERGE of which no clause is about the other match"])
def test_delta_is_asked_again_where_a_row_has_several_matches(both: Both, name: str) -> None:
    both.lw.sql("SET lakewarden.dialect = postgres")
    result = both.lw.sql(AGREEING[name]).collect()[0]
    done = both.connection.execute(AGREEING[name].encode())
    assert (result["num_affected_rows"], both.ours()) == (done.rowcount, both.theirs())


BY_SOURCE = (
    "MERGE INTO t USING u ON t.k = u.k WHEN MATCHED AND u.e > {} THEN UPDATE SET a = u.e "
    "WHEN NOT MATCHED THEN INSERT (id, k, a) VALUES (9, u.k, u.e) WHEN NOT MATCHED BY SOURCE THEN DELETE"
)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("dialect", "least", "new"),
    mostly_long([("spark", 6, 7), ("tsql", 6, 7), ("tsql", 9, 20)], [("spark", 6, 7), ("tsql", 9, 20)]),
)
def test_a_second_match_that_no_clause_is_about_does_not_count_beside_rows_without_a_match(
    both: Both, dialect: str, least: int, new: int
) -> None:
    both.lw.sql(f"SET lakewarden.dialect = {dialect}")
    both.lw.sql(BY_SOURCE.format(least))
    held = [(row[0], row[1], row[2]) for row in both.ours()]
    assert sorted(held) == [(1, 1, 10), (2, 2, new), (4, 1, -41), (9, None, 8)]


@pytest.mark.long
def test_a_merge_that_could_do_two_things_does_nothing_and_chooses_nothing(both: Both) -> None:
    before = both.ours()
    both.lw.sql("SET lakewarden.dialect = postgres")
    with pytest.raises(PreconditionError, match="several matches") as caught:
        both.lw.sql("MERGE INTO t USING u ON t.k = u.k WHEN MATCHED THEN UPDATE SET a = u.e")
    assert "unique" in caught.value.hint and "lakewarden.matches" not in caught.value.hint
    assert both.ours() == before


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("matches", "chosen"),
    mostly_long([("any", 6), ("last by u.e", 7), ("LAST BY e", 7)], [("any", 6), ("LAST BY e", 7)]),
    ids=["any", "last", "unqualified"],
)
def test_one_match_is_chosen_when_the_policy_says_how(both: Both, matches: str, chosen: int) -> None:
    both.lw.sql(f"SET lakewarden.matches = {matches}")
    (result,) = both.lw.sql(TWICE).collect()
    assert result["num_affected_rows"] == 3
    assert [row[2] for row in both.ours() if row[1] == 2] == [chosen]


@pytest.mark.long
def test_what_is_last_twice_is_still_an_error(both: Both) -> None:
    both.lw.sql("SET lakewarden.matches = last by u.k")
    with pytest.raises(PreconditionError, match="several matches"):
        both.lw.sql(TWICE)


@pytest.mark.long
def test_zeros_of_both_signs_are_one_value_but_not_one_text(both: Both) -> None:
    zeros = [(1, 1, 1, "x", -0.0), (2, 1, 1, "x", 0.0), (3, 1, 1, "x", 2.5)]
    both.fill({"t": zeros})
    both.lw.sql("UPDATE t SET a = 7 WHERE d NOT IN (SELECT 0.0D FROM u)")
    assert [row[2] for row in both.ours()] == [1, 1, 7]
    both.lw.sql("UPDATE t SET s = concat(d, (SELECT max(c) FROM s WHERE k < 0)) WHERE d < 1")
    both.lw.sql("DELETE FROM t WHERE CAST(d AS STRING) = '-0.0' AND k IN (SELECT 1 FROM u)")
    assert [row[0] for row in both.ours()] == [2, 3]


def test_a_view_is_a_source_and_no_target(both: Both) -> None:
    both.spark.sql("CREATE OR REPLACE TEMP VIEW w AS SELECT k, b FROM s WHERE b = 200")
    (result,) = both.lw.sql("UPDATE t FROM w SET a = w.b WHERE t.k = w.k").collect()
    assert result["num_affected_rows"] == 1
    record = both.head().lineage
    assert record is not None and [one.version for one in record.inputs] == [0]


@pytest.mark.long
def test_an_older_version_is_a_source_in_sparks_own_words(both: Both) -> None:
    version = DeltaTable(both.folder / "t").version()
    both.spark.sql("UPDATE t SET a = 0")
    both.lw.sql(
        f"UPDATE t SET a = (SELECT max(o.a) FROM t VERSION AS OF {version} o WHERE o.id = t.id) WHERE id < 5"
    )
    assert [row[2] for row in both.ours()] == [10, 20, 30, -41, 0, 0]


def test_other_tables_than_deltas_are_refused_unless_spark_itself_can(both: Both) -> None:
    both.spark.sql("CREATE TABLE IF NOT EXISTS plain (k INT) USING parquet")
    with pytest.raises(UsageError, match="not a Delta table"):
        both.lw.sql("DELETE FROM plain USING s WHERE plain.k = s.k")


def test_a_session_explains_what_it_would_run(both: Both) -> None:
    (step,) = both.lw.sql("EXPLAIN GOVERNED UPDATE t FROM s SET a = s.b WHERE t.k = s.k").collect()
    assert step["statement"] == (
        "MERGE INTO `t` AS `t` USING `s` AS `s` ON `t`.`k` = `s`.`k` "
        "WHEN MATCHED THEN UPDATE SET `t`.`a` = `s`.`b`"
    )
    (plain,) = both.lw.sql("EXPLAIN GOVERNED DELETE FROM t WHERE k = 1").collect()
    assert plain["statement"] == "DELETE FROM t WHERE k = 1"
    assert both.head().operation == "WRITE"


def test_a_row_that_the_table_does_not_take_is_told_in_a_sentence(both: Both) -> None:
    before = both.ours()
    both.spark.sql("ALTER TABLE t ADD CONSTRAINT small CHECK (coalesce(a, 0) < 1000)")
    with pytest.raises(
        PreconditionError, match=r"^A row cannot be written: CHECK constraint small .* - a : 5000\.$"
    ):
        both.lw.sql("UPDATE t SET a = 5000 WHERE k IN (SELECT k FROM s)")
    with pytest.raises(PreconditionError, match="CHECK constraint small"):
        both.lw.sql("INSERT INTO t SELECT id, k, 5000, s, d FROM t")
    both.spark.sql("ALTER TABLE t DROP CONSTRAINT small")
    assert both.ours() == before


REFUSED = {
    "UPDATE t SET a = (SELECT b FROM s) WHERE k = 1": "A query that stands for one value found several rows",
    "UPDATE small SET ti = ti + 100": "A value is too large for ti, whose type is TINYINT",
    "UPDATE small SET ti = ti + t.k FROM t WHERE t.id = 1": "A value is too large for ti",
    "UPDATE seen SET a = 1 WHERE k IN (SELECT k FROM s)": "This is a view, or no Delta table",
    "DELETE FROM t WHERE k IN (SELECT k FROM nosuch)": "There is no table nosuch",
    "DELETE FROM t WHERE EXISTS (SELECT k FROM u GROUP BY e)": "k is neither grouped by nor an aggregate",
    "DELETE FROM t WHERE EXISTS (SELECT t.a FROM u GROUP BY t.a)": "Spark does not run a query that depends",
}


def test_what_spark_refuses_is_told_in_our_words_and_changes_nothing(both: Both) -> None:
    both.spark.sql("CREATE TABLE small (id INT, ti TINYINT) USING delta")
    both.spark.sql("INSERT INTO small VALUES (1, 127)")
    both.spark.sql("CREATE VIEW seen AS SELECT * FROM t WHERE k = 1")
    both.lw.sql("SET lakewarden.dialect = postgres")
    before = both.ours()
    told = {}
    for text in REFUSED:
        with pytest.raises(LakewardenError) as caught:
            both.lw.sql(text)
        told[text] = str(caught.value)
        assert caught.value.hint and not {"SQLSTATE", "ansi", "Relation", "org.apache"} & set(
            re.findall(r"[\w.]+", told[text] + caught.value.hint)
        )
    assert {text: said[: len(REFUSED[text])] for text, said in told.items()} == REFUSED
    assert both.ours() == before


LARGE = "(SELECT {}(v.n) FROM (SELECT 2000000000 AS n UNION ALL SELECT 2000000001 AS n) AS v)"
OVERFLOWING = {
    ("tsql", f"DELETE FROM t WHERE d < {LARGE.format('SUM')}"): "4000000001 is too large for INT",
    ("teradata", f"DELETE FROM t WHERE d < {LARGE.format('SUM')}"): "4000000001 is too large for INT",
    ("tsql", f"UPDATE t SET d = {LARGE.format('AVG')}"): "4000000001 is too large for INT",
    ("tsql", "UPDATE t SET a = ISNULL(CAST(k AS SMALLINT), 40000)"): "40000 is too large for SMALLINT",
}


@pytest.mark.long
def test_what_is_too_large_in_its_dialect_is_too_large_here(both: Both) -> None:
    before, told = both.ours(), {}
    for dialect, text in OVERFLOWING:
        both.lw.sql(f"SET lakewarden.dialect = {dialect}")
        with pytest.raises(PreconditionError) as caught:
            both.lw.sql(text)
        told[dialect, text] = str(caught.value).partition(".")[0]
    assert told == OVERFLOWING
    assert both.ours() == before


@pytest.mark.long
def test_a_char_column_that_deltas_merge_cannot_look_at_is_told(both: Both) -> None:
    both.spark.sql("CREATE TABLE padded (k CHAR(3), a INT) USING delta")
    both.spark.sql("INSERT INTO padded VALUES ('a', 1), ('b', 1)")
    new = both.spark.sql("SELECT 'a' AS k, 2 AS a")
    with pytest.raises(UsageError, match="CHAR column"):
        both.lw.sql("UPDATE padded SET a = 2 WHERE k IN (SELECT 'a' FROM s)")
    with pytest.raises(UsageError, match="CHAR column") as caught:
        both.lw.upsert(new, f"{both.spark.catalog.currentDatabase()}.padded", keys=["k"])
    assert "readSideCharPadding" in caught.value.hint
    assert {(row.k, row.a) for row in both.spark.table("padded").collect()} == {("a  ", 1), ("b  ", 1)}
