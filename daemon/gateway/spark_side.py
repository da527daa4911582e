"""The gateway's Spark: one application, started when it is first needed, and a session of it for each connection.

Imports PySpark, so it is imported late. Called from the threads that operations run on.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.daemon.attach import Writes, attached
from lakewarden.daemon.gateway.access.closed_tables import require_open
from lakewarden.daemon.gateway.access.owned_tables import require_own
from lakewarden.daemon.gateway.access.rights import AccessLevel, reach_of
from lakewarden.daemon.gateway.cancelled_work import CancelledWork
from lakewarden.daemon.gateway.operations import GatewayOperation
from lakewarden.daemon.gateway.results import ResultReader, Store, gathered
from lakewarden.daemon.gateway.sessions import Session
from lakewarden.daemon.gateway.wire_types import ResultColumn
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.telemetry.log import get_log
from lakewarden.jobs.engines.spark.names import quoted
from lakewarden.jobs.engines.spark.session import abandon_session, start_session
from lakewarden.jobs.runs.spark_settings import SparkSettings
from lakewarden.jobs.session import session_catalog
from lakewarden.jobs.session.attached import Attached
from lakewarden.jobs.session.catalog_listener import SparkSession
from lakewarden.jobs.session.frames import (
    DataFrame,
    database_of,
    refresh_table,
    run_sql,
    settings_below,
    temporary_views,
)
from lakewarden.jobs.session.judgement.reading_rules import Reading
from lakewarden.jobs.session.judgement.told_settings import require_sensible
from lakewarden.jobs.session.judgement.writing_rules import Writing
from lakewarden.jobs.session.served_sessions import (
    Field,
    SparkEndedError,
    Stage,
    cancel,
    collected,
    fields_of,
    is_alive,
    left_tasks,
    new_session,
    serving,
    stages_of,
)
from lakewarden.jobs.session.session_catalog import TableEntry
from lakewarden.jobs.session.writes import Judge
from lakewarden.jobs.sql.statements import ChangeRows, InSession

__all__ = ["SparkSide"]

_GLANCE_SECONDS: Final = 1.0
"""The longest wait of a client that asks for its statement's progress."""
_PATIENCE_SECONDS: Final = 120.0
"""How long Spark may go on with what was cancelled; on a cluster it ends the executor itself before."""
_OURS: Final = "lakewarden."
_ENDED: Final = "The gateway's Spark session has ended."


@dataclass(slots=True)
class _SparkConnection:
    """A connection's own session of one application."""

    spark: SparkSession
    writes: Writes
    application: "_Application"
    reach: AccessLevel

    def close(self) -> None:
        """A session without statements holds nothing that has to be given back."""


@dataclass(frozen=True, slots=True)
class _Application:
    root: SparkSession
    listening: Attached


