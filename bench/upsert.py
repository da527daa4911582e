"""What leaving files out gives an upsert, and how fast a stream is upserted beside a plain append.

`upsert_pruning_ratio`: 1 % of the keys, all in one of 100 partitions, brought in by `lw.upsert` and by the same MERGE
written by hand, by turns in one session; the median of neighbouring pairs. The table is `--rows` large, with four
narrow columns. Beside it: the same MERGE with the partition written by hand (`upsert_by_hand_pruned_ms`), and the
floor, the partition read and written again as it is (`upsert_floor_ms`). The same for other shapes with a fifth of the
rows: `wide` has sixteen columns, as TPC-H's lineitem; in `four` the keys are in four partitions. `stream_ratio`: rows
per second of a stream that is upserted (half of them updates), by rows per second of the same stream appended by
Delta's own sink. Parts of `bench.sql`.
"""

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial, reduce
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from bench.measure import Figures, Options
from lakewarden.jobs.session.attached import Attached

__all__ = ["ROWS", "pruning_figures", "stream_figures"]

ROWS: Final = 20_000_000
PARTITIONS: Final = 100
BATCHES: Final = 10
BATCH_ROWS: Final = 100_000
NARROW: Final = ("id AS v", "hex(hash(id)) AS text")
WIDE: Final = (
    *(f"hash(id, {number}) AS n{number}" for number in range(5)),
    *(f"CAST(hash(id, {number}) / 100 AS DECIMAL(15, 2)) AS d{number}" for number in range(4)),
    "DATE'1992-01-01' + CAST(id % 2500 AS INT) AS shipped",
    "DATE'1992-01-01' + CAST(id % 2400 AS INT) AS received",
    "substr(hex(hash(id)), 1, 1) AS flag",
    "concat('mode ', id % 7) AS mode",
    "concat_ws(' ', hex(hash(id, 1)), hex(hash(id, 2)), hex(hash(id, 3))) AS comment",
)
BY_HAND: Final = (
    "MERGE INTO delta.`{path}` AS t USING changes AS s ON t.part = s.part AND t.id = s.id{chosen} "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)


def pruning_figures(spark: SparkSession, lw: Attached, folder: Path, rows: int, options: Options) -> Figures:
    """Ratio, milliseconds, and files that were looked into, of each shape."""
    figures = _of_shape(spark, lw, folder / "narrow", rows, NARROW, 1, options)
    for name, columns, partitions in (("four", NARROW, 4), ("wide", WIDE, 1)):
        found = _of_shape(spark, lw, folder / name, rows // 5, columns, partitions, options)
        figures |= {f"{key}_{name}": value for key, value in found.items()}
    return figures


def _of_shape(
    spark: SparkSession,
    lw: Attached,
    folder: Path,
    rows: int,
    columns: Sequence[str],
    touched: int,
    options: Options,
) -> Figures:
    """A table of so many rows, of which 1 % is brought in: an equal share of each of the `touched` partitions."""
    path, part_rows = str(folder), rows // PARTITIONS
    columns = ("id", f"CAST(id DIV {part_rows} AS INT) AS part", *columns)
    spark.range(0, rows, 1, PARTITIONS).selectExpr(*columns).write.format("delta").partitionBy("part").save(
        path
    )
    took: dict[str, list[float]] = {"by_hand": [], "by_hand_pruned": [], "floor": [], "ours": []}
    read = before = 0
    for number in range(1 + options.repeat(10)):
        parts = [(number + place) % PARTITIONS for place in range(touched)]
        chosen = f"part IN ({', '.join(map(str, parts))})"
        ranges = [spark.range(one * part_rows, (one + 1) * part_rows, touched) for one in parts]
        changes = reduce(DataFrame.union, ranges).selectExpr(*columns)
        changes.createOrReplaceTempView("changes")

        def upserted(changes: DataFrame = changes) -> None:
            nonlocal read, before
            done = lw.upsert(changes, path, keys=["part", "id"])
            read, before = done.files_read, done.files_before

        def rewritten(chosen: str = chosen) -> None:
            kept = spark.read.format("delta").load(path).where(chosen)
            kept.write.format("delta").mode("overwrite").option("replaceWhere", chosen).save(path)

        deeds: dict[str, Callable[[], object]] = {
            "by_hand": partial(spark.sql, BY_HAND.format(path=path, chosen="")),
            "by_hand_pruned": partial(spark.sql, BY_HAND.format(path=path, chosen=f" AND t.{chosen}")),
            "floor": rewritten,
            "ours": upserted,
        }
        for name in list(deeds)[:: 1 if number % 2 else -1]:
            took[name].append(_milliseconds(deeds[name]))
        told = ", ".join(f"{name} {times[-1]:.0f} ms" for name, times in took.items())
        sys.stderr.write(f"{folder.name}: {told}, {read} of {before} files\n")
    pairs = list(zip(took["by_hand"], took["ours"], strict=True))[1:]
    return {
        "upsert_pruning_ratio": statistics.median(plain / pruned for plain, pruned in pairs),
        "upsert_by_hand_ms": statistics.median(took["by_hand"][1:]),
        "upsert_by_hand_pruned_ms": statistics.median(took["by_hand_pruned"][1:]),
        "upsert_floor_ms": statistics.median(took["floor"][1:]),
        "upsert_ms": statistics.median(took["ours"][1:]),
        "upsert_files_read": read,
        "upsert_files": before,
    }


def stream_figures(spark: SparkSession, lw: Attached, folder: Path, options: Options) -> Figures:
    """Rows per second of both, and their ratio."""
    source = str(folder / "source")
    batches = options.repeat(BATCHES)
    for number in range(batches):  # half of the keys of each batch are those of the batch before
        first = number * BATCH_ROWS // 2
        rows = spark.range(first, first + BATCH_ROWS, 1, 1).selectExpr(
            "id", f"{number} AS ts", "uuid() AS text"
        )
        rows.write.format("delta").mode("append").save(source)

    def stream() -> DataFrame:
        reader = spark.readStream.format("delta").option("maxFilesPerTrigger", 1)
        return reader.load(source)

    def append(place: Path) -> Any:
        writer = stream().writeStream.format("delta").trigger(availableNow=True)
        return writer.option("checkpointLocation", str(place / "checkpoint")).start(str(place / "t"))

    def upsert(place: Path) -> Any:
        return lw.upsert_stream(
            stream(),
            str(place / "t"),
            keys="id",
            when="newer by ts",
            checkpoint=str(place / "checkpoint"),
            trigger={"availableNow": True},
        )

    rates: dict[str, list[float]] = {"append": [], "upsert": []}
    for turn in range(options.repeat(3) + 1):  # the first one warms up
        for name, start in (("append", append), ("upsert", upsert)):
            begin = time.perf_counter()
            start(folder / f"{name}{turn}").awaitTermination()
            rates[name].append(batches * BATCH_ROWS / (time.perf_counter() - begin))
            sys.stderr.write(f"{name}: {rates[name][-1]:.0f} rows per second\n")
    appended, upserted = (statistics.median(rates[name][1:]) for name in ("append", "upsert"))
    return {
        "stream_ratio": upserted / appended,
        "stream_append_rows_per_second": appended,
        "stream_upsert_rows_per_second": upserted,
    }


def _milliseconds(do: Callable[[], object]) -> float:
    begin = time.perf_counter()
    do()
    return (time.perf_counter() - begin) * 1000
