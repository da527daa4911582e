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
from support.servers.spark import set_to
from support.two_databases.game import Outcome, Played, play, play_several
from support.two_databases.games import MARIADB_GAMES, POSTGRES_GAMES, Game
from support.two_databases.sides import Both, Server, two_sides
from support.two_databases.wide_game import FAST, create_wide

pytestmark = pytest.mark.spark

LONG = pytest.mark.long
SEEDS = pytest.mark.parametrize(
    "seeds", [range(1, 2), pytest.param(range(12), marks=LONG)], ids=["one", "many"]
)
"""Statements that Delta runs: one of each kind in every run."""


@SEEDS
@pytest.mark.postgres
def test_random_changes_do_what_postgresql_does(
    spark: SparkSession, postgres: PostgresServer, tmp_path: Path, seeds: range
) -> None:
    played = played_on(spark, postgres, tmp_path, seeds)
    assert [str(one) for one in played if one.outcome is Outcome.DIFFERENT] == []
    outcomes = Counter(one.outcome for one in played)
    assert outcomes[Outcome.REFUSED] <= len(seeds) // 6
    if len(seeds) > 1:
        assert outcomes[Outcome.CHOSEN] >= 1, "the policy about several matches is among them"


REHEARSED = {"wide": (*range(33, 63), 11_270_308), "teradata": range(15), "tsql": range(15)}
"""The seeds of each kind: a few more of PostgreSQL's changes, all others are so many. The large one puts a time that is
not there in New York beside a literal."""
FEW = range(10)
OF_EACH = pytest.mark.parametrize("most", [3, pytest.param(100, marks=LONG)], ids=["few", "many"])


@pytest.mark.long
@OF_EACH
@pytest.mark.postgres
def test_steps_would_do_what_postgresql_does(
    spark: SparkSession, postgres: PostgresServer, most: int
) -> None:
    rehearsed_alike(spark, postgres, POSTGRES_GAMES, most)


@pytest.mark.long
@OF_EACH
@pytest.mark.mariadb
def test_steps_would_do_what_mariadb_does(spark: SparkSession, mariadb: MariadbServer, most: int) -> None:
    rehearsed_alike(spark, mariadb, MARIADB_GAMES, most)


def rehearsed_alike(spark: SparkSession, server: Server, games: Mapping[str, Game], most: int) -> None:
    outcomes: dict[str, Counter[Outcome]] = {}
    different: list[str] = []
    with set_to(spark, FAST), server.connected() as connection:
        create_wide(server, connection)
        for name, game in games.items():
            played = [game(spark, server, connection, seed) for seed in REHEARSED.get(name, FEW)[:most]]
            different += [f"{name}: {one}" for one in played if one.outcome is Outcome.DIFFERENT]
            outcomes[name] = Counter(one.outcome for one in played)
    assert different == []
    for name, found in outcomes.items():
        assert found[Outcome.SAME] + found[Outcome.CHOSEN] >= found.total() // 2, name


@SEEDS
@pytest.mark.mariadb
def test_random_changes_of_mysql_do_what_mariadb_does(
    spark: SparkSession, mariadb: MariadbServer, tmp_path: Path, seeds: range
) -> None:
    played = played_on(spark, mariadb, tmp_path, seeds)
    assert [str(one) for one in played if one.outcome is Outcome.DIFFERENT] == []
    assert Counter(one.outcome for one in played)[Outcome.REFUSED] <= len(seeds) // 6


@SEEDS
@pytest.mark.mariadb
def test_random_changes_of_several_tables_do_what_mariadb_does(
    spark: SparkSession, mariadb: MariadbServer, tmp_path: Path, seeds: range
) -> None:
    played = played_on(spark, mariadb, tmp_path, seeds, play_several)
    assert [str(one) for one in played if one.outcome is Outcome.DIFFERENT] == []
    outcomes = Counter(one.outcome for one in played)
    assert outcomes[Outcome.REFUSED] <= len(seeds) // 6
    assert outcomes[Outcome.SAME] >= len(seeds) // 3


def played_on(
    spark: SparkSession,
    server: Server,
    folder: Path,
    seeds: range,
    game: Callable[[Both, int], Played] = play,
) -> list[Played]:
    with two_sides(spark, server, folder) as both:
        both.manage()
        played = [game(both, seed) for seed in seeds]
    for key in ("lakewarden.dialect", "lakewarden.matches"):
        spark.conf.unset(key)
    return played
