"""Tell somebody: quarantines, failed runs, plans that wait for consent, late taint. Never in the way of a cycle.

Events go into a bounded queue and are delivered by a thread of their own, at least once, with retries. What does not
fit or cannot be delivered is counted and dropped: the truth is in the system tables, a webhook only says "look".
"""

import json
import queue
import threading
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, Protocol

from lakewarden.daemon.telemetry.http_post import post_json
from lakewarden.daemon.telemetry.log import get_log
from lakewarden.daemon.telemetry.metrics import Metrics

__all__ = ["Event", "EventKind", "Notifier", "Silence", "Webhook", "payload"]

_CAPACITY: Final = 1_000
_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0


class EventKind(StrEnum):
    """What happened: a contract, the `event` of each delivery (docs/reference/webhooks.md lists them)."""

    QUARANTINED = "quarantined"
    DROPPED = "dropped"
    RUN_FAILED = "run_failed"
    CONSENT_NEEDED = "consent_needed"
    READS_REVERTED = "reads_reverted"
    PLAN_WAITS = "plan_waits"
    ROLLED_BACK = "rolled_back"


@dataclass(frozen=True, kw_only=True, slots=True)
class Event:
    """One thing worth telling."""

    kind: EventKind
    table_id: str
    name: str
    owner: str | None
    message: str
    """A sentence for people."""
    at: datetime
    run_id: str | None = None
    """Where a run is concerned."""
    hint: str | None = None
    """What can be done."""


class Notifier(Protocol):
    """Takes events without ever blocking."""

    def tell(self, event: Event) -> None:
        """Pass it on some time, or drop it."""


class Silence:
    """The notifier where no webhook is configured."""

    def tell(self, event: Event) -> None:
        pass


class Webhook:
    """POSTs events as JSON to one URL, signed by `secret` if there is one. `start` begins delivering, `stop` gives what
    is queued one last chance."""

    def __init__(
        self,
        url: str,
        *,
        timeout: timedelta,
        attempts: int,
        metrics: Metrics,
        secret: str | None = None,
        pause: float = _FIRST_PAUSE,
    ) -> None:
        self._url, self._timeout, self._attempts, self._secret = url, timeout, attempts, secret
        self._metrics, self._first_pause = metrics, pause
        self._events: queue.Queue[Event] = queue.Queue(maxsize=_CAPACITY)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._deliver_all, name="webhook", daemon=True)
        self._log = get_log("webhook")

    def start(self) -> None:
        """Begin delivering."""
        self._thread.start()

    def stop(self, wait: timedelta = timedelta(seconds=5)) -> None:
        """Deliver what is queued without retries, for at most `wait`."""
        self._stopping.set()
        self._thread.join(wait.total_seconds())

    def tell(self, event: Event) -> None:
        """Queue an event; dropped and counted when the queue is full."""
        try:
            self._events.put_nowait(event)
        except queue.Full:
            self._metrics.webhooks.labels("dropped").inc()

    def _deliver_all(self) -> None:
        while not (self._stopping.is_set() and self._events.empty()):
            try:
                event = self._events.get(timeout=0.2)
            except queue.Empty:
                continue
            delivered = self._deliver(event)
            self._metrics.webhooks.labels("delivered" if delivered else "dropped").inc()

    def _deliver(self, event: Event) -> bool:
        pause = self._first_pause
        for attempt in range(1, self._attempts + 1):
            problem = self._post(event)
            if problem is None:
                return True
            if attempt == self._attempts or self._stopping.wait(pause):
                self._log.warning("webhook not delivered", kind=event.kind, table=event.name, problem=problem)
                return False
            pause = min(pause * 2, _LONGEST_PAUSE)
        return False

    def _post(self, event: Event) -> str | None:
        """None if the receiver took it, else what went wrong."""
        body = json.dumps(payload(event)).encode()
        return post_json(self._url, body, timeout=self._timeout, secret=self._secret).problem


def payload(event: Event) -> dict[str, str | None]:
    """What is sent of an event, as one JSON object; docs/reference/webhooks.md says what each key means."""
    return {
        "event": event.kind,
        "table_id": event.table_id,
        "name": event.name,
        "owner": event.owner,
        "message": event.message,
        "at": event.at.isoformat().replace("+00:00", "Z"),
        "run_id": event.run_id,
        "hint": event.hint,
    }
