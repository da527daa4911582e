"""Workers killed with -9 at every step of a run: every run converges, none is done twice, none is lost."""

import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.rows import Outcome
from lakewarden.catalog.state.port import RunState
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.jobs.actions.answers import AnyAction
from lakewarden.jobs.actions.compact import Compact
from lakewarden.jobs.actions.convert import Convert
from lakewarden.jobs.actions.log_care import LogCare
from lakewarden.jobs.actions.properties import SetProperties
from lakewarden.jobs.actions.purge import Purge
from lakewarden.jobs.actions.vacuum import Vacuum
from support.builders.runs import delta_table, parquet_file, request_of
from support.cases import mostly_long
from support.crashes.crashes import points_of
from support.crashes.in_process import killed_here
from support.processes import dawdling_worker
from support.processes.workers import Hall

pytestmark = pytest.mark.crash

KEEP = (("delta.deletedFileRetentionDuration", "interval 30 days"),)
A_SECOND = 1.2
AGES_AGO = time.time() - timedelta(days=30).total_seconds()
RUN_POINTS = ("run.claimed", "run.started", "run.checked", "run.executing", "run.executed", "run.finished")


def is_table(folder: Path) -> bool:
    return DeltaTable.is_deltatable(str(folder))


@dataclass(frozen=True, kw_only=True)
class Deed:
    """A kind of run: the table it needs, its action, the commits that carry its id when it is done once, the points at
    which it may die, and how its folder looks afterwards. A second attempt may find nothing to do at `late` points."""

    make: Callable[[Path], str]
    action: Callable[[str], AnyAction]
    commits: int
    points: tuple[str, ...]
    late: tuple[str, ...] = ()
    is_done: Callable[[Path], bool] = is_table


def parquet_table(folder: Path) -> str:
    parquet_file(folder / "a.parquet")
    return canonical(str(folder))


def table_with_garbage(folder: Path) -> str:
    """Six small files that a compaction replaced, longer ago than the retention of a second."""
    location = delta_table(folder, commits=6)
    table = DeltaTable(folder)
    table.alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 1 seconds"})
    table.optimize.compact()
    time.sleep(A_SECOND)
    return location


def table_with_old_log(folder: Path) -> str:
    """Six commits older than a second, no checkpoint, and two sidecars that none names."""
    location = delta_table(folder, commits=6)
    for name in ("a.parquet", "b.parquet"):
        sidecar = folder / "_delta_log" / "_sidecars" / name
        sidecar.parent.mkdir(exist_ok=True)
        sidecar.touch()
        os.utime(sidecar, (AGES_AGO, AGES_AGO))
    time.sleep(A_SECOND)
    return location


def is_without_garbage(folder: Path) -> bool:
    return len(list(folder.glob("*.parquet"))) == 1 == len(DeltaTable(folder).file_uris())


def is_clean(folder: Path) -> bool:
    log = folder / "_delta_log"
    left = [path.name for path in log.glob("*.json")]
    return left == [f"{5:020d}.json"] and not list(log.glob("_sidecars/*")) and is_table(folder)


DEEDS = {
    "conversion": Deed(
        make=parquet_table,
        action=lambda location: Convert(name=None, location=location, properties=KEEP),
        commits=2,
        points=("convert.checked", "convert.converted", "convert.properties", "run.executed"),
    ),
    "properties": Deed(
        make=delta_table,
        action=lambda location: SetProperties(requires=Head(0), properties=KEEP),
        commits=1,
        points=(*RUN_POINTS, "properties.decided", "properties.set"),
    ),
    "compaction": Deed(
        make=lambda folder: delta_table(folder, commits=6),
        action=lambda location: Compact(
            requires=Head(5), target_bytes=1_000_000, min_small_files=2, quiet_seconds=0
        ),
        commits=1,
        points=("compact.decided", "compact.compacted", "run.executed"),
    ),
    "purge": Deed(
        make=delta_table,
        action=lambda location: Purge(requires=Head(0), files=1, bytes=1),
        commits=0,
        points=(
            "purge.marked",
            "purge.batch",
            "purge.data_deleted",
            "purge.log_batch",
            "purge.log_deleted",
            "purge.deleted",
            "run.executed",
        ),
        is_done=lambda folder: not folder.exists(),
    ),
    "vacuum": Deed(
        make=table_with_garbage,
        action=lambda location: Vacuum(requires=Head(7), retention_seconds=1, max_share=1.0),
        commits=0,
        points=("vacuum.decided", "vacuum.begun", "vacuum.batch", "vacuum.deleted"),
        late=("vacuum.batch", "vacuum.deleted"),
        is_done=is_without_garbage,
    ),
    "log care": Deed(
        make=table_with_old_log,
        action=lambda location: LogCare(requires=Head(5), retention_seconds=1, clean_before_version=5),
        commits=0,
        points=("log.checkpointed", "log.entry_deleted", "log.sidecar_deleted", "log.cleaned"),
        late=("log.cleaned",),
        is_done=is_clean,
    ),
}


