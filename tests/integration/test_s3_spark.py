"""Spark's workers on a real S3: compaction, vacuum, conversion, and a rollback with what was derived from it."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewarden.catalog.storage.file_store import open_store
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.jobs.runs.log_stores import S3_LOG_STORE
from support.builders.derived import ids, write
from support.processes.commands import command
from support.servers.s3 import S3Server, options_of
from support.servers.s3_home import make_home, settings_of

pytestmark = [pytest.mark.s3, pytest.mark.spark]

LONG_AGO = 60 * 86_400
QUIET = {"LAKEWARDEN_SWEEP_INTERVAL": "1 hour"}
"""The daemon does what it is asked, and nothing by itself."""


class Lake:
    """An installation on S3 with a daemon whose worker runs Spark."""

    def __init__(self, s3: S3Server, home: Path) -> None:
        self.s3, self.home = s3, home

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
    s3: S3Server, environment: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lake]:
    folder = tmp_path_factory.mktemp("lake")
    home = make_home(folder / "home", s3.endpoint, prefix=folder.name)
    one = Lake(s3, home)
    one.said("init")
    clean = {name: value for name, value in os.environ.items() if name not in environment}
    daemon = subprocess.Popen(
        [sys.executable, "-m", "lakewarden.daemon", "daemon"],
        env={**clean, **settings_of(), **QUIET, "LAKEWARDEN_HOME": str(home),
             "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.DEVNULL, stderr=(home / "daemon.log").open("wb"),
    )  # fmt: skip
    try:
        services = Services(load_settings(home=home, environment=settings_of()))
        until = time.monotonic() + 60
        while services.leases.current(services.settings.lease_name) is None:
            assert daemon.poll() is None and time.monotonic() < until
            time.sleep(0.1)
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


def test_small_files_are_compacted_and_what_nobody_needs_is_vacuumed(lake: Lake) -> None:
    location = lake.at("orders")
    for number in range(6):
        write(location, number)
    lake.said("tables", "register", location, "--name", "lake.orders")
    lake.said("tables", "policy", "set", "lake.orders", "mode=manage", "compaction.min_small_files=2",
              "compaction.quiet=1 s")  # fmt: skip
    time.sleep(1.5)
    done = lake.json("jobs", "run", "lake.orders", "compact")
    assert done["outcome"] == "succeeded" and done["actual_files"] == 6, done
    assert ids(location) == list(range(6))
    folder = lake.s3.folder / lake.home.parent.name / "orders"
    age(folder)
    done = lake.json("jobs", "run", "lake.orders", "vacuum", "--consent")
    assert done["outcome"] == "succeeded" and done["actual_files"] == 6, done
    assert len(list(folder.glob("*.parquet"))) == 1 and ids(location) == list(range(6))


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


def test_a_parquet_folder_becomes_a_table(lake: Lake) -> None:
    location = parquet(lake.at("raw"), lake.s3)
    lake.said("tables", "convert", location, "--name", "lake.raw")
    assert ids(location) == [1, 2, 3]
    assert lake.json("tables", "show", "lake.raw")["state"] == "active"


def test_a_conversion_by_a_spark_whose_commits_would_be_unsafe_is_refused_before_it_changes_anything(
    s3: S3Server, lake: Lake, tmp_path: Path
) -> None:
    spark = {S3_LOG_STORE: "io.delta.storage.S3SingleDriverLogStore"}
    unsafe = Lake(s3, make_home(tmp_path / "home", s3.endpoint, prefix=tmp_path.name, spark=spark))
    location = parquet(unsafe.at("raw"), s3)
    unsafe.said("init")
    said = unsafe.said("tables", "convert", location, "--name", "lake.raw", code=5)
    assert "S3SingleDriverLogStore" in said and "docs/object-stores.md" in said
    assert [one.path for one in open_store(location, s3.storage).list("", recursive=True)] == [
        "part-0.parquet"
    ]
    shown = unsafe.said("tables", "list")
    assert "lake.raw" not in shown, shown
