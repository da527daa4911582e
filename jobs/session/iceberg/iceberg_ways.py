"""In which way the rows of one statement are written to an Iceberg table: by the mode of its write."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Final

from lakewarden.catalog.bounds import as_whole
from lakewarden.catalog.errors import RefusedError, UsageError
from lakewarden.catalog.formats.iceberg.governed import taken_rows
from lakewarden.catalog.model.enums import RowsWrite
from lakewarden.catalog.model.rows import TableFormat
from lakewarden.catalog.policy.rows_write import AskedWay, ChosenWay, WrittenAndRead, decided
from lakewarden.jobs.session.formats.row_changes import Properties, properties_of_namespace
from lakewarden.jobs.session.iceberg.snapshot_lines import ToldSnapshot, main_line
from lakewarden.jobs.session.iceberg.written_tables import WrittenTable
from lakewarden.jobs.session.plans import Plans

__all__ = ["IcebergTarget", "UnnamedTarget", "iceberg_way", "mode_of"]

_MODES: Final[Mapping[RowsWrite, str]] = {
    RowsWrite.REWRITE: "copy-on-write",
    RowsWrite.POSITION: "merge-on-read",
    RowsWrite.VECTOR: "merge-on-read",
}
_CHANGES: Final = ("overwrite", "delete")
"""What snapshots say of themselves whose rows others took the place of, or none. A compaction is a replace."""
_TOLD: Final = 20
"""So many of the newest are asked how many rows they took."""
_VECTORS: Final = 3
"""The format version from which on the places of deleted rows are kept in vectors, and nowhere else."""


def _share(one: ToldSnapshot, before: ToldSnapshot | None) -> float | None:
    """The share of the rows of the one before that a change took; None where nothing tells."""
    if before is None:
        return None
    rows = as_whole(before.summary.get("total-records", ""))
    taken = taken_rows(str(one.operation), one.summary, before.summary)
    return taken / rows if rows and taken and taken > 0 else None


def mode_of(way: ChosenWay) -> str | None:
    """The table's `write.*.mode` for a statement whose rows are written so; None for its own."""
    return _MODES.get(way.way)


def iceberg_way(target: WrittenTable, asked: AskedWay, known: WrittenAndRead) -> ChosenWay:
    """What is done of what is asked for. Raises `UsageError` and `RefusedError` for what the statement asks for and its
    table cannot have."""
    version = int(target.base.formatVersion())
    beside = RowsWrite.POSITION if version < _VECTORS else RowsWrite.VECTOR
    because = f"{asked.by} asks for it"
    match asked.way:
        case RowsWrite.AUTO:
            return decided(known, beside, asked.by)
        case RowsWrite.VECTOR if version < _VECTORS:
            refusal: RefusedError | UsageError = RefusedError(
                f"{target.location} has format version {version}, which has no vectors. Nothing was changed.",
                hint="Write by position; or ALTER TABLE ... SET TBLPROPERTIES ('format-version' = '3'), which cannot "
                "be taken back: docs/governed-writes.md says who cannot read it then.",
            )
        case RowsWrite.EQUALITY:
            refusal = UsageError(
                "Only an upsert writes by equality deletes: any other statement has to find its rows.",
                hint="Use lw.upsert, or another way: rewrite, position, vector, auto.",
            )
        case RowsWrite.POSITION if beside is RowsWrite.VECTOR:
            because = f"{asked.by} asks for position, which is a vector in format version {version}"
            return ChosenWay(way=beside, because=because)
        case way:
            return ChosenWay(way=way, because=because)
    return asked.left_out(refusal)


@dataclass(frozen=True, kw_only=True)
class IcebergTarget:
    """`RowsTarget`: an Iceberg table whose rows a statement changes."""

    plans: Plans
    target: WrittenTable
    all_change: bool = False
    format: TableFormat = "iceberg"

    @property
    def location(self) -> str:
        return self.target.location

    @property
    def properties(self) -> Properties:
        return self.plans.entries(self.target.base.properties())

    def properties_around(self) -> Properties:
        return properties_of_namespace(self.target.relation)

    def known(self, *, since: datetime, reads: int | None, rows: Callable[[], int | None]) -> WrittenAndRead:
        first = since.timestamp() * 1000
        line: list[ToldSnapshot] = []
        for one in main_line(self.plans, self.target.base):
            line.append(one)
            if one.at < first:
                break
        pairs = list(zip_longest(line, line[1:]))
        changes = [pair for pair in pairs if pair[0].at >= first and pair[0].operation in _CHANGES]
        size = as_whole(line[0].summary.get("total-files-size", "")) if line else 0
        return WrittenAndRead(
            size=size,
            writes=len(changes),
            reads=reads,
            all_change=self.all_change,
            shares=tuple(_share(*pair) for pair in changes[:_TOLD]),
        )

    def way(self, asked: AskedWay, known: WrittenAndRead) -> ChosenWay:
        return iceberg_way(self.target, asked, known)


@dataclass(frozen=True, kw_only=True)
class UnnamedTarget(IcebergTarget):
    """A table whose rows a statement changes that calls it by something else than its name: its way cannot be chosen
    any more."""

    def way(self, asked: AskedWay, known: WrittenAndRead) -> ChosenWay:
        return asked.left_out(
            RefusedError(
                "The statement calls its table by something else than its plain name. Nothing was changed.",
                hint="Write catalog.namespace.table, without IDENTIFIER and without options.",
            )
        )
