"""Random statements on bucketed Delta tables and on another database: the same contents, the same counts.

`play(both, seed)` plays one that differed again.
"""

import re
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakewarden.jobs.session.delta.buckets.bucketed_changes import BucketedChange
from lakewarden.jobs.session.delta.buckets.rows_changes import RowsChange
from support.servers.mariadb import MariadbServer
from support.servers.postgres import PostgresServer
from support.two_databases.game import Change, Outcome, play
from support.two_databases.random_changes import random_change
from support.two_databases.random_mysql import random_mysql_change
from support.two_databases.sides import Server, two_sides
from support.two_databases.stored import AsBuckets

pytestmark = pytest.mark.spark

QUERY = re.compile(r"EXISTS|IN \(SELECT")
ITSELF = re.compile(r"\bt (AS )?[oy]\b")
JOINED = re.compile(r"\bt\.k = \w+\.\w+")
KEY_SET = re.compile(r"(SET|,) (t\.)?`?k`? =")


def joined(change: Change) -> bool:
    """Whether a change joins t to others by its bucket column, and reads t nowhere else."""
    text = change.text
    asked = text.count("SELECT") - (" AS q" in text or "WITH" in text)
    return not asked and all(
        (rule.search(text) is not None) is wanted
        for rule, wanted in ((QUERY, False), (ITSELF, False), (JOINED, True), (KEY_SET, False))
    )


def chosen(make: Callable[[int], Change], first: int, count: int) -> list[int]:
    """Seeds whose changes buckets are of use to."""
    return list(islice((seed for seed in range(5000) if joined(make(seed))), first, first + count))


OTHERS = pytest.param("any", 0, 25, marks=pytest.mark.long)
SEEDS = pytest.mark.parametrize(
    ("which", "first", "count"),
    [
        ("joined", 0, 2),
        *(pytest.param("joined", first, 25, marks=pytest.mark.long) for first in range(0, 100, 25)),
        OTHERS,
    ],
)


@pytest.mark.postgres
@SEEDS
def test_random_changes_of_bucketed_tables_do_what_postgresql_does(
    spark: SparkSession,
    postgres: PostgresServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    which: str,
    first: int,
    count: int,
) -> None:
    seeds = chosen(random_change, first, count) if which == "joined" else list(range(first, count))
    played_alike(spark, postgres, tmp_path, seeds, monkeypatch, least=count // 2 if which == "joined" else 1)


@pytest.mark.long
@pytest.mark.mariadb
@SEEDS
def test_random_changes_of_bucketed_tables_do_what_mariadb_does(
    spark: SparkSession,
    mariadb: MariadbServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    which: str,
    first: int,
    count: int,
) -> None:
    seeds = chosen(random_mysql_change, first, count) if which == "joined" else list(range(first, count))
    played_alike(spark, mariadb, tmp_path, seeds, monkeypatch, least=count // 2 if which == "joined" else 1)


def watched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Gathers which statements were done bucket by bucket from now on."""
    done: list[str] = []
    for kind in (BucketedChange, RowsChange):

        def run(change: Any, original: Callable[[Any], Any] = kind.run) -> Any:
            frame = original(change)
            if frame is not None:
                done.append(type(change).__name__)
            return frame

        monkeypatch.setattr(kind, "run", run)
    return done


def played_alike(
    spark: SparkSession,
    server: Server,
    folder: Path,
    seeds: list[int],
    monkeypatch: pytest.MonkeyPatch,
    *,
    least: int,
) -> None:
    """Play them; at `least` so many statements are done bucket by bucket."""
    stored = AsBuckets(spark, folder / "tables")
    with two_sides(spark, server, folder, stored) as both, monkeypatch.context() as patched:
        done = watched(patched)
        both.manage()
        played = [play(both, seed) for seed in seeds]
    for key in ("lakewarden.dialect", "lakewarden.matches"):
        spark.conf.unset(key)
    assert [str(one) for one in played if one.outcome is Outcome.DIFFERENT] == []
    outcomes, by_buckets = Counter(one.outcome for one in played), Counter(done)
    print(dict(outcomes), dict(by_buckets))
    assert outcomes[Outcome.REFUSED] <= len(seeds) // 6
    assert outcomes[Outcome.SAME] >= len(seeds) // 3
    assert by_buckets.total() >= least, "buckets are of use to a good share of them"
