"""What the rows of a table have to do with one another at two versions:
the question, the answer, and its words. Pure."""

from collections.abc import Iterator
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass

from lakewarden.catalog.model.rows import DELTA, TableFormat
from lakewarden.catalog.units import count_of, printable

__all__ = [
    "LONGEST_VALUE",
    "MOST_SAMPLES",
    "ColumnDifference",
    "DiffRequest",
    "KeyCounts",
    "RowDiff",
    "Sample",
    "SampleRow",
    "as_lines",
    "decode_diff",
    "encode_diff",
    "json_of",
]

MOST_SAMPLES: Final = 1000
LONGEST_VALUE: Final = 200
"""Characters of a value that a sample carries."""
_LONGEST_LINE: Final = 110
_NULL: Final = "null"


@dataclass(frozen=True, kw_only=True, slots=True)
class DiffRequest:
    """Compare two versions of a table."""

    name: str
    location: str
    head: int
    target: int
    keys: tuple[str, ...] = ()
    """Columns that identify rows; without any, whole rows are compared."""
    samples: int = 10
    """At most so many rows (or keys) come back."""
    format: TableFormat = DELTA


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnDifference:
    """A column that only one version has (the other type is None), or that has two types."""

    name: str
    head: str | None
    target: str | None
    values: int | None = None
    """Of a column that only one version has: how many are not null."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleRow:
    """One row as text by column, as often as it goes (or comes back); values are cut off, None is null."""

    values: tuple[tuple[str, str | None], ...]
    times: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """Rows that go and rows that come back, of one key."""

    key: tuple[tuple[str, str | None], ...] = ()
    """Empty if whole rows are compared."""
    goes: tuple[SampleRow, ...] = ()
    comes: tuple[SampleRow, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyCounts:
    """Keys all of whose different rows go, all of whose come back, and those with both."""

    goes: int
    comes: int
    changes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RowDiff:
    """Rows as a multiset: a row that head has three times and target once goes twice."""

    request: DiffRequest
    rows_head: int
    rows_target: int
    goes: int
    comes: int
    keys: KeyCounts | None = None
    columns: tuple[ColumnDifference, ...] = ()
    """The columns that differ. Of rows, only what both versions have in common is compared."""
    samples: tuple[Sample, ...] = ()


_ADAPTER = TypeAdapter(RowDiff)


def encode_diff(diff: RowDiff) -> bytes:
    """Compact JSON, for another process."""
    return _ADAPTER.dump_json(diff)


def decode_diff(payload: bytes) -> RowDiff:
    """What `encode_diff` wrote. Raises pydantic.ValidationError for anything else."""
    return _ADAPTER.validate_json(payload)


def json_of(diff: RowDiff) -> dict[str, Any]:
    """For `-o json`: values as text, null as null."""
    return {
        "name": diff.request.name,
        "from": diff.request.head,
        "to": diff.request.target,
        "key": list(diff.request.keys),
        "rows_from": diff.rows_head,
        "rows_to": diff.rows_target,
        "goes": diff.goes,
        "comes_back": diff.comes,
        "keys": None
        if diff.keys is None
        else {"goes": diff.keys.goes, "comes_back": diff.keys.comes, "changes": diff.keys.changes},
        "columns": [
            {"name": one.name, "from": one.head, "to": one.target, "values": one.values}
            for one in diff.columns
        ],
        "samples": [
            {"key": dict(one.key), "goes": _rows_as_json(one.goes), "comes_back": _rows_as_json(one.comes)}
            for one in diff.samples
        ],
    }


def _rows_as_json(rows: tuple[SampleRow, ...]) -> list[dict[str, Any]]:
    return [{"row": dict(one.values), "times": one.times} for one in rows]


def as_lines(diff: RowDiff) -> Iterator[str]:
    """For people: counts, columns, then rows with `-` for what goes and `+` for what comes back."""
    asked = diff.request
    yield (
        f"Rows of {asked.name}: {count_of(diff.rows_head, 'row')} in version {asked.head}, "
        f"{diff.rows_target:,} in version {asked.target}; {diff.goes:,} go, {diff.comes:,} come back"
    )
    if diff.keys is not None:
        keys = diff.keys
        yield (
            f"  keys ({', '.join(asked.keys)}): {keys.goes:,} go, {keys.comes:,} come back, "
            f"{keys.changes:,} change"
        )
    for column in diff.columns:
        yield f"  column {_column(column)}"
    shown = 0
    for sample in diff.samples:
        for mark, rows in (("-", sample.goes), ("+", sample.comes)):
            for row in rows:
                shown += row.times
                yield _cut(f"  {mark} {_row(row)}")
    if shown < diff.goes + diff.comes:
        yield f"  and {count_of(diff.goes + diff.comes - shown, 'more row')}"


def _column(one: ColumnDifference) -> str:
    values = "" if one.values is None else f" with {count_of(one.values, 'value')}"
    if one.target is None:
        return f"{printable(one.name, keep='')} ({one.head}) goes{values}"
    if one.head is None:
        return f"{printable(one.name, keep='')} ({one.target}) comes back{values}"
    return f"{printable(one.name, keep='')} is {one.head} now and becomes {one.target}"


def _row(row: SampleRow) -> str:
    times = f"{row.times:,} times " if row.times > 1 else ""
    return times + ", ".join(
        f"{printable(name, keep='')}={_NULL if value is None else printable(value, keep='')}"
        for name, value in row.values
    )


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…"
