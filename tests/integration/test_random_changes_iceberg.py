"""Random statements on Iceberg tables and on another database: the same contents, the same counts.

`play(both, seed)` plays one that differed again.
"""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from support.servers.mariadb import MariadbServer
from support.servers.metastores import without_system_tables
from support.servers.postgres import PostgresServer
from support.two_databases.game import Outcome, play
from support.two_databases.sides import Server, two_sides
from support.two_databases.stored import AsIceberg

pytestmark = [pytest.mark.spark, pytest.mark.metastore]

LONG = pytest.mark.long
COPY, MERGE = "copy-on-write", "merge-on-read"
MANY = range(50)


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("mode", "version", "seeds"),
    [pytest.param(mode, version, MANY, marks=LONG) for mode in (COPY, MERGE) for version in (2, 3)],
)
def test_random_changes_of_iceberg_tables_do_what_postgresql_does(
    spark: SparkSession,
    metastore: EmbeddedMetastore,
    postgres: PostgresServer,
    tmp_path: Path,
    mode: str,
    version: int,
    seeds: range,
) -> None:
    played_alike(
        postgres, tmp_path, AsIceberg(spark, without_system_tables(metastore.uri), mode, version), seeds
    )


@pytest.mark.mariadb
@pytest.mark.parametrize(
    ("mode", "version", "seeds"),
    [
        pytest.param(COPY, 2, range(1, 3), id="copy-on-write, version 2, few"),
        *(pytest.param(mode, version, MANY, marks=LONG) for mode in (COPY, MERGE) for version in (2, 3)),
    ],
)
def test_random_changes_of_iceberg_tables_do_what_mariadb_does(
    spark: SparkSession,
    metastore: EmbeddedMetastore,
    mariadb: MariadbServer,
    tmp_path: Path,
    mode: str,
    version: int,
    seeds: range,
) -> None:
    played_alike(
        mariadb, tmp_path, AsIceberg(spark, without_system_tables(metastore.uri), mode, version), seeds
    )


def played_alike(server: Server, folder: Path, stored: AsIceberg, seeds: range) -> None:
    with two_sides(stored.spark, server, folder, stored) as both:
        both.manage()
        played = [play(both, seed) for seed in seeds]
    for key in ("lakewarden.dialect", "lakewarden.matches"):
        stored.spark.conf.unset(key)
    assert [str(one) for one in played if one.outcome is Outcome.DIFFERENT] == []
    outcomes = Counter(one.outcome for one in played)
    assert outcomes[Outcome.REFUSED] <= len(seeds) // 6
    assert outcomes[Outcome.SAME] >= len(seeds) // 3
