"""`lakewarden worker` beside `lakewarden daemon`: two processes with homes of their own, one PostgreSQL between
them. A worker killed with -9 in a compaction costs nothing, and no secret is to be seen from outside."""

import json
import signal
import subprocess
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.error import HTTPError

import psutil
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog.model.rows import Action
from support.cases import mostly_long
from support.processes.hosts import Hosts
from support.processes.workers import is_gone

pytestmark = [pytest.mark.postgres, pytest.mark.spark, pytest.mark.crash]

SECRET = "hunter2"
FILES = 5


@dataclass
class Lake(Hosts):
    """The two machines, and a table on a disk that both of them see."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.table = self.folder / "lake" / "t"

    def append(self, number: int) -> None:
        write_deltalake(
            str(self.table), pa.table({"id": range(number * 10, number * 10 + 10)}), mode="append"
        )

    def compactions(self) -> int:
        return Counter(commit["operation"] for commit in DeltaTable(str(self.table)).history())["OPTIMIZE"]


@pytest.fixture
def hosts(tmp_path: Path, postgres_url: str) -> Lake:
    url = postgres_url.replace("lakewarden@", f"lakewarden:{SECRET}@")
    conf = {"spark.hadoop.fs.s3a.secret.key": SECRET}
    one = Lake(tmp_path, url, {"LAKEWARDEN_SPARK_MASTER": "local[2]"}, conf)
    one.command("init")
    for number in range(FILES):
        one.append(number)
    one.command("tables", "register", str(one.table), "--name", "db.t")
    policy = ("mode=manage", "compaction.min_small_files=4", "compaction.quiet=1 s")
    one.command("tables", "policy", "set", "db.t", *policy)
    return one


def rows(hosts: Lake) -> list[int]:
    return sorted(DeltaTable(str(hosts.table)).to_pyarrow_table()["id"].to_pylist())


def page(hosts: Lake, number: int, path: str) -> tuple[int, str]:
    lines = [json.loads(line) for line in hosts.log(number).read_text().splitlines() if line[:1] == "{"]
    port = next(line["port"] for line in lines if line["event"] == "serving")
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize(
    ("point", "left"),
    mostly_long([("compact.decided", 0), ("compact.compacted", 1)], ()),
    ids=["before its commit", "right after its commit"],
)
def test_a_worker_killed_in_a_compaction_is_made_good_by_another_host(
    hosts: Lake, point: str, left: int
) -> None:
    with hosts.running("daemon"):
        with hosts.running("worker", failpoint=point):
            hosts.until(lambda: '"worker ended"' in hosts.log(1).read_text())
        assert hosts.compactions() == left
        with hosts.running("worker") as host:
            hosts.until(lambda: hosts.recorded("db.t", Action.COMPACT))
            if left == 0:
                check_nothing_is_seen_from_outside(hosts, host)
    (run,) = hosts.recorded("db.t", Action.COMPACT)
    assert run["outcome"] == "succeeded"
    assert (hosts.compactions(), rows(hosts)) == (1, list(range(FILES * 10)))
    said = hosts.command("jobs", "logs", run["run_id"])
    assert "run started" in said
    # What was committed is settled from the log of its table, without a worker that could say anything.
    assert ("Its worker was lost" in said.splitlines()[-1]) is (left == 1)
    assert SECRET not in said


def check_nothing_is_seen_from_outside(hosts: Lake, host: "subprocess.Popen[bytes]") -> None:
    """The password, and the key that Spark gets, are in files and in memory: in no process list, log or listing."""
    commands = list(command_lines(psutil.Process(host.pid)))
    assert any("java" in Path(command[0]).name for command in commands), "Spark is there"
    assert not [command for command in commands if SECRET in " ".join(command)]
    assert SECRET not in hosts.logs() + hosts.command("config", "show")


def command_lines(parent: psutil.Process) -> Iterator[list[str]]:
    """Of every process below `parent`; one that has ended meanwhile, or is not yet reaped, has none."""
    for process in parent.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if command := process.cmdline():
                yield command


def test_sigterm_lets_the_run_in_hand_end_and_probes_tell_what_a_host_does(hosts: Lake) -> None:
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
        hosts.until(lambda: hosts.recorded("db.t", Action.COMPACT))
        assert hosts.compactions() == 1 and rows(hosts) == list(range(FILES * 10))
    assert not list((hosts.folder / "daemon").glob("logs/*")), "the daemon started no worker"
    assert all(line.startswith("{") for line in hosts.log(0).read_text().splitlines())
