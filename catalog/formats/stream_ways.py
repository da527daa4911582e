"""Streaming queries around a table that goes back: what is known of one, and the port by which a format says how it can
go on."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

__all__ = ["ReadingQuery", "StreamWays"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadingQuery:
    """A query that reads a table which goes back, and writes another."""

    query_id: str
    sink: str
    """The name of the table that it writes."""
    table: str
    """The name of the one that it reads."""
    head: int
    """The version that this one leaves."""
    target: int | None
    """The version that it goes back to, None if there is none."""
    removes_files: bool = False
    """Files are taken out of head instead."""
    upto: int | None
    """The last version whose rows the query's own table still has, None if it has none."""
    again: int | None = None
    """The query lost batches whose reads begin after this version; -1: they were made of all that it ever read."""
    out: tuple[int, int] | None = None
    """Batches are taken out of the middle of its table, and had read versions from the first of these up to the
    second."""
    missed: bool = False
    """Some of these versions were clean."""
    first_undone: int | None = None
    """The number of the first of its batches that are undone."""
    is_behind: bool = False
    """All that it has read is still there once the table has gone back."""
    keeps_clean: bool = False
    """The same of what its own table keeps."""
    head_at: datetime | None = None
    """When head was made, and what it goes back to; None where nothing tells."""
    target_at: datetime | None = None


class StreamWays(Protocol):
    """What a format's streams can do after a rollback, in sentences."""

    def goes_back_too(self, first: int) -> str:
        """To who wrote batches from `first` on that are undone, from a table of the format that goes back as well."""

    def reading(self, query: ReadingQuery) -> str:
        """To who reads a table of the format that goes back."""
