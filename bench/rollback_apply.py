"""Executing a rollback: depth x width plain tables on local disk, and delta-rs's bare restore of the same tables.

Used by `bench.rollback`. Timed is everything from the stored plan to the finished journal: verification of every table,
one journal commit per wave, one restore per table. Tables are made by delta-rs, eight commits of one file each.
"""

import statistics
import sys
import tempfile
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Final

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.model.rows import RollbackRow, RollbackState
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import TABLES
from lakewarden.catalog.system.store import DeltaSystemStore
from lakewarden.jobs.actions.rollback import RollBack
from lakewarden.jobs.rollback.execute.saga import Saga
from lakewarden.jobs.rollback.execute.table_steps import StepExecutor
from lakewarden.jobs.rollback.journal.journal import Journal
from lakewarden.jobs.rollback.journal.step_rows import head_row, next_rows
from lakewarden.jobs.rollback.journal.steps import TableStep
from lakewarden.jobs.rollback.journal.stored_plan import StoredPlan, encode_plan
from lakewarden.jobs.rollback.plan.model import RollbackPlan
from lakewarden.jobs.rollback.plan.request import RollbackRequest
from lakewarden.jobs.runs.guard import RunGuard
from lakewarden.jobs.runs.standings import StoredStandings
from support.builders.system_samples import sample
from support.fakes.engine import FakeEngine
from support.fakes.tools import OneFormat

__all__ = ["SIZES", "apply_figures"]

SIZES: Final = ((5, 20), (10, 100))
COMMITS: Final = 8
TARGET: Final = 4


def apply_figures(depth: int, width: int) -> dict[str, float]:
    """`apply_ms_per_table`, `apply_bare_ms_per_table` (the same without the guard, on other tables) and
    `bare_restore_ms` (delta-rs alone, median), all in milliseconds, for depth x width tables."""
    with tempfile.TemporaryDirectory(prefix="lakewarden-bench-") as folder:
        places, others = (
            [
                (wave, Path(folder) / lake / f"t{wave:02}_{number:03}")
                for wave in range(depth)
                for number in range(width)
            ]
            for lake in ("lake", "other")
        )
        for _, place in (*places, *others):
            _write(place)
        unguarded = _rolled_back(Path(folder) / "unguarded", others, guarded=False)
        seconds = _rolled_back(Path(folder) / "guarded", places, guarded=True)
        # The bare restore comes second, back to where the table was: as many files change hands.
        bare = statistics.median(_bare_restore(place) for _, place in places)
    figures = {
        "apply_ms_per_table": 1000 * seconds / len(places),
        "apply_bare_ms_per_table": 1000 * unguarded / len(places),
        "bare_restore_ms": 1000 * bare,
    }
    sys.stderr.write(
        f"{depth} x {width} tables: apply {figures['apply_ms_per_table']:.1f} ms per table, "
        f"{figures['apply_bare_ms_per_table']:.1f} without the guard, "
        f"bare restore {figures['bare_restore_ms']:.1f} ms\n"
    )
    return figures


def _write(place: Path) -> None:
    for number in range(COMMITS):
        rows = pa.table({"id": pa.array(range(number * 10, number * 10 + 10), pa.int64())})
        write_deltalake(str(place), rows, mode="append")


def _rolled_back(folder: Path, places: list[tuple[int, Path]], *, guarded: bool) -> float:
    clock, options = SystemClock(), StorageOptions()
    store = DeltaSystemStore(canonical(str(folder / "system")), options, actor="bench")
    store.create(system_rows(store, now=clock.now(), actor="bench"))
    journal = Journal(store=store, clock=clock)
    steps = [
        TableStep(
            table_id=place.name,
            name=f"db.{place.name}",
            location=canonical(str(place)),
            from_version=COMMITS - 1,
            to_version=TARGET,
            wave=wave,
        )
        for wave, place in places
    ]
    rows = [
        replace(
            sample(TABLES, number),
            table_id=step.table_id,
            name=step.name,
            location=step.location,
            paused=None,
        )
        for number, step in enumerate(steps, start=10)
    ]
    store.edit(TABLES, lambda _: rows, because="bench")
    guard = RunGuard(
        action=RollBack(rollback_id="bench"),
        standings=StoredStandings(store),
        claim=lambda: None,
        clock=clock,
        clocks=lambda: None,
    )

    def permit(row: RollbackRow, step: TableStep) -> None:
        if guarded:
            guard.ask(step.table_id, step.name, step.location)

    hands = StepExecutor(
        tools=OneFormat(DeltaReader(), FakeEngine(clock)), storage=lambda _: options, permit=permit
    )
    saga = Saga(journal=journal, executor=hands, undo_for=timedelta(days=7))
    begin = time.perf_counter()
    journal.put(_begun(steps, clock), because="bench")
    done = saga.go_on("bench")
    seconds = time.perf_counter() - begin
    assert done.head.state is RollbackState.DONE, done.head.message
    return seconds


def _begun(steps: list[TableStep], clock: SystemClock) -> list[RollbackRow]:
    nothing = RollbackPlan(request=RollbackRequest(seeds=()), tables=(), hash="bench")
    head = head_row(
        rollback_id="bench",
        plan_hash="bench",
        first=steps[0],
        payload=encode_plan(StoredPlan(plan=nothing)),
        actor="bench",
        at=clock.now(),
    )
    planned = Rollback(head=head)
    begun = planned.with_rows(next_rows(planned, steps)).with_head(RollbackState.INTENT)
    return [begun.head, *begun.steps]


def _bare_restore(place: Path) -> float:
    begin = time.perf_counter()
    table = DeltaTable(str(place))
    table.restore(COMMITS - 1, commit_properties=CommitProperties(max_commit_retries=0))
    return time.perf_counter() - begin


if __name__ == "__main__":
    for size in SIZES:
        apply_figures(*size)
