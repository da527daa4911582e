"""What leaving files out gives an upsert, and how fast a stream is upserted beside a plain append.

`upsert_pruning_ratio`: 1 % of the keys, brought in by `lw.upsert` and by the same MERGE written by hand, by turns in
one session; the median of neighbouring pairs. The table, of `--rows` rows, has events by day: 400 days are its
partitions, its keys are the day and an id, a text like a UUID. The keys are those of four days, as when the last days
are loaded again. Beside it: the same MERGE with the partitions written by hand (`upsert_by_hand_pruned_ms`), and the
floor, the partitions read and written again as they are (`upsert_floor_ms`).
The same for other shapes (`--shapes`; this one is `events`): `narrow` has numbers for ids, and four columns, in 100
partitions of which one has all the keys, and a fifth of the rows; `wide`, with a twenty-fifth, has sixteen columns
besides, as TPC-H's lineitem; in `scattered`, a hundredth, the keys are everywhere, and nothing can be left out.

`stream_ratio`: rows per second of a stream that is upserted (half of them updates), by rows per second of the same
stream appended by Delta's own sink. Parts of `bench.sql`.
"""

import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from bench.measure import Figures, Options
from lakewarden.jobs.session.attached import Attached

__all__ = ["ROWS", "SHAPES", "pruning_figures", "stream_figures"]

ROWS: Final = 100_000_000
EVENTS_SHAPE: Final = "events"
BATCHES: Final = 10
BATCH_ROWS: Final = 100_000
NARROW: Final = ("id", "id AS v", "hex(hash(id)) AS text")
WIDE: Final = (
    *NARROW[:1],
    *(f"hash(id, {number}) AS n{number}" for number in range(5)),
    *(f"CAST(hash(id, {number}) / 100 AS DECIMAL(15, 2)) AS d{number}" for number in range(4)),
    "DATE'1992-01-01' + CAST(id % 2500 AS INT) AS shipped",
    "DATE'1992-01-01' + CAST(id % 2400 AS INT) AS received",
    "substr(hex(hash(id)), 1, 1) AS flag",
    "concat('mode ', id % 7) AS mode",
    "concat_ws(' ', hex(hash(id, 1)), hex(hash(id, 2)), hex(hash(id, 3))) AS comment",
)
EVENTS: Final = (
    "md5(CAST(id AS STRING)) AS id",
    "CAST(hash(id) / 100 AS DECIMAL(15, 2)) AS amount",
    "concat('kind ', id % 7) AS kind",
    "id AS v",
)
BY_HAND: Final = (
    "MERGE INTO delta.`{path}` AS t USING changes AS s ON t.part = s.part AND t.id = s.id{chosen} "
    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """A table of so many rows with these columns besides its partition, and where 1 % of its keys are: all those of so
    many partitions (`touched`), or every hundredth."""

    rows: int
    columns: Sequence[str]
    partitions: int
    touched: int | None

    @property
    def selected(self) -> Sequence[str]:
        """The columns, made of a number."""
        return (f"CAST(id DIV {self.rows // self.partitions} AS INT) AS part", *self.columns)

    def parts(self, number: int) -> Sequence[int]:
        """Where the keys of a round are."""
        if self.touched is None:
            return range(self.partitions)
        return [(number * self.touched + place) % self.partitions for place in range(self.touched)]

    def changes(self, spark: SparkSession, number: int) -> DataFrame:
        """What a round brings in."""
        if self.touched is None:
            return spark.range(number, self.rows, 100, 4).selectExpr(*self.selected)
        each = self.rows // self.partitions
        ranges = [spark.range(one * each, (one + 1) * each, 1, 1) for one in self.parts(number)]
        return reduce(DataFrame.union, ranges).selectExpr(*self.selected)


SHAPES: Final[Mapping[str, Callable[[int], Shape]]] = {
    EVENTS_SHAPE: lambda rows: Shape(rows=rows, columns=EVENTS, partitions=400, touched=4),
    "narrow": lambda rows: Shape(rows=rows // 5, columns=NARROW, partitions=100, touched=1),
    "wide": lambda rows: Shape(rows=rows // 25, columns=WIDE, partitions=100, touched=1),
    "scattered": lambda rows: Shape(rows=rows // 100, columns=NARROW, partitions=100, touched=None),
}
"""Of tables with so many rows (of some, a part of them)."""


def pruning_figures(
    spark: SparkSession, lw: Attached, folder: Path, rows: int, shapes: Iterable[str], options: Options
) -> Figures:
    """Ratio, milliseconds, and files that were looked into, of each shape."""
    figures: Figures = {}
    for name in shapes:
        found = _of_shape(spark, lw, folder / name, SHAPES[name](rows), options)
        ending = "" if name == EVENTS_SHAPE else f"_{name}"
        figures |= {f"{key}{ending}": value for key, value in found.items()}
    return figures


def _of_shape(spark: SparkSession, lw: Attached, folder: Path, shape: Shape, options: Options) -> Figures:
    path = str(folder)
    whole = spark.range(0, shape.rows, 1, shape.partitions).selectExpr(*shape.selected)
    whole.write.format("delta").partitionBy("part").save(path)
    took: dict[str, list[float]] = {"by_hand": [], "by_hand_pruned": [], "floor": [], "ours": []}
    read = before = 0
    for number in range(1 + options.repeat(5)):  # the first one warms up
        chosen = f"part IN ({', '.join(map(str, shape.parts(number)))})"
        changes = shape.changes(spark, number)
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
