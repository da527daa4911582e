"""Columns of fixed length, numbers and texts of many types, and sessions set in other ways: as on a real PostgreSQL."""

from collections.abc import Iterator

import pytest
from psycopg.errors import NumericValueOutOfRange
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import PreconditionError, UsageError
from lakewarden.jobs.sql.compile.values import ColumnType, Dialect
from support.cases import mostly_long
from support.servers.postgres import PostgresServer
from support.servers.spark import set_to
from support.two_databases.meaning import WORLD, meaning, theirs
from support.two_databases.rehearsal import World
from support.two_databases.sides import ROWS, Both, two_sides

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

CODES = (
    "(1, 'p', 'p', 0.5, 1.25, 3000000000, true), (2, 'x', ' x', 1.5, 0.50, 4000000000, false), "
    "(7, NULL, NULL, NULL, NULL, NULL, NULL)"
)
TYPES = {
    "k": "int",
    "ch": "char(3)",
    "wide": "char(5)",
    "r": "float",
    "m": "decimal(9,2)",
    "big": "bigint",
    "ok": "boolean",
}
WITH_CODES = World(
    schemas={**WORLD.schemas, "c": tuple(ColumnType(name=name, type=kind) for name, kind in TYPES.items())},
    rows={
        **WORLD.rows,
        "c": [
            (1, "p", "p", 0.5, "1.25", 3_000_000_000, True),
            (2, "x", " x", 1.5, "0.50", 4_000_000_000, False),
            (7, *[None] * 6),
        ],
    },
)


@pytest.fixture(scope="module")
def tables(
    spark: SparkSession, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Both]:
    with two_sides(spark, postgres, tmp_path_factory.mktemp("types")) as both:
        columns = "k INT, ch CHAR(3), wide CHAR(5), r {}, m DECIMAL(9, 2), big BIGINT, ok BOOLEAN"
        both.spark.sql(f"CREATE TABLE c ({columns.format('FLOAT')}) USING delta")
        both.connection.execute(f"CREATE TABLE c ({columns.format('REAL')})".encode())
        both.spark.sql(f"INSERT INTO c VALUES {CODES}")
        both.connection.execute(f"INSERT INTO c VALUES {CODES}".encode())
        yield both


@pytest.fixture
def both(tables: Both) -> Iterator[Both]:
    tables.fill({"t": ROWS["t"]})
    tables.spark.conf.set("lakewarden.dialect", "postgres")
    yield tables
    tables.spark.conf.unset("lakewarden.dialect")


def compare(both: Both, statement: str) -> None:
    result = both.lw.sql(statement).collect()[0]
    done = both.connection.execute(statement.encode())
    assert (result["num_affected_rows"], both.ours()) == (done.rowcount, both.theirs())


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET s = c.ch FROM c WHERE t.k = c.k",
        "UPDATE t SET s = c.ch || '-' || c.wide FROM c WHERE t.k = c.k",
        "UPDATE t SET a = length(c.ch) + length(c.wide) FROM c WHERE t.k = c.k",
        "UPDATE t SET s = upper(c.ch) FROM c WHERE c.ch = 'x'",
        "UPDATE t SET a = 0 FROM c WHERE c.ch = c.wide AND t.k = c.k",
        "UPDATE t SET a = 1 FROM c WHERE t.s = c.ch",
        "DELETE FROM t WHERE s IN (SELECT ch FROM c)",
        "DELETE FROM t WHERE s NOT IN (SELECT ch FROM c WHERE ch IS NOT NULL)",
        "DELETE FROM t USING c WHERE c.ch IN ('p', 'q') AND t.k = c.k",
        (
            "UPDATE t SET s = q.ch, a = q.n FROM (SELECT ch, count(*) AS n FROM c GROUP BY ch) "
            "AS q WHERE q.ch > 'p'"
        ),
        "UPDATE t SET s = (SELECT max(ch) FROM c)",
        "UPDATE t SET s = CASE WHEN c.ok THEN 'yes' END FROM c WHERE t.k = c.k",
        "UPDATE t SET s = c.ok FROM c WHERE t.k = c.k",
        "UPDATE t SET s = c.m FROM c WHERE t.k = c.k",
        "UPDATE t SET s = c.m * c.m + 1 FROM c WHERE t.k = c.k",
        "UPDATE t SET d = c.r * 3, a = c.r FROM c WHERE t.k = c.k",
        "UPDATE t SET a = (SELECT sum(c.k) / 2 FROM c)",
        "UPDATE t SET d = (SELECT CAST(sum(big) AS DOUBLE PRECISION) / 2 FROM c)",
    ],
)
def test_types_mean_what_they_mean_in_postgresql(tables: Both, statement: str) -> None:
    ours = meaning(tables.spark, statement, Dialect.POSTGRES, world=WITH_CODES)
    assert ours == theirs(tables.connection, statement, "t")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET s = c.ch || '-' || c.wide FROM c WHERE t.k = c.k",
        "UPDATE t SET s = c.m * c.m + 1, d = c.r * 3, a = c.r FROM c WHERE t.k = c.k",
    ],
)
def test_delta_writes_values_of_these_types_as_postgresql_does(both: Both, statement: str) -> None:
    compare(both, statement)


