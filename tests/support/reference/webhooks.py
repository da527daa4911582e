"""docs/reference/webhooks.md: what a webhook is sent, as a receiver really got it."""

import hashlib
import hmac
import inspect
import json
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from lakewarden.daemon.telemetry.metrics import Metrics
from lakewarden.daemon.telemetry.webhook import Event, EventKind, Webhook
from support.reference.meanings import NOTICE, cell, meant
from support.servers.receivers import Receiver

__all__ = ["is_ours", "webhooks_page"]

KEYS = {
    "event": "What happened, one of the words below.",
    "table_id": "The table.",
    "name": "The table's name.",
    "owner": "The table's owner, null if it has none.",
    "message": "What happened, in a sentence for people. Not a contract.",
    "at": "When, in ISO 8601 and UTC.",
    "run_id": "The run that it is about, else null.",
    "hint": "What can be done, else null.",
}
EVENTS = {
    "quarantined": "A check found an error: the table is quarantined, nothing changes it until it is mended.",
    "dropped": "A sweep found nothing left of the table, neither its files nor its entry: it counts as dropped by its "
    "users. If it has only been moved, `tables register` at its new place takes it back.",
    "run_failed": "A run failed, or its worker was lost, and it is not tried again by itself.",
    "consent_needed": "A run stopped before something that somebody has to agree to; `hint` says how.",
    "reads_reverted": "The table holds what was made from versions that a rollback took back.",
    "plan_waits": "Somebody ran RESTORE: a plan for what was derived from the table waits for its owners.",
    "rolled_back": "Somebody ran RESTORE: the daemon rolls this table back along with it, "
    "as its owner has declared.",
}
_EXAMPLE = Event(
    kind=EventKind.RUN_FAILED,
    table_id="6f1c6f6e0d0b4f6d9a3a0f8a2f0f4f5e",
    name="db.flights",
    owner="ana",
    message="compact of db.flights: The table changed while it ran.",
    at=datetime(2026, 11, 21, 3, 14, 15, tzinfo=UTC),
    run_id="3f2a9f0c5b9d4f8e9b7a6c5d4e3f2a1b",
    hint="The next cycle decides again.",
)
_INTRO = """\
# What a webhook is sent

With `webhook.url` set, the leader POSTs one JSON object per event, `Content-Type: application/json`. Any
answer of 200 to 299 takes it; else it is tried again, `webhook.attempts` times in all, with growing pauses.
After that, and when 1,000 events wait already, an event is dropped and counted (`lakewarden_webhooks_total`).
It can arrive twice. What is true is in the system tables: an event says "look".

One delivery takes at most `webhook.timeout`, from looking the receiver's name up to its answer. Only `http`
and `https` are sent to, and no redirection is followed.

## An example

As a receiver got it:

"""


_SIGNED = """
## Who sent it

With `webhook.secret` set (for lineage events: `openlineage.secret`), each delivery has the header
`Lakewarden-Signature: t=TIME,v1=SIGNATURE`. `TIME` is when it was sent, in seconds since 1970; `SIGNATURE` is
the HMAC with SHA-256 of `TIME`, a dot and the body as it was sent, in hexadecimal, with the secret as the
key. A receiver checks it before it reads the body, and refuses what was sent long ago: somebody may have
recorded it.

"""


def is_ours(secret: str, header: str, body: bytes, *, seconds: int = 300) -> bool:
    """Whether lakewarden sent this body, no longer ago than so many seconds."""
    told = dict(part.partition("=")[::2] for part in header.split(","))
    sent = told.get("t", "")
    signed = hmac.new(secret.encode(), f"{sent}.".encode() + body, hashlib.sha256).hexdigest()
    genuine = hmac.compare_digest(signed.encode(), told.get("v1", "").encode())
    return genuine and abs(time.time() - int(sent)) <= seconds


def webhooks_page() -> str:
    """The page. Raises `Undocumented` for a key or an event without a meaning."""
    sent = delivered(_EXAMPLE)
    keys, events = meant("keys", sent, KEYS), meant("events", [one.value for one in EventKind], EVENTS)
    lines = [f"```json\n{json.dumps(sent, indent=2)}\n```\n", "## Keys\n", "| key | meaning |", "|---|---|"]
    lines += [f"| `{key}` | {cell(meaning)} |" for key, meaning in keys.items()]
    lines += ["\n## Events\n", "| event | when |", "|---|---|"]
    lines += [f"| `{event}` | {cell(meaning)} |" for event, meaning in events.items()]
    example = f"```python\nimport hashlib\nimport hmac\nimport time\n\n\n{inspect.getsource(is_ours)}```"
    return "\n".join([NOTICE, _INTRO + "\n".join(lines), _SIGNED + example]) + "\n"


def delivered(event: Event) -> dict[str, Any]:
    """What a real receiver gets of an event."""
    receiver = Receiver()
    webhook = Webhook(receiver.url, timeout=timedelta(seconds=5), attempts=1, metrics=Metrics())
    try:
        webhook.tell(event)
        webhook.start()
        webhook.stop()
    finally:
        receiver.close()
    (sent,) = receiver.got
    return sent
