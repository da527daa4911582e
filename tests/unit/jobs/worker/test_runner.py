"""One run from claim to finish, on real Delta tables without Spark."""

import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import CommitProperties, DeltaTable

from lakewarden.catalog.errors import (
    ConflictError,
    LakewardenError,
    OutdatedError,
    PreconditionError,
    UnavailableError,
)
from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.metastore.port import Entry
from lakewarden.catalog.model.rows import Outcome
from lakewarden.catalog.state.port import Result, Run, RunState
from lakewarden.jobs.actions.compact import Compact
from lakewarden.jobs.actions.convert import Convert
from lakewarden.jobs.actions.properties import SetProperties
from lakewarden.jobs.actions.sync import SyncMetastore
from lakewarden.jobs.actions.vacuum import Vacuum
from lakewarden.jobs.runs.port import FileChange, Partition
from lakewarden.jobs.worker.runner import Finished
from support.builders.runs import Bench, delta_table, parquet_file, request_of
from support.fakes.engine import FakeEngine
from support.fakes.state import FakeQueue
from support.fakes.tools import SeveralFormats

KEEP = (("delta.deletedFileRetentionDuration", "interval 30 days"),)


@pytest.fixture
def bench() -> Bench:
    return Bench()


def finish(bench: Bench) -> Finished:
    finished = bench.runner().run_next()
    assert finished is not None
    return finished


def test_an_empty_queue_is_no_work(bench: Bench) -> None:
    assert bench.runner().run_next() is None


def test_a_run_is_executed_and_its_result_is_in_the_queue(bench: Bench, tmp_path: Path) -> None:
    location = delta_table(tmp_path / "t")
    bench.queue.enqueue([request_of(location, SetProperties(requires=Head(0), properties=KEEP))])
    done = finish(bench)
    assert (done.result.outcome, done.result.committed_version, done.recorded) == (Outcome.SUCCEEDED, 1, True)
    assert bench.queue.finished(9)[0].result == done.result
    assert done.result.actual_seconds is not None
    assert bench.commits(location)[-1].run_id == "run-1"


def test_a_conversion_needs_no_version(bench: Bench, tmp_path: Path) -> None:
    parquet_file(tmp_path / "t" / "a.parquet")
    location = f"file://{tmp_path}/t"
    bench.queue.enqueue([request_of(location, Convert(name=None, location=location, properties=KEEP))])
    assert finish(bench).result.outcome is Outcome.SUCCEEDED
    assert dict(KEEP).items() <= bench.seen(location).properties.items()


def test_nothing_to_do_is_skipped(bench: Bench, tmp_path: Path) -> None:
    location = delta_table(tmp_path / "t")
    bench.queue.enqueue([request_of(location, Vacuum(requires=Head(0), retention_seconds=3_600))])
    assert finish(bench).result.outcome is Outcome.SKIPPED


def test_a_stale_plan_changes_nothing_and_may_be_made_anew(bench: Bench, tmp_path: Path) -> None:
    location = delta_table(tmp_path / "t", commits=2)
    bench.queue.enqueue([request_of(location, SetProperties(requires=Head(0), properties=KEEP))])
    result = finish(bench).result
    assert (result.outcome, result.error_class, result.retry) == (Outcome.FAILED, "ConflictError", True)
    assert bench.seen(location).version == 1


def test_a_plan_for_a_table_that_was_made_anew_changes_nothing(bench: Bench, tmp_path: Path) -> None:
    location = delta_table(tmp_path / "t")
    planned = SetProperties(requires=bench.seen(location).at, properties=KEEP)
    bench.queue.enqueue([request_of(location, planned)])
    shutil.rmtree(tmp_path / "t")
    delta_table(tmp_path / "t")
    assert bench.seen(location).version == planned.requires.version
    result = finish(bench).result
    assert (result.outcome, result.error_class) == (Outcome.FAILED, "ConflictError")
    assert bench.seen(location).version == 0


@pytest.mark.parametrize("anew", [False, True], ids=["written meanwhile", "made anew meanwhile"])
def test_an_entry_follows_the_head_of_the_same_table(bench: Bench, tmp_path: Path, anew: bool) -> None:
    """System tables move with every run that is recorded, that of a sync itself included."""
    location = delta_table(tmp_path / "t")
    bench.metastore.create_database("db")
    bench.metastore.create(
        Entry(database="db", table="t", location=location, table_type="EXTERNAL_TABLE", provider=None)
    )
    sync = SyncMetastore(requires=Head(0, bench.seen(location).head), name="db.t")
    bench.queue.enqueue([request_of(location, sync)])
    if anew:
        shutil.rmtree(tmp_path / "t")
    delta_table(tmp_path / "t", commits=2)
    result, entry = finish(bench).result, bench.metastore.get("db", "t")
    assert entry is not None
    if anew:
        assert (result.outcome, result.error_class) == (Outcome.FAILED, "ConflictError")
        assert entry.provider is None
    else:
        assert (result.outcome, entry.provider) == (Outcome.SUCCEEDED, "delta"), result.message
        assert "the metastore agrees with version 2" in (result.message or "")


