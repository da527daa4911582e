"""Table and column statistics of a Delta table, by the code behind Spark's own ANALYZE, which Delta's SQL lacks.

`CommandUtils.computeColumnStats` counts rows, nulls and distinct values (HyperLogLog++) and builds
equi-height histograms; `CatalogColumnStat` writes them in the form that Spark's optimizer reads from the
metastore. Large tables are looked at through a sample of whole files; what the log knows of all files (rows,
nulls, smallest and largest values) comes from there. Not in `pyspark`'s API, hence by py4j.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from typing import Any, Final

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as f

from lakewarden.catalog.storage.file_store import FileStore
from lakewarden.jobs.engines.delta import sample
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.engines.spark.names import hadoop_path
from lakewarden.jobs.runs.port import ColumnStatistics, TableStatistics

__all__ = ["table_statistics"]

_BINS: Final = 100
"""Of a histogram: a value that fills a hundredth of the table gets a bin of its own; 1 to 2 kB in the metastore."""
_LEAST_FILES: Final = 16
"""A sample has this many files at least: fewer say little about how values lie among files."""
_MOST_COLUMNS: Final = 100
"""Columns beyond are left out: every reader of the metastore entry gets all its parameters."""
_PLAIN: Final = (
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "boolean",
    "date",
    "string",
    "binary",
)
_SUPPORTED: Final = (*_PLAIN, "timestamp", "timestamp_ntz")
_SETTINGS: Final = {
    "spark.sql.statistics.histogram.enabled": "true",
    "spark.sql.statistics.histogram.numBins": str(_BINS),
    "spark.sql.session.timeZone": "UTC",  # times are stored as text, which the optimizer reads as UTC
}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Inventory:
    """What the log says of all files: their number and size, and their rows where every file has a count."""

    files: int
    size_bytes: int
    rows: int | None


def table_statistics(
    spark: SparkSession, store: FileStore, *, version: int, columns: Sequence[str] | None, max_rows: int
) -> TableStatistics:
    """Statistics of a version that is still in the log; of all columns with a type that Spark has statistics for, or of
    those in `columns`. Above `max_rows` rows a sample of files with about that many is read, 16 files at least.

    `sampled_share` is the share of the bytes that was read. Raises `ExecutionError` when Spark fails.
    """
    with translated(f"compute the statistics of {store.root}"), _configured(spark) as session:
        log = _java(session).org.apache.spark.sql.delta.DeltaLog.forTable(
            session._jsparkSession, hadoop_path(store.root)
        )
        nothing = _java(session).scala.Option.empty()
        snapshot = log.getSnapshotAt(version, nothing, nothing, False)
        all_files = snapshot.allFiles()
        known = _inventory(DataFrame(all_files.toDF(), session))
        every = _every(known, max_rows)
        chosen = all_files.filter(f"pmod(xxhash64(path), {every}) = 0") if every > 1 else all_files
        read = known if every == 1 else _inventory(DataFrame(chosen.toDF(), session))
        if read.files == 0:  # an unlucky draw, or an empty table
            chosen, read, every = all_files, known, 1
        data = DataFrame(
            log.createDataFrame(snapshot, _scala(session, chosen.collectAsList()), False, nothing), session
        )
        names = _wanted(data, columns)
        counted, found = _compute(session, data, names)
        if every == 1:
            return TableStatistics(
                version=version, total_bytes=known.size_bytes, rows=counted, columns=tuple(found.values())
            )
        share = read.size_bytes / known.size_bytes
        rows = known.rows if known.rows is not None else round(counted / share)
        scaled = sample.scaled(
            session,
            snapshot,
            data,
            found,
            counted=counted,
            rows=rows,
            sampled_files=read.files,
            all_files=known.files,
        )
        return TableStatistics(
            version=version, total_bytes=known.size_bytes, rows=rows, columns=scaled, sampled_share=share
        )


def _every(known: _Inventory, max_rows: int) -> int:
    """One of how many files to read."""
    if known.rows is None or known.rows <= max_rows or known.files <= _LEAST_FILES:
        return 1
    wanted = max(_LEAST_FILES, ceil(known.files * max_rows / known.rows))
    return max(known.files // wanted, 1)


def _inventory(files: DataFrame) -> _Inventory:
    counts = f.get_json_object("stats", "$.numRecords").cast("bigint")
    deleted = f.coalesce(f.col("deletionVector.cardinality"), f.lit(0))
    row: Row = (
        files.agg(
            f.count("*").alias("files"),
            f.coalesce(f.sum("size"), f.lit(0)).alias("bytes"),
            f.coalesce(f.sum(counts - deleted), f.lit(0)).alias("rows"),
            f.count(counts).alias("counted"),
        ).first()
        or Row()
    )
    rows = int(row["rows"]) if row["counted"] == row["files"] else None
    return _Inventory(files=int(row["files"]), size_bytes=int(row["bytes"]), rows=rows)


def _wanted(data: DataFrame, columns: Sequence[str] | None) -> tuple[str, ...]:
    types = ((field.name, field.dataType.simpleString()) for field in data.schema.fields)
    able = [name for name, kind in types if kind in _SUPPORTED or kind.startswith("decimal(")]
    return tuple(name for name in able if columns is None or name in columns)[:_MOST_COLUMNS]


def _compute(
    session: SparkSession, data: DataFrame, names: Sequence[str]
) -> tuple[int, dict[str, ColumnStatistics]]:
    """Rows counted, and the statistics of each column, of exactly the rows in `data`."""
    if not names:
        return data.count(), {}
    plan = _internals(data).queryExecution().analyzed()
    output = plan.output()
    attributes = [output.apply(place) for place in range(output.size())]
    chosen = [attribute for attribute in attributes if attribute.name() in set(names)]
    package = _java(session).org.apache.spark.sql.execution.command
    utils = getattr(getattr(package, "CommandUtils$"), "MODULE$")
    answer = utils.computeColumnStats(session._jsparkSession, plan, _scala(session, chosen))
    rows, by_column = int(answer._1()), answer._2()
    found = {}
    for attribute in chosen:
        name, kind = attribute.name(), attribute.dataType()
        stat = by_column.apply(attribute).toCatalogColumnStat(name, kind)
        found[name] = _column(name, kind.simpleString(), _as_dict(session, stat.toMap(name)), rows)
    return rows, found


def _column(name: str, kind: str, stored: Mapping[str, str], rows: int) -> ColumnStatistics:
    """Spark's own stored form (`<column>.<key>`) as a value. Estimates of distinct values never exceed the rows."""

    def number(key: str) -> int | None:
        text = stored.get(f"{name}.{key}")
        return int(text) if text is not None else None

    return ColumnStatistics(
        name=name,
        type=kind,
        distinct_count=min(number("distinctCount") or 0, rows),
        null_count=number("nullCount") or 0,
        minimum=stored.get(f"{name}.min"),
        maximum=stored.get(f"{name}.max"),
        average_length=number("avgLen"),
        maximum_length=number("maxLen"),
        histogram=_whole(stored, f"{name}.histogram"),
    )


