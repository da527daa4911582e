"""Random tables and random statements on Spark and on another database: the same contents, the same counts.

`bench.sql` plays many more. A statement that differs is printed with its seed: `play(both, seed)` plays it again.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakewarden.jobs.sql.compile.values import Dialect
from support.servers.mariadb import MariadbServer
from support.servers.postgres import PostgresServer
from support.two_databases.game import Outcome, Played, play, play_several
from support.two_databases.random_paired import random_paired_change
from support.two_databases.random_wide import WideChange, random_wide_change
from support.two_databases.sides import Both, Server, two_sides
from support.two_databases.wide_game import FAST, create_wide, play_wide

pytestmark = pytest.mark.spark

SEEDS = range(12)


@pytest.mark.postgres
def test_random_changes_do_what_postgresql_does(
    spark: SparkSession, postgres: PostgresServer, tmp_path: Path
) -> None:
    played = played_on(spark, postgres, tmp_path)
    assert [str(one) for one in played if one.outcome is Outcome.DIFFERENT] == []
    outcomes = Counter(one.outcome for one in played)
    assert outcomes[Outcome.REFUSED] <= 2
    assert outcomes[Outcome.CHOSEN] >= 1, "the policy about several matches is among them"


@pytest.mark.postgres
def test_steps_over_many_types_and_odd_names_would_do_what_postgresql_does(
    spark: SparkSession, postgres: PostgresServer
) -> None:
    played = rehearsed_on(spark, postgres, random_wide_change, range(33, 63))
    outcomes = Counter(one.outcome for one in played)
    assert [str(one) for one in played if one.outcome in (Outcome.DIFFERENT, Outcome.REFUSED)] == []
    assert outcomes[Outcome.SAME] >= 20 and outcomes[Outcome.CHOSEN] >= 3


@pytest.mark.postgres
@pytest.mark.parametrize("dialect", [Dialect.TERADATA, Dialect.TSQL])
def test_steps_of_dialects_without_a_server_would_do_what_postgresql_does_in_its_words(
    spark: SparkSession, postgres: PostgresServer, dialect: Dialect
) -> None:
    played = rehearsed_on(spark, postgres, partial(random_paired_change, dialect), range(15))
    outcomes = Counter(one.outcome for one in played)
    assert [str(one) for one in played if one.outcome in (Outcome.DIFFERENT, Outcome.REFUSED)] == []
    assert outcomes[Outcome.SAME] + outcomes[Outcome.CHOSEN] >= 12


def rehearsed_on(
    spark: SparkSession, postgres: PostgresServer, made: Callable[[int], WideChange], seeds: range
) -> list[Played]:
    before = {key: spark.conf.get(key, None) for key in FAST}
    try:
        for key, value in FAST.items():
            spark.conf.set(key, value)
        with postgres.connected() as connection:
            create_wide(connection)
            return [play_wide(spark, postgres, connection, seed, made) for seed in seeds]
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)


@pytest.mark.mariadb
def test_random_changes_of_mysql_do_what_mariadb_does(
    spark: SparkSession, mariadb: MariadbServer, tmp_path: Path
) -> None:
    played = played_on(spark, mariadb, tmp_path)
    assert [str(one) for one in played if one.outcome is Outcome.DIFFERENT] == []
    assert Counter(one.outcome for one in played)[Outcome.REFUSED] <= 2


@pytest.mark.mariadb
def test_random_changes_of_several_tables_do_what_mariadb_does(
    spark: SparkSession, mariadb: MariadbServer, tmp_path: Path
) -> None:
    played = played_on(spark, mariadb, tmp_path, play_several)
    assert [str(one) for one in played if one.outcome is Outcome.DIFFERENT] == []
    outcomes = Counter(one.outcome for one in played)
    assert outcomes[Outcome.REFUSED] <= 2
    assert outcomes[Outcome.SAME] >= 4


def played_on(
    spark: SparkSession, server: Server, folder: Path, game: Callable[[Both, int], Played] = play
) -> list[Played]:
    with two_sides(spark, server, folder) as both:
        both.manage()
        played = [game(both, seed) for seed in SEEDS]
    for key in ("lakewarden.dialect", "lakewarden.matches"):
        spark.conf.unset(key)
    return played
