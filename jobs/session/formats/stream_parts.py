"""What a table format knows of both ends of a session's streaming queries."""

from collections.abc import Sequence
from typing import Any, Protocol

from lakewarden.catalog.formats.stream_sources import KnownTable
from lakewarden.catalog.lineage.streams.offsets import Began

__all__ = ["StreamOrigin", "StreamParts"]


class StreamOrigin(Protocol):
    """A table that a running query reads."""

    def known(self, own_id: str, near: str | None) -> KnownTable | None:
        """The table's line from one version back to another, by the format's own names for them; None where it does not
        have the first one. Raises Spark's own errors."""


class StreamParts(Protocol):
    """Of one format. Holds no state."""

    def sink_named(self, description: str) -> str | None:
        """The canonical location of the table that a sink is, where its description has it; None for another kind of
        sink. Raises `UsageError` for what is no place."""

    def sink_found(self, session: Any, jvm: Any, description: str) -> str | None:
        """The same where the description has a name, which its catalog knows. Raises Spark's own errors."""

    def source_place(self, source: Any) -> str | None:
        """The canonical location of the table that a source reads; None where it does not tell."""

    def initial_offset(self, source: Any) -> str | None:
        """What a source began to read with; None where it does not tell. Raises Spark's own errors."""

    def began(self, sources: Sequence[Any]) -> Began:
        """What a query with these sources began with, by those of this format."""

    def streamed(self, leaf: Any) -> StreamOrigin | None:
        """The table that a leaf of a running query reads, where the query's offsets do not tell it; None for another
        source, and for a table whose versions have no numbers. Raises Spark's own errors."""