def test_an_entry_that_was_pointed_at_a_table_of_another_format_stays(bench: Bench, tmp_path: Path) -> None:
    location, green = delta_table(tmp_path / "t"), tmp_path / "green"
    (green / "metadata").mkdir(parents=True)
    (green / "metadata" / "v1.metadata.json").write_text("{}")
    ours = {"lakewarden.table_id": f"id of {location}"}
    entry = Entry(
        database="db",
        table="t",
        location=f"file:{green}",
        table_type="EXTERNAL_TABLE",
        provider="delta",
        parameters=ours,
    )
    bench.metastore.create_database("db")
    bench.metastore.create(entry)
    sync = SyncMetastore(requires=Head(0, bench.seen(location).head), name="db.t")
    bench.queue.enqueue([request_of(location, sync)])
    finished = bench.runner(tools=SeveralFormats((bench.reader, IcebergReader()), (bench.engine,))).run_next()
    assert finished is not None
    assert finished.result.error_class == "RefusedError"
    assert "was pointed at another table" in (finished.result.message or "")
    now = bench.metastore.get("db", "t")
    assert now is not None and now.location == entry.location


def test_a_payload_of_another_version_is_refused_with_a_sentence(bench: Bench, tmp_path: Path) -> None:
    location = delta_table(tmp_path / "t")
    request = request_of(
        location, SetProperties(requires=Head(0), properties=KEEP), payload='{"kind": "future"}'
    )
    bench.queue.enqueue([request])
    result = finish(bench).result
    assert result.error_class == "PreconditionError"
    assert "another version of lakewarden" in (result.message or "")
    assert result.hint == "Nothing has to be done: it is planned anew."


class BrokenEngine(FakeEngine):
    """An engine with a fault that nobody thought of."""

    def set_properties(
        self, location: str, *, requires: Head, properties: Sequence[tuple[str, str]], run_id: str
    ) -> int:
        raise ZeroDivisionError(properties)


def test_a_fault_of_ours_fails_the_run_and_not_the_worker(bench: Bench, tmp_path: Path) -> None:
    location = delta_table(tmp_path / "t")
    bench.engine = BrokenEngine(bench.clock)
    bench.queue.enqueue([request_of(location, SetProperties(requires=Head(0), properties=KEEP))])
    result = finish(bench).result
    assert (result.outcome, result.error_class, result.retry) == (Outcome.FAILED, "ExecutionError", False)
    assert "ZeroDivisionError" not in (result.message or "")
    assert result.hint == "The log of worker w has the whole story."


def test_a_second_attempt_finds_what_the_first_committed(bench: Bench, tmp_path: Path) -> None:
    location = delta_table(tmp_path / "t")
    DeltaTable(location).alter.set_table_properties(
        dict(KEEP), commit_properties=CommitProperties(custom_metadata={"lakewarden.run_id": "run-1"})
    )
    bench.queue.enqueue([request_of(location, SetProperties(requires=Head(0), properties=KEEP), attempt=2)])
    result = finish(bench).result
    assert (result.outcome, result.committed_version) == (Outcome.SUCCEEDED, 1)
    assert bench.seen(location).version == 1


def test_a_second_attempt_that_finds_nothing_does_the_work(bench: Bench, tmp_path: Path) -> None:
    location = delta_table(tmp_path / "t")
    bench.queue.enqueue([request_of(location, SetProperties(requires=Head(0), properties=KEEP), attempt=2)])
    assert finish(bench).result.committed_version == 1


def test_a_vacuum_that_was_interrupted_is_not_begun_again(bench: Bench, tmp_path: Path) -> None:
    location = delta_table(tmp_path / "t")
    DeltaTable(location).alter.set_table_properties(  # stands for the start commit of the vacuum
        {"delta.appendOnly": "false"},
        commit_properties=CommitProperties(custom_metadata={"lakewarden.run_id": "run-1"}),
    )
    bench.queue.enqueue([request_of(location, Vacuum(requires=Head(0), retention_seconds=3_600), attempt=2)])
    assert finish(bench).result.outcome is Outcome.ABANDONED


