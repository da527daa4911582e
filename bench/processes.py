"""Whole processes: `tables list -o json` of 100,000 rows, `--help`, and a daemon that looks after many tables.

Part of bench.system_table, whose other parts take ten minutes;
`python -m bench.system_table --processes` runs this alone.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

from bench.lake import home_of, write_lake
from bench.measure import Figures, Options
from lakewarden.catalog.system.port import HEALTH

__all__ = ["LAKEWARDEN", "commands", "daemon", "environment", "wall_seconds"]

LAKEWARDEN = str(Path(sys.executable).with_name("lakewarden"))
SWEEP = 30.0
"""Seconds between sweeps that `daemon_idle_cpu_percent` speaks of."""
FAST_SWEEP = 0.5
"""Seconds between sweeps while measuring, so that an hour's worth of cycles fits into a minute."""


def commands(home: Path, chosen: Options) -> Figures:
    """Seconds of two commands as processes, wall clock; `home` holds 100,000 tables."""
    return {
        "list_100k_seconds": wall_seconds(["tables", "list", "-o", "json"], home, chosen.repeat(5)),
        "help_seconds": wall_seconds(["--help"], home, chosen.repeat(15)),
    }


def daemon(folder: Path, chosen: Options, *, tables: int = 1_000) -> Figures:
    """Memory and idle CPU of a daemon with so many real tables, after an hour's worth of cycles (a quarter if quick).

    `first_sweep_seconds`: until it has read and judged every one of them."""
    cycles, home, lake = 30 if chosen.quick else 120, folder / "daemon", folder / "lake"
    write_lake(lake, tables)
    services = home_of(home, lake, tables)
    log = home / "daemon.log"
    settings = {
        "sweep.interval": f"{FAST_SWEEP} s",
        "http.port": "0",
        "sweep.checks_per_cycle": str(tables + 100),
    }
    arguments = ["daemon", *(f"--set={key}={value}" for key, value in settings.items())]
    with log.open("w") as output:
        began = time.monotonic()
        process = psutil.Popen([LAKEWARDEN, *arguments], env=environment(home), stdout=output, stderr=output)
        try:
            _cycles(log, 1)
            first = time.monotonic() - began
            _cycles(log, 5)
            early, spent = process.memory_info().rss, -sum(process.cpu_times()[:2])
            done = _cycles(log, 0)
            _cycles(log, done + cycles)
            spent = (spent + sum(process.cpu_times()[:2])) / cycles
            late = process.memory_info().rss
        finally:
            process.terminate()
            process.wait(60)
    seen = services.store.rows(HEALTH).all()
    assert len(seen) >= tables
    assert not any(one.findings for one in seen)
    return {
        "first_sweep_seconds": first,
        "daemon_rss_mb": late / 1e6,
        "daemon_rss_growth_mb": (late - early) / 1e6,
        "daemon_cycle_cpu_ms": spent * 1000,
        "daemon_idle_cpu_percent": 100 * spent / SWEEP,
    }


def _cycles(log: Path, wanted: int) -> int:
    """Wait until the daemon's log tells of so many cycles; returns how many it tells of."""
    deadline = time.monotonic() + 600
    while (seen := log.read_text().count("Looked at")) < wanted:
        assert time.monotonic() < deadline, log.read_text()[-2000:]
        time.sleep(0.2)
    return seen


def wall_seconds(arguments: list[str], home: Path, times: int) -> float:
    """The median time that a command takes as a process."""
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        piped = subprocess.run(
            [LAKEWARDEN, *arguments], env=environment(home), capture_output=True, check=True
        )
        seconds.append(time.perf_counter() - begin)
        assert piped.stdout
    return statistics.median(seconds)


def environment(home: Path) -> Mapping[str, str]:
    """What a `lakewarden` process is started with: the installation in `home`."""
    return {**os.environ, "LAKEWARDEN_HOME": str(home)}
