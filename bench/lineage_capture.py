"""What recording lineage costs a governed append, beside the same append by plain Spark in the same session.

`bench.rollback` runs it as a process of its own (`main`). Both appends alternate, so that a machine that gets
slower gets slower for both, and differences are taken between neighbours. The statement is
`INSERT INTO t SELECT ... FROM a JOIN b`; `spark.sql` runs it plain, `lakewarden.attach(spark).sql` governed:
parsed, its two inputs pinned and looked up in the system tables, the record written, the executed plan compared.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql import SparkSession

import lakewarden
from bench.measure import Figures, Options, options, report
from lakewarden.catalog.registry.register import register
from lakewarden.daemon.installation.services import Services, open_services
from lakewarden.daemon.usecases.init import initialise
from lakewarden.jobs.engines.spark.session import start_session
from lakewarden.jobs.runs.spark_settings import SparkSettings
from support.builders.callers import actor

__all__ = ["append_overheads", "main"]

TINY_ROWS: Final = 100
LARGE_ROWS: Final = 5_000_000
WARM_UP: Final = 15
"""So many pairs do not count: until then the JVM still compiles what only governed appends ask of it."""
WARM_UP_LARGE: Final = 2
"""They come later, in the same JVM."""


def main() -> None:
    """Measure and print."""
    report(append_overheads(options(__doc__ or "")))


def append_overheads(chosen: Options) -> Figures:
    """`append_overhead_ms`: median milliseconds that a tiny append takes longer, with the quartiles beside it;
    `append_overhead_ratio`: the share (0.05 is 5 %) that a large one does.
    `append_plain_ms` and `append_large_plain_ms` are the plain medians."""
    with tempfile.TemporaryDirectory(prefix="lakewarden-bench-") as folder:
        services = open_services(home=Path(folder) / "home", flags={})
        initialise(services, services.user)
        spark = start_session(SparkSettings(conf=(("spark.sql.warehouse.dir", Path(folder).as_uri()),)))
        try:
            tiny = _pairs(spark, services, Path(folder), "tiny", TINY_ROWS, chosen.repeat(240))
            large = _pairs(spark, services, Path(folder), "large", LARGE_ROWS, chosen.repeat(10))
        finally:
            spark.stop()
    plain_ms, plain_large_ms = (statistics.median(plain for plain, _ in pairs) for pairs in (tiny, large))
    lower, median, upper = statistics.quantiles((governed - plain for plain, governed in tiny), n=4)
    return {
        "append_overhead_ms": median,
        "append_overhead_lower_ms": lower,
        "append_overhead_upper_ms": upper,
        "append_overhead_ratio": statistics.median(governed / plain - 1 for plain, governed in large),
        "append_plain_ms": plain_ms,
        "append_large_plain_ms": plain_large_ms,
    }


def _pairs(
    spark: SparkSession, services: Services, folder: Path, size: str, rows: int, times: int
) -> list[tuple[float, float]]:
    """Milliseconds of neighbouring appends, (plain, governed), each first every other time."""
    statement = _tables(spark, services, folder, size, rows)
    found = []
    with lakewarden.attach(spark, home=services.settings.home) as lw:
        plain: Callable[[str], object] = spark.sql
        warm_up = WARM_UP if rows == TINY_ROWS else WARM_UP_LARGE
        for number in range(warm_up + times):
            turns = (plain, lw.sql) if number % 2 else (lw.sql, plain)
            took = {turn: _milliseconds(turn, statement) for turn in turns}
            if number >= warm_up:
                found.append((took[plain], took[lw.sql]))
                sys.stderr.write(f"{size}: plain {took[plain]:.0f} ms, governed {took[lw.sql]:.0f} ms\n")
    return found


def _tables(spark: SparkSession, services: Services, folder: Path, size: str, rows: int) -> str:
    """Two managed tables and one to append to; the statement."""
    for name in ("a", "b"):
        place = folder / f"{size}_{name}"
        write_deltalake(place, pa.table({"id": pa.array(range(rows), pa.int64())}))
        spark.sql(f"CREATE TABLE {size}_{name} USING delta LOCATION '{place}'")
        register(
            services.registry,
            str(place),
            actor=actor("bench", admin=True),
            name=f"default.{size}_{name}",
        )
    spark.sql(f"CREATE TABLE {size}_t (id BIGINT, n BIGINT) USING delta")
    return f"INSERT INTO {size}_t SELECT a.id, b.id + 1 FROM {size}_a a JOIN {size}_b b ON a.id = b.id"


def _milliseconds(run: Callable[[str], object], statement: str) -> float:
    begin = time.perf_counter()
    run(statement)
    return (time.perf_counter() - begin) * 1000
