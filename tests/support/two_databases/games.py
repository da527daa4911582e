"""All kinds of random statements whose steps are rehearsed, by what they are called in figures."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from pyspark.sql import SparkSession

from lakewarden.jobs.sql.compile.values import Dialect
from support.two_databases.game import Played
from support.two_databases.placed_game import play_placed
from support.two_databases.random_paired import random_paired_change
from support.two_databases.random_placed import MERGES, MYSQL_UPSERTS, UPSERTS
from support.two_databases.random_wide import random_wide_change
from support.two_databases.random_wide_mysql import random_wide_mysql_change, random_wide_several_change
from support.two_databases.sides import Connection, Server
from support.two_databases.wide_game import play_wide, play_wide_several

__all__ = [
    "CHANGES_OF_POSTGRES",
    "MARIADB_GAMES",
    "PAIRED_CHANGES",
    "PLACED",
    "POSTGRES_GAMES",
    "Game",
]

Game = Callable[[SparkSession, Server, Connection, int], Played]
"""Plays the statement of a seed."""

CHANGES_OF_POSTGRES: Final[Mapping[str, Game]] = {"wide": partial(play_wide, made=random_wide_change)}
PAIRED_CHANGES: Final[Mapping[str, Game]] = {
    one.value: partial(play_wide, made=partial(random_paired_change, one))
    for one in (Dialect.TERADATA, Dialect.TSQL)
}
PLACED: Final[Mapping[str, Game]] = {
    name: partial(play_placed, made=made) for name, made in {**MERGES, **UPSERTS, **MYSQL_UPSERTS}.items()
}
POSTGRES_GAMES: Final[Mapping[str, Game]] = {
    **CHANGES_OF_POSTGRES,
    **PAIRED_CHANGES,
    **{name: game for name, game in PLACED.items() if name not in MYSQL_UPSERTS},
}
MARIADB_GAMES: Final[Mapping[str, Game]] = {
    "wide_mysql": partial(play_wide, made=random_wide_mysql_change),
    "wide_several": partial(play_wide_several, made=random_wide_several_change),
    **{name: PLACED[name] for name in MYSQL_UPSERTS},
}
