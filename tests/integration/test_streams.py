"""Streams on real Spark: what their batches read, and how they go on after a rollback without losing or doubling a row."""

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

import lakewarden
from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.lineage.streams import Began
from lakewarden.catalog.storage import StorageOptions
from lakewarden.jobs.engine.delta import DeltaEngine
from support.live_streams import Sea

pytestmark = pytest.mark.spark

CONTENT = Began(content=True)
ROW_TRACKING = "TBLPROPERTIES ('delta.enableRowTracking' = 'true')"
WRITTEN_BY = {"delta-rs": "", "Spark": ROW_TRACKING}


@pytest.fixture
def sea(tmp_path: Path, spark: SparkSession) -> Sea:
    sea = Sea(tmp_path, spark=spark)
    sea.engine = DeltaEngine(lambda: spark, storage=lambda _: StorageOptions(), clock=SystemClock())
    sea.create("source")
    return sea


def test_checkpoint_and_progress_tell_the_same_of_every_batch_and_it_is_true(sea: Sea) -> None:
    """One file per batch, a version of two files, a compaction: each batch brought ids of just the versions told."""
    sea.create("sink")
    written = {sea.insert("source", 1): {1}, sea.insert("source", 2): {2}}
    with lakewarden.attach(sea.spark, home=sea.folder) as attached:
        sea.flow("source", "sink")
        written[sea.insert("source", 3, 4, 5, 6, files=2)] = {3, 4, 5, 6}
        sea.spark.sql(f"OPTIMIZE {sea.sql('source')}")
        written[sea.insert("source", 7)] = {7}
        sea.flow("source", "sink", maxFilesPerTrigger=1)
    assert attached.dropped == 0
    sea.declare("sink", began=CONTENT)
    told = sea.told_by_checkpoint("sink")
    assert told == sea.told_by_notes("sink")
    assert told[0] == [("id-source", None, 2)]
    assert [edges for epoch, edges in told.items() if epoch] == [
        [("id-source", 2, 3)],
        [("id-source", 2, 3)],
        [("id-source", 3, 5)],
    ]
    for epoch, ids in sea.batches("sink").items():
        ((_, after, upto),) = told[epoch]
        versions = range(0 if after is None else after + 1, (upto or 0) + 1)
        assert set(ids) <= set().union(*(written.get(one, set()) for one in versions))
