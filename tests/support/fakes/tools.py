"""The Tools port with a reader and an engine for one format, or for several."""

from collections.abc import Sequence
from dataclasses import dataclass

from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.formats.registry import reader_of
from lakewarden.catalog.metastore.taken_entries import TakenEntries
from lakewarden.catalog.model.rows import DELTA, TableFormat
from lakewarden.jobs.runs.port import Engine

__all__ = ["OneFormat", "SeveralFormats"]


@dataclass(frozen=True)
class OneFormat:
    """`Tools` that know the format of `table_reader` alone."""

    table_reader: TableReader
    table_engine: Engine
    entries: TakenEntries | None = None

    @property
    def runtimes(self) -> Sequence[str]:
        return (self.table_reader.format,)

    @property
    def readers(self) -> Sequence[TableReader]:
        return (self.table_reader,)

    def reader(self, format_: TableFormat | None) -> TableReader:
        return reader_of(self.readers, format_)

    def engine(self, format_: TableFormat | None) -> Engine:
        if (format_ or DELTA) != self.table_engine.format:
            raise RefusedError(f"No engine for {format_}.", hint="This test works on one format.")
        return self.table_engine

    def interrupt(self) -> None:
        self.table_engine.interrupt()


@dataclass
class SeveralFormats:
    """`Tools` of these readers and engines."""

    readers: Sequence[TableReader]
    engines: Sequence[Engine]
    entries: TakenEntries | None = None

    @property
    def runtimes(self) -> Sequence[str]:
        return tuple(one.format for one in self.engines)

    def reader(self, format_: TableFormat | None) -> TableReader:
        return reader_of(self.readers, format_)

    def engine(self, format_: TableFormat | None) -> Engine:
        return next(one for one in self.engines if one.format == (format_ or DELTA))

    def interrupt(self) -> None:
        for one in self.engines:
            one.interrupt()
