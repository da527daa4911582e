"""The messages between the gateway and its reading processes."""

from dataclasses import dataclass

from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.daemon.gateway.wire_types import ResultColumn
from lakewarden.jobs.sql.compile.values import Dialect
from lakewarden.jobs.sql.statements import Statement

__all__ = ["Broken", "Done", "Failed", "Parse", "ResultHeader", "RowBatch", "Setup", "SystemQuery"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """Said once: where the system tables are, and how many bytes of memory one answer may take."""

    location: str
    storage: StorageOptions
    memory: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Parse:
    """Read this statement. Answered by `Done` with it."""

    text: str
    dialect: Dialect | None


@dataclass(frozen=True, kw_only=True, slots=True)
class SystemQuery:
    """Run this query over system tables. Answered by `ResultHeader`, `RowBatch`es and `Done`."""

    sql: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ResultHeader:
    """The columns of a result, and the Arrow schema of its batches, serialised."""

    columns: tuple[ResultColumn, ...]
    schema: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class RowBatch:
    """Rows of plain types, serialised."""

    rows: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """The end of an answer."""

    statement: Statement | None = None
    fit: bool
    """As little memory is held as before, so the process can answer again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Failed:
    """The end of an answer that went wrong in a way that has words."""

    error: LakewardenError
    fit: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Broken:
    """The end of an answer that went wrong in a way that nobody foresaw; the process ends."""

    problem: str
    trace: str
