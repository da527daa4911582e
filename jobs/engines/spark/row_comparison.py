"""The rows that two versions of a table do not have in common, counted and sampled by Spark, whatever the format.

A difference of multisets: each row of head counts one, each of target minus one, equal rows are added up. Rows that are
known to be in both need not be read, and a format that knows of some leaves them out of both (`ComparedVersion.apart`).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Row, SparkSession, Window
from pyspark.sql import functions as f
from pyspark.sql.types import DataType, DateType, NumericType, StructType, TimestampNTZType, TimestampType

from lakewarden.catalog.errors import PreconditionError
from lakewarden.jobs.engines.spark.names import quoted
from lakewarden.jobs.runs.row_diff import (
    LONGEST_VALUE,
    ColumnDifference,
    DiffRequest,
    KeyCounts,
    RowDiff,
    Sample,
    SampleRow,
)

__all__ = ["ComparedVersion", "compared", "own_session"]

_WEIGHT: Final = "__lakewarden_weight"
_PLACE: Final = "__lakewarden_place"
_ROWS_OF_KEY: Final = 3
_ORDERED: Final = (DateType, TimestampType, TimestampNTZType)


@dataclass(frozen=True, kw_only=True, slots=True)
class ComparedVersion:
    """One version of a table, as its format's engine reads it."""

    whole: DataFrame
    """All of its rows, with the columns that it had."""
    apart: DataFrame
    """Its rows, less some that the other version has just as often; the same columns, or more."""

    @property
    def schema(self) -> StructType:
        """Its columns."""
        return self.whole.schema


def compared(head: ComparedVersion, target: ComparedVersion, request: DiffRequest) -> RowDiff:
    """Compare the two. Reads only; collects at most the samples that are asked for, three rows of each side a key.

    Raises `PreconditionError` for a key column that not both versions have.
    """
    columns = _common(head.schema, target.schema)
    keys = _keys(request, columns)
    different = _different(head, target, columns).persist()
    try:
        goes, comes = _counts(different)
        return RowDiff(
            request=request,
            rows_head=head.whole.count(),
            rows_target=target.whole.count(),
            goes=goes,
            comes=comes,
            keys=_key_counts(different, keys) if keys else None,
            columns=tuple(_changes(head, target)),
            samples=tuple(
                _of_keys(different, keys, request.samples)
                if keys
                else _whole_rows(different, request.samples)
            ),
        )
    finally:
        different.unpersist()


@contextmanager
def own_session(spark: SparkSession) -> Iterator[SparkSession]:
    """A clone, whose settings and views are nobody else's."""
    clone = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    clone.conf.set("spark.sql.session.timeZone", "UTC")
    clone.conf.set("spark.sql.ansi.enabled", "false")  # a cast to text, or to the wider type, never fails
    jvm: Any = spark._jvm
    active = jvm.org.apache.spark.sql.classic.SparkSession
    active.setActiveSession(clone._jsparkSession)
    try:
        yield clone
    finally:
        active.setActiveSession(spark._jsparkSession)


def _common(head: StructType, target: StructType) -> list[tuple[str, bool]]:
    """The columns that both have, as head spells them, and whether they have to be compared as text."""
    others = {field.name.lower(): field.dataType for field in target.fields}
    return [
        (field.name, not _alike(field.dataType, others[field.name.lower()]))
        for field in head.fields
        if field.name.lower() in others
    ]


def _alike(one: DataType, other: DataType) -> bool:
    """Whether Spark finds one type for both without losing anything of either."""
    numbers = isinstance(one, NumericType) and isinstance(other, NumericType)
    return one == other or numbers or (isinstance(one, _ORDERED) and isinstance(other, _ORDERED))


def _keys(request: DiffRequest, columns: Sequence[tuple[str, bool]]) -> list[str]:
    spelled = {name.lower(): name for name, _ in columns}
    missing = [key for key in request.keys if key.lower() not in spelled]
    if missing:
        raise PreconditionError(
            f"{request.name} has no column {missing[0]} in both versions.",
            hint="`lakewarden tables show` lists its columns; without --key whole rows are compared.",
        )
    return [spelled[key.lower()] for key in request.keys]


def _different(
    head: ComparedVersion, target: ComparedVersion, columns: Sequence[tuple[str, bool]]
) -> DataFrame:
    """Each row that is not as often in both, once, with how often more head has it."""
    rows = [_weighed(one.apart, columns, weight) for one, weight in ((head, 1), (target, -1))]
    grouped = rows[0].unionByName(rows[1]).groupBy(*(quoted(name) for name, _ in columns))
    return grouped.agg(f.sum(_WEIGHT).alias(_WEIGHT)).where(f.col(_WEIGHT) != 0)


def _weighed(rows: DataFrame, columns: Sequence[tuple[str, bool]], weight: int) -> DataFrame:
    kinds = {field.name.lower(): field.dataType for field in rows.schema.fields}
    compared = [_comparable(name, kinds[name.lower()], text).alias(name) for name, text in columns]
    return rows.select(*compared, f.lit(weight).alias(_WEIGHT))


def _comparable(name: str, kind: DataType, text: bool) -> Column:
    """The column as something that can be grouped by; maps and variants cannot."""
    value, described = f.col(quoted(name)), kind.simpleString()
    if described == "variant":
        return value.cast("string")
    if described.startswith("map<") and described.count("map<") == 1:
        value = f.array_sort(f.map_entries(value))
        return f.to_json(value) if text else value
    if (
        "map<" in described
        or "variant" in described
        or (text and described.startswith(("struct<", "array<")))
    ):
        return f.to_json(value)
    return value.cast("string") if text else value


