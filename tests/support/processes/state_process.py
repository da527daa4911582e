"""A process of its own on an operational database: `python state_process.py ROLE URL NAME ...`. Prints JSON lines.

Started as a new interpreter, never forked. Times are CLOCK_MONOTONIC, which all processes of a machine share.
"""

import json
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta

from lakewarden.catalog.errors import ConflictError, UnavailableError
from lakewarden.catalog.model.rows import Outcome
from lakewarden.catalog.state.db import Database, open_database
from lakewarden.catalog.state.lease import DatabaseLeases
from lakewarden.catalog.state.port import Result
from lakewarden.catalog.state.queue import DatabaseQueue

LEASE = timedelta(seconds=30)
DONE = Result(outcome=Outcome.SUCCEEDED)


def say(**facts: object) -> None:
    print(json.dumps({"at": time.monotonic(), **facts}), flush=True)


def create(database: Database, name: str) -> None:
    """Touch the database first thing, and say which one it was."""
    say(incarnation=database.incarnation())


def work(database: Database, name: str) -> None:
    """Claim, start and finish runs until none is left."""
    queue = DatabaseQueue(database)
    say(ready=True)
    sys.stdin.readline()
    while (run := queue.claim(name, LEASE)) is not None:
        run_id = run.request.run_id
        started = queue.start(run_id, name, LEASE)
        beating = queue.heartbeat(run, name, LEASE)
        say(run_id=run_id, ours=started and beating and queue.finish(run, name, DONE))


def lead(database: Database, name: str, ttl_seconds: str) -> None:
    """Try to become leader, for ever; say when it changes."""
    leases = DatabaseLeases(database)
    ttl = timedelta(seconds=float(ttl_seconds))
    token: int | None = None
    while True:
        try:
            lease = leases.acquire("leader", name, ttl)
        except UnavailableError:
            lease = None
        now = None if lease is None else lease.token
        if now != token:
            say(token=now)
            token = now
        time.sleep(ttl.total_seconds() / 6)


def survive(database: Database, name: str) -> None:
    """Keep one run in flight and beat its heart, until told, while somebody deletes the database again and again."""
    queue = DatabaseQueue(database)
    claimed = queue.claim(name, LEASE)
    assert claimed is not None
    queue.start(claimed.request.run_id, name, LEASE)
    say(ready=True)  # only now may the file go: a claim is not repeated, a heartbeat is
    told = threading.Thread(target=sys.stdin.readline)
    told.start()
    beats = replaced = 0
    while told.is_alive():
        try:
            assert queue.heartbeat(claimed, name, LEASE), "the run was taken away"
            beats += 1
        except (UnavailableError, ConflictError):
            replaced += 1
    assert queue.heartbeat(claimed, name, LEASE)
    say(incarnation=database.incarnation(), run_id=claimed.request.run_id, beats=beats, replaced=replaced)


ROLES: dict[str, Callable[..., None]] = {"create": create, "work": work, "lead": lead, "survive": survive}

if __name__ == "__main__":
    role, url, *arguments = sys.argv[1:]
    ROLES[role](open_database(url), *arguments)
