"""What a session takes its own changes back with: the Delta engine, on the session that is there."""

from collections.abc import Sequence
from dataclasses import dataclass

from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.formats.registry import reader_of
from lakewarden.catalog.model.rows import DELTA, TableFormat
from lakewarden.jobs.runs.port import Engine

__all__ = ["SessionTools"]


@dataclass(frozen=True, kw_only=True)
class SessionTools:
    """`Tools` of one format. The engine is never closed: its Spark is the user's."""

    table_reader: TableReader
    table_engine: Engine

    @property
    def runtimes(self) -> Sequence[str]:
        return (self.table_engine.format,)

    @property
    def entries(self) -> None:
        return None  # nothing is purged in a session

    @property
    def readers(self) -> Sequence[TableReader]:
        return (self.table_reader,)

    def reader(self, format_: TableFormat | None) -> TableReader:
        return reader_of(self.readers, format_)

    def engine(self, format_: TableFormat | None) -> Engine:
        if (format_ or DELTA) != self.table_engine.format:
            raise RefusedError(f"A session has no engine for {format_}.")
        return self.table_engine

    def interrupt(self) -> None:
        self.table_engine.interrupt()
