"""A stream of upserts into an Iceberg table (version 2, no partitions) of `--rows` rows, by each way of writing what
changes, beside the same stream appended by Spark alone.

`--batches` batches of `--batch` rows come from a Delta table, one commit each; half of them replace rows, the last of a
key counts. By turns in one session, each way into a table of its own, after a turn that is not counted: the median of
the rows per second. The rows of all ways are compared. `equality_rate_ratio` is equality deletes / plain append,
`merge_rate_ratio` and `position_rate_ratio` the same of MERGE (copy-on-write) and position deletes (merge-on-read), and
`settled_rate_ratio` that of the floor: Spark alone appends the last row of each key, and deletes nothing.
`equality_read_ratio` is the time to count and sum the table with its equality deletes / the same rows without them.
"""

import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from bench.measure import Figures, parser_of, report, seconds_of
from bench.row_level import attached_session
from lakewarden.jobs.session.attached import Attached

__all__ = ["main"]

ROWS: Final = 4_000_000
QUICK_ROWS: Final = 400_000
BATCH: Final = 100_000
QUICK_BATCH: Final = 50_000
TURNS: Final = 3
WAYS: Final = ("append", "settled", "equality", "merge", "position")
UPSERTS: Final = WAYS[2:]
MODES: Final = {"merge": "copy-on-write", "position": "merge-on-read"}
ROW: Final = "CAST(id AS STRING) AS name, id % 100 AS k, CAST({at} AS BIGINT) AS ts"
CHECK: Final = "SELECT count(*), sum(hash(id, name, k, ts)) FROM {}"


def main() -> None:
    """Measure and print."""
    parser = parser_of(__doc__ or "")
    parser.add_argument("--rows", type=int, help="of each table")
    parser.add_argument("--batch", type=int, help="rows of a batch")
    parser.add_argument("--batches", type=int, help="in a turn")
    asked = parser.parse_args()
    rows = asked.rows or (QUICK_ROWS if asked.quick else ROWS)
    size = asked.batch or (QUICK_BATCH if asked.quick else BATCH)
    batches = asked.batches or (3 if asked.quick else 5)
    with (
        tempfile.TemporaryDirectory(prefix="lakewarden-bench-") as folder,
        attached_session(Path(folder)) as (spark, lw),
    ):
        report(_figures(spark, lw, Path(folder), rows=rows, size=size, batches=batches))


def _figures(
    spark: SparkSession, lw: Attached, folder: Path, *, rows: int, size: int, batches: int
) -> Figures:
    for way in WAYS:
        _make(spark, way, rows)
    rates: dict[str, list[float]] = {way: [] for way in WAYS}
    for turn in range(TURNS + 1):
        for number in range(batches):
            _add_batch(spark, turn * batches + number, rows, size)
        for way in WAYS[:: 1 if turn % 2 else -1]:
            seconds = seconds_of(partial(_run, spark, lw, folder, way))
            sys.stderr.write(f"{way}, turn {turn}: {seconds:.1f} s\n")
            if turn:
                rates[way].append(size * batches / seconds)
    rate = {way: statistics.median(found) for way, found in rates.items()}
    found = {way: spark.sql(CHECK.format(f"ice.db.{way}")).first() for way in UPSERTS}
    if len(set(found.values())) != 1:
        raise AssertionError(f"the ways do not give the same rows: {found}")
    read = {way: seconds_of(spark.sql(CHECK.format(f"ice.db.{way}")).collect) for way in UPSERTS}
    figures: Figures = {"rows": rows, "batch": size, "batches": batches}
    for way in WAYS:
        figures[f"{way}_rows_per_second"] = rate[way]
    for way in WAYS[1:]:
        figures[f"{way}_rate_ratio"] = rate[way] / rate["append"]
    figures["equality_read_ratio"] = read["equality"] / read["merge"]
    return figures


def _make(spark: SparkSession, way: str, rows: int) -> None:
    mode = MODES.get(way, "copy-on-write")
    spark.sql(
        f"CREATE TABLE ice.db.{way} (id BIGINT, name STRING, k BIGINT, ts BIGINT) USING iceberg "
        f"TBLPROPERTIES ('format-version' = '2', 'write.merge.mode' = '{mode}')"
    )
    spark.sql(f"INSERT INTO ice.db.{way} SELECT id, {ROW.format(at=0)} FROM range({rows})")


def _add_batch(spark: SparkSession, number: int, rows: int, size: int) -> None:
    """One file: keys at equal distances, half of which are in the tables already."""
    step = max(2 * rows // size, 1)
    made = spark.range(size).selectExpr(f"id * {step} + {number} AS id")
    made.selectExpr("id", *ROW.format(at=number + 1).split(", ")).coalesce(1).write.format("delta").mode(
        "append"
    ).saveAsTable("batches")


def _run(spark: SparkSession, lw: Attached, folder: Path, way: str) -> None:
    """What has come since this way ran the last time, batch by batch."""
    source: DataFrame = spark.readStream.option("maxFilesPerTrigger", 1).table("batches")
    checkpoint, now = str(folder / "checkpoints" / way), {"availableNow": True}
    query: Any
    if way == "append":
        writer = source.writeStream.trigger(availableNow=True).option("checkpointLocation", checkpoint)
        query = writer.format("iceberg").toTable(f"ice.db.{way}")
    elif way == "settled":
        each = source.writeStream.trigger(availableNow=True).option("checkpointLocation", checkpoint)
        query = each.foreachBatch(_append_settled).start()
    else:
        words: dict[str, Any] = {"keys": "id", "duplicates": "last by ts", "checkpoint": checkpoint}
        write = "equality" if way == "equality" else "table"
        query = lw.upsert_stream(source, f"ice.db.{way}", trigger=now, write=write, **words)
    query.awaitTermination()
    if query.exception() is not None:
        raise AssertionError(query.exception())


def _append_settled(batch: DataFrame, number: int) -> None:
    newest = "row_number() OVER (PARTITION BY id ORDER BY ts DESC) AS place"
    batch.selectExpr("*", newest).where("place = 1").drop("place").writeTo("ice.db.settled").append()


if __name__ == "__main__":
    main()
