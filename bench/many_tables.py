"""What commands and the planner cost among 10,000 tables: whole processes, and one plan in memory.

`.venv/bin/python -m bench.many_tables [--quick] -o json`

The system tables hold `tables` made-up tables (bench/fleet.py), each with health, a finished run and every third with a
policy of its own; no table exists on disk. `why_seconds` is `lakewarden why TABLE` as a process,
`why_small_seconds` the same among 100 tables, `plan_seconds` is `lakewarden jobs plan`, `help_seconds` the
floor of any command. `refresh_*` is what a daemon does after somebody else has committed to
`lakewarden.tables`; `idle_plan_ms` is one cycle's planning where nothing moved,
`plan_all_ms` the same by a daemon that has just begun.
The rest is of a daemon as a process, with so many real tables on local disk (bench/lake.py).
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import psutil

from bench.fleet import fleet
from bench.measure import Figures, Options, options, report
from bench.processes import daemon, wall_seconds
from lakewarden.catalog.model.rows import HealthRow, Mode, RunRow, TableRow
from lakewarden.catalog.system.port import HEALTH, RUNS, TABLES, Rows
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.daemon.installation.services import Services, open_services
from lakewarden.daemon.telemetry.log import configure
from lakewarden.daemon.usecases.init import initialise
from lakewarden.jobs.planning.planner import plan
from lakewarden.jobs.planning.resting import Resting
from support.builders.system_samples import sample

MANY: Final = 10_000
FEW: Final = 100
ONE: Final = "db8.table_8"


def main() -> None:
    """Print the figures."""
    configure(level="warning", format="text")
    report(figures(options(__doc__ or "")))


def figures(chosen: Options) -> Figures:
    """All of them, in two homes."""
    with tempfile.TemporaryDirectory(prefix="lakewarden-bench-") as folder:
        many, few = Path(folder) / "many", Path(folder) / "few"
        services = _home(many, MANY)
        _home(few, FEW)
        times = chosen.repeat(11)
        return {
            "tables": MANY,
            "help_seconds": wall_seconds(["--help"], few, times),
            "why_small_seconds": wall_seconds(["why", ONE], few, times),
            "why_seconds": wall_seconds(["why", ONE], many, times),
            "plan_seconds": wall_seconds(["jobs", "plan", "-o", "json"], many, times),
            **_planning(services, times),
            **daemon(Path(folder), chosen, tables=MANY),
        }


def _home(home: Path, size: int) -> Services:
    services = open_services(home=home)
    home.mkdir(parents=True)
    initialise(services, services.user)
    now = services.clock.now()
    rows = [
        replace(one, policy=replace(one.policy, mode=Mode.MANAGE), registered_at=now) for one in fleet(size)
    ]
    healths: list[HealthRow] = [
        replace(
            sample(HEALTH, number),
            table_id=one.table_id,
            name=one.name,
            observed_at=now,
            findings=(),
            unsupported=(),
        )
        for number, one in enumerate(rows)
    ]
    runs: list[RunRow] = [
        replace(sample(RUNS, number), table_id=one.table_id, name=one.name, finished_at=now)
        for number, one in enumerate(rows)
    ]
    services.store.edit(TABLES, lambda _: rows, because="bench")
    services.store.edit(HEALTH, lambda _: healths, because="bench")
    services.store.append(RUNS, runs, because="bench")
    return services


def _planning(services: Services, times: int) -> Figures:
    process, before = psutil.Process(), psutil.Process().memory_info().rss
    cache = FleetCache(services.store, services.clock)
    first = _ms(cache.refresh)
    row, moved = fleet(1)[0], []
    for number in range(times):
        changed = replace(row, updated_by=f"bench {number}")
        services.store.edit(TABLES, partial(_these, [changed]), because="bench")
        moved.append(_ms(cache.refresh))

    def once(resting: Resting | None) -> None:
        cache.refresh()
        world = cache.world((), services.budget, has_metastore=False)
        plan(world, services.clock.now(), resting=resting)

    rested = Resting()
    once(rested)
    return {
        "refresh_first_ms": first,
        "refresh_moved_ms": statistics.median(moved),
        "plan_all_ms": statistics.median(_ms(partial(once, None)) for _ in range(times)),
        "idle_plan_ms": statistics.median(_ms(partial(once, rested)) for _ in range(times)),
        "memory_mb": (process.memory_info().rss - before) / 1e6,
    }


def _these(rows: Sequence[TableRow], held: Rows[TableRow]) -> Sequence[TableRow]:
    return rows


def _ms(do: Callable[[], object]) -> float:
    begin = time.perf_counter()
    do()
    return 1000 * (time.perf_counter() - begin)


if __name__ == "__main__":
    main()
