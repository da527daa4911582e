"""The operational database with real processes on it: each run claimed once, one leader at a time, whoever dies."""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from lakewarden.catalog.state.port import RunState
from support.builders.states import database_state, request, sqlite_url
from support.processes import state_process

TTL_SECONDS = 1.0
FAILOVER_SECONDS = 3.0
"""A lease time, a renewal pause and a crowded machine."""


class Child:
    """One process of tests/support/processes/state_process.py."""

    def __init__(self, role: str, url: str, *arguments: str) -> None:
        self.name = arguments[0]
        command = [sys.executable, state_process.__file__, role, url, *arguments]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def read(self) -> dict[str, Any] | None:
        """The next line it says, None at its end."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def rest(self) -> list[dict[str, Any]]:
        """Everything it says until it ends by itself."""
        lines = list(iter(self.read, None))
        assert self.process.wait(30) == 0
        return lines

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.communicate()


@contextmanager
def children(role: str, url: str, names: str, *arguments: str) -> Iterator[list[Child]]:
    with ExitStack() as stack:
        found = [Child(role, url, name, *arguments) for name in names]
        for child in found:
            stack.callback(child.end)
        yield found


def said(child: Child) -> dict[str, Any]:
    line = child.read()
    assert line is not None, f"{child.name} ended"
    return line


@pytest.mark.heavy
def test_processes_that_create_the_database_at_once_create_one(url: str) -> None:
    with children("create", url, "abcdef") as found:
        incarnations = {line["incarnation"] for child in found for line in child.rest()}
    assert len(incarnations) == 1


@pytest.mark.heavy
def test_five_processes_claim_two_hundred_runs_and_each_run_once(url: str) -> None:
    with database_state(url) as state:
        queued = state.queue.enqueue(request(f"t{number}", rank=number % 7) for number in range(200))
        with children("work", url, "abcde") as found:
            for child in found:
                assert said(child)["ready"]
            for child in found:
                child.go()
            lines = [line for child in found for line in child.rest()]
        assert Counter(line["run_id"] for line in lines) == Counter(queued)
        assert all(line["ours"] for line in lines)
        assert {run.state for run in state.queue.finished(1_000)} == {RunState.FINISHED}
        assert state.queue.unfinished() == ()


@pytest.mark.few(2)
@pytest.mark.crash
@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "frozen"])
def test_another_leader_takes_over_with_a_higher_token(url: str, blow: signal.Signals) -> None:
    with children("lead", url, "a", str(TTL_SECONDS)) as (old,):
        assert said(old)["token"] == 1
        with children("lead", url, "b", str(TTL_SECONDS)) as (heir,):
            time.sleep(TTL_SECONDS)  # the heir has been refused by now
            struck_at = time.monotonic()
            old.process.send_signal(blow)
            taken = said(heir)
            print(f"failover after {taken['at'] - struck_at:.2f} s at a lease of {TTL_SECONDS} s")
            assert taken["token"] == 2
            assert taken["at"] - struck_at < FAILOVER_SECONDS
            if blow is signal.SIGSTOP:
                old.process.send_signal(signal.SIGCONT)
                assert said(old)["token"] is None


@pytest.mark.heavy
def test_two_processes_survive_that_their_sqlite_file_is_deleted_again_and_again(tmp_path: Path) -> None:
    url, file = sqlite_url(tmp_path), tmp_path / "state.db"
    with database_state(url) as state:
        queued = state.queue.enqueue([request("a"), request("b")])
    with children("survive", url, "ab") as found:
        for child in found:
            assert said(child)["ready"]
        for turn in range(20):
            # A person deletes what looks like the database; sometimes with, sometimes without its side files.
            for suffix in ("", "-wal", "-shm") if turn % 2 else ("",):
                Path(f"{file}{suffix}").unlink(missing_ok=True)
            time.sleep(0.1)
        for child in found:
            child.go()
        ends = [child.rest()[-1] for child in found]
    assert len({end["incarnation"] for end in ends}) == 1
    assert all(end["beats"] > 0 for end in ends), ends
    with database_state(url) as state:
        assert {run.request.run_id for run in state.queue.unfinished()} == set(queued)
        assert {run.state for run in state.queue.unfinished()} == {RunState.RUNNING}
    connection = sqlite3.connect(file)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
