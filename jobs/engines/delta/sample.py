"""Column statistics of sampled files, made those of the table with what the log says of all files."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.types import StructType

from lakewarden.catalog.formats.delta.schema import PHYSICAL_NAME
from lakewarden.jobs.engines.spark.names import quoted
from lakewarden.jobs.runs.port import ColumnStatistics

__all__ = ["distinct_in_table", "scaled"]

_STEPS: Final = 60
"""Halvings of the interval: more than a double's precision needs."""

_SKETCHED: Final = ("int", "bigint", "string", "binary")
"""Types that Spark's sketches take; others are sketched as text."""
_WHOLE_NUMBERS: Final = ("tinyint", "smallint", "int", "bigint", "date")
_TIMES: Final = ("timestamp", "timestamp_ntz")
_TIME_FORMAT: Final = "yyyy-MM-dd HH:mm:ss.SSSSSS"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Extremes:
    """What the per-file statistics of all files say about a column; None where some file says nothing."""

    minimum: str | None
    maximum: str | None
    nulls: int | None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Spread:
    seen: float
    incidences: float


def scaled(
    spark: SparkSession,
    snapshot: Any,
    data: DataFrame,
    found: Mapping[str, ColumnStatistics],
    *,
    counted: int,
    rows: int,
    sampled_files: int,
    all_files: int,
) -> tuple[ColumnStatistics, ...]:
    """The statistics of `counted` rows in `sampled_files` files as those of `rows` rows in `all_files` files.

    `snapshot` is Spark's own view of the version. Nulls, smallest and largest values are exact where every file of the
    table has them in its statistics; nulls are scaled, the others taken as found where not.
    """
    if not found or not counted:
        return tuple(found.values())
    spreads = _spreads(data, found)
    extremes = _extremes(spark, snapshot, found)
    answer = []
    for name, column in found.items():
        known = extremes.get(name, _Extremes(minimum=None, maximum=None, nulls=None))
        nulls = known.nulls if known.nulls is not None else round(column.null_count * rows / counted)
        distinct = distinct_in_table(
            seen=spreads[name].seen,
            incidences=spreads[name].incidences,
            sampled_files=sampled_files,
            all_files=all_files,
            rows=max(rows - nulls, 0),
        )
        answer.append(
            replace(
                column,
                distinct_count=distinct,
                null_count=min(nulls, rows),
                minimum=known.minimum or column.minimum,
                maximum=known.maximum or column.maximum,
                histogram=_stretched(
                    spark, column, known, distinct, rows - nulls, counted - column.null_count
                ),
            )
        )
    return tuple(answer)


def _spreads(data: DataFrame, found: Mapping[str, ColumnStatistics]) -> dict[str, _Spread]:
    """How many distinct values the files have together, and each by itself: one pass with HyperLogLog sketches."""
    names = list(found)
    sketches = [
        f.hll_sketch_agg(_sketchable(found[name])).alias(f"s{place}") for place, name in enumerate(names)
    ]
    by_file = data.groupBy(f.input_file_name().alias("file")).agg(*sketches)
    totals: list[Column] = []
    for place in range(len(names)):
        totals.append(f.hll_sketch_estimate(f.hll_union_agg(f"s{place}")).alias(f"seen{place}"))
        totals.append(f.sum(f.hll_sketch_estimate(f"s{place}")).alias(f"all{place}"))
    row = by_file.agg(*totals).first() or Row()
    return {
        name: _Spread(seen=float(row[f"seen{place}"] or 0), incidences=float(row[f"all{place}"] or 0))
        for place, name in enumerate(names)
    }


def _sketchable(column: ColumnStatistics) -> Column:
    value = f.col(quoted(column.name))
    return value if column.type in _SKETCHED else value.cast("string")


def _extremes(
    spark: SparkSession, snapshot: Any, found: Mapping[str, ColumnStatistics]
) -> dict[str, _Extremes]:
    """Smallest and largest values and nulls from the statistics of all files, as Spark parsed them from the log."""
    files = DataFrame(snapshot.withStats(), spark)
    physical = _physical_names(snapshot)
    asked: list[Column] = []
    for place, column in enumerate(found.values()):
        for part in ("minValues", "maxValues", "nullCount"):
            value = _statistic(files, part, physical.get(column.name, column.name))
            if value is not None:
                asked += _questions(value, part, place, column.type)
    if not asked:
        return {}
    row = files.agg(f.count("*").alias("files"), *asked).first() or Row()
    said = row.asDict()
    return {column.name: _extremes_of(said, place) for place, column in enumerate(found.values())}