class SparkSide:
    """See `SparkPort`."""

    def __init__(self, services: Services, settings: SparkSettings) -> None:
        self._services, self._settings = services, settings
        self._application: _Application | None = None
        self._work = CancelledWork(_PATIENCE_SECONDS)
        self._starting = threading.Lock()
        self._cancelling = ThreadPoolExecutor(1, thread_name_prefix="cancel")
        self._watching = ThreadPoolExecutor(1, thread_name_prefix="watch")

    def run(
        self,
        session: Session,
        operation: GatewayOperation,
        statement: InSession,
        store: Store,
    ) -> ResultReader:
        """Run a statement in the connection's own session, and gather its rows."""
        connection = self._connection(session, operation)
        self._work.begin(operation.id)  # before anybody can stop it
        operation.stop = lambda: self._stop(connection, operation)
        operation.stages = lambda: self._stages(connection, operation)
        try:
            user = session.caller.name
            with serving(connection.spark, operation.id, user=user, cancelled=lambda: operation.state.over):
                try:
                    frame = _run(connection, statement, operation.text)
                    columns = _columns(fields_of(frame))
                    return gathered(columns, collected(frame) if columns else (), store)
                finally:
                    _keep_settings(session, connection)
        except SparkEndedError as error:
            raise _lost(session) from error
        finally:
            self._work.end(operation.id)

    def database(self, session: Session) -> str:
        """The one that names without a database are in."""
        connection = session.spark
        if not isinstance(connection, _SparkConnection):
            return session.database
        try:
            with serving(connection.spark, "database"):
                return database_of(connection.spark)
        except SparkEndedError as error:
            raise _lost(session) from error

    def refresh(self, session: Session, table: str) -> None:
        """A table was changed by a worker: the session forgets what it knows of it."""
        connection = session.spark
        if isinstance(connection, _SparkConnection):
            refresh_table(connection.spark, table)

    def schemas(self, session: Session, operation: GatewayOperation) -> Sequence[str]:
        """See `CatalogPort`."""
        with self._looking(session, operation) as spark:
            return session_catalog.schemas(spark)

    def tables(self, session: Session, operation: GatewayOperation, schema: str) -> Sequence[TableEntry]:
        """See `CatalogPort`."""
        with self._looking(session, operation) as spark:
            return session_catalog.tables(spark, schema)

    def columns(
        self, session: Session, operation: GatewayOperation, table: TableEntry
    ) -> Sequence[ResultColumn]:
        """See `CatalogPort`."""
        with self._looking(session, operation) as spark:
            return _columns(session_catalog.columns(spark, table))

    def keys(self, session: Session, operation: GatewayOperation, schema: str, table: str) -> Sequence[str]:
        """See `CatalogPort`."""
        with self._looking(session, operation) as spark:
            return session_catalog.keys(spark, schema, table)

    def tend(self) -> None:
        """End a Spark that goes on with what was cancelled long ago."""
        application = self._application
        if application is None or not self._work.outlasts(lambda: self._left_tasks(application)):
            return
        get_log("gateway").warning("Spark goes on with what was cancelled, and is ended")
        self._work = CancelledWork(_PATIENCE_SECONDS)
        with self._starting:
            if self._application is application:
                self._abandon()

    def _left_tasks(self, application: _Application) -> int | None:
        asked = self._watching.submit(left_tasks, application.root)
        try:
            return asked.result(_GLANCE_SECONDS)
        except TimeoutError:
            asked.cancel()
            return None

    def stop(self) -> None:
        """End the application."""
        for pool in (self._cancelling, self._watching):
            pool.shutdown(wait=False, cancel_futures=True)
        with self._starting:
            self._abandon()

    @contextmanager
    def _looking(self, session: Session, operation: GatewayOperation) -> Iterator[SparkSession]:
        connection = self._connection(session, operation)
        with serving(connection.spark, operation.id):
            yield connection.spark

    def _connection(self, session: Session, operation: GatewayOperation) -> _SparkConnection:
        reach = reach_of(session.caller, self._services.settings, self._services.user)
        with session.opening:
            application = self._living(operation)
            held = session.spark
            if isinstance(held, _SparkConnection):
                if held.application is application and held.reach is reach:
                    return held
                if held.application is not application:
                    raise _lost(session)
                session.spark = None
            connection = self._open(session, application, reach)
            session.spark = connection
            return connection

    def _open(self, session: Session, application: _Application, reach: AccessLevel) -> _SparkConnection:
        spark = new_session(application.root)
        store, caller = self._services.store, session.caller
        with serving(spark, "open"):
            for key, value in _spark_settings(session.settings).items():
                require_sensible(key, value)
                if reach is AccessLevel.EVERYTHING or (
                    Writing if reach is AccessLevel.SQL else Reading
                ).may_set(key):
                    spark.conf.set(key, value)
            judge: Judge | None = None
            if reach is AccessLevel.SQL:
                judge = Writing(spark)
            elif reach < AccessLevel.SQL:
                judge = Reading(
                    spark, partial(require_open, store, caller), partial(require_own, store, caller)
                )
            if session.database != "default":
                run_sql(spark, f"USE {quoted(session.database)}")
        writes = Writes(
            self._services,
            spark,
            user=caller.name,
            caller=lambda: session.caller,
            tell=application.listening.wrote,
            judge=judge,
        )
        return _SparkConnection(spark, writes, application, reach)

    def _living(self, operation: GatewayOperation) -> _Application:
        """The application; a new one where there is none (any more)."""
        with self._starting:
            if self._application is not None and not is_alive(self._application.root):
                get_log("gateway").warning("the Spark session has ended; the next statement starts another")
                self._abandon()
            if self._application is None:
                operation.tell("Starting Spark.")
                root = start_session(self._settings)
                self._application = _Application(root, attached(self._services, root))
                get_log("gateway").info("Spark has started", application=root.sparkContext.applicationId)
            return self._application

    def _abandon(self) -> None:
        if self._application is not None:
            self._application.listening.detach()
            abandon_session(self._application.root)
            self._application = None

    def _stages(self, connection: _SparkConnection, operation: GatewayOperation) -> Sequence[Stage]:
        """By one thread that stays, as each that calls into the JVM keeps a connection; nothing if it is behind."""
        asked = self._watching.submit(stages_of, connection.spark, operation.id)
        try:
            return asked.result(_GLANCE_SECONDS)
        except TimeoutError:
            asked.cancel()
            return ()

    def _stop(self, connection: _SparkConnection, operation: GatewayOperation) -> None:
        self._work.cancel(operation.id)
        self._cancelling.submit(cancel, connection.spark, operation.id)


def _run(connection: _SparkConnection, statement: InSession, text: str) -> DataFrame:
    if connection.reach < AccessLevel.SQL and isinstance(statement, ChangeRows) and statement.draft.others:
        raise NotAllowedError(
            "Several tables are changed by one statement by those alone who may change all.",
            hint="Write a statement for each table, or ask for gateway.writers.",
        )
    return connection.writes.in_session(statement, text)


def _keep_settings(session: Session, connection: _SparkConnection) -> None:
    """What is set the Spark session knows, however it was said: an operation id is used up, a RESET takes back. The
    connection keeps a copy for the next session that it gets, after a change of rights, or when Spark has ended."""
    if is_alive(connection.spark):
        for key in [key for key in session.settings if key.startswith(_OURS)]:
            del session.settings[key]
        session.settings.update(settings_below(connection.spark, _OURS))
        session.views = temporary_views(connection.spark)


def _lost(session: Session) -> SparkEndedError:
    """Spark has ended: the session is told what it held there."""
    views, session.spark, session.views = session.views, None, ()
    gone = f" Your temporary views are gone: {', '.join(views)}." if views else ""
    return SparkEndedError(f"{_ENDED}{gone}")


def _columns(fields: Sequence[Field]) -> tuple[ResultColumn, ...]:
    return tuple(ResultColumn(name=one.name, type=one.type, comment=one.comment) for one in fields)


def _spark_settings(given: Mapping[str, str]) -> Mapping[str, str]:
    """What of a connection's settings is Spark's or ours; Hive's own are accepted and mean nothing."""
    return {key: value for key, value in given.items() if key.startswith(("spark.sql.", _OURS))}
