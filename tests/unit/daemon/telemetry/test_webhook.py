"""The webhook against a real receiver; the pages against a real client."""

import time
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta

import pytest

from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.model.rows import Action, Outcome
from lakewarden.daemon.telemetry.liveness import ProcessRole, Vitals
from lakewarden.daemon.telemetry.metrics import Metrics
from lakewarden.daemon.telemetry.probes import Pages
from lakewarden.daemon.telemetry.webhook import Event, EventKind, Webhook
from support.servers.receivers import Receiver, until

EVENT = Event(
    kind=EventKind.QUARANTINED,
    table_id="t1",
    name="db.t",
    owner="ana",
    message="db.t is quarantined.",
    at=datetime(2026, 6, 1, tzinfo=UTC),
)


def webhook(url: str, metrics: Metrics) -> Webhook:
    return Webhook(url, timeout=timedelta(seconds=2), attempts=3, metrics=metrics, pause=0.01)


@pytest.mark.heavy
def test_events_arrive_as_json_and_are_retried(receiver: Receiver) -> None:
    metrics = Metrics()
    hook = webhook(receiver.url, metrics)
    receiver.answers = [500, 503]
    hook.start()
    hook.tell(EVENT)
    until(lambda: bool(receiver.got))
    hook.stop()
    assert receiver.got == [
        {
            "event": "quarantined",
            "table_id": "t1",
            "name": "db.t",
            "owner": "ana",
            "message": "db.t is quarantined.",
            "at": "2026-06-01T00:00:00Z",
            "run_id": None,
            "hint": None,
        }
    ]
    assert b'lakewarden_webhooks_total{outcome="delivered"} 1.0' in metrics.render()


def test_a_receiver_that_is_away_costs_the_caller_nothing() -> None:
    metrics = Metrics()
    hook = webhook("http://127.0.0.1:9/secret", metrics)
    hook.start()
    began = time.monotonic()
    for _ in range(2_000):
        hook.tell(EVENT)
    assert time.monotonic() - began < 1
    hook.stop(timedelta(seconds=0.1))
    assert b'lakewarden_webhooks_total{outcome="dropped"}' in metrics.render()
    hook.stop(timedelta(seconds=60))  # or it would log into other tests


def get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_the_pages_tell_life_readiness_and_figures() -> None:
    now = [0.0]
    vitals, metrics = Vitals(patience=timedelta(seconds=60), monotonic=lambda: now[0]), Metrics()
    pages = Pages(port=0, vitals=vitals, metrics=metrics)
    pages.start()
    assert get(pages.port, "/livez")[0] == 200
    assert get(pages.port, "/readyz") == (503, "This daemon is starting.\n")
    vitals.become(ProcessRole.LEADING)
    assert get(pages.port, "/readyz") == (200, "This daemon is leading.\n")
    vitals.cycle("The storage does not answer.")
    assert get(pages.port, "/readyz") == (503, "The storage does not answer.\n")
    now[0] = 61.0
    assert get(pages.port, "/livez")[0] == 503
    metrics.count_run(Action.VACUUM, Outcome.SUCCEEDED)
    assert 'lakewarden_runs_total{action="vacuum",outcome="succeeded"} 1.0' in get(pages.port, "/metrics")[1]
    assert get(pages.port, "/")[0] == 404
    with pytest.raises(UnavailableError, match="is not available"):
        Pages(port=pages.port, vitals=vitals, metrics=metrics).start()
    pages.stop()
