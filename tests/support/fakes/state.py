"""The fakes of these ports: the same semantics in memory, on a clock that the test moves.

They pass the contract suites of the real ones (tests/contract/test_state_*.py).
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.model.rows import Action
from lakewarden.catalog.model.system_head import SystemHead
from lakewarden.catalog.state.port import (
    CANCELLED,
    SUPERSEDED,
    Hint,
    Lease,
    Result,
    Run,
    RunLine,
    RunRequest,
    RunState,
)

__all__ = ["FakeBookmarks", "FakeInbox", "FakeLeases", "FakeQueue", "FakeRunLog", "FakeSystemHeads"]


class FakeBookmarks:
    """`Bookmarks` in memory."""

    def __init__(self) -> None:
        self._values: dict[str, int] = {}

    def get(self, name: str) -> int | None:
        return self._values.get(name)

    def put(self, name: str, value: int) -> None:
        self._values[name] = value


class FakeSystemHeads:
    """`SystemHeads` in memory."""

    def __init__(self) -> None:
        self._heads: dict[str, SystemHead] = {}

    def get(self) -> Mapping[str, SystemHead]:
        return dict(self._heads)

    def put(self, heads: Mapping[str, SystemHead]) -> None:
        self._heads.update(heads)


class FakeRunLog:
    """`RunLog` in memory."""

    def __init__(self) -> None:
        self._lines: list[tuple[str, RunLine]] = []

    def write(self, run_id: str, lines: Sequence[RunLine]) -> None:
        for line in lines:
            self._lines.append((run_id, replace(line, seq=len(self._lines) + 1)))

    def read(self, run_id: str, *, after: int = 0) -> tuple[RunLine, ...]:
        return tuple(line for owner, line in self._lines if owner == run_id and line.seq > after)


class FakeLeases:
    """`Leases` in memory."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rows: dict[str, Lease] = {}
        self._incarnation = uuid.uuid4().hex

    def acquire(self, name: str, holder: str, ttl: timedelta) -> Lease | None:
        row, held = self._rows.get(name), self.current(name)
        if held is not None and held.holder != holder:
            return None
        token = 1 if row is None else row.token + (row.holder != holder)
        until = self._clock.now() + ttl
        self._rows[name] = Lease(name=name, holder=holder, token=token, expires_at=until)
        return self._rows[name]

    def advance(self, name: str, holder: str, token: int) -> Lease | None:
        held = self.current(name)
        if held is None or held.holder != holder:
            return None
        self._rows[name] = replace(held, token=max(held.token, token))
        return self._rows[name]

    def release(self, name: str, holder: str) -> None:
        row = self._rows.get(name)
        if row is not None and row.holder == holder:
            self._rows[name] = replace(row, expires_at=self._clock.now())

    def current(self, name: str) -> Lease | None:
        row = self._rows.get(name)
        return row if row is not None and row.expires_at > self._clock.now() else None

    def incarnation(self) -> str:
        return self._incarnation

    def now(self) -> datetime:
        return self._clock.now()


class FakeInbox:
    """`Inbox` in memory."""

    def __init__(self) -> None:
        self._hints: dict[str, Hint] = {}

    def put(self, hints: Iterable[Hint]) -> None:
        for hint in hints:
            self._hints.setdefault(hint.hint_id, hint)

    def claim(self, limit: int) -> tuple[Hint, ...]:
        return tuple(self._hints.values())[:limit]

    def done(self, hint_ids: Iterable[str]) -> None:
        for hint_id in hint_ids:
            self._hints.pop(hint_id, None)


