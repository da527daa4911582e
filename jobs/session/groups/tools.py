"""What a session takes its own changes back with: the engine of each format, on the session that is there."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.formats.registry import reader_of
from lakewarden.catalog.model.rows import DELTA, TableFormat
from lakewarden.jobs.engines.registry import engine_formats, engine_spec
from lakewarden.jobs.engines.spec import SessionParts
from lakewarden.jobs.runs.port import Engine

__all__ = ["SessionTools"]


@dataclass(frozen=True, kw_only=True)
class SessionTools:
    """`Tools` of a user's session. Engines are made when a table needs them, and never closed: their Spark is the
    user's."""

    parts: SessionParts
    readers: Sequence[TableReader]
    """Those of all formats. They ask for heads each time anew."""
    _made: dict[TableFormat, Engine] = field(default_factory=dict)

    @property
    def runtimes(self) -> Sequence[str]:
        return engine_formats()

    @property
    def entries(self) -> None:
        return None  # nothing is purged in a session

    def reader(self, format_: TableFormat | None) -> TableReader:
        return reader_of(self.readers, format_)

    def engine(self, format_: TableFormat | None) -> Engine:
        wanted = format_ or DELTA
        if wanted not in self._made:
            make = engine_spec(wanted).in_session
            if make is None:
                raise RefusedError(f"A session has no engine for {wanted}.")
            self._made[wanted] = make(self.parts)
        return self._made[wanted]

    def interrupt(self) -> None:
        for engine in tuple(self._made.values()):
            engine.interrupt()
