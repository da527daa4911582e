"""In which way the rows of one statement are written to a Delta table: with deletion vectors, where the table has them,
or without. A statement never switches them on."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from lakewarden.catalog.errors import RefusedError, UsageError
from lakewarden.catalog.formats.port import Commit, CommitKind, TableReader
from lakewarden.catalog.model.enums import RowsWrite
from lakewarden.catalog.model.rows import DELTA, TableFormat
from lakewarden.catalog.policy.rows_write import AskedWay, ChosenWay, WrittenAndRead, decided
from lakewarden.jobs.session.delta.checksums import bytes_of
from lakewarden.jobs.session.delta.session_keys import set_way
from lakewarden.jobs.session.formats.row_changes import Properties, properties_of_database
from lakewarden.jobs.session.plans import Plans
from lakewarden.jobs.session.row_counts import counts_of

__all__ = ["DeltaTarget", "delta_way"]

_VECTORS: Final = "delta.enableDeletionVectors"
_BY_ROW: Final = (CommitKind.MERGE, CommitKind.UPDATE, CommitKind.DELETE)
_CHANGES: Final = (*_BY_ROW, CommitKind.OVERWRITE, CommitKind.PARTIAL_OVERWRITE)
_MOST: Final = 100
"""Commits are read one by one: so many of the newest."""


def _has_vectors(properties: Mapping[str, str]) -> bool:
    """Whether a table's owner has switched deletion vectors on."""
    return properties.get(_VECTORS, "").lower() == "true"


def delta_way(
    location: str, properties: Mapping[str, str], asked: AskedWay, known: WrittenAndRead
) -> ChosenWay:
    """What is done of what is asked for. Raises `UsageError` and `RefusedError` for what the statement asks for and its
    table cannot have."""
    match asked.way:
        case RowsWrite.TABLE | RowsWrite.REWRITE as way:
            return ChosenWay(way=way, because=f"{asked.by} asks for it")
        case RowsWrite.EQUALITY | RowsWrite.POSITION as way:
            return asked.left_out(
                UsageError(
                    f"A Delta table has no deletes by {way}. Nothing was changed.",
                    hint="Its ways are rewrite and vector.",
                )
            )
        case way:
            obstacle = _obstacle(location, properties)
            is_auto = way is RowsWrite.AUTO
            if obstacle is None:
                return (
                    decided(known, RowsWrite.VECTOR, asked.by)
                    if is_auto
                    else ChosenWay(way=way, because=f"{asked.by} asks for it")
                )
            because, refusal = obstacle
            if not is_auto:
                return asked.left_out(refusal)
            return ChosenWay(way=RowsWrite.REWRITE, because=f"auto, as {asked.by} asks: {because}")


def _obstacle(location: str, properties: Mapping[str, str]) -> tuple[str, RefusedError] | None:
    """Why a table is not written with deletion vectors, and what is said to who asks for them; None where it can be."""
    if not _has_vectors(properties):
        return "deletion vectors are not switched on", RefusedError(
            f"{location} has no deletion vectors, and a statement does not switch them on. Nothing was changed.",
            hint=f"ALTER TABLE ... SET TBLPROPERTIES ('{_VECTORS}' = 'true') does. It is one way: readers that "
            "do not know them, such as delta-rs, refuse the table from then on (docs/governed-writes.md).",
        )
    return None


def _taken(commit: Commit) -> int | None:
    """The rows that a change took or replaced by others; None where its metrics do not tell."""
    if commit.kind not in _BY_ROW:
        return None
    counts = counts_of(commit)
    if counts.num_updated_rows is None or counts.num_deleted_rows is None:
        return None
    return counts.num_updated_rows + counts.num_deleted_rows


@dataclass(frozen=True, kw_only=True)
class DeltaTarget:
    """`RowsTarget`: a Delta table whose rows a session, a clone for one statement alone, changes."""

    plans: Plans
    session: Any
    reader: TableReader
    """Reads its log."""
    location: str
    snapshot: Any
    """Delta's own."""
    entry: Any
    """An Option, that of Spark's catalog."""
    all_change: bool = False
    format: TableFormat = DELTA

    @property
    def properties(self) -> Properties:
        return self.plans.texts(self.snapshot.metadata().configuration())

    def properties_around(self) -> Properties:
        return properties_of_database(self.plans, self.session, self.entry)

    def known(self, *, since: datetime, reads: int | None, rows: Callable[[], int | None]) -> WrittenAndRead:
        commits = self.reader.newest(self.location, count=_MOST)
        recent = [one for one in commits if one.committed_at >= since]
        changes = [one for one in recent if one.kind in _CHANGES]
        counts = [taken for taken in map(_taken, changes) if taken != 0]  # a MERGE may insert alone
        all_rows = rows() if any(counts) else None
        return WrittenAndRead(
            size=bytes_of(self.snapshot),
            writes=len(changes),
            reads=reads,
            all_change=self.all_change,
            has_more=len(recent) == _MOST,
            shares=tuple(one / all_rows if one is not None and all_rows else None for one in counts),
        )

    def way(self, asked: AskedWay, known: WrittenAndRead) -> ChosenWay:
        chosen = delta_way(self.location, self.properties, asked, known)
        set_way(self.session, chosen.way)
        return chosen
