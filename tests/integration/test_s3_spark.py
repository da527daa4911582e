"""Spark's workers on a real S3: compaction, vacuum, conversion, a rollback with what was derived from it; and keys that
are rotated, or wrong, under a daemon that sweeps and a worker that compacts."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog.storage.file_store import open_store
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.jobs.runs.log_stores import S3_LOG_STORE
from support.builders.derived import ids, write
from support.processes.commands import command
from support.reference.faults import Faults
from support.servers.faults import FaultyProxy
from support.servers.s3 import S3Server, options_of
from support.servers.s3_home import MountedKeys, make_home, settings_of

pytestmark = [pytest.mark.s3, pytest.mark.spark]

LONG_AGO = 60 * 86_400
QUICK = {"LAKEWARDEN_SWEEP_INTERVAL": "1 s", "LAKEWARDEN_SWEEP_LONGEST_PAUSE": "2 s"}
FIRST, SECOND, WRONG = (
    (f"{name}-key", f"{name}-secret-0123456789") for name in ("first", "second", "unknown")
)
"""Keys with their secrets."""
PARTS, APPENDS = 8, 4


@dataclass(kw_only=True)
class Lake:
    """An installation on S3 with a daemon whose worker runs Spark. It reaches the server through `proxy`, with what
    `keys` says."""

    s3: S3Server
    home: Path
    proxy: FaultyProxy
    keys: MountedKeys
    daemon: list[psutil.Process] = field(default_factory=list)

    @classmethod
    def made(
        cls, s3: S3Server, proxy: FaultyProxy, folder: Path, spark: Mapping[str, str] | None = None
    ) -> "Lake":
        """One without system tables; nobody works there yet."""
        keys = MountedKeys(folder / "keys")
        keys.put(*FIRST)
        home = make_home(folder / "home", proxy.endpoint, prefix=folder.name, spark=spark, keys=keys)
        return cls(s3=s3, home=home, proxy=proxy, keys=keys)

    def said(self, *arguments: str, code: int = 0) -> str:
        """What a command says."""
        done = command(self.home, *arguments, settings=settings_of())
        assert done.returncode == code, f"{done.stdout}\n{done.stderr}\n{self.log()}"
        return done.stdout + done.stderr

    def json(self, *arguments: str) -> Any:
        done = command(self.home, *arguments, "-o", "json", settings=settings_of())
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{self.log()}"
        return json.loads(done.stdout)

    def at(self, name: str) -> str:
        return self.s3.at(f"{self.home.parent.name}/{name}")

    def log(self) -> str:
        """The end of what the worker said."""
        return "\n".join(one.read_text()[-4000:] for one in (self.home / "logs").glob("worker-*.log"))

    def beginnings(self, name: str) -> list[str]:
        """The lines by which a worker said that it took a run on a table in hand."""
        said = [one.read_text() for one in (self.home / "logs").glob("worker-*.log")]
        lines = "\n".join(said).splitlines()
        return [line for line in lines if "run started" in line and f'"{name}"' in line]

    def heard(self) -> list[str]:
        """What the daemon's log says."""
        return (self.home / "daemon.log").read_text().splitlines()

    def until(self, check: Callable[[], object], seconds: float = 240) -> None:
        """Wait for something, or fail with the logs."""
        deadline = time.monotonic() + seconds
        while not check():
            assert time.monotonic() < deadline, "\n".join((*self.heard()[-40:], self.log()))
            time.sleep(0.05)

    def worker(self) -> list[int]:
        """The processes that the daemon has started, by id: a worker and its JVM."""
        return [one.pid for each in self.daemon for one in each.children(recursive=True)]


