"""Which statement needs what: the daemon's own are answered here, everything else goes to Spark."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import pyarrow as pa

from lakewarden.catalog.errors import NotAllowedError, UsageError
from lakewarden.catalog.policy.access import Caller
from lakewarden.catalog.units import format_bytes
from lakewarden.daemon.gateway.access.rights import (
    AccessLevel,
    reach_of,
    require_conversion,
    require_reach,
    require_vacuum,
)
from lakewarden.daemon.gateway.operations import GatewayOperation, Lane
from lakewarden.daemon.gateway.results import ResultReader, Store, empty_result, result_of
from lakewarden.daemon.gateway.sessions import Session, require_few
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.sql import execute
from lakewarden.jobs.sql.compile.values import DIALECT_KEY, Dialect, dialect_of
from lakewarden.jobs.sql.database import in_database
from lakewarden.jobs.sql.parser import may_be_ours
from lakewarden.jobs.sql.session_settings import setting_said
from lakewarden.jobs.sql.statements import (
    ChangeRows,
    ConvertTable,
    Explain,
    InSession,
    Query,
    Statement,
    Unmanaged,
    VacuumTable,
)
from lakewarden.jobs.sql.suggestions import meant

__all__ = ["ReaderPort", "SparkPort", "Statements"]

Refused = Callable[[Caller, str, NotAllowedError], None]
"""Told of a statement that its caller may not run."""


class ReaderPort(Protocol):
    """What reads for the gateway (daemon/gateway/reading/readers.py). Thread-safe."""

    def statement(
        self, text: str, dialect: Dialect | None, *, user: str, wanted: Callable[[], bool]
    ) -> Statement:
        """What a text says, as `jobs.sql.parser.parse` reads it."""

    def rows(self, sql: str, store: Store, *, user: str, wanted: Callable[[], bool]) -> ResultReader:
        """The result of a query over system tables, as `catalog.system.query` runs it."""


class SparkPort(Protocol):
    """The gateway's Spark (daemon/gateway/spark_side.py). Thread-safe."""

    def run(
        self,
        session: Session,
        operation: GatewayOperation,
        statement: InSession,
        store: Store,
    ) -> ResultReader:
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
        store: Callable[[str], Store],
        readers: ReaderPort,
        refused: Refused,
    ) -> None:
        self._services, self._spark, self._store = services, spark, store
        self._readers, self._refused = readers, refused

    def operation(
        self, session: Session, text: str, *, wanted: Callable[[], bool] = lambda: True
    ) -> GatewayOperation:
        """What a statement asks for; it is read as long as that is `wanted`. Raises `UsageError` for a statement that
        is too long or governed and wrong, `NotAllowedError` for a statement that its user may not even have parsed."""
        self._require_short(text)
        own = self._own(session, text)
        if own is not None:
            return _operation(text, Lane.QUICK, own)
        if not may_be_ours(text):
            with self._telling(session, text):
                require_reach(session.caller, self._reach(session))
        dialect = dialect_of(session.settings.get(DIALECT_KEY))
        statement = self._readers.statement(text, dialect, user=session.caller.name, wanted=wanted)
        lane = Lane.SYSTEM if isinstance(statement, Query) else Lane.LONG
        return _operation(text, lane, lambda operation: self._run(session, operation, statement))

    def _require_short(self, text: str) -> None:
        most = self._services.settings.gateway_statement_bytes
        if len(text) > most or len(text.encode()) > most:
            raise UsageError(
                f"The statement is longer than {format_bytes(most)}.",
                hint="Write rows in several statements, or load them from files; "
                "gateway.statement_bytes is the limit.",
            )

    def _own(self, session: Session, text: str) -> Callable[[GatewayOperation], ResultReader] | None:
        """The answer to a statement that a connection only has to remember until it gets a session in Spark (most never
        need one); from then on Spark's session is asked what is set."""
        if session.spark is not None:
            return None
        if _uses_default(text):
            return lambda _: _use_default(session)
        said = setting_said(text)
        if said is None:
            return None
        key, value = said
        if key == DIALECT_KEY:
            dialect_of(value)  # complains here, not with the statement that comes next
        require_few({**session.settings, key: value})
        session.settings[key] = value
        return lambda _: result_of(
            pa.table({"key": [key], "value": [value]}), self._store(session.caller.name)
        )

    def _run(self, session: Session, operation: GatewayOperation, statement: Statement) -> ResultReader:
        if isinstance(statement, Query):
            return self._look(session, operation, statement.sql, self._store(session.caller.name))
        if isinstance(statement, Unmanaged | ChangeRows | Explain):
            return self._in_spark(session, operation, statement)
        if isinstance(statement, VacuumTable) and _is_sparks_to_say(session, statement):
            return self._in_spark(session, operation, statement)
        if isinstance(statement, ConvertTable):
            with self._telling(session, operation.text):
                require_conversion(session.caller, self._reach(session), statement.where)
        statement = in_database(statement, lambda: self._database(session))
        result = execute(
            self._services,
            statement,
            caller=session.caller,
            tell=operation.tell,
            look=lambda sql: self._look(session, operation, sql, self._store(session.caller.name)).table(),
        )
        if result is None:
            assert isinstance(statement, VacuumTable)  # of a table that is not managed
            return self._in_spark(session, operation, statement)
        if isinstance(statement, ConvertTable) and session.spark is not None:
            self._spark().refresh(session, statement.where)
        return result_of(result, self._store(session.caller.name))

    def _look(self, session: Session, operation: GatewayOperation, sql: str, store: Store) -> ResultReader:
        return self._readers.rows(
            sql, store, user=session.caller.name, wanted=lambda: not operation.state.over
        )

    def _database(self, session: Session) -> str:
        return session.database if session.spark is None else self._spark().database(session)

    def _reach(self, session: Session) -> AccessLevel:
        return reach_of(session.caller, self._services.settings, self._services.user)

    def _in_spark(
        self,
        session: Session,
        operation: GatewayOperation,
        statement: InSession,
    ) -> ResultReader:
        if isinstance(statement, VacuumTable):
            with self._telling(session, operation.text):
                require_vacuum(session.caller, self._reach(session), statement.where)
            return self._spark().run(session, operation, statement, self._store(session.caller.name))
        with self._telling(session, operation.text):
            require_reach(session.caller, self._reach(session))
            return self._answered(session, operation, statement)

    @contextmanager
    def _telling(self, session: Session, text: str) -> Iterator[None]:
        try:
            yield
        except NotAllowedError as error:
            self._refused(session.caller, text, error)
            raise

    def _answered(self, session: Session, operation: GatewayOperation, statement: InSession) -> ResultReader:
        try:
            return self._spark().run(session, operation, statement, self._store(session.caller.name))
        except UsageError as error:
            hint = meant(statement.sql) if isinstance(statement, Unmanaged) and not error.hint else None
            if hint is None:
                raise
            raise UsageError(str(error), hint=hint) from error


def _use_default(session: Session) -> ResultReader:
    session.database = "default"
    return empty_result()


def _uses_default(text: str) -> bool:
    """Whether the statement is USE default, in any spelling."""
    match _unended(text).upper().split():
        case ["USE", name] | ["USE", "SCHEMA" | "DATABASE" | "NAMESPACE", name]:
            return name.strip("`") == "DEFAULT"
        case _:
            return False


def _unended(text: str) -> str:
    """A statement without its semicolon and the blanks around it."""
    return text.strip().removesuffix(";").rstrip()


def _is_sparks_to_say(session: Session, vacuum: VacuumTable) -> bool:
    """Whether only the session knows which table is meant: a name without a database, where it may use any."""
    plain = "." not in vacuum.where and "/" not in vacuum.where
    return plain and (session.spark is not None or session.database != "default")


def _operation(text: str, lane: Lane, work: Callable[[GatewayOperation], ResultReader]) -> GatewayOperation:
    return GatewayOperation(id=uuid.uuid4().hex, text=text, lane=lane, work=work)
