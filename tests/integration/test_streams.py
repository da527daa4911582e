"""Streams on real Spark: what their batches read, and how they go on after a rollback without losing or
doubling a row."""

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

import lakewarden
from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.lineage.streams.offsets import Began
from lakewarden.catalog.lineage.versions import version_of
from lakewarden.catalog.model.lineage_record import LineageInput
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.jobs.engines.delta.engine import DeltaEngine
from support.builders.live_streams import Sea
from support.cases import mostly_long
from support.processes.scripts import typed
from support.reference.page_blocks import DOCS, code

pytestmark = pytest.mark.spark

CONTENT = Began(content=True)
WRITTEN_BY = {"delta-rs": "", "Spark": "TBLPROPERTIES ('delta.enableRowTracking' = 'true')"}


@pytest.fixture
def sea(tmp_path: Path, spark: SparkSession) -> Sea:
    sea = Sea(tmp_path, spark=spark)
    sea.engine = DeltaEngine(lambda: spark, storage=lambda _: StorageOptions(), clock=SystemClock())
    sea.create("source")
    return sea


# what batches read


def test_checkpoint_and_progress_tell_the_same_of_every_batch_and_it_is_true(sea: Sea) -> None:
    """A content of two files, a version of two files, a compaction, with one file per batch: each batch brought ids of
    just the versions that are told."""
    sea.create("sink")
    written = {sea.insert("source", 1): {1}, sea.insert("source", 2): {2}}
    with lakewarden.attach(sea.spark, home=sea.folder):
        sea.flow("source", "sink", maxFilesPerTrigger=1)
        written[sea.insert("source", 3, 4, 5, 6, files=2)] = {3, 4, 5, 6}
        sea.compact("source")
        written[sea.insert("source", 7)] = {7}
        sea.flow("source", "sink", maxFilesPerTrigger=1)
    sea.declare("sink")
    told = sea.told_by_checkpoint("sink")
    assert told == {
        0: [("id-source", None, 2)],
        1: [("id-source", None, 2)],
        2: [("id-source", 2, 3)],
        3: [("id-source", 2, 4)],
        4: [("id-source", 4, 5)],
    }
    assert sea.told_by_notes("sink") == told
    for epoch, ids in sea.batches("sink").items():
        ((_, after, upto),) = told[epoch]
        versions = range(0 if after is None else after + 1, (upto or 0) + 1)
        assert ids and set(ids) <= set().union(*(written.get(one, set()) for one in versions))


@pytest.mark.long
def test_a_query_that_runs_on_tells_what_it_began_with_and_that_it_has_state(sea: Sea) -> None:
    sea.create("sink")
    for number in (1, 2, 3):
        sea.insert("source", number)
    reader = sea.spark.readStream.format("delta").option("startingVersion", 2)
    with lakewarden.attach(sea.spark, home=sea.folder):
        frame = reader.load(sea.place("source")).dropDuplicates(["id"])
        query = sea.running(frame, "sink")
        sea.wait_for_notes(1)
        sea.insert("source", 4)
        query.processAllAvailable()
        query.stop()
    told = {0: [("id-source", 1, 3)], 1: [("id-source", 1, 4)]}
    assert sea.told_by_notes("sink") == told
    sea.declare("sink", began=Began(version=2))
    assert sea.told_by_checkpoint("sink") == told


def test_a_governed_write_in_foreach_batch_is_not_known_to_be_clean(sea: Sea) -> None:
    sea.create("sink")
    sea.insert("source", 1)
    with lakewarden.attach(sea.spark, home=sea.folder) as lw:

        def merge(frame: DataFrame, number: int) -> None:
            lw.write(frame).append(sea.place("sink"))

        reader = sea.spark.readStream.format("delta").load(sea.place("source"))
        writer = reader.writeStream.foreachBatch(merge).trigger(availableNow=True)
        writer.option("checkpointLocation", sea.checkpoint("each")).start().awaitTermination()
    *_, commit = sea.reader.commits(sea.location("sink"), after=-1)
    assert sea.rows("sink") == [1]
    assert commit.lineage is not None and not version_of(commit).known


