"""Names that collide on purpose, three queries deep: the rows that PostgreSQL and MariaDB find.

`bench.sql --parts names --statements N` asks about many more.
"""

from collections import Counter
from collections.abc import Sequence

import pytest
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.values import Dialect
from support.servers.mariadb import MariadbServer
from support.servers.postgres import PostgresServer
from support.servers.spark import set_to
from support.two_databases.game import Outcome
from support.two_databases.names_game import Named, named_tables, play_names
from support.two_databases.random_names import NAMED_SCHEMAS
from support.two_databases.sides import Server
from support.two_databases.wide_game import FAST

pytestmark = pytest.mark.spark

STATEMENTS = 50
LONG = 5_000
IN_CAPITALS = 20
CASE = "differ in nothing but case"


@pytest.mark.postgres
def test_names_mean_what_they_mean_in_postgresql(spark: SparkSession, postgres: PostgresServer) -> None:
    asked_alike(spark, postgres, STATEMENTS)


@pytest.mark.long
@pytest.mark.mariadb
def test_names_mean_what_they_mean_in_mariadb(spark: SparkSession, mariadb: MariadbServer) -> None:
    asked_alike(spark, mariadb, STATEMENTS)


@pytest.mark.long
@pytest.mark.postgres
@pytest.mark.mariadb
@pytest.mark.timeout(7200)
def test_ten_thousand_names(spark: SparkSession, postgres: PostgresServer, mariadb: MariadbServer) -> None:
    asked_alike(spark, postgres, LONG)
    asked_alike(spark, mariadb, LONG)


@pytest.mark.postgres
def test_names_that_differ_in_case_are_two_in_postgresql_or_refused(
    spark: SparkSession, postgres: PostgresServer
) -> None:
    asked_in_capitals(
        spark,
        postgres,
        IN_CAPITALS,
        [
            'EXISTS (SELECT 1 FROM u "T" WHERE "T".k = t.k)',
            'EXISTS (WITH "Q" AS (SELECT k FROM u), q AS (SELECT e AS k FROM u) SELECT 1 FROM "Q" WHERE "Q".k = t.k)',
            'EXISTS (SELECT 1 FROM (SELECT e AS "K" FROM u) q WHERE k = 1)',
            'a = (SELECT e AS "K" FROM u ORDER BY k, e LIMIT 1)',
            'EXISTS (SELECT 1 FROM (SELECT e AS "K" FROM u) q WHERE EXISTS (SELECT 1 FROM s WHERE "K" = b))',
            'NOT EXISTS (SELECT 1 FROM (SELECT e AS "K" FROM u WHERE e > 2) q NATURAL JOIN s WHERE b < id)',
        ],
    )


@pytest.mark.long
@pytest.mark.mariadb
def test_names_that_differ_in_case_are_two_in_mariadb_or_refused(
    spark: SparkSession, mariadb: MariadbServer
) -> None:
    asked_in_capitals(
        spark,
        mariadb,
        IN_CAPITALS,
        [
            "EXISTS (SELECT 1 FROM t T WHERE T.k = t.k AND T.id > t.id)",
            "EXISTS (SELECT 1 FROM u T WHERE T.k = t.k)",
            "a < (SELECT max(T.e) FROM u T WHERE T.k = t.k)",
            "k IN (WITH T AS (SELECT e AS k FROM u) SELECT k FROM T)",
        ],
    )


@pytest.mark.long
@pytest.mark.postgres
@pytest.mark.mariadb
@pytest.mark.timeout(7200)
def test_many_names_that_differ_in_case(
    spark: SparkSession, postgres: PostgresServer, mariadb: MariadbServer
) -> None:
    asked_in_capitals(spark, postgres, LONG, [])
    asked_in_capitals(spark, mariadb, LONG, [])


FOUND_EMPTY = "EXISTS (WITH "
"""MariaDB sometimes takes a WITH there for empty which names columns from outside. PostgreSQL finds the same as we."""


def asked_alike(spark: SparkSession, server: Server, count: int) -> None:
    with (
        set_to(spark, FAST),
        server.connected() as connection,
        named_tables(spark, server, connection),
    ):
        played = list(play_names(spark, server, connection, range(10**6), count))
    assert differing(played, server) == []
    outcomes = Counter(one.outcome for one in played)
    assert outcomes[Outcome.SAME] >= count * 3 // 4, outcomes


def asked_in_capitals(spark: SparkSession, server: Server, count: int, refused: Sequence[str]) -> None:
    """Some names are in capitals. The conditions in `refused` mean something in the database."""
    with (
        set_to(spark, FAST),
        server.connected() as connection,
        named_tables(spark, server, connection),
    ):
        for condition in refused:
            connection.execute(f"SELECT id FROM t WHERE {condition}".encode()).fetchall()
            with pytest.raises(UsageError, match=CASE):
                compiled_in(f"DELETE FROM t WHERE {condition}", Dialect(server.dialect))
        played = list(play_names(spark, server, connection, range(10**6), count, capitals=True))
    assert differing(played, server) == []
    outcomes = Counter(one.outcome for one in played)
    assert outcomes[Outcome.SAME] >= count // 3, outcomes
    assert sum(CASE in one.why for one in played) >= count // 8, outcomes


def compiled_in(text: str, dialect: Dialect) -> None:
    draft = draft_of(text, dialect)
    assert draft is not None
    compiled(draft, NAMED_SCHEMAS)


def differing(played: Sequence[Named], server: Server) -> list[str]:
    return [
        str(one)
        for one in played
        if one.outcome is Outcome.DIFFERENT
        and not (isinstance(server, MariadbServer) and FOUND_EMPTY in one.condition)
    ]
