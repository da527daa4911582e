"""Rows of two versions compared in memory: what `Engine.row_diff` says, without Spark. At most a few thousand rows."""

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa

from lakewarden.catalog.errors import PreconditionError
from lakewarden.jobs.runs.row_diff import DiffRequest, KeyCounts, RowDiff, Sample, SampleRow

__all__ = ["compared"]

Row = tuple[tuple[str, str | None], ...]


def compared(request: DiffRequest, head: pa.Table, target: pa.Table) -> RowDiff:
    """The answer for two versions that have the same columns; samples are rows, whatever the key."""
    for key in request.keys:
        if key not in head.column_names or key not in target.column_names:
            raise PreconditionError(f"{request.name} has no column {key} in both versions.")
    weights = Counter(_rows(head))
    weights.subtract(_rows(target))
    goes = {row: weight for row, weight in weights.items() if weight > 0}
    comes = {row: -weight for row, weight in weights.items() if weight < 0}
    out, back = ({tuple(dict(row)[key] for key in request.keys) for row in side} for side in (goes, comes))
    counts = KeyCounts(goes=len(out - back), comes=len(back - out), changes=len(out & back))
    some = Sample(goes=tuple(_samples(goes, request)), comes=tuple(_samples(comes, request)))
    return RowDiff(
        request=request,
        rows_head=head.num_rows,
        rows_target=target.num_rows,
        goes=sum(goes.values()),
        comes=sum(comes.values()),
        keys=counts if request.keys else None,
        samples=(some,) if some.goes or some.comes else (),
    )


def _rows(table: pa.Table) -> Iterator[Row]:
    for row in table.to_pylist():
        yield tuple((name, None if value is None else str(value)) for name, value in row.items())


def _samples(rows: dict[Row, int], request: DiffRequest) -> Iterator[SampleRow]:
    for row in sorted(rows)[: request.samples // 2]:
        yield SampleRow(values=row, times=rows[row])