# a stream that writes a table which goes back


class Interrupted(DeltaEngine):
    """An engine that is interrupted once, between a restore and the numbers of streams."""

    ended = False

    def begin_epoch(
        self, location: str, *, restored: int, to: int, apps: Sequence[str], run_id: str
    ) -> int | None:
        if not self.ended:
            self.ended = True
            raise UnavailableError("The worker is gone.")
        return super().begin_epoch(location, restored=restored, to=to, apps=apps, run_id=run_id)


@pytest.mark.parametrize("writer", mostly_long(WRITTEN_BY, ["delta-rs"]))
def test_undone_batches_are_written_again_once_by_a_checkpoint_that_goes_back(sea: Sea, writer: str) -> None:
    """Also if the rollback is interrupted before the numbers of the stream went back."""
    sea.engine = Interrupted(lambda: sea.spark, storage=lambda _: StorageOptions(), clock=SystemClock())
    sea.create("sink", WRITTEN_BY[writer])
    for number in (1, 2, 3):
        sea.insert("source", number)
        query_id = sea.flow("source", "sink")
    plan = sea.plan("sink", 2)
    assert [one.what_to_do for table in plan.tables for one in table.streams] == [
        (
            f"{query_id} wrote batches 1 to 2 of what is undone. Stop it before `apply`. "
            "If they are to be written again, take its checkpoint back to before batch 1; else just start it."
        )
    ]
    with pytest.raises(UnavailableError):
        sea.roll_back("sink", 2)
    assert sea.go_on().head.state == "done"
    assert sea.rows("sink") == [1]
    *_, last = sea.reader.commits(sea.location("sink"), after=-1)
    assert last.transactions == ((query_id, 0),)
    nothing_more = sea.engine.begin_epoch(
        sea.location("sink"), restored=4, to=1, apps=(query_id,), run_id=last.run_id or ""
    )
    assert (nothing_more, sea.head("sink")) == (5 if WRITTEN_BY[writer] else None, last.version)
    (lines,) = code("streams", "bash")
    typed(lines.replace("CHECKPOINT", sea.checkpoint("checkpoint")).replace("{4,5}", "{1,2}"), sea.folder)
    sea.insert("source", 4)
    sea.flow("source", "sink")
    sea.insert("source", 5)
    sea.flow("source", "sink")
    assert sea.rows("sink") == [1, 2, 3, 4, 5]


@pytest.mark.long
@pytest.mark.parametrize("writer", mostly_long(WRITTEN_BY, ["delta-rs"]))
def test_after_an_undo_a_stream_goes_on_as_if_nothing_had_been(sea: Sea, writer: str) -> None:
    sea.create("sink", WRITTEN_BY[writer])
    for number in (1, 2):
        sea.insert("source", number)
        sea.flow("source", "sink")
    sea.roll_back("sink", 2)
    assert sea.undo().head.state == "compensated"
    sea.insert("source", 3)
    sea.flow("source", "sink")
    assert sea.rows("sink") == [1, 2, 3]


@pytest.mark.long
def test_an_upsert_stream_applies_again_what_a_rollback_has_undone_and_nothing_else(sea: Sea) -> None:
    sea.create("sink")
    for number in (1, 2, 3):
        sea.insert("source", number)
        sea.upserts("source", "sink")
    sea.roll_back("sink", 2)
    assert sea.rows("sink") == [1]
    sea.rewind(1)
    sea.upserts("source", "sink")
    assert sea.rows("sink") == [1, 2, 3]
    head = sea.head("sink")
    sea.rewind(1)
    sea.upserts("source", "sink")
    assert (sea.rows("sink"), sea.head("sink")) == ([1, 2, 3], head)


