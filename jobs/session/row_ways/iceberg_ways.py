"""In which way the rows of one statement are written to an Iceberg table: by the mode of its write."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from lakewarden.catalog.bounds import as_whole
from lakewarden.catalog.errors import RefusedError, UsageError
from lakewarden.catalog.model.enums import RowsWrite
from lakewarden.catalog.policy.rows_write import AskedWay, ChosenWay, WrittenAndRead, decided
from lakewarden.jobs.session.iceberg.written_tables import WrittenTable
from lakewarden.jobs.session.plans import Plans

__all__ = ["IcebergWay", "iceberg_way", "known_of_iceberg"]

_MODES: Final[Mapping[RowsWrite, str]] = {
    RowsWrite.REWRITE: "copy-on-write",
    RowsWrite.POSITION: "merge-on-read",
    RowsWrite.VECTOR: "merge-on-read",
}
_CHANGES: Final = ("overwrite", "delete")
"""What snapshots say of themselves whose rows others took the place of, or none. A compaction is a replace."""
_VECTORS: Final = 3
"""The format version from which on the places of deleted rows are kept in vectors, and nowhere else."""


@dataclass(frozen=True, kw_only=True, slots=True)
class IcebergWay:
    """A way, and what has to be done for it."""

    chosen: ChosenWay

    @property
    def mode(self) -> str | None:
        """The table's `write.*.mode` for this statement; None for its own."""
        return _MODES.get(self.chosen.way)


def iceberg_way(target: WrittenTable, asked: AskedWay, known: WrittenAndRead) -> IcebergWay:
    """What is done of what is asked for. Raises `UsageError` and `RefusedError` for what the statement asks for and its
    table cannot have."""
    version = int(target.base.formatVersion())
    beside = RowsWrite.POSITION if version < _VECTORS else RowsWrite.VECTOR
    because = f"{asked.by} asks for it"
    match asked.way:
        case RowsWrite.AUTO:
            return IcebergWay(chosen=decided(known, beside, asked.by))
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
            return IcebergWay(chosen=ChosenWay(way=beside, because=because))
        case way:
            return IcebergWay(chosen=ChosenWay(way=way, because=because))
    return IcebergWay(chosen=asked.left_out(refusal))


def known_of_iceberg(
    plans: Plans, target: WrittenTable, *, since: datetime, reads: int | None, all_change: bool
) -> WrittenAndRead:
    """What the table's own metadata tells, and the `reads` that are on record since then."""
    head = target.base.currentSnapshot()
    told = {} if head is None else dict(head.summary())
    first = since.timestamp() * 1000
    writes = sum(
        one.timestampMillis() >= first and str(one.operation()) in _CHANGES
        for one in plans.items(target.base.snapshots())
    )
    return WrittenAndRead(
        size=0 if head is None else as_whole(str(told.get("total-files-size", ""))),
        writes=writes,
        reads=reads,
        all_change=all_change,
    )
