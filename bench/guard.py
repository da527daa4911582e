"""What the guard costs: whole vacuums of a worker with it and without, by turns, beside a fleet of other tables.

`.venv/bin/python -m bench.guard [--quick] -o json`

Each vacuum deletes files that no log names, from a table of ten live files; no Spark takes part, whose dry
run alone costs far more than all of this. `ask_ms` is one asking while nothing moves, `ask_moved_ms` one
after somebody has committed to `lakewarden.tables`. `vacuum_few_*` delete 20 files, `vacuum_many_*` 2,000 in
batches of 500; `*_guard_ms` is the median of what a guarded run takes longer than its neighbour without a
guard, `*_ratio` that of the ratios.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from deltalake import write_deltalake

from bench.measure import Figures, Options, median_ms, options, report
from lakewarden.catalog.formats.files_elsewhere import READS_ELSEWHERE
from lakewarden.catalog.model.rows import Outcome
from lakewarden.catalog.registry.governance import set_policy
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.telemetry.log import configure
from lakewarden.daemon.usecases.init import initialise
from lakewarden.jobs.runs.guard import RunGuard
from lakewarden.jobs.runs.host_clock import HostClock
from lakewarden.jobs.runs.standings import StoredStandings
from support.builders.callers import actor
from support.builders.estate import AHEAD, Estate, numbers
from support.builders.system_samples import sample

FLEET: Final = 1_000
FEW: Final = 20
MANY: Final = 2_000
LIVE: Final = 10
ROUNDS: Final = 25
ME: Final = actor("bench", admin=True)


def main() -> None:
    """Print the figures."""
    configure(level="warning", format="text")
    report(figures(options(__doc__ or "")))


def figures(chosen: Options) -> Figures:
    """All of them, in one home."""
    with tempfile.TemporaryDirectory(prefix="lakewarden-bench-") as folder:
        estate = _estate(Path(folder))
        kept = StoredStandings(estate.services.store)  # a worker keeps it from run to run
        found: Figures = {"tables": FLEET, **_asking(estate, chosen)}
        for name, count in (("few", FEW), ("many", MANY)):
            pairs = [
                _pair(estate, Path(folder) / "t", count, kept, first=bool(number % 2))
                for number in range(chosen.repeat(ROUNDS))
            ]
            found[f"vacuum_{name}_ms"] = 1000 * statistics.median(bare for _, bare in pairs)
            found[f"vacuum_{name}_guard_ms"] = 1000 * statistics.median(with_ - bare for with_, bare in pairs)
            found[f"vacuum_{name}_ratio"] = statistics.median(with_ / bare for with_, bare in pairs)
        return found


def _estate(folder: Path) -> Estate:
    estate = Estate(folder / "home", said=None, ahead=AHEAD)
    services = estate.services
    initialise(services, services.user)
    _put(estate, range(FLEET))
    for number in range(LIVE):
        write_deltalake(str(folder / "t"), numbers(number), mode="append")
    register(services.registry, str(folder / "t"), actor=ME, name="db.t")
    set_policy(services.registry, "db.t", {"mode": "manage"}, actor=ME)
    return estate


def _put(estate: Estate, those: Iterable[int]) -> None:
    """A commit to `lakewarden.tables`: rows of tables that do not exist."""
    rows = [replace(sample(TABLES, number), properties={READS_ELSEWHERE: ""}) for number in those]
    estate.services.store.edit(TABLES, lambda _: rows, because="bench")


def _asking(estate: Estate, chosen: Options) -> Figures:
    services, row = estate.services, estate.row("db.t")
    guard = RunGuard(
        action=estate.vacuum("db.t"),
        standings=StoredStandings(services.store),
        claim=lambda: None,
        clock=services.clock,
        clocks=HostClock(own=services.clock, database=services.leases.now, host="this host").require_agreeing,
    )

    def ask(_: int) -> None:
        guard.ask(row.table_id, row.name, row.location or "")

    ask(0)
    moved = []
    for number in range(chosen.repeat(ROUNDS)):
        _put(estate, [number])
        moved.append(median_ms(ask, 1))
    return {"ask_ms": median_ms(ask, chosen.repeat(ROUNDS)), "ask_moved_ms": statistics.median(moved)}


def _pair(
    estate: Estate, table: Path, count: int, kept: StoredStandings, *, first: bool
) -> tuple[float, float]:
    """Seconds of a vacuum with the guard, which is the first of both or not, and of one without."""
    seconds = {
        guarded: _vacuumed(estate, table, count, kept if guarded else None) for guarded in (first, not first)
    }
    sys.stderr.write(f"{count} files: {1000 * seconds[True]:.0f} ms, {1000 * seconds[False]:.0f} without\n")
    return seconds[True], seconds[False]


def _vacuumed(estate: Estate, table: Path, count: int, standings: StoredStandings | None) -> float:
    content = next(table.glob("*.parquet")).read_bytes()
    for number in range(count):
        file = table / f"left-over-{number}.parquet"
        file.write_bytes(content)
        os.utime(file, (0, 0))
    estate.queue("db.t", estate.vacuum("db.t", full=True))
    begin = time.perf_counter()
    done = estate.work(standings=standings)
    seconds = time.perf_counter() - begin
    assert done is not None and done.result.outcome is Outcome.SUCCEEDED, done
    assert not list(table.glob("left-over-*")), canonical(str(table))
    return seconds


if __name__ == "__main__":
    main()
