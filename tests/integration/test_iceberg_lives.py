"""Random lives of Iceberg tables: strangers write, tag, branch, expire and set main back; lakewarden vacuums, compacts,
rolls back and undoes, and is killed at it. Every snapshot that is there has its rows after each step."""

import os
import random
from collections import Counter
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from support.builders.spark_iceberg import SparkIceberg, iceberg_catalogs
from support.cases import mostly_long
from support.iceberg_lives.life import MOVES, Life

pytestmark = [pytest.mark.spark, pytest.mark.metastore, pytest.mark.heavy]

LIVES = int(os.environ.get("LAKEWARDEN_ICEBERG_LIVES", "40"))
STEPS = 16
SEEN: Counter[str] = Counter()
MODES = ("copy-on-write", "merge-on-read")


@pytest.fixture(scope="module", autouse=True)
def catalogs(
    spark: SparkSession, metastore: EmbeddedMetastore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    with iceberg_catalogs(spark, metastore.uri, tmp_path_factory.mktemp("iceberg")):
        yield


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", mostly_long(range(LIVES), [0, 1]))
def test_every_snapshot_keeps_its_rows_whatever_happens_in_whatever_order(
    spark: SparkSession, metastore: EmbeddedMetastore, seed: int
) -> None:
    mode = MODES[seed // 2 % 2]
    properties = ", ".join(f"'write.{one}.mode'='{mode}'" for one in ("delete", "update", "merge"))
    forgets = seed % 3 == 0
    if forgets:
        properties += ", 'write.metadata.previous-versions-max'='3'"
    table = SparkIceberg(
        spark,
        metastore.uri,
        ("by_name", "by_path")[seed % 2],
        properties=f"'format-version'='2', {properties}",
    )
    life = Life(table, random.Random(f"life {seed}"), forgets=forgets)
    life.live(STEPS)
    assert not life.wrong, "\n".join([*life.told, *life.wrong])
    SEEN.update(life.seen)


@pytest.mark.long
def test_everything_happened() -> None:
    print(dict(SEEN))
    assert all(SEEN[move] for move in MOVES) and SEEN["killed at iceberg.rewritten"], SEEN
