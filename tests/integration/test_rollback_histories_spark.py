"""Random histories on HDFS that Spark and delta-rs write by turns, rolled back and undone; for half of them somebody races.

Never on local disk: there Spark and delta-rs lose each other's commits.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.storage import StorageOptions
from lakewarden.daemon.settings import Settings
from lakewarden.jobs.attach import Attached
from lakewarden.jobs.engine.delta import DeltaEngine
from support.hdfs import Hdfs
from support.history_runs import Company, distant_case
from support.spark_scribe import GovernedSpark, attached

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.heavy, pytest.mark.together]

HISTORIES = 6
SEEN: Counter[str] = Counter()


@pytest.fixture
def sessions() -> Iterator[list[Attached]]:
    """Sessions to detach."""
    opened: list[Attached] = []
    yield opened
    for one in opened:
        one.detach()


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_a_rollback_is_right_whoever_wrote(
    tmp_path: Path, spark: SparkSession, hdfs: Hdfs, sessions: list[Attached], seed: int
) -> None:
    def governed(settings: Settings) -> GovernedSpark:
        sessions.append(attached(spark, settings))
        return GovernedSpark(spark, sessions[-1])

    engine = DeltaEngine(lambda: spark, storage=lambda _: StorageOptions(), clock=SystemClock())
    case = distant_case(tmp_path, f"{hdfs.uri}/histories/{seed}", seed, engine, governed)
    case.run(Company.RACING if seed % 2 else Company.NOBODY)
    assert not case.wrong
    SEEN.update(case.seen)


def test_everybody_had_something_to_do() -> None:
    print(dict(SEEN))
    for what in ("commits_by_spark", "commits_by_delta_rs", "undone", "with_writer"):
        assert SEEN[what] >= 1, SEEN
