"""TPC-H's refresh functions by governed SQL: RF1 brings orders and their lines in by UPSERT, RF2 takes others away.

Each is run some times, and taken back in between, so that all of them find the same tables.
"""

import statistics
import time
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from bench.measure import Figures, Options
from lakewarden.jobs.session.attached import Attached
from support.builders.tpch import KEYS, RF1, RF2, load

__all__ = ["SCALE", "refresh_figures"]

SCALE: Final = 1.0
_TIMES: Final = 3


def refresh_figures(
    spark: SparkSession, lw: Attached, folder: Path, scale: float, options: Options
) -> Figures:
    """Seconds of both functions (medians), and how many rows they moved."""
    spark.sql("CREATE DATABASE IF NOT EXISTS tpch")
    begin = time.perf_counter()
    orders = load(spark, "tpch", folder, scale)
    loaded = time.perf_counter() - begin
    seconds: dict[str, list[float]] = {"rf1": [], "rf2": []}
    moved: dict[str, int] = {}
    for _ in range(1 if options.quick else _TIMES):
        for function, statements in (("rf1", RF1), ("rf2", RF2)):
            begin, rows = time.perf_counter(), 0
            for statement in statements.values():
                (counts,) = lw.sql(statement.format(db="tpch")).collect()
                rows += counts["num_affected_rows"]
            seconds[function].append(time.perf_counter() - begin)
            assert moved.setdefault(function, rows) == rows, "each time the same rows"
        for name in KEYS:
            spark.sql(f"RESTORE TABLE tpch.{name} TO VERSION AS OF 0")
    return {
        "tpch_scale": scale,
        "tpch_load_seconds": loaded,
        "rf1_seconds": statistics.median(seconds["rf1"]),
        "rf2_seconds": statistics.median(seconds["rf2"]),
        "rf_orders": orders,
        "rf1_rows": moved["rf1"],
        "rf2_rows": moved["rf2"],
    }