def test_every_point_of_a_worker_has_its_deed() -> None:
    named = set(points_of("test_killed_at_every_point_each_run_is_done_once"))
    assert named == {point for deed in DEEDS.values() for point in deed.points}


@pytest.mark.parametrize("kind", mostly_long(DEEDS, ["properties"]))
def test_killed_at_every_point_each_run_is_done_once(kind: str, tmp_path: Path) -> None:
    hall = Hall(tmp_path)

    def killed(point: str) -> None:
        assert hall.run_worker(failpoint=point) == -signal.SIGKILL, (point, hall.log())

    check_each_run_is_done_once(DEEDS[kind], hall, killed, hall.run_worker)


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", DEEDS)
def test_ended_at_every_point_each_run_is_done_once(kind: str, tmp_path: Path) -> None:
    """As above, without processes to kill."""
    hall = Hall(tmp_path)

    def ended(point: str) -> None:
        killed_here(point, hall.loop().work)

    check_each_run_is_done_once(DEEDS[kind], hall, ended, lambda: hall.loop().work())


def check_each_run_is_done_once(
    deed: Deed, hall: Hall, killed_at: Callable[[str], None], work: Callable[[], int]
) -> None:
    tables = {point: deed.make(hall.folder / point) for point in deed.points}
    for rank, (point, location) in enumerate(tables.items()):
        # The newest goes first, so that it is this run which dies there and not one that died before.
        hall.enqueue(request_of(location, deed.action(location), run_id=point, rank=float(rank)))
        killed_at(point)
        hall.settle()
    assert work() == 0, hall.log()
    results = hall.results()
    for point, location in tables.items():
        wanted = Outcome.SKIPPED if point in deed.late else Outcome.SUCCEEDED
        assert results[point].outcome is wanted, (point, results[point], hall.log())
        assert len(hall.commits_of(location, point)) == deed.commits, point
        if deed.commits:
            assert results[point].committed_version == hall.commits_of(location, point)[-1], point
        assert deed.is_done(hall.folder / point), point


@pytest.mark.long
def test_a_result_that_was_told_is_not_told_again(tmp_path: Path) -> None:
    hall = Hall(tmp_path)
    location = delta_table(tmp_path / "t")
    hall.enqueue(request_of(location, SetProperties(requires=Head(0), properties=KEEP)))
    assert hall.run_worker(failpoint="run.finished") == -signal.SIGKILL
    assert hall.queue.unfinished() == ()
    assert hall.run_worker() == 0
    assert hall.commits_of(location, "run-1") == [1]


def is_taken(hall: Hall) -> bool:
    """Whether some worker has a run in hand."""
    return any(run.state is not RunState.QUEUED for run in hall.queue.unfinished())


@pytest.mark.long
@pytest.mark.heavy
def test_random_kills_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    """Workers die at random moments, again and again, until a crowd of runs is done."""
    seed = 20_261_121
    dice, hall = random.Random(seed), Hall(tmp_path, program=(dawdling_worker.__file__,))
    tables: dict[str, str] = {}
    for number in range(6):
        kind, deed = dice.choice([(kind, deed) for kind, deed in DEEDS.items() if deed.commits])
        run_id = f"{kind}-{number}"
        tables[run_id] = deed.make(tmp_path / run_id)
        hall.enqueue(request_of(tables[run_id], deed.action(tables[run_id]), run_id=run_id))
    kills = 0
    while len(hall.results()) < len(tables):
        with hall.worker(idle=timedelta(seconds=5)) as process:
            while process.poll() is None and not is_taken(hall):
                time.sleep(0.02)  # it starts: what does not work yet cannot be interrupted
            time.sleep(dice.uniform(0, 2 + kills / 4))  # longer and longer, so that it ends on any machine
            kills += process.poll() is None
        hall.settle()
        assert kills < 200, hall.log()
    assert {result.outcome for result in hall.results().values()} == {Outcome.SUCCEEDED}, f"seed {seed}"
    for run_id, location in tables.items():
        expected = DEEDS[run_id.partition("-")[0]].commits
        assert len(hall.commits_of(location, run_id)) == expected, f"{run_id}, seed {seed}, {kills} kills"
        rows = DeltaTable(location).to_pyarrow_table().num_rows
        assert rows == (60 if run_id.startswith("compaction") else 10)
    assert kills > 0
