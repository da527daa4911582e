"""What compiling costs a governed UPDATE ... FROM, beside the same MERGE by hand.

`compile_ms` is one statement from text to steps, its schemas given. `overhead_ms` and `overhead_ratio` compare
`lw.sql("UPDATE t SET ... FROM s ...")` with `spark.sql("MERGE INTO t ...")` in the same session, by turns: a machine
that gets slower gets slower for both. Part of `bench.sql`.
"""

import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from bench.measure import Figures, Options, median_ms
from lakewarden.jobs.session.attached import Attached
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.values import ColumnType, TableName

__all__ = ["compile_figures", "overhead_figures"]

TINY_ROWS: Final = 100
LARGE_ROWS: Final = 1_000_000
WARM_UP: Final = 10
BY_HAND: Final = (
    "MERGE INTO {t} AS t USING {s} AS s ON t.k = s.k WHEN MATCHED THEN UPDATE SET t.v = s.v + t.v"
)
GOVERNED: Final = "UPDATE {t} AS t SET v = s.v + t.v FROM {s} AS s WHERE t.k = s.k"
COMPILED: Final = {
    "compile_ms": "UPDATE t SET v = s.v + t.v, w = s.w FROM s JOIN u ON s.k = u.k "
    "WHERE t.k = s.k AND u.v > 3",
    "compile_queries_ms": (
        "UPDATE t SET v = (SELECT max(x.v) FROM s x WHERE x.k = t.k) FROM (SELECT k, min(v) AS v FROM u "
        "GROUP BY k) q WHERE q.k = t.k AND t.w NOT IN (SELECT w FROM s) AND NOT EXISTS (SELECT 1 "
        "FROM u y WHERE y.k = t.k)"
    ),
}


def compile_figures(options: Options) -> Figures:
    """Medians, of a join and of a statement with four queries in it."""
    columns = tuple(ColumnType(name=name, type="bigint") for name in ("k", "v", "w"))
    schemas = {TableName(parts=(name,)): columns for name in ("t", "s", "u")}

    def compile_one(text: str, turn: int = 0) -> None:
        """Each turn has a text of its own: what is kept of the one before is of no use."""
        draft = draft_of(text + " " * turn)
        assert draft is not None
        compiled(draft, schemas)

    for text in COMPILED.values():
        compile_one(text)
    return {key: median_ms(partial(compile_one, text), options.repeat(100)) for key, text in COMPILED.items()}


def overhead_figures(spark: SparkSession, lw: Attached, folder: Path, options: Options) -> Figures:
    """`overhead_ms` on tiny tables, `overhead_ratio` on large ones; both medians over neighbouring pairs."""
    tiny = _pairs(spark, lw.sql, folder / "tiny", TINY_ROWS, options.repeat(40))
    large = _pairs(spark, lw.sql, folder / "large", LARGE_ROWS, options.repeat(10))
    lower, median, upper = statistics.quantiles((governed - plain for plain, governed in tiny), n=4)
    return {
        "overhead_ms": median,
        "overhead_lower_ms": lower,
        "overhead_upper_ms": upper,
        "overhead_ratio": statistics.median(governed / plain for plain, governed in large),
        "by_hand_ms": statistics.median(plain for plain, _ in tiny),
        "by_hand_large_ms": statistics.median(plain for plain, _ in large),
    }


def _pairs(
    spark: SparkSession, governed: Callable[[str], object], folder: Path, rows: int, times: int
) -> list[tuple[float, float]]:
    """Milliseconds of (by hand, governed), each first every other time."""
    keys = pa.array(range(rows), pa.int64())
    write_deltalake(folder / "t", pa.table({"k": keys, "v": keys}))
    chosen = keys.slice(0, rows // 10)
    write_deltalake(folder / "s", pa.table({"k": chosen, "v": chosen}))
    names = {name: f"{folder.name}_{name}" for name in ("t", "s")}
    for name, table in names.items():
        spark.sql(f"CREATE TABLE {table} USING delta LOCATION '{folder / name}'")
    statements = {spark.sql: BY_HAND.format(**names), governed: GOVERNED.format(**names)}
    found = []
    warm_up = WARM_UP if rows == TINY_ROWS else 2
    for number in range(warm_up + times):
        turns = list(statements.items())[:: 1 if number % 2 else -1]
        took = {run: _milliseconds(run, text) for run, text in turns}
        if number >= warm_up:
            found.append((took[spark.sql], took[governed]))
            sys.stderr.write(f"{rows} rows: by hand {found[-1][0]:.0f} ms, governed {found[-1][1]:.0f} ms\n")
    return found


def _milliseconds(run: Callable[[str], object], statement: str) -> float:
    begin = time.perf_counter()
    run(statement)
    return (time.perf_counter() - begin) * 1000