READ_OTHERWISE = {
    "escapedStringLiterals": {"spark.sql.parser.escapedStringLiterals": "true"},
    "doubleQuotedIdentifiers": {
        "spark.sql.ansi.doubleQuotedIdentifiers": "true",
        "spark.sql.ansi.enabled": "true",
    },
    "relationPrecedence": {
        "spark.sql.ansi.relationPrecedence": "true",
        "spark.sql.ansi.enabled": "true",
    },
    "quotedRegexColumnNames": {"spark.sql.parser.quotedRegexColumnNames": "true"},
    "caseSensitive": {"spark.sql.caseSensitive": "true"},
    "legacy": {"spark.sql.ansi.enabled": "false", "spark.sql.storeAssignmentPolicy": "LEGACY"},
}


READ: dict[str, str] = {
    "a text": "UPDATE t SET s = 'a\\b''c\"' WHERE K = 1",
    "a join": "UPDATE t SET a = s.b + u.e FROM s, u LEFT JOIN c ON u.k = c.k WHERE t.k = s.k AND u.e = 5",
}
CONCERNED = (
    ("escapedStringLiterals", "a text"),
    ("doubleQuotedIdentifiers", "a text"),
    ("relationPrecedence", "a join"),
    ("quotedRegexColumnNames", "a join"),
    ("caseSensitive", "a text"),
    ("legacy", "a join"),
)
"""Which of the two a setting would make another of, in every run; the other one in the long one."""


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "statement"), mostly_long([(name, one) for name in READ_OTHERWISE for one in READ], CONCERNED)
)
def test_a_session_that_reads_sql_otherwise_computes_the_same(both: Both, name: str, statement: str) -> None:
    with set_to(both.spark, READ_OTHERWISE[name]):
        compare(both, READ[statement])
    assert both.spark.conf.get("spark.sql.parser.escapedStringLiterals") == "false"


def test_what_overflows_is_an_error_whatever_the_session_says(both: Both) -> None:
    before = both.ours()
    statement = "UPDATE t SET a = (a * 2000000000)"
    with set_to(both.spark, {"spark.sql.ansi.enabled": "false"}):
        with pytest.raises(PreconditionError, match="becomes too large for its type"):
            both.lw.sql(statement)
        with pytest.raises((PreconditionError, PySparkException, Py4JJavaError)):
            both.lw.sql("UPDATE t SET a = CAST('99999999999' AS INT)")
        with pytest.raises(PreconditionError, match=r"^A value is too large for a, whose type is INT\."):
            both.lw.sql("UPDATE t SET a = c.big FROM c WHERE c.k = 1")
        assert both.spark.conf.get("spark.sql.ansi.enabled") == "false"
    assert both.ours() == before
    with pytest.raises(NumericValueOutOfRange):
        both.connection.execute(statement.encode())


@pytest.mark.parametrize(
    ("settings", "statement"),
    [
        ({"spark.sql.parser.escapedStringLiterals": "true"},
            "UPDATE t SET s = 'a\\b' WHERE k IN (SELECT k FROM s)"),
        ({"spark.sql.ansi.doubleQuotedIdentifiers": "true"},
            'UPDATE t SET s = "x" WHERE k IN (SELECT k FROM s)'),
        ({"spark.sql.legacy.consecutiveStringLiterals.enabled": "true"},
            "UPDATE t SET s = 'it''s' WHERE k IN (SELECT k FROM s)"),
    ],
    ids=["escapes", "quotes", "joined"],
)  # fmt: skip
def test_sparks_own_words_that_the_session_reads_otherwise_are_refused(
    both: Both, settings: dict[str, str], statement: str
) -> None:
    both.spark.conf.unset("lakewarden.dialect")
    before = both.ours()
    with (
        set_to(both.spark, {"spark.sql.ansi.enabled": "true", **settings}),
        pytest.raises(UsageError, match=r"and is read otherwise\. Line 1, column 18") as caught,
    ):
        both.lw.sql(statement)
    assert next(iter(settings)) in caught.value.hint
    assert both.ours() == before


def test_names_that_the_session_tells_apart_by_their_case_are_refused(both: Both) -> None:
    both.spark.conf.unset("lakewarden.dialect")
    before = both.ours()
    statement = "DELETE FROM t WHERE EXISTS (SELECT 1 FROM u {} WHERE {}.k = t.k)"
    with set_to(both.spark, {"spark.sql.caseSensitive": "true"}):
        with pytest.raises(
            UsageError, match="T and t differ in nothing but case: they are two names"
        ) as caught:
            both.lw.sql(statement.format("T", "T"))
        assert both.lw.sql(f"EXPLAIN GOVERNED {statement.format('x', 'x')}").count() == 1
    assert "SET spark.sql.caseSensitive = false" in caught.value.hint
    assert both.ours() == before
