"""An HDFS that lets in only whom Kerberos knows: swept without a JVM and worked on by Spark, both by a keytab."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from support.processes.commands import command
from support.servers.hdfs import Hdfs, running_hdfs
from support.servers.jars import hdfs_jars
from support.servers.kerberos import USER, Kerberos, running_kerberos

FILES = 6
LOOK = """
import sys
from lakewarden.catalog.errors import AccessDeniedError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.storage.credentials import NO_OPTIONS
from lakewarden.catalog.storage.place import Moment, Presence
for place in sys.argv[1:]:
    try:
        print(DeltaReader().is_table(place))
    except AccessDeniedError:
        print("denied")
    found = Moment().place(place).presence(NO_OPTIONS, DeltaReader().is_table)
    print(found is Presence.GONE)
"""


@pytest.fixture(scope="module")
def kerberos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kerberos]:
    with running_kerberos(tmp_path_factory.mktemp("kerberos")) as server:
        yield server


@pytest.fixture(scope="module")
def guarded(kerberos: Kerberos, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    with running_hdfs(tmp_path_factory.mktemp("guarded"), hdfs_jars(), kerberos) as server:
        yield server


@dataclass(kw_only=True)
class Lake:
    """An installation whose system tables and tables lie there. `environment` has the keytab, `nobody` has none."""

    hdfs: Hdfs
    home: Path
    environment: Mapping[str, str]
    nobody: Mapping[str, str]

    def at(self, name: str) -> str:
        return f"{self.hdfs.uri}/lake/{name}"

    def said(self, *arguments: str) -> str:
        """What a command prints."""
        done = command(self.home, *arguments, settings=self.environment)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{self.logs()}"
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.said(*arguments, "-o", "json"))

    def logs(self) -> str:
        files = [*self.home.glob("logs/worker-*.log"), self.home / "daemon.log"]
        return "\n".join(one.read_text()[-4000:] for one in files if one.exists())


@pytest.fixture(scope="module")
def lake(kerberos: Kerberos, guarded: Hdfs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    folder = tmp_path_factory.mktemp("edge")
    home = folder / "home"
    home.mkdir()
    (home / "lakewarden.toml").write_text(
        "\n".join(
            (
                "[system]", f'location = "{guarded.uri}/lakewarden/system"', "[http]", "port = 0",
                "[spark]", 'master = "local[2]"', "[spark.conf]",
                f'"spark.kerberos.principal" = "{kerberos.principal(USER)}"',
                f'"spark.kerberos.keytab" = "{kerberos.keytab(USER)}"',
                f'"spark.driver.extraJavaOptions" = "{" ".join(kerberos.java)}"',
            )
        )
    )  # fmt: skip
    nobody = {
        "HADOOP_CONF_DIR": str(guarded.conf),
        "KRB5_CONFIG": str(kerberos.conf),
        "KRB5CCNAME": f"FILE:{folder / 'tickets'}",
        "LAKEWARDEN_SWEEP_INTERVAL": "1 s",
    }
    environment = nobody | {"KRB5_CLIENT_KTNAME": str(kerberos.keytab(USER))}
    one = Lake(hdfs=guarded, home=home, environment=environment, nobody=nobody)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)  # this process writes tables, too
        one.said("init")
        yield one


def registered(lake: Lake, name: str) -> str:
    """A table of small files, written by delta-rs with tickets from the keytab."""
    location = lake.at(name)
    for number in range(FILES):
        write_deltalake(location, pa.table({"id": [number]}), mode="append")
    lake.said("tables", "register", location, "--name", f"lake.{name}")
    return location


def test_tables_are_swept_by_a_keytab_and_without_one_nothing_is_concluded(
    lake: Lake, tmp_path: Path
) -> None:
    location = registered(lake, "swept")
    write_deltalake(location, pa.table({"id": [FILES]}), mode="append")
    lake.said("daemon", "--once")
    nowhere = str(tmp_path / "nothing")
    shut_out = {**lake.nobody, "KRB5CCNAME": f"FILE:{nowhere}", "KRB5_CLIENT_KTNAME": nowhere}
    refused = command(lake.home, "tables", "list", settings={**lake.environment, **shut_out})
    assert refused.returncode == 1 and refused.stderr.splitlines()[0].endswith("denies access."), refused
    look = subprocess.run(
        [sys.executable, "-c", LOOK, location, lake.at("nowhere")],
        env={**os.environ, **shut_out, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert look.stdout.split() == ["denied", "False", "denied", "False"]
    shown = lake.json("tables", "show", "lake.swept")
    assert (shown["state"], shown["version"], shown["findings"]) == ("active", FILES, [])


@pytest.mark.spark
def test_a_worker_compacts_by_a_keytab_of_its_own(lake: Lake) -> None:
    location = registered(lake, "compacted")
    policy = ("compaction.min_small_files=2", "compaction.quiet=1 s")
    lake.said("tables", "policy", "set", "lake.compacted", *policy)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LAKEWARDEN_")}
    with (lake.home / "daemon.log").open("wb") as log, subprocess.Popen(
        [sys.executable, "-m", "lakewarden.daemon", "daemon"],
        env={**clean, **lake.environment, "LAKEWARDEN_HOME": str(lake.home),
             "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=log, stderr=log,
    ) as daemon:  # fmt: skip
        try:
            time.sleep(1.5)  # what was just written is left alone
            done = lake.json("jobs", "run", "lake.compacted", "compact")
            assert (done["outcome"], done["actual_files"]) == ("succeeded", FILES), done
        finally:
            daemon.terminate()
            daemon.wait(90)
    table = DeltaTable(location)
    assert table.history(1)[0]["operation"] == "OPTIMIZE" and len(table.file_uris()) == 1
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == list(range(FILES))
