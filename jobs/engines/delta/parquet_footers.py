"""Per-file statistics of a Delta table from Parquet footers: what is exact there, in the form the log has it. Pure.

A footer may be cut off, skip NaN, or come from a calendar that Spark reads differently. A bound that excludes an
existing row makes Spark skip the file wrongly. Uncertain bounds are left out: a missing bound costs speed only.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any, Final

import pyarrow.parquet as pq

from lakewarden.catalog.formats.delta.schema import PHYSICAL_NAME

__all__ = ["Leaf", "file_statistics", "indexed_leaves"]

_NUMBER_OF_COLUMNS: Final = "delta.dataSkippingNumIndexedCols"
_NAMED_COLUMNS: Final = "delta.dataSkippingStatsColumns"
_DEFAULT_COLUMNS: Final = 32

_LONGEST_TEXT: Final = 32
_HIGHEST_LETTER: Final = "\U0010ffff"
_EXACT_AS_FLOAT: Final = 15
"""Decimal digits that survive a double, which is how JSON numbers are written here."""
_SPARKS_OTHER_CALENDAR: Final = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
_GREGORIAN_SINCE: Final = date(1900, 1, 1)
"""From here on all calendars and time zones that writers have used agree."""
_KEEPS_NAN: Final = "parquet-mr"
"""Writers whose bounds are unusable, not wrong, where a column holds NaN. Arrow's leave NaN out."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A column, or a field inside structs: its physical path, Delta's type name, and how it is called in a message."""

    path: tuple[str, ...]
    type: str


def indexed_leaves(
    schema_json: str, properties: Mapping[str, str], partition_columns: Sequence[str]
) -> tuple[Leaf, ...]:
    """The leaves that the table wants statistics of: the first 32, or as its properties say; no partition columns."""
    fields = [field for field in json.loads(schema_json)["fields"] if field["name"] not in partition_columns]
    leaves = list(_leaves(fields, (), ()))
    named = properties.get(_NAMED_COLUMNS)
    if named is not None:
        wanted = [name.strip().replace("`", "") for name in named.split(",")]
        chosen = [
            leaf
            for leaf, shown in leaves
            if any(shown == one or shown.startswith(f"{one}.") for one in wanted)
        ]
    else:
        limit = int(properties.get(_NUMBER_OF_COLUMNS, _DEFAULT_COLUMNS))
        chosen = [leaf for leaf, _ in (leaves if limit < 0 else leaves[:limit])]
    return tuple(chosen)


def file_statistics(footer: pq.FileMetaData, leaves: Sequence[Leaf]) -> str:
    """The statistics of one file as the log's JSON: rows, and bounds and nulls of the leaves where they are certain."""
    columns = _Columns(footer)
    lows: dict[str, Any] = {}
    highs: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for leaf in leaves:
        found = columns.find(leaf.path)
        if found is None:
            continue
        count = _nulls(footer, found)
        if count is not None:
            _put(nulls, leaf.path, count)
        bounds = _bounds(footer, found, leaf.type)
        if bounds is not None:
            _put(lows, leaf.path, bounds[0])
            _put(highs, leaf.path, bounds[1])
    said: dict[str, Any] = {"numRecords": footer.num_rows}
    said |= {"minValues": lows, "maxValues": highs} if lows else {}
    said |= {"nullCount": nulls} if nulls else {}
    return json.dumps(said, separators=(",", ":"), ensure_ascii=False)


def _leaves(
    fields: Sequence[Mapping[str, Any]], above: tuple[str, ...], shown_above: tuple[str, ...]
) -> Iterator[tuple[Leaf, str]]:
    for field in fields:
        physical = (field.get("metadata") or {}).get(PHYSICAL_NAME, field["name"])
        path, shown = (*above, physical), (*shown_above, field["name"])
        kind = field["type"]
        if isinstance(kind, dict) and kind["type"] == "struct":
            yield from _leaves(kind["fields"], path, shown)
        else:  # an array or a map counts as one leaf, and has no bounds
            yield Leaf(path, kind if isinstance(kind, str) else str(kind["type"])), ".".join(shown)


class _Columns:
    """Where a leaf's column is in a file; files written by Hive spell names in lower case."""

    def __init__(self, footer: pq.FileMetaData) -> None:
        schema = footer.schema
        self._places: dict[str, int | None] = {}
        for place in range(len(schema)):
            column = schema.column(place)
            if column.max_repetition_level == 0:
                key = column.path.lower()
                self._places[key] = None if key in self._places else place

    def find(self, path: tuple[str, ...]) -> int | None:
        """None where there is no such column, or where its name is ambiguous."""
        if any("." in name for name in path):
            return None
        return self._places.get(".".join(path).lower())


def _nulls(footer: pq.FileMetaData, place: int) -> int | None:
    total = 0
    for group in range(footer.num_row_groups):
        statistics = footer.row_group(group).column(place).statistics
        if statistics is None or not statistics.has_null_count:
            return None
        total += statistics.null_count
    return total


def _bounds(footer: pq.FileMetaData, place: int, kind: str) -> tuple[Any, Any] | None:
    lows, highs = [], []
    for group in range(footer.num_row_groups):
        column = footer.row_group(group).column(place)
        statistics = column.statistics
        if statistics is None:
            return None
        if statistics.has_null_count and statistics.null_count == column.num_values:
            continue
        if not statistics.has_min_max:
            return None
        lows.append(statistics.min)
        highs.append(statistics.max)
    if not lows or not all(_is_certain(footer, value, kind) for value in (*lows, *highs)):
        return None
    return _low(min(lows)), _high(max(highs))


def _is_certain(footer: pq.FileMetaData, value: Any, kind: str) -> bool:
    """Whether a bound in a footer means what the table's type says, and can be written down exactly."""
    match kind:
        case "byte" | "short" | "integer" | "long":
            return type(value) is int
        case "float" | "double":
            return (
                type(value) is float and isfinite(value) and (footer.created_by or "").startswith(_KEEPS_NAN)
            )
        case "string":
            return type(value) is str
        case "date":
            return type(value) is date and value >= _GREGORIAN_SINCE and _is_gregorian(footer)
        case "timestamp":
            return _is_time(footer, value) and value.tzinfo is not None
        case "timestamp_ntz":
            return _is_time(footer, value) and value.tzinfo is None
    if kind.startswith("decimal(") and isinstance(value, Decimal):
        digits, scale = (int(part) for part in kind[len("decimal(") : -1].split(","))
        return digits <= _EXACT_AS_FLOAT and value.as_tuple().exponent == -scale
    return False


def _is_time(footer: pq.FileMetaData, value: Any) -> bool:
    return isinstance(value, datetime) and value.date() >= _GREGORIAN_SINCE and _is_gregorian(footer)


def _is_gregorian(footer: pq.FileMetaData) -> bool:
    return not any(key in (footer.metadata or {}) for key in _SPARKS_OTHER_CALENDAR)


def _low(value: Any) -> Any:
    if isinstance(value, str):
        return value[:_LONGEST_TEXT]
    return _written(value)


def _high(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_TEXT else value[:_LONGEST_TEXT] + _HIGHEST_LETTER
    if isinstance(value, datetime) and value.microsecond % 1000:
        value += timedelta(milliseconds=1)  # cut off to milliseconds below: the bound has to stay above
    return _written(value)


def _written(value: Any) -> Any:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return value.isoformat(timespec="milliseconds")
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    return float(value) if isinstance(value, Decimal) else value


def _put(tree: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value
