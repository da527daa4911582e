"""Whole numbers at their limits, generated: the values and the overflows of PostgreSQL and MariaDB."""

from collections import Counter

import pytest
from pyspark.sql import SparkSession

from support.servers.mariadb import MariadbServer
from support.servers.postgres import PostgresServer
from support.servers.spark import set_to
from support.two_databases.game import Outcome
from support.two_databases.random_integers import play_integers
from support.two_databases.sides import Server
from support.two_databases.wide_game import FAST

pytestmark = pytest.mark.spark

LONG = pytest.mark.long

OF_EACH = pytest.mark.parametrize("count", [25, pytest.param(1_000, marks=LONG)], ids=["few", "many"])


@OF_EACH
@pytest.mark.postgres
def test_as_in_postgresql(spark: SparkSession, postgres: PostgresServer, count: int) -> None:
    reckoned_alike(spark, postgres, count)


@pytest.mark.long
@OF_EACH
@pytest.mark.mariadb
def test_as_in_mariadb(spark: SparkSession, mariadb: MariadbServer, count: int) -> None:
    reckoned_alike(spark, mariadb, count)


def reckoned_alike(spark: SparkSession, server: Server, count: int) -> None:
    with set_to(spark, FAST), server.connected() as connection:
        played = [play_integers(spark, server, connection, seed) for seed in range(count)]
    assert [str(one) for one in played if one.outcome is Outcome.DIFFERENT] == []
    outcomes = Counter(one.outcome for one in played)
    assert outcomes[Outcome.SAME] >= count * 2 // 3, outcomes