@pytest.fixture(scope="module")
def environment(s3: S3Server) -> Iterator[Mapping[str, str]]:
    """This process reaches the bucket by its environment, for writers that are users; the daemon does not see that."""
    options = {
        name.upper(): value for name, value in options_of(s3.endpoint).items() if name.startswith("aws_")
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in options.items():
            patch.setenv(name, value)
        yield options


@pytest.fixture(scope="module")
def lake(
    s3: S3Server,
    proxy: FaultyProxy,
    environment: Mapping[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Lake]:
    s3.let_in(*FIRST)
    one = Lake.made(s3, proxy, tmp_path_factory.mktemp("lake"))
    home = one.home
    one.said("init")
    clean = {name: value for name, value in os.environ.items() if name not in environment}
    daemon = subprocess.Popen(
        [sys.executable, "-m", "lakewarden.daemon", "daemon"],
        env={**clean, **settings_of(), **QUICK, "LAKEWARDEN_HOME": str(home),
             "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.DEVNULL, stderr=(home / "daemon.log").open("wb"),
    )  # fmt: skip
    try:
        services = Services(load_settings(home=home, environment=settings_of()))
        until = time.monotonic() + 60
        while services.leases.current(services.settings.lease_name) is None:
            assert daemon.poll() is None and time.monotonic() < until
            time.sleep(0.1)
        one.daemon.append(psutil.Process(daemon.pid))
        yield one
    finally:
        daemon.terminate()
        daemon.wait(90)


def age(folder: Path) -> None:
    """Make all of a table as old as if it had been written two months ago: what its log says, and its files."""
    for commit in (folder / "_delta_log").glob("*.json"):
        old = re.sub(
            r"(?<=[^\d])1\d{12}(?=[^\d])", lambda at: str(int(at[0]) - LONG_AGO * 1000), commit.read_text()
        )
        commit.write_text(old)
    past = time.time() - LONG_AGO
    for file in folder.rglob("*"):
        os.utime(file, (past, past))


def parquet(location: str, s3: S3Server) -> str:
    """A folder with a Parquet file of three rows."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": pa.array([1, 2, 3], pa.int64())}), sink)
    open_store(location, s3.storage).write("part-0.parquet", sink.getvalue().to_pybytes())
    return location


def compacted(lake: Lake, name: str, files: int) -> str:
    """A new table of that many files, after Spark has compacted them."""
    location = lake.at(name)
    for number in range(files):
        write(location, number)
    lake.said("tables", "register", location, "--name", f"lake.{name}")
    lake.said(
        "tables", "policy", "set", f"lake.{name}", "compaction.min_small_files=2", "compaction.quiet=1 s"
    )
    time.sleep(1.5)
    done = lake.json("jobs", "run", f"lake.{name}", "compact")
    assert done["outcome"] == "succeeded" and done["actual_files"] == files, done
    return location


@pytest.fixture(scope="module")
def orders(lake: Lake) -> str:
    """A table that the worker's Spark has compacted."""
    return compacted(lake, "orders", 6)


@pytest.mark.long
def test_small_files_are_compacted_and_what_nobody_needs_is_vacuumed(lake: Lake, orders: str) -> None:
    location = orders
    assert ids(location) == list(range(6))
    folder = lake.s3.folder / lake.home.parent.name / "orders"
    age(folder)
    done = lake.json("jobs", "run", "lake.orders", "vacuum", "--consent")
    assert done["outcome"] == "succeeded" and done["actual_files"] == 6, done
    assert len(list(folder.glob("*.parquet"))) == 1 and ids(location) == list(range(6))


@pytest.mark.long
def test_a_rollback_takes_what_was_derived_back_with_it(lake: Lake) -> None:
    source, derived = lake.at("source"), lake.at("derived")
    write(source, 1)
    row = lake.json("tables", "register", source, "--name", "lake.source")
    reads = {row["table_id"]: source}
    write(derived, 1, reads=reads)
    write(source, 99)
    write(derived, 99, reads=reads)
    lake.said("tables", "register", derived, "--name", "lake.derived")
    planned = lake.json("rollback", "plan", "lake.source", "--to-version", "0", "--cascade")
    lake.said("rollback", "apply", planned["hash"])
    assert (ids(source), ids(derived)) == ([1], [1])


@pytest.mark.long
def test_a_parquet_folder_becomes_a_table(lake: Lake) -> None:
    location = parquet(lake.at("raw"), lake.s3)
    lake.said("tables", "convert", location, "--name", "lake.raw")
    assert ids(location) == [1, 2, 3]
    assert lake.json("tables", "show", "lake.raw")["state"] == "active"


@contextmanager
def begun(lake: Lake, name: str) -> Iterator[None]:
    """The block begins when a worker has taken a run on this table in hand."""

    lake.until(lambda: lake.beginnings(name))
    yield


@pytest.mark.long
def test_keys_rotated_in_the_middle_of_a_compaction_are_taken_up_by_all_without_a_restart(
    lake: Lake, proxy: FaultyProxy, s3: S3Server, faults: Faults
) -> None:
    location, folder = lake.at("rotated"), s3.folder / lake.home.parent.name / "rotated"
    for number in range(APPENDS):
        rows = pa.table({"id": range(number * PARTS, (number + 1) * PARTS), "part": range(PARTS)})
        write_deltalake(location, rows, mode="append", partition_by=["part"])
    lake.said("tables", "register", location, "--name", "lake.rotated")
    lake.said(
        "tables", "policy", "set", "lake.rotated", "compaction.min_small_files=2", "compaction.quiet=1 s"
    )
    time.sleep(1.5)
    asked = ("-m", "lakewarden.daemon", "jobs", "run", "lake.rotated", "compact", "-o", "json")
    with (
        faults.played(
            "s3",
            "the key in a mounted Secret rotated, and the old one revoked, in the middle of a compaction",
            "daemon and Spark go on with the new one, without a restart: on record once, first attempt",
        ),
        subprocess.Popen(
            [sys.executable, *asked],
            env={
                **os.environ,
                "LAKEWARDEN_HOME": str(lake.home),
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            },
            stdout=subprocess.PIPE,
        ) as order,
        begun(lake, "lake.rotated"),
        proxy.slow(0.25),
    ):
        lake.until(lambda: len(list(folder.rglob("*.parquet"))) > PARTS * APPENDS)
        before = lake.worker()
        assert {"first-key object_store", "first-key Hadoop"} <= proxy.signed().keys()
        s3.let_in(*SECOND)
        lake.keys.put(*SECOND)
        seen = set[str]()

        def all_have_it() -> bool:
            seen.update(proxy.signed())
            return {"second-key object_store", "second-key Hadoop"} <= seen

        lake.until(all_have_it)
        assert not (folder / "_delta_log" / f"{APPENDS:020}.json").exists(), "it has not committed yet"
        time.sleep(1)  # what was signed with the old key is answered
        s3.shut_out(FIRST[0])
        proxy.signed()
        said = order.communicate(timeout=240)[0]
        assert {one.split()[0] for one in proxy.signed()} == {"second-key"}
    done = json.loads(said)
    assert done["outcome"] == "succeeded", done
    assert len(lake.beginnings("lake.rotated")) == 1, "at the first attempt"
    table = DeltaTable(location)
    assert [one["operation"] for one in table.history()].count("OPTIMIZE") == 1
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == list(range(PARTS * APPENDS))
    assert lake.worker() == before, "nothing was restarted"


@pytest.mark.long
def test_a_key_that_nobody_knows_is_a_sentence_and_no_table_is_gone_for_it(lake: Lake, s3: S3Server) -> None:
    location = lake.at("locked")
    write(location, 1)
    lake.said("tables", "register", location, "--name", "lake.locked")
    before, heard = lake.worker(), len(lake.heard())
    lake.keys.put(*WRONG)
    lake.until(lambda: any("denies access" in line for line in lake.heard()[heard:]))
    told = lake.said("tables", "list", code=1)
    assert told.splitlines()[0].endswith("denies access."), told
    s3.let_in(*SECOND)
    lake.keys.put(*SECOND)
    write(location, 2)
    lake.until(lambda: lake.json("tables", "show", "lake.locked")["version"] == 1)
    shown = lake.json("tables", "show", "lake.locked")
    assert (shown["state"], shown["findings"]) == ("active", [])
    assert lake.daemon[0].is_running() and lake.worker() == before


def command_lines(processes: Iterable[int]) -> list[str]:
    """How they were started; without those that have ended since they were listed."""
    found = []
    for one in processes:
        with suppress(psutil.NoSuchProcess):
            found.append(" ".join(psutil.Process(one).cmdline()))
    return found


@pytest.mark.usefixtures("orders")
def test_no_log_and_no_command_line_ever_held_a_secret(lake: Lake) -> None:
    secrets = [pair[1] for pair in (FIRST, SECOND, WRONG)]
    kept = [file for file in lake.home.rglob("*") if file.is_file() and not file.is_symlink()]
    assert any("worker" in file.name for file in kept)
    for file in kept:
        assert not [one for one in secrets if one.encode() in file.read_bytes()], file
    started = command_lines([*(one.pid for one in lake.daemon), *lake.worker()])
    assert any("lakewarden.daemon daemon" in one for one in started)
    assert any("org.apache.spark.deploy.SparkSubmit" in one for one in started), "Spark is there"
    for line in started:
        assert not [secret for secret in secrets if secret in line]


@pytest.mark.long
def test_a_conversion_by_a_spark_whose_commits_would_be_unsafe_is_refused_before_it_changes_anything(
    s3: S3Server, proxy: FaultyProxy, lake: Lake, tmp_path: Path
) -> None:
    spark = {S3_LOG_STORE: "io.delta.storage.S3SingleDriverLogStore"}
    unsafe = Lake.made(s3, proxy, tmp_path, spark)
    s3.let_in(*SECOND)
    unsafe.keys.put(*SECOND)
    location = parquet(unsafe.at("raw"), s3)
    unsafe.said("init")
    said = unsafe.said("tables", "convert", location, "--name", "lake.raw", code=5)
    assert "S3SingleDriverLogStore" in said and "docs/object-stores.md" in said
    assert [one.path for one in open_store(location, s3.storage).list("", recursive=True)] == [
        "part-0.parquet"
    ]
    shown = unsafe.said("tables", "list")
    assert "lake.raw" not in shown, shown