def _whole(stored: Mapping[str, str], key: str) -> str | None:
    """A value that Spark stored whole, or in parts because it is long."""
    if key in stored or f"{key}.numParts" not in stored:
        return stored.get(key)
    return "".join(stored[f"{key}.part.{index}"] for index in range(int(stored[f"{key}.numParts"])))


@contextmanager
def _configured(spark: SparkSession) -> Iterator[SparkSession]:
    """A clone of the session with histograms on, so that the worker's own session keeps its settings."""
    clone = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    for key, value in _SETTINGS.items():
        clone.conf.set(key, value)
    jvm = _java(spark)
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(clone._jsparkSession)
    try:
        yield clone
    finally:
        jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)


def _java(spark: SparkSession) -> Any:
    return spark._jvm


def _internals(data: DataFrame) -> Any:
    return data._jdf


def _scala(spark: SparkSession, items: Any) -> Any:
    """A Java or Python list as a Scala `Seq`."""
    jvm = _java(spark)
    if isinstance(items, list):
        collected = jvm.java.util.ArrayList()
        for item in items:
            collected.add(item)
        items = collected
    return jvm.scala.jdk.javaapi.CollectionConverters.asScala(items).toSeq()


def _as_dict(spark: SparkSession, scala_map: Any) -> dict[str, str]:
    return dict(_java(spark).scala.jdk.javaapi.CollectionConverters.asJava(scala_map))
