"""Partitions, as the reader tells them, as an expression of Iceberg's that is true for their rows alone."""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, Final

from pyspark.sql import SparkSession

from lakewarden.catalog.errors import RefusedError
from lakewarden.jobs.engines.iceberg.java_tables import JavaTable
from lakewarden.jobs.runs.port import Partition

__all__ = ["rows_of"]

_VALUES: Final[Mapping[str, Callable[[str], object]]] = {
    "boolean": lambda text: text == "True",
    "date": str,
    "int": int,
    "long": int,
    "string": str,
}
"""Types of partitions' values that come back from text as they were."""


def rows_of(table: JavaTable, partitions: Sequence[Partition] | None) -> Any | None:
    """None for all. Raises `RefusedError` for partitions whose values cannot be told by text."""
    if partitions is None or any(not one for one in partitions):
        return None  # files of no partition are anywhere
    fields = _fields(table)
    if fields is None:
        return None
    expressions = _expressions(table.spark)
    each = [
        reduce(
            getattr(expressions, "and"),
            [_equals(expressions, table, fields, name, value) for name, value in one],
        )
        for one in partitions
    ]
    return reduce(getattr(expressions, "or"), each)


def _expressions(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.iceberg.expressions.Expressions


def _fields(table: JavaTable) -> Mapping[str, tuple[Any, Any]] | None:
    """Partition fields of any spec by name, each with its spec; None where one name has meant different things."""
    found: dict[str, tuple[Any, Any]] = {}
    for spec in table.base.specs():
        for one in spec.fields():
            known, _ = found.setdefault(str(one.name()), (one, spec))
            if _meaning(known) != _meaning(one):
                return None
    return found


def _meaning(field: Any) -> tuple[int, str]:
    """The column and the transform of a partition field."""
    return int(field.sourceId()), str(field.transform().toString())


def _equals(
    expressions: Any, table: JavaTable, fields: Mapping[str, tuple[Any, Any]], name: str, value: str | None
) -> Any:
    field, spec = fields[name]
    column = str(table.base.schema().findColumnName(field.sourceId()))
    transform = str(field.transform().toString())
    type_ = str(spec.partitionType().field(field.fieldId()).type().toString())
    term = _term(expressions, transform, column)
    if term is None or type_ not in _VALUES:
        raise RefusedError(
            f"Partitions of {table.location} by {transform} of {column} ({type_}) cannot be compacted one by one.",
            hint="Its engine can: CALL system.rewrite_data_files.",
        )
    return expressions.isNull(term) if value is None else expressions.equal(term, _VALUES[type_](value))


def _term(expressions: Any, transform: str, column: str) -> Any | None:
    if transform == "identity":
        return column
    kind, _, width = transform.removesuffix("]").partition("[")
    if kind in ("bucket", "truncate") and width:
        return getattr(expressions, kind)(column, int(width))
    return getattr(expressions, kind)(column) if kind in ("year", "month", "day", "hour") else None
