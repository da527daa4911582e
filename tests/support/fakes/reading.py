"""What reads for a gateway, in the test's own process."""

from collections.abc import Callable

from lakewarden.catalog.system.port import SystemStore
from lakewarden.catalog.system.query import query
from lakewarden.daemon.gateway.results import ResultReader, Store, result_of
from lakewarden.jobs.sql.compile.values import Dialect
from lakewarden.jobs.sql.parser import parse
from lakewarden.jobs.sql.statements import Statement

__all__ = ["ReadingHere"]


class ReadingHere:
    """See `ReaderPort`."""

    def __init__(self, store: SystemStore | None = None) -> None:
        self._store = store

    def statement(
        self, text: str, dialect: Dialect | None, *, user: str, wanted: Callable[[], bool]
    ) -> Statement:
        return parse(text, dialect)

    def rows(self, sql: str, store: Store, *, user: str, wanted: Callable[[], bool]) -> ResultReader:
        assert self._store is not None
        return result_of(query(self._store, sql), store)
