"""The run queue: what was planned, who does it, how it ended.

Who may change a run is decided in each statement's WHERE, never by a look beforehand: a worker's claim counts as
long as worker and attempt are still the ones in the row, a reaper's verdict only while the run's lease is over.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, and_, delete, insert, or_, select, update

from lakewarden.catalog.clock import to_millis
from lakewarden.catalog.model.rows import Action
from lakewarden.catalog.state.db import Database, insert_or, milliseconds
from lakewarden.catalog.state.models import FORGOTTEN, RUN, RUN_LINE, now_ms
from lakewarden.catalog.state.port import CANCELLED, SUPERSEDED, Result, Run, RunRequest, RunState
from lakewarden.catalog.state.run_rows import anew, ended, from_row, to_columns

__all__ = ["DatabaseQueue"]

_REMEMBER: Final = timedelta(days=7)
"""How long the ids of recorded runs are kept, and what was said during them. A worker frozen for longer is stopped by
its commit's version alone."""
_PUT_BACK_ATTEMPTS: Final = 3
"""Somebody may queue a run of the same table between our two statements, on PostgreSQL; hardly ever twice."""

_UNFINISHED = RUN.c.state != RunState.FINISHED
_TAKEN = RUN.c.state.in_((RunState.CLAIMED, RunState.RUNNING))
_OVERDUE = and_(_TAKEN, RUN.c.lease_until < now_ms())
_DUE = and_(RUN.c.state == RunState.QUEUED, or_(RUN.c.not_before.is_(None), RUN.c.not_before <= now_ms()))


class DatabaseQueue:
    """`Queue` on SQLite or PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def enqueue(self, requests: Iterable[RunRequest]) -> tuple[str, ...]:
        rows = [to_columns(request, RunState.QUEUED) for request in requests]
        if not rows:
            return ()
        with self._database.transaction() as connection:
            # The unique index speaks: a table with an unfinished run makes this insert do nothing.
            statement = insert_or(connection, RUN).values(queued_at=now_ms()).on_conflict_do_nothing()
            queued = set(connection.execute(statement.returning(RUN.c.run_id), rows).scalars())
            queued -= _taken_back(connection, queued)
        return tuple(row["run_id"] for row in rows if row["run_id"] in queued)

    def claim(
        self, worker: str, lease: timedelta, *, actions: Sequence[Action] = (), runtimes: Sequence[str] = ()
    ) -> Run | None:
        wanted = and_(_DUE, RUN.c.action.in_([action.value for action in actions])) if actions else _DUE
        wanted = and_(wanted, RUN.c.runtime.in_(runtimes)) if runtimes else wanted
        best = (
            select(RUN.c.run_id)
            .where(wanted)
            .order_by(RUN.c.rank.desc(), RUN.c.queued_at, RUN.c.run_id)
            .limit(1)
            .with_for_update(skip_locked=True)  # PostgreSQL; SQLite has one writer at a time anyway
            .scalar_subquery()
        )
        with self._database.transaction() as connection:
            taken = (
                update(RUN)
                .where(RUN.c.run_id == best)
                .values(state=RunState.CLAIMED, worker=worker, lease_until=now_ms() + milliseconds(lease))
                .returning(*RUN.c)
            )
            row = connection.execute(taken).one_or_none()
        return None if row is None else from_row(row)

    def start(self, run_id: str, worker: str, lease: timedelta) -> bool:
        now = now_ms()
        return self._change(
            and_(RUN.c.run_id == run_id, RUN.c.worker == worker, RUN.c.state == RunState.CLAIMED),
            {"state": RunState.RUNNING, "started_at": now, "lease_until": now + milliseconds(lease)},
        )

    def give_back(self, run_id: str, worker: str) -> bool:
        return self._change(
            and_(RUN.c.run_id == run_id, RUN.c.worker == worker, RUN.c.state == RunState.CLAIMED),
            {"state": RunState.QUEUED, "worker": None, "lease_until": None},
        )

    def heartbeat(self, run: Run, worker: str, lease: timedelta) -> bool:
        until = now_ms() + milliseconds(lease)
        with self._database.transaction() as connection:
            mine = and_(_held(run, worker), RUN.c.cancel_requested.is_(False))
            if _changed(connection, mine, {"lease_until": until}):
                return True
            if _known(connection, run.request.run_id):
                return False
            return _put_back(connection, anew(run, worker, RunState.RUNNING) | {"lease_until": until})

    def finish(self, run: Run, worker: str, result: Result) -> bool:
        with self._database.transaction() as connection:
            if _changed(connection, _held(run, worker), ended(result)):
                return True
            if _known(connection, run.request.run_id):
                return False
            columns = anew(run, worker, RunState.FINISHED) | ended(result, run.finished_at)
            connection.execute(insert(RUN).values(**columns))
        return True

    def expired(self) -> tuple[Run, ...]:
        return self._select(_OVERDUE)

    def requeue(self, run_id: str, *, attempt: int, not_before: datetime | None = None) -> bool:
        overdue = and_(RUN.c.run_id == run_id, _OVERDUE)
        again = {
            "state": RunState.QUEUED,
            "attempt": attempt,
            "not_before": None if not_before is None else to_millis(not_before),
            "worker": None,
            "lease_until": None,
            "started_at": None,
        }
        with self._database.transaction() as connection:
            if _changed(connection, and_(overdue, RUN.c.cancel_requested.is_(False)), again):
                return True
            _changed(connection, overdue, ended(CANCELLED))
        return False

    def close(self, run_id: str, result: Result) -> bool:
        idle = or_(RUN.c.state == RunState.QUEUED, _OVERDUE)
        return self._change(and_(RUN.c.run_id == run_id, idle), ended(result))

    def cancel(self, run_id: str) -> bool:
        with self._database.transaction() as connection:
            waiting = and_(RUN.c.run_id == run_id, RUN.c.state.in_((RunState.QUEUED, RunState.CLAIMED)))
            if _changed(connection, waiting, ended(CANCELLED)):
                return True
            running = and_(RUN.c.run_id == run_id, RUN.c.state == RunState.RUNNING)
            return _changed(connection, running, {"cancel_requested": True})

    def finished(self, limit: int) -> tuple[Run, ...]:
        return self._select(RUN.c.state == RunState.FINISHED, RUN.c.finished_at, limit=limit)

    def forget(self, run_ids: Iterable[str]) -> None:
        ids = list(run_ids)
        if not ids:
            return
        with self._database.transaction() as connection:
            done = and_(RUN.c.run_id.in_(ids), RUN.c.state == RunState.FINISHED)
            gone = connection.execute(delete(RUN).where(done).returning(RUN.c.run_id)).scalars().all()
            if gone:
                remember = insert_or(connection, FORGOTTEN).values(at=now_ms()).on_conflict_do_nothing()
                connection.execute(remember, [{"run_id": run_id} for run_id in gone])
            old = FORGOTTEN.c.at < now_ms() - milliseconds(_REMEMBER)
            connection.execute(delete(FORGOTTEN).where(old))
            connection.execute(delete(RUN_LINE).where(RUN_LINE.c.at < now_ms() - milliseconds(_REMEMBER)))

    def unfinished(self) -> tuple[Run, ...]:
        return self._select(_UNFINISHED)

    def get(self, run_id: str) -> Run | None:
        found = self._select(RUN.c.run_id == run_id)
        return found[0] if found else None

    def forgot(self, run_id: str) -> bool:
        once = select(FORGOTTEN.c.run_id).where(FORGOTTEN.c.run_id == run_id)
        with self._database.transaction() as connection:
            return connection.execute(once).first() is not None

    def _select(
        self,
        which: ColumnElement[bool],
        order: ColumnElement[Any] = RUN.c.queued_at,
        *,
        limit: int | None = None,
    ) -> tuple[Run, ...]:
        with self._database.transaction() as connection:
            rows = connection.execute(
                select(RUN).where(which).order_by(order, RUN.c.run_id).limit(limit)
            ).all()
        return tuple(from_row(row) for row in rows)

    def _change(self, which: ColumnElement[bool], values: dict[str, Any]) -> bool:
        with self._database.transaction() as connection:
            return _changed(connection, which, values)


def _held(run: Run, worker: str) -> ColumnElement[bool]:
    """The run as long as it is this worker's, in this attempt."""
    request = run.request
    return and_(
        RUN.c.run_id == request.run_id, RUN.c.attempt == request.attempt, RUN.c.worker == worker, _TAKEN
    )


