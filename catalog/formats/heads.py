"""Which head a decision was made on: more than its number, which a table made anew at the same place has as
well. Pure."""

from datetime import datetime
from typing import Final, NamedTuple

import pyarrow as pa

from lakewarden.catalog.clock import to_millis
from lakewarden.catalog.formats.port import Commit, TableReader
from lakewarden.catalog.model.rows import HealthRow, TableRow

__all__ = [
    "HEAD_COLUMNS",
    "SweptHead",
    "commit_at",
    "has_commit",
    "head_on_record",
    "head_token",
    "swept_heads",
    "time_of_head",
    "unread_head",
]

HEAD_COLUMNS: Final = ("table_id", "version", "head")


class SweptHead(NamedTuple):
    """The version of a table that a sweep saw, and the state of head then."""

    version: int
    head: str


def head_on_record(row: TableRow, health: HealthRow) -> str | None:
    """The head that the last sweep saw; None where it could not be read. Rows that are older than the column are of
    Delta tables."""
    if health.head is not None:
        return health.head
    if not row.format_ids or health.version is None or health.committed_at is None:
        return None
    return head_token(row.format_ids[-1], health.version, health.committed_at)


def commit_at(reader: TableReader, location: str, version: int) -> Commit | None:
    """The commit of a version; None if the log has it no more."""
    return next(reader.commits(location, after=version - 1, upto=version), None)


def unread_head(latest: int | None, on_record: int | None) -> int | None:
    """The version of a head that cannot be read and is not on record; None: it is on record, whatever it holds. Where
    the table does not even tell its newest version, it comes after every one on record."""
    if latest is None:
        return 0 if on_record is None else on_record + 1
    return latest if on_record is None or latest > on_record else None


def has_commit(reader: TableReader, location: str, *, version: int, head: str) -> bool | None:
    """`TableReader.has_head` for formats whose heads are told by `head_token`."""
    commit, format_id = commit_at(reader, location, version), head.rpartition("@")[0].rpartition("@")[0]
    return None if commit is None else head == head_token(format_id, commit.version, commit.committed_at)


def swept_heads(health: pa.Table) -> dict[str, SweptHead]:
    """What the last sweep saw of each table, from `HEAD_COLUMNS` of `lakewarden.health`."""
    rows = zip(*(health.column(name).to_pylist() for name in HEAD_COLUMNS), strict=True)
    return {
        table_id: SweptHead(version, head) for table_id, version, head in rows if None not in (version, head)
    }


def time_of_head(head: str) -> int:
    """The time in a token of `head_token`, in epoch milliseconds."""
    return int(head.rpartition("@")[2])


def head_token(format_id: str, version: int, committed_at: datetime) -> str:
    """UUID, version and the time of its commit, as one token: the head of a table whose versions only go up."""
    return f"{format_id}@{version}@{to_millis(committed_at)}"
