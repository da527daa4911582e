"""The batches of streaming queries: what is told of one, and the port by which a format says what one read of its
tables.

An offset is Spark's JSON text of how far a source got. What it means is its format's matter.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.model.lineage_record import LineageInput
from lakewarden.catalog.model.rows import TableFormat

__all__ = [
    "NOT_SAID",
    "UNKNOWN_INPUT",
    "BatchKey",
    "Began",
    "FindTable",
    "KnownTable",
    "KnownTables",
    "SourceOffsets",
    "StreamBatch",
    "StreamSource",
]

BatchKey = tuple[str, int]
"""A query's id and the number of one of its batches."""
UNKNOWN_INPUT: Final = LineageInput(location="", format="")
"""Of what stands here nobody can tell what it was."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Began:
    """What a query's first batch began with. Neither content nor version: nobody said."""

    content: bool = False
    """The table's whole content."""
    version: int | None = None
    """This version, by the option `startingVersion`."""
    skips: bool = False
    """By the option `skipChangeCommits`, versions that take rows away are passed over."""


NOT_SAID: Final = Began()


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceOffsets:
    """One source of a batch: offsets as JSON text, None where there is none."""

    start: str | None
    end: str | None
    first: str | None = None
    """The end of the query's first batch, where it is known."""
    initial: str | None = None
    """Where the query began, as far as the source's format keeps it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StreamBatch:
    """One batch as a checkpoint, or the query's own progress, tells it."""

    query_id: str
    epoch: int
    sources: tuple[SourceOffsets, ...]
    stateful: bool = False
    began: Began = NOT_SAID

    @property
    def key(self) -> BatchKey:
        """What the sink's commit names it by."""
        return (self.query_id, self.epoch)


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownTable:
    """A managed table, for whoever has to tell which of its versions were read."""

    table_id: str
    format_id: str | None
    commits: Sequence[Commit]
    """All that its log has."""


FindTable = Callable[[TableFormat, str, str | None], KnownTable | None]
"""The table of a format that has a version which the format calls by this id; the second id, if there is one, was
looked for before and may be in the same table. Raises `UnavailableError` where one that may have it does not answer."""


def _nowhere(format_: TableFormat, own_id: str, near: str | None) -> None:
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownTables:
    """How a source finds its table."""

    by_format_id: Mapping[str, str] = field(default_factory=dict)
    """The `table_id` of each managed table by every UUID that it ever had."""
    find: FindTable = _nowhere


class StreamSource(Protocol):
    """What a format's source says in its offsets."""

    initial_file: str | None
    """Where in its folder of a checkpoint the source keeps what it began with; None: nowhere."""

    def knows(self, offset: Mapping[str, Any]) -> bool:
        """Whether this is an offset of a table of the format, even one that cannot be read."""

    def reads(
        self, batch: StreamBatch, source: SourceOffsets, began: Began, tables: KnownTables
    ) -> Iterator[LineageInput]:
        """What a batch read from one of its sources; an input without a table where that cannot be told."""

    def format_id(self, offset: Mapping[str, Any]) -> str | None:
        """The UUID of the table that an offset speaks of, where it names it."""

    def inside_version(self, offset: Mapping[str, Any]) -> int | None:
        """The version in the middle of whose changes an offset stands; None at the edges of versions, and within the
        content that a query begins with, which has nothing but insertions."""
