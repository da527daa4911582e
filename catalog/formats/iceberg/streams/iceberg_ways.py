"""How streams go on that read an Iceberg table which was rolled back (Iceberg 1.12, Spark 4.1; run). Pure.

A rollback's snapshot is made from the older one and changes no row, so Iceberg's source passes over it. A query that
got no further than that older snapshot just goes on. One that did stands at a snapshot that main does not descend from
any more, and ends with an error whenever it is started; its checkpoint, taken back, stands where it can go on.

Files that are taken out leave by a snapshot made from head, which deletes: the query ends with an error unless it is
told to pass over such snapshots.
"""

from datetime import datetime
from typing import Final

from lakewarden.catalog.clock import to_millis
from lakewarden.catalog.formats.stream_ways import ReadingQuery

__all__ = ["IcebergWays"]

_SKIPS: Final = "`streaming-skip-delete-snapshots`"
_STOP: Final = "Stop it before `apply`"


class IcebergWays:
    """`StreamWays` of Iceberg tables."""

    def goes_back_too(self, first: int) -> str:
        return "Its source goes back, too: there it says how to start it again."

    def reading(self, query: ReadingQuery) -> str:
        who = f"{query.query_id} (writes {query.sink}) reads it"
        if query.removes_files:
            return _after_removal(query, who)
        if query.first_undone is None and query.is_behind:
            return (
                f"{who}, and has not read what goes back. {_STOP}, then just start it: it goes on from its "
                "checkpoint."
            )
        lost = f"{who}, and ends with an error once main is set back. {_STOP}, then"
        if query.upto is None:
            return f"{lost} start it with a new checkpoint: {query.sink} has nothing of it any more."
        if query.first_undone is not None and query.keeps_clean:
            return (
                f"{lost} take its checkpoint back to before batch {query.first_undone} and start it: it reads "
                f"again from there, without what goes back. Keep a copy of the checkpoint for an undo."
            )
        return f"{lost} start it with a new checkpoint and {_since(query.target, query.target_at)}.{_besides(query)}"


def _after_removal(query: ReadingQuery, who: str) -> str:
    lost = f"{who}, and ends with an error at the snapshot that takes files out. {_STOP}, then"
    if query.first_undone is None:
        return f"{lost} start it with {_SKIPS}: it goes on from its checkpoint.{_besides(query)}"
    if query.upto is None:
        return (
            f"{lost} take to {query.sink} what {query.table} has after the rollback, through the query's own "
            f"transformation, and start it with a new checkpoint, {_since(query.head, query.head_at)}, and {_SKIPS}."
        )
    return (
        f"{lost} start it with a new checkpoint, {_since(query.head, query.head_at)}, and {_SKIPS}: its old one leads "
        f"through what is taken out.{_besides(query)}"
    )


def _since(version: int | None, at: datetime | None) -> str:
    if at is not None:
        return f"`stream-from-timestamp` {to_millis(at) + 1}"
    return f"`stream-from-timestamp` one millisecond after version {version} was made"


def _besides(query: ReadingQuery) -> str:
    """What it will not read again."""
    said = ""
    newest = query.head if query.removes_files or query.target is None else query.target
    missing = query.upto if query.again is None else query.again
    if query.first_undone is not None and missing is not None and missing < newest:
        said += (
            f" Before that, take to {query.sink} what {query.table} has after the rollback and version {missing} "
            "has not."
        )
    if query.out is not None and query.missed:
        said += (
            f" What is taken out of {query.sink} had also read clean ones of the versions {query.out[0]} to "
            f"{query.out[1]}: add their rows by hand."
        )
    return said
