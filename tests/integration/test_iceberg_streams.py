"""Streams from and to Iceberg tables on real Spark: what their batches read is on record, a rollback takes them back,
and they go on as the plan says."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from lakewarden.catalog.named_catalogs.declaration import CatalogDeclaration, CatalogKind
from lakewarden.catalog.storage.credentials import StorageOptions
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.jobs.engines.iceberg.java_tables import opened
from lakewarden.jobs.runs.catalog_conf import catalog_conf
from support.builders.iceberg_streams import Rivers
from support.builders.spark_iceberg import iceberg_catalogs
from support.servers.iceberg_rest import CREDENTIAL, running_rest_catalog
from support.servers.metastores import without_system_tables
from support.servers.postgres import PostgresServer
from support.servers.spark import set_to

pytestmark = [pytest.mark.spark, pytest.mark.metastore]
SET_BACK = "ends with an error once main is set back. Stop it before `apply`, then"
REWIND = (
    "take its checkpoint back to before batch 1 and start it: it reads again from there, without what goes back. "
    "Keep a copy of the checkpoint for an undo."
)
BESIDE = "Its source goes back, too: there it says how to start it again."


@pytest.fixture(scope="module")
def warehouse(
    spark: SparkSession, metastore: EmbeddedMetastore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    place = tmp_path_factory.mktemp("warehouse")
    catalogs = spark._jsparkSession.sessionState().catalogManager()
    catalogs.reset()  # Spark keeps a catalog of this name that another file has used
    with iceberg_catalogs(spark, metastore.uri, place):
        yield place
    catalogs.reset()


@pytest.fixture
def rivers(spark: SparkSession, warehouse: Path, tmp_path: Path) -> Rivers:
    made = Rivers(spark, tmp_path, warehouse, tmp_path.name)
    made.create("source")
    return made


def test_a_stream_goes_back_with_its_source_and_goes_on_without_what_was_bad(rivers: Rivers) -> None:
    rivers.create("sink")
    rivers.insert("source", 1)
    rivers.insert("source", 2)
    with rivers.attached():
        query = rivers.flow("source", "sink")
        bad = rivers.insert("source", 666)
        rivers.flow("source", "sink")
    planned = rivers.plan("source", bad)
    rivers.recorded()
    assert rivers.advice(planned) == {
        "db.source": [f"{query} (writes db.sink) reads it, and {SET_BACK} {REWIND}"],
        "db.sink": [f"{query} wrote batch 1 of what is undone. Stop it before `apply`. {BESIDE}"],
    }
    rivers.roll_back("source", bad)
    assert (rivers.rows("source"), rivers.rows("sink")) == ([1, 2], [1, 2])
    rivers.insert("source", 3)
    with pytest.raises(StreamingQueryException, match="parentId"):
        rivers.flow("source", "sink")
    rivers.rewind("sink", 1)
    rivers.flow("source", "sink")
    assert (rivers.rows("sink"), rivers.batches("sink")) == ([1, 2, 3], {0: [1], 1: [2, 4]})
    rivers.declare("sink")
    rivers.recorded()
    assert rivers.on_record("sink") == {1: [("source", 0, 2)], 2: [("source", 2, 3)], 4: [("source", 4, 5)]}


@pytest.mark.few(1)
@pytest.mark.parametrize(("of", "into"), [("iceberg", "delta"), ("delta", "iceberg")])
def test_both_ways_between_the_formats(rivers: Rivers, of: str, into: str) -> None:
    """Told by the checkpoint alone."""
    rivers.create("from", of)
    rivers.create("to", into)
    rivers.insert("from", 1)
    query = rivers.flow("from", "to")
    bad = rivers.insert("from", 666)
    rivers.flow("from", "to")
    rivers.recorded()
    assert rivers.on_record("to") == {}
    rivers.declare("to")
    (found,) = rivers.learned("to")
    assert (found.query_id, found.batches, found.known) == (query, 2, 2)
    advice = rivers.advice(rivers.plan("from", bad))
    rivers.roll_back("from", bad)
    assert (rivers.rows("from"), rivers.rows("to")) == ([1], [1])
    new = rivers.insert("from", 2)
    if of == "iceberg":
        (said,) = advice["db.from"]
        assert "take its checkpoint back to before batch 1 and start it" in said
        rivers.rewind("to", 1)
        rivers.flow("from", "to")
    else:
        (said,) = advice["db.from"]
        assert f"a new checkpoint, `startingVersion` {new - 1} and `skipChangeCommits`" in said
        rivers.flow("from", "to", checkpoint="new", startingVersion=new - 1, skipChangeCommits="true")
    assert rivers.rows("to") == [1, 2]


@pytest.mark.long
def test_checkpoint_and_progress_tell_the_same_of_every_batch_and_it_is_true(rivers: Rivers) -> None:
    """One file per batch: a snapshot of two files, a compaction, rows that are deleted and replaced."""
    rivers.create("sink")
    skips = {
        "streaming_max_files_per_micro_batch": 1,
        "streaming_skip_delete_snapshots": "true",
        "streaming_skip_overwrite_snapshots": "true",
    }
    rivers.insert("source", 1)
    with rivers.attached():
        rivers.insert("source", 2, 3, files=2)
        rivers.flow("source", "sink", **skips)
        rivers.insert("source", 4)
        rivers.compact("source")
        rivers.insert("source", 5)
        rivers.spark.sql(f"DELETE FROM {rivers.sql('source')} WHERE id = 5")
        rivers.spark.sql(f"INSERT OVERWRITE {rivers.sql('source')} VALUES (9L)")
        rivers.insert("source", 6)
        rivers.flow("source", "sink", **skips)
    told = rivers.told_by_notes("sink")
    rivers.declare("sink")
    assert rivers.told_by_checkpoint("sink") == told
    assert told == {
        0: [("source", 0, 1)],
        1: [("source", 1, 2)],
        2: [("source", 1, 2)],
        3: [("source", 2, 3)],
        4: [("source", 4, 5)],
        5: [("source", 7, 8)],
    }
    assert rivers.rows("sink") == [1, 2, 3, 4, 5, 6]


@pytest.mark.long
def test_where_the_checkpoint_is_lost_a_moment_says_where_to_begin(rivers: Rivers) -> None:
    """The query has read what goes back, and its own table has long been overwritten: no batch of it is undone."""
    rivers.create("sink")
    rivers.insert("source", 1)
    query = rivers.flow("source", "sink")
    bad = rivers.insert("source", 666)
    rivers.flow("source", "sink")
    rivers.declare("sink")
    with rivers.attached() as lw:
        lw.sql(f"INSERT OVERWRITE {rivers.sql('sink')} VALUES (1L)")
    said = rivers.advice(rivers.plan("source", bad))["db.source"][0]
    assert said.startswith(
        f"{query} (writes db.sink) reads it, and {SET_BACK} start it with a new checkpoint"
    )
    told = re.search("`stream-from-timestamp` ([0-9]+)", said)
    assert told is not None, said
    rivers.roll_back("source", bad)
    rivers.insert("source", 2)
    rivers.flow("source", "sink", checkpoint="new", stream_from_timestamp=told[1])
    assert (rivers.rows("source"), rivers.rows("sink")) == ([1, 2], [1, 2])
    rivers.declare("sink", "new")
    rivers.recorded()
    assert rivers.on_record("sink")[4] == [("source", 3, 4)]


@pytest.mark.long
def test_a_query_that_has_not_read_what_goes_back_just_goes_on(rivers: Rivers) -> None:
    rivers.create("sink")
    rivers.insert("source", 1)
    with rivers.attached():
        query = rivers.flow("source", "sink")
    bad = rivers.insert("source", 666)
    said = f"{query} (writes db.sink) reads it, and has not read what goes back. Stop it before `apply`, then just"
    assert rivers.advice(rivers.plan("source", bad))["db.source"][0].startswith(said)
    rivers.roll_back("source", bad)
    rivers.insert("source", 2)
    rivers.flow("source", "sink")
    assert rivers.rows("sink") == [1, 2]


@pytest.mark.long
def test_an_undo_brings_the_batches_again_and_the_kept_checkpoint_goes_on(rivers: Rivers) -> None:
    """Without the copy, the batches that are there again would be skipped, and with them what came since."""
    rivers.create("sink")
    rivers.insert("source", 1)
    with rivers.attached():
        rivers.flow("source", "sink")
        bad = rivers.insert("source", 2)
        rivers.flow("source", "sink")
    rollback = rivers.roll_back("source", bad)
    rivers.copy_checkpoint("sink", "kept")
    rivers.rewind("sink", 1)
    rivers.undo(rollback)
    assert (rivers.rows("source"), rivers.rows("sink")) == ([1, 2], [1, 2])
    rivers.insert("source", 3)
    rivers.flow("source", "sink", checkpoint="sink")
    assert rivers.rows("sink") == [1, 2], "batch 1 is known, so it is skipped"
    rivers.flow("source", "sink", checkpoint="kept")
    assert rivers.rows("sink") == [1, 2, 3]


@pytest.mark.long
def test_where_files_are_taken_out_the_query_goes_on_once_it_skips_deletes(rivers: Rivers) -> None:
    rivers.create("sink")
    rivers.insert("source", 1)
    with rivers.attached() as lw:
        query = rivers.flow("source", "sink")
        bad = rivers.insert("source", 666)
        rivers.flow("source", "sink")
        lw.sql(f"INSERT INTO {rivers.sql('source')} VALUES (2L)")
        rivers.flow("source", "sink")
    at = "ends with an error at the snapshot that takes files out. Stop it before `apply`, then"
    then = "start it with `streaming-skip-delete-snapshots`: it goes on from its checkpoint."
    advice = rivers.advice(rivers.plan("source", bad, remove=True))
    assert advice == {"db.source": [f"{query} (writes db.sink) reads it, and {at} {then}"], "db.sink": []}
    rivers.roll_back("source", bad, remove=True)
    assert (rivers.rows("source"), rivers.rows("sink")) == ([1, 2], [1, 2])
    rivers.insert("source", 3)
    with pytest.raises(StreamingQueryException, match="Cannot process delete snapshot"):
        rivers.flow("source", "sink")
    rivers.flow("source", "sink", streaming_skip_delete_snapshots="true")
    assert rivers.rows("sink") == [1, 2, 3]
    rivers.rewind("sink", 1)
    rivers.flow("source", "sink", streaming_skip_delete_snapshots="true")
    assert rivers.rows("sink") == [1, 2, 3], "its number is known, though it was taken out"


@pytest.mark.long
def test_a_query_with_state_goes_back_to_before_its_undone_batch(rivers: Rivers) -> None:
    rivers.create("sink")
    rivers.insert("source", 1)
    with rivers.attached():
        rivers.flow("source", "sink", distinct=True)
        bad = rivers.insert("source", 1, 666)
        rivers.flow("source", "sink", distinct=True)
    assert rivers.told_by_notes("sink") == {0: [("source", 0, 1)], 1: [("source", 0, 2)]}
    rivers.declare("sink")
    assert rivers.told_by_checkpoint("sink") == rivers.told_by_notes("sink")
    assert (
        "take its checkpoint back to before batch 1"
        in rivers.advice(rivers.plan("source", bad))["db.source"][0]
    )
    rivers.roll_back("source", bad)
    rivers.rewind("sink", 1)
    rivers.insert("source", 1, 2)
    rivers.flow("source", "sink", distinct=True)
    assert rivers.rows("sink") == [1, 2]


@pytest.mark.long
def test_what_a_batch_read_of_snapshots_that_expired_is_unknown(rivers: Rivers) -> None:
    rivers.create("sink")
    rivers.insert("source", 1)
    rivers.flow("source", "sink")
    rivers.insert("source", 2)
    rivers.insert("source", 3)
    rivers.flow("source", "sink")
    rivers.expire("source")
    rivers.declare("sink")
    assert rivers.told_by_checkpoint("sink") == {0: [], 1: [("source", None, 3)]}
    rivers.create("anew")
    rivers.flow("source", "anew")
    assert rivers.rows("anew") == [3], "what the oldest snapshot added, not what the table held before"
    rivers.recorded()
    assert rivers.on_record("sink") == {1: [("?", None, None)], 2: [("?", None, None), ("source", None, 3)]}


@pytest.mark.long
def test_a_query_that_runs_on_tells_where_it_began(rivers: Rivers) -> None:
    rivers.create("sink")
    rivers.insert("source", 1)
    since = rivers.time_after("source")
    rivers.insert("source", 2)
    with rivers.attached():
        query = rivers.running("source", "sink", stream_from_timestamp=since)
        rivers.wait_for_notes(1)
        rivers.insert("source", 3)
        query.processAllAvailable()
        query.stop()
    assert rivers.told_by_notes("sink") == {0: [("source", 1, 2)], 1: [("source", 2, 3)]}
    assert rivers.rows("sink") == [2, 3]


@pytest.mark.long
def test_an_upserted_batch_says_in_its_commit_what_it_read(rivers: Rivers) -> None:
    rivers.create("sink")
    rivers.insert("source", 1)
    rivers.insert("source", 2)
    with rivers.attached() as lw:
        query = rivers.upserts(lw, "source", "sink")
        bad = rivers.insert("source", 666)
        rivers.upserts(lw, "source", "sink")
    rivers.recorded()
    assert rivers.read_by_runs("sink") == {1: [("source", 0, 2)], 2: [("source", 2, 3)]}
    advice = rivers.advice(rivers.plan("source", bad))
    assert advice["db.source"] == [f"{query} (writes db.sink) reads it, and {SET_BACK} {REWIND}"]
    rivers.roll_back("source", bad)
    rivers.insert("source", 3)
    rivers.rewind("sink", 1)
    with rivers.attached() as lw:
        rivers.upserts(lw, "source", "sink")
    assert rivers.rows("sink") == [1, 2, 3]


@pytest.mark.long
def test_tables_of_the_metastore_are_found_by_their_names(
    spark: SparkSession, metastore: EmbeddedMetastore, warehouse: Path, tmp_path: Path
) -> None:
    uri = without_system_tables(metastore.uri)
    rivers = Rivers(spark, tmp_path, warehouse, "named_streams", uri)
    spark.sql("CREATE NAMESPACE by_name.named_streams")
    rivers.create("source")
    rivers.create("sink")
    rivers.insert("source", 1)
    with rivers.attached():
        rivers.flow("source", "sink")
        bad = rivers.insert("source", 666)
        rivers.flow("source", "sink")
    assert rivers.told_by_notes("sink") == {0: [("source", 0, 1)], 1: [("source", 1, 2)]}
    rivers.roll_back("source", bad)
    rivers.rewind("sink", 1)
    rivers.insert("source", 2)
    rivers.flow("source", "sink")
    assert rivers.rows("sink") == [1, 2]
    for name in ("source", "sink"):
        spark.sql(f"DROP TABLE {rivers.sql(name)}")
    spark.sql("DROP NAMESPACE by_name.named_streams")


@pytest.fixture
def declared(
    spark: SparkSession,
    postgres: PostgresServer,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Rivers]:
    """Tables of a declared catalog: of a database, or of a server."""
    place = tmp_path / "kept"
    place.mkdir()
    catalogs = spark._jsparkSession.sessionState().catalogManager()
    with ExitStack() as stack:
        catalogs.reset()
        stack.callback(catalogs.reset)
        if request.param == "river_rest":
            monkeypatch.setenv("TESTS_CREDENTIAL", CREDENTIAL)
            uri = stack.enter_context(running_rest_catalog(place, postgres.fresh_url()))
            options = StorageOptions.of({"credential": CREDENTIAL})
            made = CatalogDeclaration(name=request.param, kind=CatalogKind.REST, uri=uri, options=options)
        else:
            uri, warehouse = postgres.fresh_url(), f"file://{place}"
            made = CatalogDeclaration(name=request.param, kind=CatalogKind.SQL, uri=uri, warehouse=warehouse)
        stack.enter_context(set_to(spark, dict(catalog_conf([made]))))
        spark.sql(f"CREATE NAMESPACE {made.name}.db")
        yield Rivers(spark, tmp_path, place, "db", declared=made)


@pytest.mark.long
@pytest.mark.postgres
@pytest.mark.parametrize("declared", ["river_sql", "river_rest"], indirect=True)
def test_tables_of_declared_catalogs_go_back_and_come_again(declared: Rivers) -> None:
    rivers = declared
    rivers.create("source")
    rivers.create("sink")
    rivers.insert("source", 1)
    with rivers.attached():
        query = rivers.flow("source", "sink")
        bad = rivers.insert("source", 666)
        rivers.flow("source", "sink")
    assert rivers.told_by_notes("sink") == {0: [("source", 0, 1)], 1: [("source", 1, 2)]}
    rivers.declare("sink")
    assert rivers.told_by_checkpoint("sink") == rivers.told_by_notes("sink")
    planned = rivers.plan("source", bad)
    rivers.recorded()
    assert rivers.on_record("sink") == {1: [("source", 0, 1)], 2: [("source", 1, 2)]}
    assert rivers.advice(planned) == {
        "db.source": [f"{query} (writes db.sink) reads it, and {SET_BACK} {REWIND}"],
        "db.sink": [f"{query} wrote batch 1 of what is undone. Stop it before `apply`. {BESIDE}"],
    }
    rollback = rivers.roll_back("source", bad)
    assert (rivers.rows("source"), rivers.rows("sink")) == ([1], [1])
    rivers.copy_checkpoint("sink", "kept")
    rivers.rewind("sink", 1)
    rivers.insert("source", 2)
    rivers.flow("source", "sink")
    assert rivers.rows("sink") == [1, 2]
    assert rollback


@pytest.mark.long
@pytest.mark.postgres
@pytest.mark.parametrize("declared", ["river_sql", "river_rest"], indirect=True)
def test_of_declared_catalogs_an_undo_brings_the_batches_again(declared: Rivers) -> None:
    rivers = declared
    rivers.create("source")
    rivers.create("sink")
    rivers.insert("source", 1)
    with rivers.attached():
        rivers.flow("source", "sink")
        bad = rivers.insert("source", 2)
        rivers.flow("source", "sink")
    rollback = rivers.roll_back("source", bad)
    rivers.undo(rollback)
    assert (rivers.rows("source"), rivers.rows("sink")) == ([1, 2], [1, 2])
    rivers.insert("source", 3)
    rivers.flow("source", "sink")
    assert rivers.rows("sink") == [1, 2, 3]


@pytest.mark.long
@pytest.mark.postgres
@pytest.mark.parametrize("declared", ["river_sql", "river_rest"], indirect=True)
def test_of_declared_catalogs_an_upserted_batch_says_what_it_read(declared: Rivers) -> None:
    rivers = declared
    rivers.create("source")
    rivers.create("sink")
    rivers.insert("source", 1)
    with rivers.attached() as lw:
        rivers.upserts(lw, "source", "sink")
        bad = rivers.insert("source", 7)
        rivers.upserts(lw, "source", "sink")
    rivers.recorded()
    assert rivers.read_by_runs("sink") == {1: [("source", 0, 1)], 2: [("source", 1, 2)]}
    rivers.roll_back("source", bad)
    assert rivers.rows("sink") == [1]


@pytest.mark.long
@pytest.mark.postgres
@pytest.mark.parametrize("declared", ["river_sql"], indirect=True)
def test_streams_read_and_write_main_whatever_branch_they_name(declared: Rivers) -> None:
    """Iceberg 1.12 passes the option over on both sides: what is on record is where the rows are."""
    rivers = declared
    rivers.create("source")
    rivers.create("sink")
    rivers.insert("source", 1)
    rivers.insert("sink", 0)
    for name, branch in (("sink", "night"), ("source", "day")):
        java = opened(rivers.spark, rivers.services.heads, rivers.location(name)).table
        java.manageSnapshots().createBranch(branch, java.currentSnapshot().snapshotId()).commit()
    rivers.spark.sql(f"INSERT INTO {rivers.sql('source')}.branch_day VALUES (5L)")
    conf = rivers.spark._jsparkSession.sessionState().conf()
    # Iceberg looks for the name of its extension where a write names a branch.
    extension = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
    conf.setConfString("spark.sql.extensions", extension)
    try:
        with rivers.attached():
            frame = rivers.spark.readStream.table(f"{rivers.sql('source')}.branch_day")
            writer = frame.writeStream.format("iceberg").option("branch", "night").outputMode("append")
            place = str(rivers.checkpoint("sink"))
            writer = writer.option("checkpointLocation", place).trigger(availableNow=True)
            writer.toTable(rivers.sql("sink")).awaitTermination()
    finally:
        conf.unsetConf("spark.sql.extensions")
    night = rivers.spark.sql(f"SELECT id FROM {rivers.sql('sink')} VERSION AS OF 'night'").collect()
    assert (rivers.rows("sink"), [row[0] for row in night]) == ([0, 1], [0])
    rivers.recorded()
    assert rivers.on_record("sink") == {2: [("source", 0, 1)]}
    rivers.declare("sink")
    assert rivers.told_by_checkpoint("sink") == {0: [("source", 0, 1)]}