class FakeQueue:
    """`Queue` in memory."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._runs: dict[str, Run] = {}
        self._forgotten: set[str] = set()

    def enqueue(self, requests: Iterable[RunRequest]) -> tuple[str, ...]:
        queued = []
        for request in requests:
            if not self._known(request.run_id) and self._under_way(request.table_id) is None:
                self._runs[request.run_id] = Run(
                    request=request, state=RunState.QUEUED, queued_at=self._clock.now()
                )
                queued.append(request.run_id)
        return tuple(queued)

    def claim(
        self, worker: str, lease: timedelta, *, actions: Sequence[Action] = (), runtimes: Sequence[str] = ()
    ) -> Run | None:
        now = self._clock.now()
        due = [
            run
            for run in self._runs.values()
            if run.state is RunState.QUEUED
            and (run.request.not_before is None or run.request.not_before <= now)
            and (not actions or run.request.action in actions)
            and (not runtimes or run.request.runtime in runtimes)
        ]
        if not due:
            return None
        best = min(due, key=lambda run: (-run.request.rank, run.queued_at, run.request.run_id))
        return self._keep(replace(best, state=RunState.CLAIMED, worker=worker, lease_until=now + lease))

    def start(self, run_id: str, worker: str, lease: timedelta) -> bool:
        run = self._runs.get(run_id)
        if run is None or run.worker != worker or run.state is not RunState.CLAIMED:
            return False
        now = self._clock.now()
        self._keep(replace(run, state=RunState.RUNNING, started_at=now, lease_until=now + lease))
        return True

    def heartbeat(self, run: Run, worker: str, lease: timedelta) -> bool:
        until = self._clock.now() + lease
        if self._known(run.request.run_id):
            held = self._held(run, worker)
            if held is None or held.cancel_requested:
                return False
            self._keep(replace(held, lease_until=until))
            return True
        other = self._under_way(run.request.table_id)
        if other is not None and other.state is not RunState.QUEUED:
            return False
        if other is not None:
            self._end(other, SUPERSEDED)
        started = run.started_at or self._clock.now()
        self._keep(replace(run, state=RunState.RUNNING, worker=worker, started_at=started, lease_until=until))
        return True

    def finish(self, run: Run, worker: str, result: Result) -> bool:
        if self._known(run.request.run_id):
            held = self._held(run, worker)
            if held is None:
                return False
            self._end(held, result)
            return True
        started = run.started_at or self._clock.now()
        self._end(replace(run, worker=worker, started_at=started), result, run.finished_at)
        return True

    def expired(self) -> tuple[Run, ...]:
        return tuple(run for run in self.unfinished() if self._overdue(run))

    def give_back(self, run_id: str, worker: str) -> bool:
        run = self._runs.get(run_id)
        if run is None or run.worker != worker or run.state is not RunState.CLAIMED:
            return False
        self._keep(replace(run, state=RunState.QUEUED, worker=None, lease_until=None))
        return True

    def requeue(self, run_id: str, *, attempt: int, not_before: datetime | None = None) -> bool:
        run = self._runs.get(run_id)
        if run is None or not self._overdue(run):
            return False
        if run.cancel_requested:
            self._end(run, CANCELLED)
            return False
        request = replace(run.request, attempt=attempt, not_before=not_before)
        self._keep(Run(request=request, state=RunState.QUEUED, queued_at=run.queued_at))
        return True

    def close(self, run_id: str, result: Result) -> bool:
        run = self._runs.get(run_id)
        if run is None or not (run.state is RunState.QUEUED or self._overdue(run)):
            return False
        self._end(run, result)
        return True

    def cancel(self, run_id: str) -> bool:
        run = self._runs.get(run_id)
        if run is None or run.state is RunState.FINISHED:
            return False
        if run.state is RunState.RUNNING:
            self._keep(replace(run, cancel_requested=True))
        else:
            self._end(run, CANCELLED)
        return True

    def finished(self, limit: int) -> tuple[Run, ...]:
        done = [(run.finished_at, run.request.run_id, run) for run in self._runs.values() if run.finished_at]
        return tuple(run for _, _, run in sorted(done)[:limit])

    def forget(self, run_ids: Iterable[str]) -> None:
        for run_id in run_ids:
            run = self._runs.get(run_id)
            if run is not None and run.state is RunState.FINISHED:
                del self._runs[run_id]
                self._forgotten.add(run_id)

    def unfinished(self) -> tuple[Run, ...]:
        runs = [run for run in self._runs.values() if run.state is not RunState.FINISHED]
        return tuple(sorted(runs, key=lambda run: (run.queued_at, run.request.run_id)))

    def get(self, run_id: str) -> Run | None:
        return self._runs.get(run_id)

    def forgot(self, run_id: str) -> bool:
        return run_id in self._forgotten

    def _keep(self, run: Run) -> Run:
        self._runs[run.request.run_id] = run
        return run

    def _end(self, run: Run, result: Result, at: datetime | None = None) -> None:
        at = at or self._clock.now()
        self._keep(replace(run, state=RunState.FINISHED, result=result, finished_at=at, lease_until=None))

    def _known(self, run_id: str) -> bool:
        return run_id in self._runs or run_id in self._forgotten

    def _held(self, run: Run, worker: str) -> Run | None:
        here = self._runs.get(run.request.run_id)
        if here is None or here.worker != worker or here.request.attempt != run.request.attempt:
            return None
        return here if here.state in (RunState.CLAIMED, RunState.RUNNING) else None

    def _overdue(self, run: Run) -> bool:
        return run.lease_until is not None and run.lease_until < self._clock.now()

    def _under_way(self, table_id: str) -> Run | None:
        mine = (run for run in self.unfinished() if run.request.table_id == table_id)
        return next(mine, None)
