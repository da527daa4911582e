"""What it takes to bring many existing tables under management, and to look at all of them for the first time.

`.venv/bin/python -m bench.onboard [--quick] -o json`

The tables are real small Delta tables on local disk (bench/lake.py), named in a CSV with owner and policy.
`register_10000_seconds` is `lakewarden tables register --from-file` as a process: every log is read, every table
judged, files looked into. `first_sweep_10000_seconds` is that and `lakewarden daemon --once` after it, which reads
all logs again, for schema and lineage. `per_table_ratio_10000_to_1000` compares what a table costs among 10,000 and
among 1,000, less what a command costs that does nothing. `resumed_seconds` is the same command once more. In a third
home it is killed (-9) half-way, when `killed_at_tables` were on record, and given again: `after_kill_seconds`.
`rss_mb` is the most memory that any of these processes had. Ends with an error unless in every home each table is
managed once, has health, and one entry in the audit. `--quick` takes a tenth of the tables, and ten times the
seconds.
"""

import csv
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import psutil

from bench.lake import write_lake
from bench.measure import Figures, Options, options, report
from bench.processes import LAKEWARDEN, environment, wall_seconds
from lakewarden.catalog.system.port import AUDIT, HEALTH, SCHEMAS, TABLES
from lakewarden.daemon.installation.services import open_services

MANY: Final = 10_000
FEW: Final = 1_000


def main() -> None:
    """Print the figures."""
    report(figures(options(__doc__ or "")))


def figures(chosen: Options) -> Figures:
    """All of them, in three homes."""
    many, few = (MANY // 10, FEW // 10) if chosen.quick else (MANY, FEW)
    with tempfile.TemporaryDirectory(prefix="lakewarden-bench-") as folder:
        lake, memory = Path(folder) / "lake", Memory()
        write_lake(lake, many)
        registered = {count: _registered(Path(folder), lake, count, memory) for count in (few, many)}
        home = Path(folder) / f"home-{many}"
        floor = wall_seconds(["tables", "list", "-o", "json"], Path(folder) / f"home-{few}", 3)
        again = _seconds(["tables", "register", "--from-file", f"{home}.csv"], home, memory)
        sweep = _seconds(["daemon", "--once", "--set=http.port=0"], home, memory)
        _check(home, many)
        assert _observed(home) == many, "the sweep has looked at each"
        killed_at, after_kill = _killed(Path(folder), lake, many, registered[many] / 2, memory)
        each = {count: (seconds - floor) / count for count, seconds in registered.items()}
        return {
            "tables": many,
            f"register_{MANY}_seconds": registered[many] * MANY / many,
            f"first_sweep_{MANY}_seconds": (registered[many] + sweep) * MANY / many,
            "per_table_ratio_10000_to_1000": each[many] / each[few],
            f"register_{FEW}_seconds": registered[few] * FEW / few,
            "resumed_seconds": again,
            "killed_at_tables": killed_at,
            "after_kill_seconds": after_kill,
            "rss_mb": memory.most_mb,
        }


class Memory:
    """The most memory that a process was seen to have."""

    def __init__(self) -> None:
        self.most_mb = 0.0

    def look(self, process: psutil.Process) -> None:
        """Look at it now, if it still runs."""
        try:
            self.most_mb = max(self.most_mb, process.memory_info().rss / 1e6)
        except psutil.Error:
            return


def _registered(folder: Path, lake: Path, count: int, memory: Memory) -> float:
    home = folder / f"home-{count}"
    return _seconds(_register(home, lake, count, memory), home, memory)


def _killed(folder: Path, lake: Path, count: int, after: float, memory: Memory) -> tuple[int, float]:
    """How many tables were on record when it was killed after so many seconds, and how long the same command took
    then."""
    home = folder / "home-killed"
    command = _register(home, lake, count, memory)
    process = psutil.Popen([LAKEWARDEN, *command], env=environment(home), stdout=subprocess.DEVNULL)
    time.sleep(after)
    process.kill()
    assert process.wait() == -signal.SIGKILL, "it had ended before"
    recorded = len(_names(home))
    assert 0 < recorded < count, "that was not in the middle"
    seconds = _seconds(command, home, memory)
    _check(home, count)
    return recorded, seconds


def _register(home: Path, lake: Path, count: int, memory: Memory) -> list[str]:
    """What registers so many tables in a new home."""
    _seconds(["init"], home, memory)
    with Path(f"{home}.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["path", "name", "vacuum.retention"])
        rows.writerows([lake / f"t{number}", f"db.t{number}", "14 days"] for number in range(count))
    return ["tables", "register", "--from-file", f"{home}.csv"]


def _seconds(arguments: Sequence[str], home: Path, memory: Memory) -> float:
    """The wall time of a command as a process."""
    began = time.monotonic()
    process = psutil.Popen([LAKEWARDEN, *arguments], env=environment(home), stdout=subprocess.DEVNULL)
    while process.poll() is None:
        memory.look(process)
        time.sleep(0.02)
    assert process.returncode == 0, arguments
    return time.monotonic() - began


def _check(home: Path, count: int) -> None:
    """Every table is there once, with health, and with one entry in the audit."""
    store = open_services(home=home).store
    assert sorted(_names(home)) == sorted(f"db.t{number}" for number in range(count))
    healths = store.rows(HEALTH).all()
    assert len(healths) >= count and not any(one.findings for one in healths)
    assert len({one.table_id for one in healths}) == len(healths)
    entries = Counter(row.on for row in store.rows(AUDIT).all() if row.what == "register")
    assert len(entries) == count and set(entries.values()) == {1}


def _names(home: Path) -> list[str]:
    """The names of the tables of the list that are on record."""
    names = open_services(home=home).store.rows(TABLES).arrow(["name"]).column(0).to_pylist()
    return [name for name in names if name.startswith("db.")]


def _observed(home: Path) -> int:
    """How many schemas a sweep has recorded."""
    return len(open_services(home=home).store.rows(SCHEMAS).all())


if __name__ == "__main__":
    main()