def _changed(connection: Connection, which: ColumnElement[bool], values: dict[str, Any]) -> bool:
    return connection.execute(update(RUN).where(which).values(**values)).rowcount > 0


def _known(connection: Connection, run_id: str) -> bool:
    """Whether this very database has, or had, the run. If not, it is younger than the run."""
    here = select(RUN.c.run_id).where(RUN.c.run_id == run_id)
    once = select(FORGOTTEN.c.run_id).where(FORGOTTEN.c.run_id == run_id)
    return connection.execute(here.union_all(once)).first() is not None


def _taken_back(connection: Connection, queued: Collection[str]) -> set[str]:
    """Of runs just inserted those that this database had before, taken out again. Asked afterwards: an insert that had
    to wait for the run's own row to be forgotten sees it only now."""
    if not queued:
        return set()
    had = select(FORGOTTEN.c.run_id).where(FORGOTTEN.c.run_id.in_(queued))
    return set(connection.execute(delete(RUN).where(RUN.c.run_id.in_(had)).returning(RUN.c.run_id)).scalars())


def _put_back(connection: Connection, columns: dict[str, Any]) -> bool:
    """Insert a run that is under way. What was queued for its table, unknowing, is taken back; False if a worker has
    begun that one: then it is ours that has to stop."""
    other = and_(RUN.c.table_id == columns["table_id"], _UNFINISHED)
    statement = insert_or(connection, RUN).values(**columns).on_conflict_do_nothing()
    for _ in range(_PUT_BACK_ATTEMPTS):
        _changed(connection, and_(other, RUN.c.state == RunState.QUEUED), ended(SUPERSEDED))
        if connection.execute(statement.returning(RUN.c.run_id)).first() is not None:
            return True
    return False
