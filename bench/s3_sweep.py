"""What a sweep of 1,000 tables on S3 that did not move takes, each answer 20 ms late, and how many requests it sends.

`.venv/bin/python -m bench.s3_sweep [--quick] -o json`

A real server (versitygw) behind a proxy that counts and delays; the tables are on it, the system tables on local
disk. A sweep is a whole cycle of the daemon (all but planning) by 8 threads, `s3_near_sweep_seconds` the same without
the delay.
"""

import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Final

import pyarrow as pa
from deltalake import write_deltalake

from bench.lake import home_of, multiply
from bench.measure import Figures, Options, options, report
from lakewarden.catalog.system.port import Fence
from lakewarden.daemon.control.assembly import build_daemon
from lakewarden.daemon.control.cycle import Cycle
from lakewarden.daemon.telemetry.log import configure
from support.servers.faults import running_proxy
from support.servers.s3 import options_of, running_s3
from support.servers.s3_home import make_home, settings_of

COUNT: Final = 1_000
THREADS: Final = 8
DELAY_SECONDS: Final = 0.02
SETTLED: Final = 12
"""Cycles after which every table has been read and has had its daily checks."""


def main() -> None:
    """Print the figures."""
    configure(level="error", format="text")
    report(figures(options(__doc__ or "")))


def figures(chosen: Options) -> Figures:
    """The tables are settled without delay; then idle sweeps are measured."""
    with (
        tempfile.TemporaryDirectory(prefix="lakewarden-bench-") as scratch,
        running_s3(Path(scratch) / "server") as s3,
        running_proxy(s3.endpoint) as proxy,
    ):
        rows = pa.table({"id": pa.array(range(10), pa.int64())})
        write_deltalake(s3.at("lake/t0"), rows, storage_options=dict(options_of(s3.endpoint)))
        multiply(s3.folder / "lake", COUNT)
        home = make_home(Path(scratch) / "home", proxy.endpoint, prefix="bench")
        os.environ |= {**settings_of(), "LAKEWARDEN_SYSTEM_LOCATION": str(home / "system")}
        cycle = _cycle(home, s3.at("lake"))
        for _ in range(SETTLED):
            _swept(cycle)
        near = median(_swept(cycle) for _ in range(chosen.repeat(5)))
        proxy.counted()
        with proxy.slow(DELAY_SECONDS):
            times = chosen.repeat(5)
            far = median(_swept(cycle) for _ in range(times))
        calls = sum(proxy.counted().values()) / times / COUNT
    return {
        "tables": COUNT,
        "s3_sweep_seconds": far,
        "s3_near_sweep_seconds": near,
        "s3_calls_per_table": calls,
    }


def _cycle(home: Path, lake: str) -> tuple[Cycle, Fence]:
    services = home_of(home, lake, COUNT)
    service = build_daemon(services, pages=False)
    fence = services.store.raise_fence("bench", at_least=1)
    parts = replace(service.parts.cycle.parts, threads=THREADS, require=lambda _: None)
    return Cycle(parts), fence


def _swept(of: tuple[Cycle, Fence]) -> float:
    cycle, fence = of
    began = time.perf_counter()
    done = cycle.run(fence, may_plan=False)
    assert done.looked >= COUNT and not done.trouble and not done.skipped, done
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