class SlowEngine(FakeEngine):
    """An engine that is busy until it is interrupted."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench.clock)
        self._queue, self.interrupted = bench.queue, False

    def interrupt(self) -> None:
        self.interrupted = True

    def compact(
        self,
        location: str,
        *,
        requires: Head,
        partitions: Sequence[Partition] | None,
        target_bytes: int,
        run_id: str,
        beside_writers: bool = False,
    ) -> FileChange:
        self._queue.cancel(run_id)
        while not self.interrupted:
            time.sleep(0.005)
        raise ConflictError("Spark was interrupted.")


def test_a_run_that_is_cancelled_while_it_runs_ends_as_cancelled(bench: Bench, tmp_path: Path) -> None:
    location = delta_table(tmp_path / "t", commits=6)
    slow = bench.engine = SlowEngine(bench)
    action = Compact(requires=Head(5), target_bytes=1_000_000, min_small_files=2, quiet_seconds=0)
    bench.queue.enqueue([request_of(location, action)])
    assert finish(bench).result.outcome is Outcome.CANCELLED
    assert slow.interrupted
    assert bench.seen(location).version == 5


@pytest.mark.parametrize(
    "error", [OutdatedError("It has schema version 99."), PreconditionError("It waits.")]
)
def test_a_worker_of_another_version_than_the_system_tables_gives_what_it_claims_back_untouched(
    bench: Bench, tmp_path: Path, error: LakewardenError
) -> None:
    def unfit() -> None:
        raise error

    location = delta_table(tmp_path / "t")
    bench.queue.enqueue([request_of(location, SetProperties(requires=Head(0), properties=KEEP))])
    with pytest.raises(type(error)):
        bench.runner(require_current=unfit).run_next()
    (waits,) = bench.queue.unfinished()
    assert (waits.state, waits.worker, waits.request.attempt) == (RunState.QUEUED, None, 1)
    assert finish(bench).result.committed_version == 1, "by a worker of the right one"


class OvertakenEngine(FakeEngine):
    """An engine beside which the system tables are upgraded while it works."""

    def set_properties(
        self, location: str, *, requires: Head, properties: Sequence[tuple[str, str]], run_id: str
    ) -> int:
        super().set_properties(location, requires=requires, properties=properties, run_id=run_id)
        raise OutdatedError("lakewarden.tables has schema version 99.")


def test_a_run_overtaken_by_an_upgrade_does_not_count_as_failed(bench: Bench, tmp_path: Path) -> None:
    location = delta_table(tmp_path / "t")
    bench.engine = OvertakenEngine(bench.clock)
    request = request_of(location, SetProperties(requires=Head(0), properties=KEEP))
    bench.queue.enqueue([request])
    with pytest.raises(OutdatedError):
        bench.runner().run_next()
    (left,) = bench.queue.unfinished()
    assert left.state is RunState.RUNNING and bench.queue.finished(9) == ()
    bench.engine = FakeEngine(bench.clock)
    bench.queue = FakeQueue(bench.clock)
    bench.queue.enqueue([replace(request, attempt=2)])  # as it is begun again once its lease is over
    assert finish(bench).result.message == "an earlier attempt had committed version 1"
    assert bench.seen(location).version == 1


class AbsentQueue(FakeQueue):
    """A queue that is away for the first `misses` times that a run is finished."""

    misses = 1

    def finish(self, run: Run, worker: str, result: Result) -> bool:
        if self.misses > 0:
            self.misses -= 1
            raise UnavailableError("The database is away.")
        return super().finish(run, worker, result)


@pytest.mark.heavy
@pytest.mark.parametrize(("misses", "lease"), [(1, 60.0), (9, 0.0)], ids=["for a moment", "for good"])
def test_a_result_is_told_again_until_the_lease_is_over(
    bench: Bench, tmp_path: Path, misses: int, lease: float
) -> None:
    location = delta_table(tmp_path / "t")
    queue = bench.queue = AbsentQueue(bench.clock)
    queue.misses = misses
    queue.enqueue([request_of(location, SetProperties(requires=Head(0), properties=KEEP))])
    runner = bench.runner(lease=timedelta(seconds=lease), heartbeat=timedelta(seconds=5))
    if lease:
        assert runner.run_next() is not None
        assert len(queue.finished(9)) == 1
    else:
        with pytest.raises(UnavailableError):
            runner.run_next()
        assert queue.finished(9) == ()