def _questions(value: Column, part: str, place: int, kind: str) -> list[Column]:
    if part == "nullCount":
        return [f.sum(value).alias(f"nulls{place}"), f.count(value).alias(f"nulls_in{place}")]
    extreme = f.min(value) if part == "minValues" else f.max(value)
    text = f.date_format(extreme, _TIME_FORMAT) if kind in _TIMES else extreme.cast("string")
    key = "min" if part == "minValues" else "max"
    questions = [text.alias(f"{key}{place}"), f.count(value).alias(f"{key}_in{place}")]
    if kind == "date":
        questions.append(f.datediff(extreme, f.lit("1970-01-01")).cast("double").alias(f"{key}_at{place}"))
    elif kind in _TIMES:
        questions.append(f.unix_micros(extreme.cast("timestamp")).cast("double").alias(f"{key}_at{place}"))
    else:
        questions.append(extreme.cast("double").alias(f"{key}_at{place}"))
    return questions


def _extremes_of(said: Mapping[str, Any], place: int) -> _Extremes:
    files = said["files"]
    bounded = said.get(f"min_in{place}") == files and said.get(f"max_in{place}") == files
    nulls = said.get(f"nulls{place}") if said.get(f"nulls_in{place}") == files else None
    return _Extremes(
        minimum=said.get(f"min{place}") if bounded else None,
        maximum=said.get(f"max{place}") if bounded else None,
        nulls=int(nulls) if nulls is not None else None,
        low=said.get(f"min_at{place}") if bounded else None,
        high=said.get(f"max_at{place}") if bounded else None,
    )


def _statistic(files: DataFrame, part: str, physical: str) -> Column | None:
    """A column's value in the parsed per-file statistics;
    None where they have none, or text, which is cut off there."""
    statistics: Any = files.schema["stats"].dataType
    if part not in statistics.names or physical not in statistics[part].dataType.names:
        return None
    if part != "nullCount" and statistics[part].dataType[physical].dataType.simpleString() == "string":
        return None
    return f.col("stats").getField(part).getField(physical)


def _physical_names(snapshot: Any) -> dict[str, str]:
    schema = StructType.fromJson(json.loads(snapshot.metadata().schemaString()))
    return {field.name: field.metadata.get(PHYSICAL_NAME, field.name) for field in schema.fields}


def _stretched(
    spark: SparkSession,
    column: ColumnStatistics,
    known: _Extremes,
    distinct: int,
    rows: int,
    sampled_rows: int,
) -> str | None:
    """The histogram with the table's rows and distinct values, from its smallest to its largest value."""
    if column.histogram is None or not sampled_rows:
        return column.histogram
    jvm: Any = spark._jvm
    logical = jvm.org.apache.spark.sql.catalyst.plans.logical
    before = logical.HistogramSerializer.deserialize(column.histogram)
    old = before.bins()
    total = sum(old[place].ndv() for place in range(len(old))) or 1
    bins = spark.sparkContext._gateway.new_array(logical.HistogramBin, len(old))  # type: ignore[union-attr]  # set while the session lives
    for place in range(len(old)):
        low, high = old[place].lo(), old[place].hi()
        if place == 0 and known.low is not None:
            low = min(low, known.low)
        if place == len(old) - 1 and known.high is not None:
            high = max(high, known.high)
        ndv = max(round(old[place].ndv() * distinct / total), 1)
        if column.type in _WHOLE_NUMBERS:
            ndv = min(ndv, int(high - low) + 1)
        bins[place] = logical.HistogramBin(float(low), float(high), ndv)
    height = before.height() * rows / sampled_rows
    return str(logical.HistogramSerializer.serialize(logical.Histogram(height, bins)))


def distinct_in_table(
    *, seen: float, incidences: float, sampled_files: int, all_files: int, rows: int
) -> int:
    """Distinct values of a column in the whole table, between `seen` and `rows`. Pure.

    Files are not random rows: a date column has few values per file and others in each, a flag the same in all. So the
    question asked is not how often a value was seen, but in how many of the sampled files.

    `seen` is the number of distinct values in the sampled files together, `incidences` the sum of the
    distinct values of each. Every value is taken to lie in a share p of the files, and in one at least. Then
    `incidences / seen = m p / (1 - (1 - p)^m)` for m sampled files gives p, and `incidences / (m p)` the number of
    values: `seen` if each is everywhere, `seen * all / sampled` if each is in one file only.
    """
    if seen <= 0 or sampled_files <= 0:
        return 0
    if sampled_files >= all_files:
        return round(min(seen, rows))
    per_value = min(max(incidences / seen, 1.0), float(sampled_files))
    low, high = 1 / all_files, 1.0
    for _ in range(_STEPS):
        share = (low + high) / 2
        if _files_per_seen_value(share, sampled_files) < per_value:
            low = share
        else:
            high = share
    estimate = max(incidences, seen) / (sampled_files * high)
    return round(min(max(estimate, seen), rows))


def _files_per_seen_value(share: float, files: int) -> float:
    """Of values that lie in this share of all files: in how many sampled ones is a value that was seen at all."""
    return files * share / (1 - (1 - share) ** files)
