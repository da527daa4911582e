"""`lakewarden.attach(spark)`: connects a user's own Spark session to an installation."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakewarden.catalog.formats.registry import readers
from lakewarden.catalog.lineage.streams.session_notes import StreamNotes
from lakewarden.catalog.lineage.table_index import TableDirectory
from lakewarden.catalog.lineage.write_notes import WriteNotes
from lakewarden.catalog.model.enums import RowsWrite
from lakewarden.catalog.policy.access import Caller
from lakewarden.catalog.state.hint_spool import Spool
from lakewarden.catalog.state.port import HintSink
from lakewarden.daemon import callers
from lakewarden.daemon.installation.services import Services, open_services
from lakewarden.daemon.usecases.explain_statement import explanation_of, plain_explanation, steps_table
from lakewarden.daemon.usecases.lineage.unrecorded_writes import record_unrecorded
from lakewarden.daemon.usecases.spark_config import spark_config_of
from lakewarden.daemon.usecases.sql import execute
from lakewarden.daemon.usecases.written_rows import row_counts
from lakewarden.jobs.engines.spark.cancellation import it_is_done
from lakewarden.jobs.engines.spec import SessionParts
from lakewarden.jobs.rollback.journal.journal import Journal
from lakewarden.jobs.session.attached import Attached
from lakewarden.jobs.session.catalog_listener import CatalogListener, SparkSession
from lakewarden.jobs.session.frames import (
    DataFrame,
    database_of,
    frame_of,
    refresh_table,
    row_of,
    setting,
)
from lakewarden.jobs.session.groups.tools import SessionTools
from lakewarden.jobs.session.row_counts import COUNTS, NOTHING, UNKNOWN, RowCounts
from lakewarden.jobs.session.row_ways.statement_ways import changes_nothing
from lakewarden.jobs.session.small_writes import SmallWrites
from lakewarden.jobs.session.spark_writer import SparkWriter
from lakewarden.jobs.session.stream_carrier import StreamPropagation
from lakewarden.jobs.session.stream_listener import StreamListener
from lakewarden.jobs.session.upserts.streams import start
from lakewarden.jobs.session.write_plans.write_listener import WriteListener
from lakewarden.jobs.session.writes import (
    Judge,
    Request,
    Sql,
    UncompiledChange,
    Upsert,
    Upserted,
    UpsertStream,
    Written,
)
from lakewarden.jobs.sql.compile.reading import Draft
from lakewarden.jobs.sql.compile.values import DIALECT_KEY, Compiled, dialect_of
from lakewarden.jobs.sql.database import in_database
from lakewarden.jobs.sql.parser import parse
from lakewarden.jobs.sql.statements import (
    ChangeRows,
    ConvertTable,
    Explain,
    InSession,
    Unmanaged,
    VacuumTable,
)

__all__ = ["Writes", "attach", "attached", "spark_config"]


def attach(
    spark: SparkSession,
    *,
    home: Path | str | None = None,
    profile: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> Attached:
    """Tell the daemon at once of tables that this Spark application converts, creates or drops; run governed SQL and
    governed writes.

    `home` or `profile`, and `settings` (key -> text, as in `--set`) find the installation, as for the `lakewarden`
    command; a driver on another machine needs `system.location` and, for the quick way, `database.url`. Neither has to
    answer: what cannot be told is found by the sweep. Raises `UsageError` for settings that make no sense.
    """
    services = open_services(
        home=None if home is None else Path(home),
        profile=profile,
        flags=settings,
        user=callers.real_user(),
    )
    writes = Writes(
        services,
        spark,
        user=services.user,
        caller=lambda: callers.caller_of(services, "session"),
        tell=lambda location: handle.wrote(location),
    )
    handle = attached(services, spark, writes)
    return handle


def spark_config(
    *,
    home: Path | str | None = None,
    profile: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The settings with which a plain Spark session has to be started for `attach`:

        spark = SparkSession.builder.config(map=lakewarden.spark_config()).getOrCreate()

    Delta's extension, catalog and jars, the metastore, and how storages are reached; neither sizes nor secrets. The
    installation is found as by `attach`. Jars are fetched where the cache lacks them.
    """
    services = open_services(
        home=None if home is None else Path(home),
        profile=profile,
        flags=settings,
        user=callers.real_user(),
    )
    return dict(spark_config_of(services, tell=logging.getLogger("lakewarden").warning))


