"""Random changes one after the other of tables whose changes are written beside their files, and of another database:
the same contents, the same counts, in every reader, with compactions in between.

`play_sequence` plays a sequence that differed again, by its seed.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from support.servers.mariadb import MariadbServer
from support.servers.metastores import without_system_tables
from support.servers.postgres import PostgresServer
from support.servers.spark import set_to
from support.two_databases.sequence_game import Tally, keyed, play_sequence, random_steps
from support.two_databases.sides import Server, two_sides
from support.two_databases.ways import WAYS

pytestmark = [pytest.mark.spark, pytest.mark.metastore]

STEPS = 9
"""Of a sequence of the long run."""
SEEDS = 6
"""Sequences of each form in the long run."""
FEW_TASKS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""For tables of a few rows."""
LONG = pytest.mark.long
FORMS = [
    *((way, by_table) for way in WAYS if not way.startswith("equality") for by_table in (False, True)),
    *((way, True) for way in WAYS if way.startswith("equality")),
]
BOTH = pytest.mark.parametrize(
    ("way", "by_table", "seeds"),
    [
        pytest.param(
            way, by_table, range(100 * number, 100 * number + SEEDS * (2 if way.startswith("equality") else 1)),
            id=f"{way}, by {'table' if by_table else 'statement'}", marks=LONG,
        )
        for number, (way, by_table) in enumerate(FORMS)
    ],
)  # fmt: skip


EVERY_RUN = {
    "delta vectors": 7091,
    "delta vectors in buckets": 7091,
    "iceberg positions": 5908,
    "iceberg vectors": 8529,
    "equality, version 2": 9617,
    "equality, version 3": 9685,
}
"""Of each way a sequence whose upsert replaces rows of files that stay, and whose statement changes a few of these."""


@pytest.mark.postgres
@pytest.mark.parametrize("way", WAYS)
def test_an_upsert_and_a_statement_of_each_way_do_what_postgresql_does(
    spark: SparkSession, metastore: EmbeddedMetastore, postgres: PostgresServer, tmp_path: Path, way: str
) -> None:
    steps = [["frame", "statement"]]
    by_table = way.startswith("equality")
    tally = played(spark, metastore, postgres, tmp_path, way, [EVERY_RUN[way]], steps, by_table=by_table)
    assert tally.left.total() == 2, "both left deletes beside the files"


@BOTH
@pytest.mark.postgres
def test_sequences_do_what_postgresql_does(
    spark: SparkSession,
    metastore: EmbeddedMetastore,
    postgres: PostgresServer,
    tmp_path: Path,
    way: str,
    by_table: bool,
    seeds: range,
) -> None:
    steps = [random_steps(seed, STEPS) for seed in seeds]
    played(spark, metastore, postgres, tmp_path, way, seeds, steps, by_table=by_table)


@BOTH
@pytest.mark.mariadb
def test_sequences_do_what_mariadb_does(
    spark: SparkSession,
    metastore: EmbeddedMetastore,
    mariadb: MariadbServer,
    tmp_path: Path,
    way: str,
    by_table: bool,
    seeds: range,
) -> None:
    there = range(seeds.start + 10_000, seeds.stop + 10_000)
    steps = [random_steps(seed, STEPS) for seed in there]
    played(spark, metastore, mariadb, tmp_path, way, there, steps, by_table=by_table)


def played(
    spark: SparkSession,
    metastore: EmbeddedMetastore,
    server: Server,
    folder: Path,
    way: str,
    seeds: Sequence[int],
    steps: Sequence[Sequence[str]],
    *,
    by_table: bool,
) -> Tally:
    """Each change must have been written in its way, and some of them beside the files."""
    how, tally = WAYS[way], Tally()
    stored = how.stored(spark, without_system_tables(metastore.uri), folder / "tables", by_table=by_table)
    with set_to(spark, FEW_TASKS), two_sides(spark, server, folder, stored) as both:
        both.manage()
        keyed(both)
        both.write = None if by_table else how.asked
        for seed, each in zip(seeds, steps, strict=True):
            play_sequence(both, how, seed, each, tally)
    for key in ("lakewarden.dialect", "lakewarden.matches"):
        spark.conf.unset(key)
    print(way, tally)
    assert tally.different == []
    assert tally.left[how.asked] and tally.left[how.of_statements] and tally.on_deletes
    return tally