@pytest.mark.long
def test_batches_that_a_plain_restore_has_brought_back_are_found(sea: Sea) -> None:
    """A rollback takes the batches and their numbers away; somebody's RESTORE brings back the batches alone."""
    sea.create("sink")
    for number in (1, 2, 3):
        sea.insert("source", number)
        sea.upserts("source", "sink", maxFilesPerTrigger=1)
    before = sea.head("sink")
    sea.roll_back("sink", 2)
    DeltaTable(sea.place("sink")).restore(before)
    head = sea.head("sink")
    sea.rewind(1)
    sea.upserts("source", "sink", maxFilesPerTrigger=1)
    assert (sea.rows("sink"), sea.head("sink")) == ([1, 2, 3], head), "batches 1 and 2 were there"
    sea.insert("source", 4)
    sea.upserts("source", "sink", maxFilesPerTrigger=1)
    assert (sea.rows("sink"), sea.head("sink")) == ([1, 2, 3, 4], head + 1)


def test_batches_of_an_upsert_stream_say_what_they_read_so_a_rollback_of_the_source_takes_them_along(
    sea: Sea,
) -> None:
    for name in ("sink", "names"):
        sea.create(name)
    sea.insert("names", 1, 2, 3)
    with lakewarden.attach(sea.spark, home=sea.folder) as lw:

        def flow(*, stateful: bool = False) -> None:
            stream = sea.spark.readStream.format("delta").load(sea.place("source"))
            names = sea.spark.read.format("delta").load(sea.place("names"))
            rows = stream.dropDuplicates(["id"]) if stateful else stream.join(names, "id")
            lw.upsert_stream(
                rows,
                sea.place("sink"),
                keys="id",
                checkpoint=sea.checkpoint("stateful" if stateful else "upserts"),
                trigger={"availableNow": True},
            ).awaitTermination()

        for number in (1, 2):
            sea.insert("source", number)
            flow()
        flow(stateful=True)
        bad = sea.insert("source", 3)
        flow(stateful=True)
    commits = list(sea.reader.commits(sea.location("sink"), after=0))
    assert [one.lineage and [_edge(read) for read in one.lineage.inputs] for one in commits] == [
        [("names", None, 1), ("source", None, 1)],
        [("names", None, 1), ("source", 1, 2)],
        [("source", None, 2)],
        [("source", -1, 3)],
    ]
    assert all(version_of(one).known for one in commits)
    sea.roll_back("source", bad)
    assert (sea.rows("source"), sea.rows("sink")) == ([1, 2], [1, 2])


def _edge(read: LineageInput) -> tuple[str, int | None, int | None]:
    return (read.location.rpartition("/")[2], read.from_version, read.version)


# a stream that reads a table which goes back


def test_a_reader_is_told_fails_and_goes_on_behind_the_rollback(sea: Sea) -> None:
    sea.create("sink")
    sea.insert("source", 1)
    sea.flow("source", "sink")
    sea.declare("sink", began=CONTENT)
    bad = sea.insert("source", 99)
    query_id = sea.flow("source", "sink")
    plan = sea.roll_back("source", bad)
    made = bad + 1
    advice = {table.name: [one.what_to_do for one in table.streams] for table in plan.tables}
    assert advice == {
        "db.source": [
            (
                f"{query_id} (writes db.sink) reads it and fails at version {made}. Stop it before `apply`, "
                f"then start it with a new checkpoint, `startingVersion` {made} and `skipChangeCommits`."
            )
        ],
        "db.sink": [
            (
                f"{query_id} wrote batch 1 of what is undone. Stop it before `apply`. Its source goes back, "
                "too: there it says how to start it again. If it reads the change feed, take its checkpoint "
                "back to before batch 1 instead."
            )
        ],
    }
    assert (sea.rows("source"), sea.rows("sink")) == ([1], [1])
    sea.insert("source", 2)
    with pytest.raises(StreamingQueryException, match="DELTA_SOURCE_IGNORE_DELETE"):
        sea.flow("source", "sink")
    sea.flow("source", "sink", "new", startingVersion=made, skipChangeCommits="true")
    sea.insert("source", 3)
    sea.flow("source", "sink", "new")
    assert sea.rows("sink") == sea.rows("source") == [1, 2, 3]
    sea.declare("sink", "new", began=Began(version=made + 1))
    assert not [one for one in sea.plan("source", bad).tables if one.name == "db.sink" and one.acts]


