"""Random tables and random statements on Spark and on another database: the same contents, the same counts.

`bench.sql` plays many more. A statement that differs is printed with its seed: `play(both, seed)` plays it again.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.servers.mariadb import MariadbServer
from support.servers.postgres import PostgresServer
from support.two_databases.game import Outcome, Played, play, play_several
from support.two_databases.games import MARIADB_GAMES, POSTGRES_GAMES, Game
from support.two_databases.sides import Both, Server, two_sides
from support.two_databases.wide_game import FAST, create_wide

pytestmark = pytest.mark.spark

SEEDS = range(12)


@pytest.mark.in_turns
@pytest.mark.postgres
def test_random_changes_do_what_postgresql_does(
    spark: SparkSession, postgres: PostgresServer, tmp_path: Path
) -> None:
    played = played_on(spark, postgres, tmp_path)
    assert [str(one) for one in played if one.outcome is Outcome.DIFFERENT] == []
    outcomes = Counter(one.outcome for one in played)
    assert outcomes[Outcome.REFUSED] <= 2
    assert outcomes[Outcome.CHOSEN] >= 1, "the policy about several matches is among them"


REHEARSED = {"wide": (*range(33, 63), 11_270_308), "teradata": range(15), "tsql": range(15)}
"""The seeds of each kind: a few more of PostgreSQL's changes, all others are so many. The large one puts a time that is
not there in New York beside a literal."""
FEW = range(10)


@pytest.mark.in_turns
@pytest.mark.postgres
def test_steps_would_do_what_postgresql_does(spark: SparkSession, postgres: PostgresServer) -> None:
    rehearsed_alike(spark, postgres, POSTGRES_GAMES)


@pytest.mark.in_turns
@pytest.mark.mariadb
def test_steps_would_do_what_mariadb_does(spark: SparkSession, mariadb: MariadbServer) -> None:
    rehearsed_alike(spark, mariadb, MARIADB_GAMES)


def rehearsed_alike(spark: SparkSession, server: Server, games: Mapping[str, Game]) -> None:
    before = {key: spark.conf.get(key, None) for key in FAST}
    outcomes: dict[str, Counter[Outcome]] = {}
    different: list[str] = []
    try:
        for key, value in FAST.items():
            spark.conf.set(key, value)
        with server.connected() as connection:
            create_wide(server, connection)
            for name, game in games.items():
                played = [game(spark, server, connection, seed) for seed in REHEARSED.get(name, FEW)]
                different += [f"{name}: {one}" for one in played if one.outcome is Outcome.DIFFERENT]
                outcomes[name] = Counter(one.outcome for one in played)
    finally:
        for key, old in before.items():
            spark.conf.unset(key) if old is None else spark.conf.set(key, old)
    assert different == []
    for name, found in outcomes.items():
        assert found[Outcome.SAME] + found[Outcome.CHOSEN] >= len(REHEARSED.get(name, FEW)) // 2, name


@pytest.mark.in_turns
@pytest.mark.mariadb
def test_random_changes_of_mysql_do_what_mariadb_does(
    spark: SparkSession, mariadb: MariadbServer, tmp_path: Path
) -> None:
    played = played_on(spark, mariadb, tmp_path)
    assert [str(one) for one in played if one.outcome is Outcome.DIFFERENT] == []
    assert Counter(one.outcome for one in played)[Outcome.REFUSED] <= 2


@pytest.mark.in_turns
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
