"""Which statement needs what: the daemon's own are answered here, everything else goes to Spark."""

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

import pyarrow as pa

from lakewarden.catalog.errors import NotAllowedError, UsageError
from lakewarden.catalog.policy.access import Caller
from lakewarden.daemon.gateway.operations import Lane, Operation
from lakewarden.daemon.gateway.results import Result, Store, empty_result, result_of
from lakewarden.daemon.gateway.rights import (
    Reach,
    reach_of,
    require_conversion,
    require_reach,
    require_vacuum,
)
from lakewarden.daemon.gateway.sessions import Session
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.sql import execute
from lakewarden.jobs.sql.compile.values import DIALECT_KEY, OPERATION_KEY, dialect_of
from lakewarden.jobs.sql.database import in_database
from lakewarden.jobs.sql.parser import parse
from lakewarden.jobs.sql.statements import (
    ChangeRows,
    ConvertToDelta,
    Explain,
    InSession,
    Query,
    Statement,
    Unmanaged,
    VacuumTable,
)
from lakewarden.jobs.sql.suggestions import meant

__all__ = ["SparkPort", "Statements"]

Refused = Callable[[Caller, str, NotAllowedError], None]
"""Told of a statement that its caller may not run."""

_SET: Final = re.compile(r"\s*SET\s+(lakewarden\.\w+)\s*=\s*(.*?)\s*;?\s*", re.IGNORECASE | re.DOTALL)
_USE: Final = re.compile(r"\s*USE\s+(?:(?:SCHEMA|DATABASE|NAMESPACE)\s+)?`?default`?\s*;?\s*", re.IGNORECASE)


class SparkPort(Protocol):
    """The gateway's Spark (daemon/gateway/spark_side.py). Thread-safe."""

    def run(
        self,
        session: Session,
        operation: Operation,
        statement: InSession,
        store: Store,
    ) -> Result:
        """Run a statement in a connection's own session. Raises `UsageError` in Spark's words, `SparkEndedError`."""

    def database(self, session: Session) -> str:
        """The one that names without a database are in, for a connection that has a session in Spark. Raises
        `SparkEndedError`."""

    def refresh(self, session: Session, table: str) -> None:
        """A worker has changed a table: a session that Spark has for the connection looks again."""

    def stop(self) -> None:
        """End it, if it was ever started."""


class Statements:
    """From text to an operation. `spark` is asked for when it is first needed; `refused` is told of what the gateway
    itself refuses (what the daemon's own statements are refused, they record themselves)."""

    def __init__(
        self,
        services: Services,
        *,
        spark: Callable[[], SparkPort],
        store: Callable[[], Store],
        refused: Refused,
    ) -> None:
        self._services, self._spark, self._store, self._refused = services, spark, store, refused

    def operation(self, session: Session, text: str) -> Operation:
        """What a statement asks for. Raises `UsageError` for a governed one that is wrong."""
        own = self._own(session, text)
        if own is not None:
            return _operation(text, Lane.QUICK, own)
        statement = parse(text, dialect_of(session.settings.get(DIALECT_KEY)))
        lane = Lane.QUICK if isinstance(statement, Query) else Lane.LONG
        return _operation(text, lane, lambda operation: self._run(session, operation, statement))

    def _own(self, session: Session, text: str) -> Callable[[Operation], Result] | None:
        """What a connection only has to remember until it has a session in Spark, which most never need."""
        if session.spark is None and _USE.fullmatch(text):
            return lambda _: _use_default(session)
        set_ = _SET.fullmatch(text)
        if set_ is None:
            return None
        key, value = set_[1].lower(), set_[2]
        if key == DIALECT_KEY:
            dialect_of(value)  # complains here, not with the statement that comes next
        if session.spark is not None and key == OPERATION_KEY:
            return None  # for one statement only: Spark's session has it, and says when it is used up
        session.settings[key] = value
        if session.spark is not None:
            return None
        return lambda _: result_of(pa.table({"key": [key], "value": [value]}), self._store())

    def _run(self, session: Session, operation: Operation, statement: Statement) -> Result:
        if isinstance(statement, Unmanaged | ChangeRows | Explain):
            return self._in_spark(session, operation, statement)
        if isinstance(statement, VacuumTable) and _is_sparks_to_say(session, statement):
            return self._in_spark(session, operation, statement)
        if isinstance(statement, ConvertToDelta):
            with self._telling(session, operation):
                require_conversion(session.caller, self._reach(session), statement.where)
        statement = in_database(statement, lambda: self._database(session))
        result = execute(self._services, statement, caller=session.caller, tell=operation.tell)
        if result is None:
            assert isinstance(statement, VacuumTable)  # of a table that is not managed
            return self._in_spark(session, operation, statement)
        if isinstance(statement, ConvertToDelta) and session.spark is not None:
            self._spark().refresh(session, statement.where)
        return result_of(result, self._store())

    def _database(self, session: Session) -> str:
        return session.database if session.spark is None else self._spark().database(session)

    def _reach(self, session: Session) -> Reach:
        return reach_of(session.caller, self._services.settings, self._services.user)

    def _in_spark(
        self,
        session: Session,
        operation: Operation,
        statement: InSession,
    ) -> Result:
        if isinstance(statement, VacuumTable):
            with self._telling(session, operation):
                require_vacuum(session.caller, self._reach(session), statement.where)
            return self._spark().run(session, operation, statement, self._store())
        with self._telling(session, operation):
            require_reach(session.caller, self._reach(session))
            return self._answered(session, operation, statement)

    @contextmanager
    def _telling(self, session: Session, operation: Operation) -> Iterator[None]:
        try:
            yield
        except NotAllowedError as error:
            self._refused(session.caller, operation.text, error)
            raise

    def _answered(self, session: Session, operation: Operation, statement: InSession) -> Result:
        try:
            return self._spark().run(session, operation, statement, self._store())
        except UsageError as error:
            hint = meant(statement.sql) if isinstance(statement, Unmanaged) and not error.hint else None
            if hint is None:
                raise
            raise UsageError(str(error), hint=hint) from error


def _use_default(session: Session) -> Result:
    session.database = "default"
    return empty_result()


def _is_sparks_to_say(session: Session, vacuum: VacuumTable) -> bool:
    """Whether only the session knows which table is meant: a name without a database, where it may use any."""
    plain = "." not in vacuum.where and "/" not in vacuum.where
    return plain and (session.spark is not None or session.database != "default")


def _operation(text: str, lane: Lane, work: Callable[[Operation], Result]) -> Operation:
    return Operation(id=uuid.uuid4().hex, text=text, lane=lane, work=work)
