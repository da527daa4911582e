"""`lakewarden worker` beside `lakewarden daemon`: two processes with homes of their own, one PostgreSQL between
them. A worker killed with -9 in a compaction costs nothing, and no secret is to be seen from outside."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import HTTPError

import psutil
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog.model.rows import Action, Outcome
from lakewarden.catalog.state.db import open_database
from lakewarden.catalog.state.port import RunState
from lakewarden.catalog.state.queue import DatabaseQueue
from support.processes.workers import is_gone

pytestmark = [pytest.mark.postgres, pytest.mark.spark, pytest.mark.crash]

SECRET = "hunter2"
QUICK = {
    "LAKEWARDEN_LEASE_TTL": "4 s",
    "LAKEWARDEN_RUN_LEASE": "10 s",
    "LAKEWARDEN_RUN_HEARTBEAT": "2 s",
    "LAKEWARDEN_SWEEP_INTERVAL": "2 s",
    "LAKEWARDEN_WORKERS_EXTERNAL": "yes",
    "LAKEWARDEN_WORKERS_DRAIN": "240 s",
    "LAKEWARDEN_SPARK_MASTER": "local[2]",
    "LAKEWARDEN_LOG_FORMAT": "json",
    "LAKEWARDEN_HTTP_PORT": "0",
}
FILES = 5


@dataclass
class Hosts:
    """Two machines, as far as they know: nothing is shared but the database, the system tables and the lake."""

    folder: Path
    url: str
    started: list["subprocess.Popen[bytes]"] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.table = self.folder / "lake" / "t"
        secret = self.folder / "database-url"
        secret.write_text(self.url.replace("lakewarden@", f"lakewarden:{SECRET}@") + "\n")
        (self.folder / "worker").mkdir()
        (self.folder / "worker" / "lakewarden.toml").write_text(
            f'[spark.conf]\n"spark.hadoop.fs.s3a.secret.key" = "{SECRET}"\n'
        )
        self.queue = DatabaseQueue(open_database(self.url))
        self.environment = QUICK | {
            "LAKEWARDEN_DATABASE_URL_FILE": str(secret),
            "LAKEWARDEN_SYSTEM_LOCATION": str(self.folder / "system"),
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }

    def command(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "lakewarden.daemon", *arguments],
            env=os.environ | self.environment | {"LAKEWARDEN_HOME": str(self.folder / "daemon")},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def running(self, what: str, *, failpoint: str = "") -> Iterator["subprocess.Popen[bytes]"]:
        """A daemon or a host of workers; what is left of it at the end of the block is killed."""
        with self.log(len(self.started)).open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "lakewarden.daemon", what],
                stdout=log,
                stderr=log,
                env=os.environ
                | self.environment
                | {"LAKEWARDEN_HOME": str(self.folder / what), "LAKEWARDEN_FAILPOINT": failpoint},
            )
        self.started.append(process)
        try:
            yield process
        finally:
            if process.poll() is None:
                for child in psutil.Process(process.pid).children(recursive=True):
                    child.kill()
            process.kill()
            process.wait()

    def log(self, number: int) -> Path:
        return self.folder / f"process-{number}.log"

    def logs(self) -> str:
        return "\n".join(self.log(number).read_text() for number in range(len(self.started)))

    def until(self, check: Callable[[], object], seconds: float = 500) -> None:
        deadline = time.monotonic() + seconds
        while not check():
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.05)

    def runs_now(self, action: Action) -> bool:
        return any(
            run.request.action is action and run.state is RunState.RUNNING for run in self.queue.unfinished()
        )

    def recorded(self, action: Action) -> list[dict[str, str]]:
        found = json.loads(self.command("jobs", "list", "db.t", "-o", "json"))
        return [run for run in found if run["action"] == action and run["outcome"] in set(Outcome)]

    def append(self, number: int) -> None:
        write_deltalake(
            str(self.table), pa.table({"id": range(number * 10, number * 10 + 10)}), mode="append"
        )

    def compactions(self) -> int:
        return Counter(commit["operation"] for commit in DeltaTable(str(self.table)).history())["OPTIMIZE"]


@pytest.fixture
def hosts(tmp_path: Path, postgres_url: str) -> Hosts:
    one = Hosts(tmp_path, postgres_url)
    one.command("init")
    for number in range(FILES):
        one.append(number)
    one.command("tables", "register", str(one.table), "--name", "db.t")
    policy = ("mode=manage", "compaction.min_small_files=4", "compaction.quiet=1 s")
    one.command("tables", "policy", "set", "db.t", *policy)
    return one


def rows(hosts: Hosts) -> list[int]:
    return sorted(DeltaTable(str(hosts.table)).to_pyarrow_table()["id"].to_pylist())


def page(hosts: Hosts, number: int, path: str) -> tuple[int, str]:
    lines = [json.loads(line) for line in hosts.log(number).read_text().splitlines() if line[:1] == "{"]
    port = next(line["port"] for line in lines if line["event"] == "serving")
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize(
    ("point", "left"),
    [("compact.decided", 0), ("compact.compacted", 1)],
    ids=["before its commit", "right after its commit"],
)
def test_a_worker_killed_in_a_compaction_is_made_good_by_another_host(
    hosts: Hosts, point: str, left: int
) -> None:
    with hosts.running("daemon"):
        with hosts.running("worker", failpoint=point):
            hosts.until(lambda: '"worker ended"' in hosts.log(1).read_text())
        assert hosts.compactions() == left
        with hosts.running("worker") as host:
            hosts.until(lambda: hosts.recorded(Action.COMPACT))
            if left == 0:
                check_nothing_is_seen_from_outside(hosts, host)
    (run,) = hosts.recorded(Action.COMPACT)
    assert run["outcome"] == "succeeded"
    assert (hosts.compactions(), rows(hosts)) == (1, list(range(FILES * 10)))


def check_nothing_is_seen_from_outside(hosts: Hosts, host: "subprocess.Popen[bytes]") -> None:
    """The password, and the key that Spark gets, are in files and in memory: in no process list, log or listing."""
    everybody = psutil.Process(host.pid).children(recursive=True)
    assert any("java" in one.name() for one in everybody), "Spark is there"
    assert not [one for one in everybody if SECRET in " ".join(one.cmdline())]
    assert SECRET not in hosts.logs() + hosts.command("config", "show")


def test_sigterm_lets_the_run_in_hand_end_and_probes_tell_what_a_host_does(hosts: Hosts) -> None:
    with hosts.running("daemon"), hosts.running("worker") as host:
        hosts.until(lambda: "serving" in hosts.log(1).read_text())
        hosts.until(lambda: page(hosts, 1, "/readyz") == (200, "This worker is working.\n"))
        hosts.until(lambda: hosts.runs_now(Action.COMPACT))
        workers = psutil.Process(host.pid).children(recursive=True)
        host.send_signal(signal.SIGTERM)
        hosts.until(lambda: page(hosts, 1, "/readyz")[0] == 503)
        assert page(hosts, 1, "/livez")[0] == 200
        assert host.wait(260) == 0
        assert all(is_gone(one) for one in workers)
        hosts.until(lambda: hosts.recorded(Action.COMPACT))
        assert hosts.compactions() == 1 and rows(hosts) == list(range(FILES * 10))
    assert not list((hosts.folder / "daemon").glob("logs/*")), "the daemon started no worker"
    assert all(line.startswith("{") for line in hosts.log(0).read_text().splitlines())