def attached(services: Services, spark: SparkSession, writes: "Writes | None" = None) -> Attached:
    """An application whose tables and streams the daemon hears of, and, with `writes`, a session."""
    return Attached(
        CatalogListener(spark),
        sinks=lambda: _sinks(services),
        clock=services.clock,
        writer=writes,
        notes=(
            StreamPropagation(StreamListener(spark), sink=lambda: _notes(services)),
            StreamPropagation(WriteListener(spark), sink=lambda: _seen_writes(services)),
        ),
    )


class Writes:
    """`Writer` that knows the installation, for one user. Opened with the first write: attaching has to be quick."""

    def __init__(
        self,
        services: Services,
        spark: SparkSession,
        *,
        user: str,
        caller: Callable[[], Caller],
        tell: Callable[[str], None],
        judge: Judge | None = None,
    ) -> None:
        """`caller` says who the user is, with which roles, when asked; `tell` is told of every managed table that was
        changed; `judge` knows what a user may do who may not do all."""
        self._services, self._spark, self._user, self._caller = services, spark, user, caller
        self._tell, self._judge = tell, judge
        self._opening = threading.Lock()
        self._initialised = False
        self._small = SmallWrites(time.monotonic)
        self._advised: set[str] = set()

    def sql(self, text: str, write: RowsWrite | None = None) -> DataFrame:
        self.require_initialised()
        parsed = parse(text, dialect_of(setting(self._spark, DIALECT_KEY)))
        match in_database(parsed, partial(database_of, self._spark)):
            case Unmanaged() | ChangeRows() | Explain() | VacuumTable() as statement:
                return self.in_session(statement, text, write)
            case _ if write is not None:
                raise changes_nothing()
            case statement:
                result = execute(self._services, statement, caller=self._caller(), tell=_tell)
                assert result is not None  # only what a session runs has none
                if isinstance(statement, ConvertTable):
                    refresh_table(self._spark, statement.where)  # a worker changed it meanwhile
                return frame_of(self._spark, result)

    def in_session(self, statement: InSession, text: str, write: RowsWrite | None = None) -> DataFrame:
        """Run what is Spark's: as a governed write, or as it is. Nobody's roles matter: Spark, or the file system, will
        say. A VACUUM is Spark's only where the table is not managed."""
        match statement:
            case VacuumTable():
                if write is not None:
                    raise changes_nothing()
                result = self._vacuumed(statement)
                return self.run(Sql(text=text))[0] if result is None else frame_of(self._spark, result)
            case Unmanaged(sql=sql, notes=notes):
                return self._result(Sql(text=sql, notes=notes, write=write))
            case ChangeRows(draft=draft) if draft.others:
                if write is not None:
                    raise changes_nothing()
                return frame_of(self._spark, self._changed(draft))
            case ChangeRows(draft=draft):
                return self._result(UncompiledChange(draft=draft, write=write))
            case Explain(statement=Unmanaged() as plain):
                told = plain_explanation(plain)
                notes = self.told_of(plain.sql, write)
                return frame_of(self._spark, steps_table(replace(told, notes=(*told.notes, *notes))))
            case Explain(statement=ChangeRows(draft=draft)):
                return frame_of(self._spark, steps_table(explanation_of(self.compiled(draft, write))))
            case _:
                raise AssertionError(statement)

    def table(self, name: str, version: int | None) -> DataFrame:
        return self._writer.table(name, version)

    def run(self, request: Request) -> tuple[DataFrame, Written | None]:
        frame, written = self._opened().run(request)
        if written is not None:
            self._ended(written)
        return frame, written

    def change_several(self, draft: Draft) -> tuple[Written, ...]:
        done = self._opened().change_several(draft)
        self._ended(*done)
        return done

    def upsert(self, request: Upsert) -> Upserted:
        done = self._opened().upsert(request)
        if done.written is not None:
            self._ended(done.written)
        return done

    def _opened(self) -> SparkWriter:
        with self._opening:
            return self._writer

    def _ended(self, *done: Written) -> None:
        self._advise(tuple(note for written in done for note in written.notes))
        self._services.heads.forget()
        for written in done:
            record_unrecorded(self._services, self._directory, written)
            location = written.location
            if location is None or written.done_before:
                continue
            if location in self._directory.table_ids([location]):
                self._tell(location)

    def upsert_stream(self, request: UpsertStream) -> Any:
        return start(request, self.upsert)

    def compiled(self, draft: Draft, write: RowsWrite | None = None) -> Compiled:
        return self._writer.compiled(draft, write)

    def told_of(self, text: str, write: RowsWrite | None = None) -> tuple[str, ...]:
        return self._opened().told_of(text, write)

    def _result(self, request: Request) -> DataFrame:
        """What a governed write changed; or the result of the statement as it is where it is none."""
        frame, written = self.run(request)
        if written is None:
            return frame
        it_is_done(self._spark)
        counts = self._counted(written)
        if written.operation is not None:
            known = counts or (NOTHING if written.done_before else UNKNOWN)
            return frame_of(self._spark, _named(written, written.operation, known))
        return frame if counts is None else row_of(self._spark, asdict(counts))

    def _changed(self, draft: Draft) -> pa.Table:
        """The changes of a statement, one row for each of its tables."""
        rows: list[dict[str, str | int | None]] = []
        changes = self.change_several(draft)
        it_is_done(self._spark)
        for one, written in zip(draft.each, changes, strict=True):
            counts = NOTHING if written.done_before else self._counted(written)
            rows.append({"table_name": str(one.tables[0]), **({} if counts is None else asdict(counts))})
        schema = pa.schema([("table_name", pa.string()), *((name, pa.int64()) for name in COUNTS)])
        told = pa.Table.from_pylist(rows, schema=schema)
        if all(written.operation is None for written in changes):
            return told
        told = told.append_column("operation", pa.array([one.operation for one in changes], pa.string()))
        return told.append_column("done_before", pa.array([one.done_before for one in changes], pa.bool_()))

    def _counted(self, written: Written) -> RowCounts | None:
        """What a write changed; None where its log does not say. One small write too many is spoken of in the log."""
        counts = row_counts(self._services, written)
        if counts is not None:
            advice = self._small.note(
                written.location or "", written.record.operation, counts.num_affected_rows
            )
            if advice is not None:
                logging.getLogger("lakewarden").warning(advice)
        return counts

    def _advise(self, notes: Sequence[str]) -> None:
        """Log what somebody should know about how a statement was read: each thing once in a session."""
        for note in dict.fromkeys(notes):
            if note not in self._advised:
                self._advised.add(note)
                logging.getLogger("lakewarden").warning(note)

    def located(self, spelling: str) -> str | None:
        return self._writer.located(spelling)

    def _vacuumed(self, vacuum: VacuumTable) -> pa.Table | None:
        """Vacuum a managed table by its promises; None for any other. Which table is meant the session says."""
        place = self.located(vacuum.spelling)
        named = (
            "." in vacuum.where or "/" in vacuum.where
        )  # without a database it may be any table of that name
        if place is None and not named:
            return None
        meant = replace(vacuum, where=place or vacuum.where, name=vacuum.where if named else None)
        return execute(self._services, meant, caller=self._caller(), tell=_tell)

    def require_initialised(self) -> None:
        """Raise `PreconditionError` if there is no installation. Asked once: it takes milliseconds."""
        if not self._initialised:
            self._services.require_initialised()
            self._initialised = True

    @cached_property
    def _directory(self) -> TableDirectory:
        self.require_initialised()
        return TableDirectory(self._services.store)

    @cached_property
    def _tools(self) -> SessionTools:
        services, heads = self._services, self._services.heads_now
        parts = SessionParts(spark=self._spark, storage=services.storage, heads=heads, clock=services.clock)
        return SessionTools(parts=parts, readers=readers(services.storage, heads))

    @cached_property
    def _writer(self) -> SparkWriter:
        return SparkWriter(
            self._spark,
            directory=self._directory,
            user=self._user,
            tools=self._tools,
            journal=Journal(store=self._services.store, clock=self._services.clock),
            storage=self._services.storage,
            clock=self._services.clock,
            judge=self._judge,
        )


def _tell(said: str) -> None:
    """How a run goes that a statement waits for."""
    logging.getLogger("lakewarden").info(said)


def _sinks(services: Services) -> Sequence[HintSink]:
    location = services.settings.system_location
    return services.inbox, Spool(location, services.storage(location), clock=services.clock)


def _notes(services: Services) -> StreamNotes:
    location = services.settings.system_location
    return StreamNotes(location, services.storage(location), clock=services.clock)


def _seen_writes(services: Services) -> WriteNotes:
    location = services.settings.system_location
    return WriteNotes(location, services.storage(location), clock=services.clock)


def _named(written: Written, operation: str, counts: RowCounts) -> pa.Table:
    """The result of a statement under an operation id."""
    columns = {name: pa.array([number], pa.int64()) for name, number in asdict(counts).items()}
    return pa.table({**columns, "operation": [operation], "done_before": [written.done_before]})
