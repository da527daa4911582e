"""Rollbacks on HDFS of what Spark and delta-rs wrote by turns: random histories, for half of them somebody races; files
that are taken out or added again; a stream whose checkpoint is there, too.

Never on local disk: there Spark and delta-rs lose each other's commits.
"""

from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.lineage.streams.offsets import Began
from lakewarden.catalog.model.lineage_record import LineageRecord, Operation
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.jobs.engines.delta.engine import DeltaEngine
from support.builders.live_streams import Sea
from support.cases import mostly_long
from support.histories.history_runs import Company, distant_case
from support.histories.spark_scribe import governed_until
from support.servers.hdfs import Hdfs

pytestmark = [pytest.mark.spark, pytest.mark.hdfs, pytest.mark.heavy]

HISTORIES = 6
ENGINES = {"delta-rs": "", "Spark": "TBLPROPERTIES ('delta.enableRowTracking' = 'true')"}
"""Who restores a table, and which properties see to that."""
SEEN: Counter[str] = Counter()


@pytest.mark.long
@pytest.mark.parametrize("seed", mostly_long(range(HISTORIES), [1]))
def test_a_rollback_is_right_whoever_wrote(
    tmp_path: Path, spark: SparkSession, hdfs: Hdfs, sessions: ExitStack, seed: int
) -> None:
    engine = DeltaEngine(lambda: spark, storage=lambda _: StorageOptions(), clock=SystemClock())
    case = distant_case(
        tmp_path, f"{hdfs.uri}/histories/{seed}", seed, engine, governed_until(sessions, spark)
    )
    case.run(Company.RACING if seed % 2 else Company.NOBODY)
    assert not case.wrong
    SEEN.update(case.seen)


@pytest.mark.long
def test_everybody_had_something_to_do() -> None:
    print(dict(SEEN))
    for what in ("commits_by_spark", "commits_by_delta_rs", "undone", "with_writer"):
        assert SEEN[what] >= 1, SEEN


@pytest.fixture
def sea(tmp_path: Path, spark: SparkSession, hdfs: Hdfs) -> Sea:
    """A lake of the test's own on HDFS. Its journal is beside it, on local disk."""
    sea = Sea(tmp_path, root=f"{hdfs.uri}/lakes/{tmp_path.name}", spark=spark)
    sea.engine = DeltaEngine(lambda: spark, storage=lambda _: StorageOptions(), clock=SystemClock())
    return sea


@pytest.mark.long
def test_files_are_taken_out_and_added_again_and_the_undo_has_all_as_before(sea: Sea) -> None:
    """Taken out by Spark, added again by delta-rs (`plain`) and by Spark (`tracked`)."""
    names = ("mended", "plain", "tracked")
    for name in names:
        sea.create(name, ENGINES["Spark"] if name == "tracked" else "")
        for number in (1, 2):
            sea.insert(name, number, number + 10, files=2 if name == "tracked" else 1)
    lost_and_added = [step for name in names[1:] for step in (sea.step(name, 0), sea.again(name, 2))]
    sea.begin(sea.without("mended", 1), *lost_and_added)
    assert sea.go_on().head.state == "done"
    assert sea.contents(*names) == {name: [2, 12] for name in names}
    stale = LineageRecord(run_id="stale", operation=Operation.REMOVE_FILES, user="ana", inputs=())
    with pytest.raises(ConflictError):
        sea.engine.remove_files(sea.location("mended"), requires=Head(2), versions=[2], record=stale)
    assert sea.head("mended") == 3
    assert sea.undo().head.state == "compensated"
    assert sea.contents(*names) == {name: [1, 2, 11, 12] for name in names}


@pytest.mark.long
@pytest.mark.parametrize("engine", mostly_long(ENGINES, ["delta-rs"]))
def test_what_a_stream_read_is_known_by_its_checkpoint_and_undone_batches_come_again_once(
    sea: Sea, engine: str
) -> None:
    sea.create("source")
    sea.create("sink", ENGINES[engine])
    for number in (1, 2):
        sea.insert("source", number)
        sea.flow("source", "sink")
    sea.declare("sink", began=Began(content=True))
    assert sea.told_by_checkpoint("sink") == {0: [("id-source", None, 1)], 1: [("id-source", 1, 2)]}
    derived = {table.name: (table.to_version, table.tainted) for table in sea.plan("source", 2).tables}
    assert derived["db.sink"] == (1, (2,)), "the plan reads the checkpoint"
    sea.roll_back("sink", 2)
    assert sea.rows("sink") == [1]
    sea.rewind(1)
    sea.insert("source", 3)
    sea.flow("source", "sink")
    assert sea.rows("sink") == [1, 2, 3]
