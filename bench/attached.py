"""What `lakewarden.attach(spark)` costs what is not governed:
the listeners beside an append, and beside a stream's batch.

The same is run attached and detached by turns, in one session; a pair are two neighbours, each first every
other time, so that a machine that gets slower gets slower for both. Attaching and detaching are not part of
it: after either the session is left alone for a moment. The append is
`INSERT INTO t SELECT ... FROM a JOIN b` by `spark.sql`; the batch takes one new version of a Delta table to
another, from the commit of that version until the query has nothing left to do.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Final

import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql import SparkSession

import lakewarden
from bench.measure import Figures, Options, options, report
from lakewarden.daemon.callers import real_user
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.usecases.init import initialise
from lakewarden.jobs.engines.spark.session import start_session
from lakewarden.jobs.runs.spark_settings import SparkSettings

__all__ = ["listener_overheads", "main"]

ROWS: Final = 100
PAIRS: Final = 40
WARM_UP: Final = 5
SETTLES_SECONDS: Final = 1.0
"""Time for the thread of an attached session to open the database: that is not part of a statement."""
APPEND: Final = "INSERT INTO t SELECT a.id, b.id + 1 FROM a JOIN b ON a.id = b.id"

Pair = tuple[float, float]
"""Milliseconds of the same: detached, attached."""


def main() -> None:
    """Measure and print."""
    report(listener_overheads(options(__doc__ or "")))


def listener_overheads(chosen: Options) -> Figures:
    """`listener_overhead_ms`, `listener_stream_overhead_ms`: median milliseconds that an append and a batch take longer
    attached; `listener_plain_ms` and `listener_stream_plain_ms` are the medians without."""
    with tempfile.TemporaryDirectory(prefix="lakewarden-bench-") as folder:
        home = Path(folder) / "home"
        initialise(open_services(home=home, flags={}), real_user())
        spark = start_session(SparkSettings(conf=(("spark.sql.warehouse.dir", Path(folder).as_uri()),)))
        try:
            appends = _appends(spark, home, chosen.repeat(PAIRS))
            batches = _batches(spark, home, Path(folder), chosen.repeat(PAIRS))
        finally:
            spark.stop()
    return {
        "listener_overhead_ms": _longer(appends),
        "listener_plain_ms": statistics.median(plain for plain, _ in appends),
        "listener_stream_overhead_ms": _longer(batches),
        "listener_stream_plain_ms": statistics.median(plain for plain, _ in batches),
    }


def _appends(spark: SparkSession, home: Path, times: int) -> list[Pair]:
    for name in ("a", "b"):
        spark.sql(f"CREATE TABLE {name} USING delta AS SELECT id FROM range({ROWS})")
    spark.sql("CREATE TABLE t (id BIGINT, n BIGINT) USING delta")
    return _pairs("append", spark, home, lambda: spark.sql(APPEND), times)


def _batches(spark: SparkSession, home: Path, folder: Path, times: int) -> list[Pair]:
    source, sink = folder / "source", folder / "sink"
    one_row = pa.table({"id": pa.array([1], pa.int64())})
    write_deltalake(source, one_row)
    writer = spark.readStream.format("delta").load(str(source)).writeStream.format("delta")
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).start(str(sink))

    def batch() -> None:
        write_deltalake(source, one_row, mode="append")
        query.processAllAvailable()

    try:
        query.processAllAvailable()
        return _pairs("batch", spark, home, batch, times)
    finally:
        query.stop()


def _pairs(what: str, spark: SparkSession, home: Path, run: Callable[[], object], times: int) -> list[Pair]:
    found: list[Pair] = []
    for number in range(WARM_UP + times):
        took: dict[bool, float] = {}
        for attached in (number % 2 == 0, number % 2 == 1):
            with lakewarden.attach(spark, home=home) if attached else nullcontext():
                time.sleep(SETTLES_SECONDS)
                begin = time.perf_counter()
                run()
                took[attached] = (time.perf_counter() - begin) * 1000
        if number >= WARM_UP:
            found.append((took[False], took[True]))
            sys.stderr.write(f"{what}: detached {took[False]:.0f} ms, attached {took[True]:.0f} ms\n")
    return found


def _longer(pairs: list[Pair]) -> float:
    return statistics.median(attached - plain for plain, attached in pairs)


if __name__ == "__main__":
    main()
