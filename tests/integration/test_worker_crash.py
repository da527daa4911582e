"""Workers killed with -9 at every step of a run: every run converges, none is done twice, none is lost."""

import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakewarden.catalog.model import Outcome
from lakewarden.catalog.storage import canonical
from lakewarden.jobs.actions import AnyAction, Compact, Convert, Purge, SetProperties
from support.runs import delta_table, parquet_file, request_of
from support.workers import Hall

pytestmark = pytest.mark.crash

KEEP = (("delta.deletedFileRetentionDuration", "interval 30 days"),)
RUN_POINTS = ("run.claimed", "run.started", "run.checked", "run.executing", "run.executed", "run.finished")


@dataclass(frozen=True, kw_only=True)
class Deed:
    """A kind of run: the table it needs, its action, the commits that carry its id when it is done once, and the
    points at which it may die."""

    make: Callable[[Path], str]
    action: Callable[[str], AnyAction]
    commits: int
    points: tuple[str, ...]


def parquet_table(folder: Path) -> str:
    parquet_file(folder / "a.parquet")
    return canonical(str(folder))


DEEDS = {
    "conversion": Deed(
        make=parquet_table,
        action=lambda location: Convert(name=None, location=location, properties=KEEP),
        commits=2,
        points=("convert.checked", "convert.converted", "convert.properties", "run.executed"),
    ),
    "properties": Deed(
        make=delta_table,
        action=lambda location: SetProperties(requires=0, properties=KEEP),
        commits=1,
        points=(*RUN_POINTS, "properties.decided", "properties.set"),
    ),
    "compaction": Deed(
        make=lambda folder: delta_table(folder, commits=6),
        action=lambda location: Compact(
            requires=5, target_bytes=1_000_000, min_small_files=2, quiet_seconds=0
        ),
        commits=1,
        points=("compact.decided", "compact.compacted", "run.executed"),
    ),
    "purge": Deed(
        make=delta_table,
        action=lambda location: Purge(requires=0, files=1, bytes=1),
        commits=0,
        points=("purge.marked", "purge.data_deleted", "purge.deleted", "run.executed"),
    ),
}


@pytest.mark.parametrize("deed", DEEDS.values(), ids=DEEDS)
def test_killed_at_every_point_each_run_is_done_once(deed: Deed, tmp_path: Path) -> None:
    hall = Hall(tmp_path)
    tables = {point: deed.make(tmp_path / point) for point in deed.points}
    for point, location in tables.items():
        hall.enqueue(request_of(location, deed.action(location), run_id=point))
        assert hall.run_worker(failpoint=point) == -signal.SIGKILL, (point, hall.log())
        hall.settle()
    assert hall.run_worker() == 0, hall.log()
    results = hall.results()
    assert {point: result.outcome for point, result in results.items()} == dict.fromkeys(
        deed.points, Outcome.SUCCEEDED
    ), hall.log()
    for point, location in tables.items():
        assert len(hall.commits_of(location, point)) == deed.commits, point
        if deed.commits:
            assert results[point].committed_version == hall.commits_of(location, point)[-1], point
        else:
            assert not (tmp_path / point).exists(), point


def test_a_result_that_was_told_is_not_told_again(tmp_path: Path) -> None:
    hall = Hall(tmp_path)
    location = delta_table(tmp_path / "t")
    hall.enqueue(request_of(location, SetProperties(requires=0, properties=KEEP)))
    assert hall.run_worker(failpoint="run.finished") == -signal.SIGKILL
    assert hall.queue.unfinished() == ()
    assert hall.run_worker() == 0
    assert hall.commits_of(location, "run-1") == [1]


@pytest.mark.heavy
def test_random_kills_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    """Workers die at random moments, again and again, until a crowd of runs is done."""
    seed = 20_261_121
    dice, hall = random.Random(seed), Hall(tmp_path)
    tables: dict[str, str] = {}
    for number in range(24):
        kind, deed = dice.choice([(kind, deed) for kind, deed in DEEDS.items() if kind != "purge"])
        run_id = f"{kind}-{number}"
        tables[run_id] = deed.make(tmp_path / run_id)
        hall.enqueue(request_of(tables[run_id], deed.action(tables[run_id]), run_id=run_id))
    kills = 0
    while len(hall.results()) < len(tables):
        with hall.worker(idle=timedelta(seconds=5)) as process:
            time.sleep(dice.uniform(1.0, 3.0))
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