@pytest.mark.long
def test_the_reader_of_an_upsert_stream_is_told_what_its_batches_had_read(sea: Sea) -> None:
    sea.create("sink")
    sea.insert("source", 1)
    sea.upserts("source", "sink")
    clean, bad = sea.insert("source", 2), sea.insert("source", 99)
    query_id = sea.upserts("source", "sink")
    plan = sea.roll_back("source", bad)
    made = bad + 1
    advice = {table.name: [one.what_to_do for one in table.streams] for table in plan.tables}
    assert advice["db.source"] == [
        (
            f"{query_id} (writes db.sink) reads it and fails at version {made}. Stop it before `apply`, then "
            f"start it with a new checkpoint, `startingVersion` {made} and `skipChangeCommits`. Before that, "
            f"take to db.sink what version {clean} of db.source has and version {clean - 1} has not."
        )
    ]
    assert sea.rows("sink") == [1]
    sea.insert("sink", 2)
    sea.insert("source", 3)
    sea.upserts("source", "sink", "new", startingVersion=made, skipChangeCommits="true")
    assert sea.rows("sink") == sea.rows("source") == [1, 2, 3]


@pytest.mark.long
def test_a_mirror_of_the_change_feed_goes_on_from_before_what_is_undone(sea: Sea) -> None:
    sea.create("fed", "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')")
    sea.create("mirror")
    sea.insert("fed", 1)
    sea.upserts("fed", "mirror", readChangeFeed="true")
    sea.insert("fed", 2)
    bad = sea.insert("fed", 99)
    query_id = sea.upserts("fed", "mirror", readChangeFeed="true")
    assert sea.rows("mirror") == [1, 2, 99]
    plan = sea.roll_back("fed", bad)
    (advice,) = [
        one.what_to_do for table in plan.tables if table.name == "db.mirror" for one in table.streams
    ]
    assert advice.startswith(f"{query_id} wrote batch 1 of what is undone.")
    assert advice.endswith("take its checkpoint back to before batch 1 instead.")
    sea.rewind(1)
    sea.insert("fed", 3)
    sea.upserts("fed", "mirror", readChangeFeed="true")
    assert sea.rows("mirror") == sea.rows("fed") == [1, 2, 3]


@pytest.mark.long
def test_clean_rows_that_an_undone_batch_had_read_are_taken_over_by_hand(sea: Sea) -> None:
    sea.create("sink")
    sea.insert("source", 1)
    sea.flow("source", "sink")
    sea.declare("sink", began=CONTENT)
    good = sea.insert("source", 2)
    bad = sea.insert("source", 99)
    sea.flow("source", "sink")
    plan = sea.roll_back("source", bad)
    (said,) = [one.what_to_do for table in plan.tables for one in table.streams if one.reads]
    assert said.endswith(
        f"Before that, take to db.sink what version {good} of db.source has and version {good - 1} has not."
    )
    assert (sea.rows("source"), sea.rows("sink")) == ([1, 2], [1])
    (query,) = re.findall("`(SELECT .* EXCEPT ALL .*)`", (DOCS / "streams.md").read_text(encoding="utf-8"))
    assert (good, query.count("VERSION AS OF 2"), query.count("VERSION AS OF 1")) == (2, 1, 1)
    sea.spark.sql(f"INSERT INTO {sea.sql('sink')} {query.replace('db.source', sea.sql('source'))}")
    sea.insert("source", 3)
    sea.flow("source", "sink", "new", startingVersion=bad + 1, skipChangeCommits="true")
    assert sea.rows("sink") == sea.rows("source") == [1, 2, 3]
