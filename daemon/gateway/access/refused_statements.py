"""Statements that the gateway refused, on their way into `lakewarden.audit`.

Grouped: the first is written at once, those of the next half minute together, so that a flood of refusals is no flood
of commits. What cannot be written now is written with what comes next.
"""

import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from lakewarden.catalog.errors import ClosedTableError, LakewardenError, NotAllowedError
from lakewarden.catalog.policy.access import Caller, Permission
from lakewarden.daemon.telemetry.gateway_metrics import GatewayMetrics
from lakewarden.daemon.telemetry.log import get_log
from lakewarden.daemon.usecases.audit import Refusal
from lakewarden.jobs.sql.quotes import outside

__all__ = ["Refusals"]

_PAUSE: Final = timedelta(seconds=30)
_OF_ONE_USER: Final = 20
"""Entries of one user in one commit; further kinds of refusals are counted in one more."""
_OTHERS: Final = "other statements"
_READ: Final = 1_000
_QUOTES: Final = "'\""
_NUMBERS: Final = re.compile(r"\b\d[\w.]*")
_TEXT: Final = 200
"""Characters of a statement: so many are looked at, and so many are kept."""


class Refusals:
    """From `start` to `stop`. Thread-safe; `note` never waits."""

    def __init__(
        self,
        *,
        record: Callable[[Iterable[Refusal]], None],
        now: Callable[[], datetime],
        metrics: GatewayMetrics,
        pause: timedelta = _PAUSE,
    ) -> None:
        self._record, self._now, self._metrics, self._pause = record, now, metrics, pause
        self._waiting: dict[tuple[str, Permission, str, str], Refusal] = {}
        self._lock = threading.Lock()
        self._wake, self._stopping = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._work, name="refusals", daemon=True)
        self._log = get_log("gateway")

    def start(self) -> None:
        """Begin writing."""
        self._thread.start()

    def stop(self, wait: timedelta = timedelta(seconds=5)) -> None:
        """Write what waits, for at most `wait`."""
        self._stopping.set()
        self._wake.set()
        self._thread.join(wait.total_seconds())

    def note(self, caller: Caller, text: str, error: NotAllowedError) -> None:
        """A statement was refused."""
        closed = error.table if isinstance(error, ClosedTableError) else None
        permission = Permission.STATEMENT if closed is None else Permission.QUERY
        self._metrics.refused_statements.labels(caller.name).inc()
        with self._lock:
            self._add(caller, permission, _shown(text) if closed is None else closed, str(error))
        self._wake.set()

    def _add(self, caller: Caller, permission: Permission, on: str, why: str) -> None:
        key = caller.name, permission, on, why
        if key not in self._waiting and self._count(caller) >= _OF_ONE_USER:
            key = caller.name, Permission.STATEMENT, _OTHERS, "They were refused."
        known = self._waiting.get(key)
        if known is not None:
            self._waiting[key] = replace(known, times=known.times + 1)
            return
        _, permission, on, why = key
        self._waiting[key] = Refusal(caller=caller, permission=permission, on=on, why=why, at=self._now())

    def _count(self, caller: Caller) -> int:
        return sum(name == caller.name for name, *_ in self._waiting)

    def _work(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait()
            self._write()
            self._stopping.wait(self._pause.total_seconds())
        self._write()

    def _write(self) -> None:
        self._wake.clear()
        with self._lock:
            taken, self._waiting = self._waiting, {}
        if not taken:
            return
        try:
            self._record(taken.values())
        except LakewardenError as error:
            self._log.warning("refusals not recorded", because=str(error))
            with self._lock:
                self._waiting = taken | self._waiting
            self._wake.set()


def _shown(text: str) -> str:
    """The beginning of a statement, without its literals and what it sets: everybody reads the audit."""
    begins = "".join("'...'" if one in _QUOTES else one for one in outside(text[:_READ].strip(), _QUOTES))
    begins = _NUMBERS.sub("0", begins)
    head, equals, _ = begins.partition("=")
    if equals and "SET" in head.upper().split():
        begins = f"{head}= ..."
    return begins if len(begins) <= _TEXT else f"{begins[:_TEXT]}..."
