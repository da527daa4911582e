"""In which way the rows of one statement are written to a Delta table: with deletion vectors, where the table has them,
or without. A statement never switches them on."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from lakewarden.catalog.errors import RefusedError, UsageError
from lakewarden.catalog.formats.port import CommitKind, TableReader
from lakewarden.catalog.model.bucket_layout import layout_in
from lakewarden.catalog.model.enums import RowsWrite
from lakewarden.catalog.policy.rows_write import AskedWay, ChosenWay, WrittenAndRead, decided
from lakewarden.jobs.session.plans import Plans

__all__ = ["delta_way", "has_vectors", "known_of_delta", "set_way"]

_VECTORS: Final = "delta.enableDeletionVectors"
_KEYS: Final = tuple(
    f"spark.databricks.delta.{one}.deletionVectors.persistent" for one in ("delete", "merge", "update")
)
_CHANGES: Final = (
    CommitKind.MERGE,
    CommitKind.UPDATE,
    CommitKind.DELETE,
    CommitKind.OVERWRITE,
    CommitKind.PARTIAL_OVERWRITE,
)
_MOST: Final = 100
"""Commits are read one by one: so many of the newest."""


def has_vectors(properties: Mapping[str, str]) -> bool:
    """Whether a table's owner has switched deletion vectors on."""
    return properties.get(_VECTORS, "").lower() == "true"


def delta_way(
    location: str, properties: Mapping[str, str], asked: AskedWay, known: WrittenAndRead
) -> ChosenWay:
    """What is done of what is asked for. Raises `UsageError` and `RefusedError` for what the statement asks for and its
    table cannot have."""
    layout = layout_in(properties)
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
        case _ if layout is not None:
            if asked.way is RowsWrite.AUTO:
                because = f"auto, as {asked.by} asks: it has buckets, which are written anew"
                return ChosenWay(way=RowsWrite.REWRITE, because=because)
            return asked.left_out(
                RefusedError(
                    f"{location} has buckets, which are written anew one by one: vectors would leave its statements "
                    "to MERGE. Nothing was changed.",
                    hint="Its way is rewrite. ALTER TABLE ... NOT CLUSTERED takes the buckets away.",
                )
            )
        case _ if not has_vectors(properties):
            if asked.way is RowsWrite.AUTO:
                because = f"auto, as {asked.by} asks: deletion vectors are not switched on"
                return ChosenWay(way=RowsWrite.REWRITE, because=because)
            return asked.left_out(
                RefusedError(
                    f"{location} has no deletion vectors, and a statement does not switch them on. Nothing was "
                    "changed.",
                    hint=f"ALTER TABLE ... SET TBLPROPERTIES ('{_VECTORS}' = 'true') does. It is one way: readers that "
                    "do not know them, such as delta-rs, refuse the table from then on (docs/governed-writes.md).",
                )
            )
        case RowsWrite.AUTO:
            return decided(known, RowsWrite.VECTOR, asked.by)
        case RowsWrite.VECTOR as way:
            return ChosenWay(way=way, because=f"{asked.by} asks for it")


def set_way(session: Any, way: RowsWrite) -> None:
    """Have a session (in the JVM), a clone for one statement alone, write so."""
    if way in (RowsWrite.REWRITE, RowsWrite.VECTOR):
        for key in _KEYS:
            session.conf().set(key, "true" if way is RowsWrite.VECTOR else "false")


def known_of_delta(
    plans: Plans,
    reader: TableReader,
    snapshot: Any,
    location: str,
    *,
    since: datetime,
    reads: int | None,
    all_change: bool,
) -> WrittenAndRead:
    """What the table's log tells at Delta's own `snapshot`, and the `reads` that are on record since then."""
    size = plans.option(snapshot.sizeInBytesIfKnown())
    commits = reader.newest(location, count=_MOST)
    recent = [one for one in commits if one.committed_at >= since]
    return WrittenAndRead(
        size=None if size is None else int(size),
        writes=sum(one.kind in _CHANGES for one in recent),
        reads=reads,
        all_change=all_change,
        has_more=len(recent) == _MOST,
    )
