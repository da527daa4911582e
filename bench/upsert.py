"""What leaving files out gives an upsert, and how fast a stream is upserted beside a plain append.

`upsert_pruning_ratio`: 1 % of the keys, all in one of 100 partitions, brought in by `lw.upsert` and by the same MERGE
written by hand, by turns in one session; the median of neighbouring pairs. The table is `--rows` large. `stream_ratio`:
rows per second of a stream that is upserted (half of them updates), by rows per second of the same stream appended
by Delta's own sink. Parts of `bench.sql`.
"""

import statistics
import sys
import time
from collections.abc import Callable
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
BY_HAND: Final = (
    "MERGE INTO delta.`{path}` AS t USING changes AS s ON t.part = s.part AND t.id = s.id "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)


def pruning_figures(spark: SparkSession, lw: Attached, folder: Path, rows: int, options: Options) -> Figures:
    """Ratio, milliseconds, and files that were looked into."""
    path, part_rows = str(folder / "t"), rows // PARTITIONS
    columns = ("id", f"CAST(id DIV {part_rows} AS INT) AS part", "id AS v", "hex(hash(id)) AS text")
    whole = spark.range(0, rows, 1, PARTITIONS).selectExpr(*columns)
    whole.write.format("delta").partitionBy("part").save(path)
    hand: list[float] = []
    ours: list[float] = []
    read = before = 0
    for number in range(1 + options.repeat(10)):
        first = (number % PARTITIONS) * part_rows
        changes = spark.range(first, first + rows // 100).selectExpr(*columns)
        changes.createOrReplaceTempView("changes")

        def by_hand() -> None:
            spark.sql(BY_HAND.format(path=path))

        def upserted(changes: DataFrame = changes) -> None:
            nonlocal read, before
            done = lw.upsert(changes, path, keys=["part", "id"])
            read, before = done.files_read, done.files_before

        turns: list[tuple[list[float], Callable[[], None]]] = [(hand, by_hand), (ours, upserted)]
        for times, do in turns[:: 1 if number % 2 else -1]:
            times.append(_milliseconds(do))
        sys.stderr.write(f"by hand {hand[-1]:.0f} ms, pruned {ours[-1]:.0f} ms, {read} of {before} files\n")
    pairs = list(zip(hand, ours, strict=True))[1:]
    return {
        "upsert_pruning_ratio": statistics.median(plain / pruned for plain, pruned in pairs),
        "upsert_by_hand_ms": statistics.median(plain for plain, _ in pairs),
        "upsert_ms": statistics.median(pruned for _, pruned in pairs),
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


def _milliseconds(do: Callable[[], None]) -> float:
    begin = time.perf_counter()
    do()
    return (time.perf_counter() - begin) * 1000
