"""Names that collide on purpose, three queries deep: the rows that PostgreSQL and MariaDB find.

`bench.sql --parts names --statements N` asks about many more.
"""

from collections import Counter

import pytest
from pyspark.sql import SparkSession

from support.servers.mariadb import MariadbServer
from support.servers.postgres import PostgresServer
from support.servers.spark import set_to
from support.two_databases.game import Outcome
from support.two_databases.names_game import named_tables, play_names
from support.two_databases.sides import Server
from support.two_databases.wide_game import FAST

pytestmark = pytest.mark.spark

STATEMENTS = 50
LONG = 5_000


@pytest.mark.postgres
def test_names_mean_what_they_mean_in_postgresql(spark: SparkSession, postgres: PostgresServer) -> None:
    asked_alike(spark, postgres, STATEMENTS)


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


FOUND_EMPTY = "EXISTS (WITH "
"""MariaDB sometimes takes a WITH there for empty which names columns from outside. PostgreSQL finds the same as we."""


def asked_alike(spark: SparkSession, server: Server, count: int) -> None:
    with (
        set_to(spark, FAST),
        server.connected() as connection,
        named_tables(spark, server, connection),
    ):
        played = list(play_names(spark, server, connection, range(10**6), count))
    different = [one for one in played if one.outcome is Outcome.DIFFERENT]
    assert [
        str(one)
        for one in different
        if not (isinstance(server, MariadbServer) and FOUND_EMPTY in one.condition)
    ] == []
    outcomes = Counter(one.outcome for one in played)
    assert outcomes[Outcome.SAME] >= count * 3 // 4, outcomes
