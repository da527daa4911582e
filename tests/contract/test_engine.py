"""The Engine port: one suite for Spark and for the fake."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.errors import ConflictError, PreconditionError, RefusedError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Head, Observation
from lakewarden.catalog.model.lineage_record import LineageInput, LineageRecord, Operation
from lakewarden.catalog.storage.file_store import StorageOptions, canonical, open_store
from lakewarden.jobs.engines.delta.engine import DeltaEngine
from lakewarden.jobs.runs.port import Engine, VacuumScope
from support.builders.maintenance import AskedEngine
from support.fakes.engine import FakeEngine

RUN = "0123456789abcdef"
READER = DeltaReader()


@pytest.fixture(params=["fake", "asked", pytest.param("spark", marks=pytest.mark.spark)])
def engine(request: pytest.FixtureRequest) -> Engine:
    if request.param == "fake":
        return FakeEngine(SystemClock())
    if request.param == "asked":
        return AskedEngine(by=FakeEngine(SystemClock()))
    request.getfixturevalue("compiled_queries")
    session = request.getfixturevalue("spark")
    return DeltaEngine(lambda: session, storage=lambda _: StorageOptions(), clock=SystemClock())


def parquet(folder: Path, name: str = "a.parquet", start: int = 0) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": pa.array(range(start, start + 10), pa.int64())}), folder / name)


def convert(engine: Engine, folder: Path, **how: object) -> int:
    options: dict[str, object] = {"name": None, "partitioned_by": (), "statistics": True, "run_id": RUN}
    return engine.convert(location=canonical(str(folder)), **{**options, **how})  # type: ignore[arg-type]  # a case gives what differs


def delta(folder: Path, commits: int = 1) -> str:
    for number in range(commits):
        data = pa.table({"id": pa.array(range(number * 10, number * 10 + 10), pa.int64())})
        write_deltalake(folder, data, mode="append")
    return canonical(str(folder))


def ids(folder: Path) -> list[int]:
    return sorted(DeltaTable(folder).to_pyarrow_table().column("id").to_pylist())


def observed(location: str) -> Observation:
    seen = READER.observe(location)
    assert isinstance(seen, Observation), seen
    return seen


def run_ids(location: str) -> list[str | None]:
    return [commit.run_id for commit in READER.commits(location, after=-1)]


def test_conversion_keeps_every_row_and_carries_the_run(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "odd name `t`, ü"
    parquet(folder)
    parquet(folder, "b.parquet", start=10)
    assert convert(engine, folder) == 0
    assert ids(folder) == list(range(20))
    assert run_ids(canonical(str(folder))) == [RUN]


def test_conversion_reads_partition_folders(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    parquet(folder / "year=2013")
    parquet(folder / "year=__HIVE_DEFAULT_PARTITION__", start=10)
    convert(engine, folder, partitioned_by=(("year", "int"),))
    assert observed(canonical(str(folder))).partition_columns == ("year",)
    assert set(DeltaTable(folder).to_pyarrow_table().column("year").to_pylist()) == {2013, None}


def test_conversion_without_statistics_leaves_them_out(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    parquet(folder)
    convert(engine, folder, statistics=False)
    assert observed(canonical(str(folder))).files_without_statistics == 1


def test_conversion_done_again_changes_nothing(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    parquet(folder)
    convert(engine, folder)
    assert convert(engine, folder, run_id="another") == 0
    assert run_ids(canonical(str(folder))) == [RUN]


@pytest.mark.parametrize("content", [None, b"hello"], ids=["empty", "not parquet"])
def test_what_cannot_be_converted_is_left_as_it_was(
    engine: Engine, tmp_path: Path, content: bytes | None
) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    if content is not None:
        (folder / "a.parquet").write_bytes(content)
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(RefusedError):
        convert(engine, folder)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_properties_are_set_together_on_the_version_they_were_decided_on(
    engine: Engine, tmp_path: Path
) -> None:
    location = delta(tmp_path / "t")
    wanted = (("delta.logRetentionDuration", "interval 60 days"), ("delta.appendOnly", "false"))
    assert engine.set_properties(location, requires=Head(0), properties=wanted, run_id=RUN) == 1
    assert dict(wanted).items() <= observed(location).properties.items()
    assert run_ids(location)[-1] == RUN


def test_properties_lose_against_a_commit_that_came_first(engine: Engine, tmp_path: Path) -> None:
    location = delta(tmp_path / "t", commits=2)
    with pytest.raises(ConflictError):
        engine.set_properties(location, requires=Head(0), properties=(("a", "b"),), run_id=RUN)
    assert observed(location).version == 1


def test_properties_are_taken_away_in_one_commit(engine: Engine, tmp_path: Path) -> None:
    location = delta(tmp_path / "t")
    wanted = (
        ("delta.logRetentionDuration", "interval 60 days"),
        ("delta.appendOnly", "false"),
        ("o'hara", "x"),
    )
    assert engine.set_properties(location, requires=Head(0), properties=wanted, run_id=RUN) == 1
    names = ("delta.logRetentionDuration", "o'hara", "never.set")
    assert engine.unset_properties(location, requires=Head(1), names=names, run_id=RUN) == 2
    assert observed(location).properties == {"delta.appendOnly": "false"}
    assert run_ids(location)[-1] == RUN and ids(tmp_path / "t") == list(range(10))
    with pytest.raises(ConflictError):
        engine.unset_properties(location, requires=Head(1), names=("delta.appendOnly",), run_id=RUN)
    assert observed(location).version == 2


def test_a_restore_makes_an_old_version_head_in_one_commit(engine: Engine, tmp_path: Path) -> None:
    location = delta(tmp_path / "t", commits=3)
    assert engine.restore(location, requires=Head(2), to=0, apps=(), run_id=RUN) == 3
    assert ids(tmp_path / "t") == list(range(10))
    assert run_ids(location)[3:] == [RUN]
    assert engine.restore(location, requires=Head(3), to=2, apps=(), run_id=RUN) == 4
    assert ids(tmp_path / "t") == list(range(30))


def test_a_restore_takes_the_numbers_of_streams_back_and_leaves_nothing_to_do(
    engine: Engine, tmp_path: Path
) -> None:
    location = delta(tmp_path / "t")
    for number in (0, 1):
        batch = CommitProperties(app_transactions=[Transaction("stream", number)])
        rows = pa.table({"id": pa.array([100 + number], pa.int64())})
        write_deltalake(tmp_path / "t", rows, mode="append", commit_properties=batch)
    apps = ("stream", "another")
    assert engine.restore(location, requires=Head(2), to=1, apps=apps, run_id=RUN) == 3
    assert engine.begin_epoch(location, restored=3, to=1, apps=apps, run_id=RUN) is None
    assert DeltaTable(tmp_path / "t").transaction_version("stream") == 0
    assert observed(location).version == 3


def test_a_restore_loses_against_a_commit_that_came_first(engine: Engine, tmp_path: Path) -> None:
    location = delta(tmp_path / "t", commits=3)
    with pytest.raises(ConflictError):
        engine.restore(location, requires=Head(1), to=0, apps=(), run_id=RUN)
    assert ids(tmp_path / "t") == list(range(30))


def test_a_fence_changes_nothing_and_may_say_that_a_transaction_was_made(
    engine: Engine, tmp_path: Path
) -> None:
    location = delta(tmp_path / "t")
    assert engine.fence(location, requires=Head(0), run_id=RUN) == 1
    assert engine.fence(location, requires=Head(1), run_id=RUN, app="group") == 2
    assert engine.fence(location, requires=Head(2), run_id=RUN, app="named", number=4) == 3
    assert (ids(tmp_path / "t"), run_ids(location)[1:]) == (list(range(10)), [RUN] * 3)
    assert DeltaTable(tmp_path / "t").transaction_version("group") == 1
    assert DeltaTable(tmp_path / "t").transaction_version("named") == 4
    with pytest.raises(ConflictError):
        engine.fence(location, requires=Head(1), run_id=RUN)


def record(operation: Operation = Operation.REMOVE_FILES) -> LineageRecord:
    """What a commit says of itself; the version before was read."""
    read = LineageInput(table_id="t", location="file:///t", format="delta", version=0)
    return LineageRecord(run_id=RUN, operation=operation, user="ana", inputs=(read,))


def test_exact_files_are_taken_out_in_one_commit_and_a_restore_brings_them_again(
    engine: Engine, tmp_path: Path
) -> None:
    location = delta(tmp_path / "t", commits=4)
    assert engine.remove_files(location, requires=Head(3), versions=[1, 2], record=record()) == 4
    assert ids(tmp_path / "t") == [*range(10), *range(30, 40)]
    (made,) = READER.commits(location, after=3)
    assert (made.run_id, made.lineage, made.operation) == (RUN, record(), "DELETE")
    assert (made.added_files, made.removed_files, made.data_change) == (0, 2, True)
    engine.restore(location, requires=Head(4), to=3, apps=(), run_id=RUN)
    assert ids(tmp_path / "t") == list(range(40))


def test_files_are_not_taken_out_over_somebodys_commit_or_when_they_are_gone_already(
    engine: Engine, tmp_path: Path
) -> None:
    location = delta(tmp_path / "t", commits=3)
    with pytest.raises(ConflictError):
        engine.remove_files(location, requires=Head(1), versions=[1], record=record())
    DeltaTable(tmp_path / "t").delete("id = 11")
    with pytest.raises(PreconditionError, match="as it was added"):
        engine.remove_files(location, requires=Head(3), versions=[1], record=record())
    assert (observed(location).version, len(ids(tmp_path / "t"))) == (3, 29)


@pytest.mark.parametrize("folder", ["t", "odd name ü"])
def test_the_files_of_a_commit_are_added_again_after_a_restore(
    engine: Engine, tmp_path: Path, folder: str
) -> None:
    place = tmp_path / folder
    for number, day in enumerate(("a", "b", None)):
        data = pa.table({"id": pa.array([number], pa.int64()), "day": pa.array([day], pa.string())})
        write_deltalake(place, data, mode="append", partition_by=["day"])
    location = canonical(str(place))
    engine.restore(location, requires=Head(2), to=0, apps=(), run_id="before")
    again = record(Operation.APPEND)
    assert engine.add_again(location, requires=Head(3), version=2, record=again) == 4
    rows = DeltaTable(place).to_pyarrow_table().sort_by("id").to_pylist()
    assert rows == [{"id": 0, "day": "a"}, {"id": 2, "day": None}]
    (made,) = READER.commits(location, after=3)
    assert (made.run_id, made.lineage, made.blind_append is not False) == (RUN, again, True)
    assert observed(location).files_without_statistics == 0
    with pytest.raises(ConflictError):
        engine.add_again(location, requires=Head(3), version=1, record=again)


def test_files_are_not_added_to_a_table_with_other_columns(engine: Engine, tmp_path: Path) -> None:
    location = delta(tmp_path / "t", commits=1)
    more = pa.table({"id": pa.array([99], pa.int64()), "new": pa.array(["x"])})
    write_deltalake(tmp_path / "t", more, mode="append", schema_mode="merge")
    engine.restore(location, requires=Head(1), to=0, apps=(), run_id="before")
    with pytest.raises(PreconditionError, match="has other columns than at version 1"):
        engine.add_again(location, requires=Head(2), version=1, record=record(Operation.APPEND))
    assert observed(location).version == 2


def test_a_file_that_is_gone_is_not_added_again(engine: Engine, tmp_path: Path) -> None:
    location = delta(tmp_path / "t", commits=2)
    (gone,) = set(DeltaTable(tmp_path / "t").file_uris()) - set(DeltaTable(tmp_path / "t", 0).file_uris())
    engine.restore(location, requires=Head(1), to=0, apps=(), run_id="before")
    Path(gone.removeprefix("file://")).unlink()
    with pytest.raises(PreconditionError, match="is gone"):
        engine.add_again(location, requires=Head(2), version=1, record=record(Operation.APPEND))
    assert observed(location).version == 2


def test_compaction_keeps_rows_and_makes_fewer_files(engine: Engine, tmp_path: Path) -> None:
    location = delta(tmp_path / "t", commits=4)
    change = engine.compact(location, requires=Head(3), partitions=None, target_bytes=1_000_000, run_id=RUN)
    assert (change.version, change.files_removed, change.files_added) == (4, 4, 1)
    assert ids(tmp_path / "t") == list(range(40))
    assert run_ids(location)[-1] == RUN


def test_compaction_loses_against_a_commit_that_came_first(engine: Engine, tmp_path: Path) -> None:
    location = delta(tmp_path / "t", commits=3)
    with pytest.raises(ConflictError):
        engine.compact(location, requires=Head(1), partitions=None, target_bytes=1_000_000, run_id=RUN)
    assert observed(location).version == 2


def test_beside_writers_compaction_commits_behind_a_commit_that_came_first(
    engine: Engine, tmp_path: Path
) -> None:
    location = delta(tmp_path / "t", commits=3)
    change = engine.compact(
        location, requires=Head(1), partitions=None, target_bytes=1_000_000, run_id=RUN, beside_writers=True
    )
    assert (change.version, change.files_removed, change.files_added) == (3, 3, 1)
    assert ids(tmp_path / "t") == list(range(30)) and run_ids(location)[-1] == RUN


def test_nothing_to_purge_makes_no_commit(engine: Engine, tmp_path: Path) -> None:
    location = delta(tmp_path / "t")
    assert engine.purge_deletions(location, requires=Head(0), partitions=None, run_id=RUN).version is None
    assert observed(location).version == 0


def test_an_engine_agrees_on_candidates_that_are_unreferenced_and_on_nothing_else(
    engine: Engine, tmp_path: Path
) -> None:
    folder = tmp_path / "t"
    location = delta(folder)
    for number in (1, 2):
        age(folder / f"orphan-{number}.parquet")
    assert sorted(engine.unreferenced(location)) == ["orphan-1.parquet", "orphan-2.parquet"]
    entries = [entry for entry in open_store(location).list("") if entry.path.endswith("1.parquet")]
    live = next(entry for entry in open_store(location).list("") if entry.path.startswith("part-"))
    found = engine.agreed(location, candidates=[*entries, live])
    assert [entry.path for entry in found] == ["orphan-1.parquet"]
    assert {path.name for path in folder.glob("orphan*")} == {"orphan-1.parquet", "orphan-2.parquet"}
    assert observed(location).version == 0


def test_a_vacuum_is_told_in_the_log_behind_whoever_commits_in_between(
    engine: Engine, tmp_path: Path
) -> None:
    location = delta(tmp_path / "t")
    begun = engine.begin_vacuum(
        location,
        requires=Head(0),
        scope=VacuumScope(oldest=0, left_before=datetime.now(UTC), files=3, size_bytes=30),
        run_id=RUN,
    )
    write_deltalake(tmp_path / "t", pa.table({"id": pa.array([99], pa.int64())}), mode="append")
    if begun is None:
        assert not isinstance(engine, DeltaEngine), "only delta-rs makes no empty commits"
        return
    ended = engine.end_vacuum(location, after=begun, files=2, run_id=RUN)
    start, _, end = READER.commits(location, after=0)
    assert (begun, ended) == (start.version, end.version) == (1, 3)
    assert (start.operation, start.run_id, start.metrics["numFilesToDelete"]) == ("VACUUM START", RUN, "3")
    assert (end.operation, end.run_id, end.metrics["numDeletedFiles"]) == ("VACUUM END", RUN, "2")
    assert start.parameters["defaultRetentionMillis"] == str(7 * 86_400_000)
    assert observed(location).last_vacuum_at == end.committed_at


def test_only_empty_folders_are_deleted(engine: Engine, tmp_path: Path) -> None:
    location = delta(tmp_path / "t")
    (tmp_path / "t" / "a" / "b").mkdir(parents=True)
    (tmp_path / "t" / "full").mkdir()
    (tmp_path / "t" / "full" / "f").write_bytes(b"x")
    assert engine.delete_empty_folders(location, ["a/b", "a", "full", "gone", ""]) == 2
    assert sorted(path.name for path in (tmp_path / "t").iterdir() if path.is_dir()) == ["_delta_log", "full"]


def test_a_checkpoint_and_a_cleaned_log_leave_the_kept_versions_readable(
    engine: Engine, tmp_path: Path
) -> None:
    location = delta(tmp_path / "t", commits=4)
    engine.set_properties(
        location, requires=Head(3), properties=(("delta.enableExpiredLogCleanup", "false"),), run_id=RUN
    )
    engine.checkpoint(location, requires=Head(4))
    assert observed(location).checkpoint_version == 4
    asked: list[str] = []
    engine.clean_log(location, keep_from=4, proceed=lambda: asked.append("asked"), still_ours=lambda: None)
    assert asked == ["asked"]
    assert ids(tmp_path / "t") == list(range(40))
    assert observed(location).version == 4


def test_statistics_count_rows_nulls_and_values_of_one_version(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    write_deltalake(
        folder, pa.table({"id": pa.array([1, 2, 2, None], pa.int64()), "s": ["a", "b", "c", "d"]})
    )
    write_deltalake(folder, pa.table({"id": pa.array([9], pa.int64()), "s": ["e"]}), mode="append")
    found = engine.statistics(canonical(str(folder)), version=0, columns=["id"], max_rows=1_000)
    assert (found.version, found.rows, found.sampled_share) == (0, 4, 1.0)
    assert found.total_bytes > 0
    (column,) = found.columns
    assert (column.name, column.type, column.distinct_count, column.null_count) == ("id", "bigint", 2, 1)
    assert (column.minimum, column.maximum) == ("1", "2")


def test_the_stamp_of_a_commit_is_read_back_whoever_made_it(engine: Engine, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    parquet(folder)
    convert(engine, folder)
    first = json.loads((folder / "_delta_log" / f"{0:020d}.json").read_text().splitlines()[0])
    assert RUN in json.dumps(first["commitInfo"])


def age(path: Path) -> None:
    """A file nobody knows, older than any retention."""
    path.write_bytes(b"x")

    os.utime(path, (1_600_000_000, 1_600_000_000))
