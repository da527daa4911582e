"""Tables of the operational database, the same for SQLite and PostgreSQL, and how they came to be, step by step.

Moments are whole epoch milliseconds by the database's own clock, because that is the one clock that all daemons and
workers share. All tables start with `lakewarden_`, so that they may live beside others.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import (
    DDL,
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CreateIndex, CreateTable, DDLElement
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from lakewarden.catalog.state.port import RunState

__all__ = [
    "BOOKMARK",
    "FORGOTTEN",
    "HINT",
    "LEASE",
    "META",
    "RUN",
    "RUN_LINE",
    "STEPS",
    "Steps",
    "now_ms",
]

_METADATA: Final = MetaData()

META: Final = Table(
    "lakewarden_meta",
    _METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("schema_version", Integer, nullable=False),
    Column("incarnation", String(32), nullable=False),
)
"""One row (id 1): which steps were taken, and the id this database was given when it was created."""

LEASE: Final = Table(
    "lakewarden_lease",
    _METADATA,
    Column("name", String(200), primary_key=True),
    Column("holder", Text, nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
)

HINT: Final = Table(
    "lakewarden_hint",
    _METADATA,
    # In order of arrival: the time in a hint is some other machine's clock.
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("hint_id", String(64), nullable=False, unique=True),
    Column("subject", Text, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("at", BigInteger, nullable=False),
)


def _run(metadata: MetaData, *later: Column[Any]) -> Table:
    """The table of runs as step 1 made it, and the columns that later steps added."""
    return Table(
        "lakewarden_run",
        metadata,
        Column("run_id", String(64), primary_key=True),
        Column("table_id", String(64), nullable=False),
        Column("name", Text, nullable=False),
        Column("location", Text, nullable=False),
        Column("action", String(20), nullable=False),
        Column("payload", Text, nullable=False),
        Column("because", Text, nullable=False),
        Column("requires_version", BigInteger),
        Column("rank", Double, nullable=False),
        Column("attempt", Integer, nullable=False),
        Column("not_before", BigInteger),
        Column("predicted_files", BigInteger),
        Column("predicted_bytes", BigInteger),
        Column("predicted_seconds", Double),
        Column("state", String(20), nullable=False),
        Column("queued_at", BigInteger, nullable=False),
        Column("worker", Text),
        Column("lease_until", BigInteger),
        Column("started_at", BigInteger),
        Column("finished_at", BigInteger),
        Column("cancel_requested", Boolean, nullable=False),
        Column("outcome", String(20)),
        Column("message", Text),
        Column("error_class", String(100)),
        Column("retry", Boolean),
        Column("committed_version", BigInteger),
        Column("actual_files", BigInteger),
        Column("actual_bytes", BigInteger),
        Column("actual_seconds", Double),
        Column("details", Text),
        *later,
    )


RUN: Final = _run(_METADATA, Column("hint", Text), Column("runtime", String(40), nullable=False))
_UNFINISHED: Final = RUN.c.state != RunState.FINISHED
_ONE_PER_TABLE: Final = Index(
    "lakewarden_run_one_unfinished",
    RUN.c.table_id,
    unique=True,
    sqlite_where=_UNFINISHED,
    postgresql_where=_UNFINISHED,
)
"""The database itself holds "at most one unfinished run per table"."""
_BY_STATE: Final = Index("lakewarden_run_by_state", RUN.c.state, RUN.c.rank.desc(), RUN.c.queued_at)

FORGOTTEN: Final = Table(
    "lakewarden_forgotten",
    _METADATA,
    Column("run_id", String(64), primary_key=True),
    Column("at", BigInteger, nullable=False),
)
"""Recorded runs: a worker that comes back late is not taken for one of a deleted database."""

BOOKMARK: Final = Table(
    "lakewarden_bookmark",
    _METADATA,
    Column("name", String(200), primary_key=True),
    Column("value", BigInteger, nullable=False),
)

RUN_LINE: Final = Table(
    "lakewarden_run_line",
    _METADATA,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("run_id", String(64), nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("level", String(20), nullable=False),
    Column("message", Text, nullable=False),
)
"""What was said during runs. `at` is the worker's clock: it says when a line was said, and when it may go."""
_LINES_BY_RUN: Final = Index("lakewarden_run_line_by_run", RUN_LINE.c.run_id, RUN_LINE.c.seq)
_LINES_BY_TIME: Final = Index("lakewarden_run_line_by_time", RUN_LINE.c.at)

Steps = Sequence[Sequence[DDLElement]]

STEPS: Final[Steps] = (
    (
        CreateTable(LEASE),
        CreateTable(HINT),
        CreateTable(_run(MetaData())),
        CreateIndex(_ONE_PER_TABLE),
        CreateIndex(_BY_STATE),
        CreateTable(FORGOTTEN),
    ),
    (CreateTable(BOOKMARK),),
    (DDL("ALTER TABLE lakewarden_run ADD COLUMN hint TEXT"),),  # type: ignore[no-untyped-call]  # SQLAlchemy
    (DDL("ALTER TABLE lakewarden_run ADD COLUMN runtime VARCHAR(40) DEFAULT 'delta' NOT NULL"),),  # type: ignore[no-untyped-call]  # SQLAlchemy
    (CreateTable(RUN_LINE), CreateIndex(_LINES_BY_RUN), CreateIndex(_LINES_BY_TIME)),
)
"""Step n takes the database from schema version n to n + 1. Steps are only ever appended; none is changed."""


class now_ms(FunctionElement[int]):  # named like the SQL function it stands for
    """The database's clock in epoch milliseconds; in PostgreSQL the real moment, not the transaction's start."""

    type = BigInteger()
    inherit_cache = True


@compiles(now_ms, "sqlite")
def _now_sqlite(element: now_ms, compiler: SQLCompiler, **options: Mapping[str, Any]) -> str:
    return "CAST(ROUND((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER)"


@compiles(now_ms, "postgresql")
def _now_postgresql(element: now_ms, compiler: SQLCompiler, **options: Mapping[str, Any]) -> str:
    return "CAST(ROUND(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) AS BIGINT)"