def _counts(different: DataFrame) -> tuple[int, int]:
    weight = f.col(_WEIGHT)
    row = different.agg(
        f.sum(f.when(weight > 0, weight)).alias("goes"), f.sum(f.when(weight < 0, -weight)).alias("comes")
    ).first()
    return (0, 0) if row is None else (int(row["goes"] or 0), int(row["comes"] or 0))


def _key_counts(different: DataFrame, keys: Sequence[str]) -> KeyCounts:
    by_key = _by_key(different, keys)
    row = by_key.agg(
        f.count_if(f.col("goes") & ~f.col("comes")).alias("goes"),
        f.count_if(f.col("comes") & ~f.col("goes")).alias("comes"),
        f.count_if(f.col("goes") & f.col("comes")).alias("changes"),
    ).first()
    said = Row(goes=0, comes=0, changes=0) if row is None else row
    return KeyCounts(goes=int(said["goes"]), comes=int(said["comes"]), changes=int(said["changes"]))


def _by_key(different: DataFrame, keys: Sequence[str]) -> DataFrame:
    weight = f.col(_WEIGHT)
    return different.groupBy(*(f.col(quoted(key)).alias(f"k{place}") for place, key in enumerate(keys))).agg(
        f.max(weight > 0).alias("goes"), f.max(weight < 0).alias("comes")
    )


def _changes(head: ComparedVersion, target: ComparedVersion) -> Iterator[ColumnDifference]:
    """Columns that are not the same in both, with how many values go or come back with them."""
    now, then = ({field.name.lower(): field for field in one.schema.fields} for one in (head, target))
    for version, mine, others in ((head, now, then), (target, then, now)):
        only = [field.name for key, field in mine.items() if key not in others]
        if only:
            values = version.whole.agg(*(f.count(quoted(name)).alias(name) for name in only)).first()
            for name in only:
                kind = mine[name.lower()].dataType.simpleString()
                yield ColumnDifference(
                    name=name,
                    head=kind if version is head else None,
                    target=kind if version is target else None,
                    values=None if values is None else int(values[name]),
                )
    for key in now.keys() & then.keys():
        kinds = now[key].dataType.simpleString(), then[key].dataType.simpleString()
        if kinds[0] != kinds[1]:
            yield ColumnDifference(name=now[key].name, head=kinds[0], target=kinds[1])


def _whole_rows(different: DataFrame, samples: int) -> Iterator[Sample]:
    """Half of the samples are kept for each side, as long as it has that many."""
    if not samples:
        return
    names = [name for name in different.columns if name != _WEIGHT]
    sides = [
        _texts(different.where(f.col(_WEIGHT) > 0), names).limit(samples).collect(),
        _texts(different.where(f.col(_WEIGHT) < 0), names).limit(samples).collect(),
    ]
    first = min(len(sides[0]), max(samples - len(sides[1]), (samples + 1) // 2))
    sides = [sides[0][:first], sides[1][: samples - first]]
    goes, comes = ([_row(one, names) for one in side] for side in sides)
    if goes or comes:
        yield Sample(goes=tuple(goes), comes=tuple(comes))


def _of_keys(different: DataFrame, keys: Sequence[str], samples: int) -> Iterator[Sample]:
    """The first keys in their order, with up to three rows a side."""
    if not samples:
        return
    names = [name for name in different.columns if name != _WEIGHT]
    marks = [f"k{place}" for place in range(len(keys))]
    chosen = _by_key(different, keys).orderBy(*marks).limit(samples).select(*marks)
    same = [f.col(quoted(key)).eqNullSafe(f.col(mark)) for key, mark in zip(keys, marks, strict=True)]
    condition = reduce(and_, same)
    side = Window.partitionBy(*marks, f.col(_WEIGHT) > 0).orderBy(f.abs(_WEIGHT).desc())
    rows = different.join(f.broadcast(chosen), condition).withColumn(_PLACE, f.row_number().over(side))
    found: dict[tuple[str | None, ...], tuple[list[SampleRow], list[SampleRow]]] = {}
    kept = rows.where(f.col(_PLACE) <= _ROWS_OF_KEY).orderBy(*marks, f.desc(_WEIGHT))
    for one in _texts(kept, names).collect():
        key = tuple(one[names.index(name)] for name in keys)
        goes, comes = found.setdefault(key, ([], []))
        (goes if one[-1] > 0 else comes).append(_row(one, names))
    for key, (goes, comes) in found.items():
        yield Sample(key=tuple(zip(keys, key, strict=True)), goes=tuple(goes), comes=tuple(comes))


def _texts(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Every value as text of bounded length; the weight stays a number, at the end."""
    kinds = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
    shown = []
    for place, name in enumerate(names):
        value = f.col(quoted(name))
        kind = kinds[name]
        if kind == "binary":
            value = f.hex(f.substring(value, 1, LONGEST_VALUE))
        text = f.to_json(value) if kind.startswith(("struct<", "array<", "map<")) else value.cast("string")
        shown.append(f.substring(text, 1, LONGEST_VALUE).alias(f"c{place}"))
    return rows.select(*shown, _WEIGHT)


def _row(one: Row, names: Sequence[str]) -> SampleRow:
    return SampleRow(values=tuple(zip(names, one[:-1], strict=True)), times=abs(int(one[-1])))
