"""Rollbacks of random histories of Iceberg tables and the Delta tables made from them, compared row by row with the
rebuild, and undone; for half of them somebody writes meanwhile."""

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from support.cases import mostly_long
from support.histories.history_runs import Company, mixed_case
from support.histories.iceberg_tables import IcebergTables
from support.histories.spark_scribe import governed_until
from support.servers.metastores import without_system_tables

pytestmark = [pytest.mark.spark, pytest.mark.metastore, pytest.mark.heavy]

HISTORIES = int(os.environ.get("LAKEWARDEN_MIXED_HISTORIES", "40"))
SEEN: Counter[str] = Counter()


@pytest.fixture
def iceberg(spark: SparkSession, metastore: EmbeddedMetastore) -> Iterator[IcebergTables]:
    """The tables of a database of the test's own."""
    made = IcebergTables(spark, without_system_tables(metastore.uri))
    yield made
    made.drop()


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("seed", mostly_long(range(HISTORIES), [0, 1]))
def test_a_rollback_across_formats_gives_back_the_newest_that_depends_on_nothing_bad(
    tmp_path: Path, spark: SparkSession, iceberg: IcebergTables, sessions: ExitStack, seed: int
) -> None:
    company = (Company.NOBODY, Company.BETWEEN, Company.NOBODY, Company.RACING)[seed % 4]
    alone = company is Company.NOBODY
    case = mixed_case(tmp_path, seed, spark, iceberg, governed_until(sessions, spark) if alone else None)
    case.run(company)
    assert not case.wrong
    SEEN.update(case.seen)


@pytest.mark.long
def test_every_kind_of_history_was_among_them() -> None:
    print(dict(SEEN))
    for what in (
        "commits_by_iceberg",
        "commits_by_spark",
        "commits_by_set_back",
        "undone",
        "cascaded",
        "with_writer",
        "healed",
    ):
        assert SEEN[what] >= 1, SEEN
