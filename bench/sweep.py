"""What a sweep of 1,000 tables that did not move takes, by one thread and by several, near and far.

`.venv/bin/python -m bench.sweep [--quick] -o json`

The tables are real Delta tables on local disk. `near_N_ms` is a whole cycle of the daemon (all but planning) with N
threads; for `far_N_ms` each first look at a table is made to wait 20 ms more, as it would for an object store.
`first_*` is the first cycle of all: every log is read, every table judged.
"""

import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from bench.lake import home_of, write_lake
from bench.measure import Figures, Options, median_ms, options, report
from lakewarden.catalog.formats.port import ProbeResult, TableReader
from lakewarden.daemon.control.assembly import build_daemon
from lakewarden.daemon.control.cycle import Cycle
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.telemetry.log import configure

COUNT: Final = 1_000
THREADS: Final = (1, 2, 4, 8, 16)
FAR_SECONDS: Final = 0.02
SETTLED: Final = 11
"""Cycles after which every table has had its daily checks."""


@dataclass(frozen=True)
class Far:
    """A reader whose first look at a table waits for an answer from far away."""

    reader: TableReader

    def probe(self, location: str, **seen: Any) -> ProbeResult:
        """As the reader itself, later."""
        time.sleep(FAR_SECONDS)
        return self.reader.probe(location, **seen)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.reader, name)


def main() -> None:
    """Print the figures."""
    configure(level="error", format="text")
    report(figures(options(__doc__ or "")))


def figures(chosen: Options) -> Figures:
    """First by threads near, then far."""
    found: Figures = {"tables": COUNT}
    with tempfile.TemporaryDirectory(prefix="lakewarden-bench-") as folder:
        write_lake(Path(folder) / "lake", COUNT)
        near = _cycle(Path(folder), "near", lambda reader: reader)
        found["first_1_ms"] = _ms(near(1))
        median_ms(near(1), SETTLED)
        found |= {f"near_{one}_ms": median_ms(near(one), chosen.repeat(15)) for one in THREADS}
        wide = _cycle(Path(folder), "wide", lambda reader: reader)
        found["first_8_ms"] = _ms(wide(8))
        far: Callable[[int], Callable[[int], None]] = _cycle(Path(folder), "far", Far)
        found["first_far_8_ms"] = _ms(far(8))
        median_ms(far(16), SETTLED)
        found |= {f"far_{one}_ms": median_ms(far(one), 3) for one in THREADS}
    return found


def _cycle(
    folder: Path, name: str, reading: Callable[[TableReader], TableReader]
) -> Callable[[int], Callable[[int], None]]:
    """Cycles of a daemon of its own, by so many threads."""
    services = home_of(folder / name, folder / "lake", COUNT)
    services.readers = tuple(map(reading, services.readers))
    return cycles_of(services)


def cycles_of(services: Services) -> Callable[[int], Callable[[int], None]]:
    """Cycles of an installation's daemon, by so many threads, that look at every table."""
    service = build_daemon(services, pages=False)
    fence = services.store.raise_fence("bench", at_least=1)
    cycle = service.parts.cycle

    def by(threads: int) -> Callable[[int], None]:
        mine = Cycle(replace(cycle.parts, threads=threads, require=lambda _: None))

        def once(number: int) -> None:
            done = mine.run(fence, may_plan=False)
            assert done.looked >= COUNT and not done.trouble and not done.skipped, done

        return once

    return by


def _ms(once: Callable[[int], None]) -> float:
    return median_ms(once, 1)


if __name__ == "__main__":
    main()
