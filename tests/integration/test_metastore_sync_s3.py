"""A managed table on S3 in a real metastore: our sync, Spark by its name, and a location that stays as
Spark spells it."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

from lakewarden.catalog.metastore.hive import HiveMetastore
from lakewarden.catalog.metastore.port import Entry
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.workers.pool import worker_config
from lakewarden.jobs.engines.spark.jars import default_cache, resolve_jars
from lakewarden.jobs.engines.spark.s3.jars import S3
from support.processes.commands import command
from support.servers.s3 import BUCKET, KEY, SECRET, S3Server
from support.servers.s3_home import make_home, settings_of

pytestmark = [pytest.mark.s3, pytest.mark.spark, pytest.mark.metastore]

NAME = "s3db.orders"
SESSION = """
import json, sys
from lakewarden.jobs.engines.spark.session import start_session
from lakewarden.jobs.runs.worker_config import read_config
spark = start_session(read_config(sys.stdin.readline()).spark)
for statement in sys.stdin:
    rows = [list(row) for row in spark.sql(json.loads(statement)).collect()]
    print("rows " + json.dumps(rows, default=str), flush=True)
spark.stop()
"""
"""A user's session with the settings of an installation: it runs a statement per line."""


class User:
    """A session of a user, in a process of its own."""

    def __init__(self, config: str, log: Path) -> None:
        self._log = log
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-c", SESSION],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        self._say(config)

    def sql(self, statement: str) -> list[list[Any]]:
        """What it comes to."""
        self._say(json.dumps(statement))
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("rows "):
                found: list[list[Any]] = json.loads(line.removeprefix("rows "))
                return found
        raise AssertionError(self._log.read_text()[-6000:])

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(90)

    def _say(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()


@pytest.fixture
def metastore_on_s3(s3: S3Server, tmp_path: Path) -> Iterator[EmbeddedMetastore]:
    """A metastore that can open folders on S3, as one has to be whose tables lie there."""
    told = {
        "fs.s3a.endpoint": s3.endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.connection.ssl.enabled": "false",
        "fs.s3a.access.key": KEY,
        "fs.s3a.secret.key": SECRET,
    }
    properties = (
        f"<property><name>{name}</name><value>{escape(value)}</value></property>"
        for name, value in told.items()
    )
    folder = tmp_path / "metastore"
    (folder / "conf").mkdir(parents=True)
    (folder / "conf" / "core-site.xml").write_text(f"<configuration>{''.join(properties)}</configuration>")
    with EmbeddedMetastore(folder, extra_jars=resolve_jars(default_cache(), jars=S3)) as server:
        yield server


class Installation:
    """An installation on S3 that knows the metastore."""

    def __init__(self, home: Path, uri: str) -> None:
        self.home = home
        self.settings = {**settings_of(), "LAKEWARDEN_METASTORE_URI": uri}

    def said(self, *arguments: str) -> Any:
        done = command(self.home, *arguments, "-o", "json", settings=self.settings)
        assert done.returncode == 0, f"{arguments}: {done.stdout}\n{done.stderr}"
        return json.loads(done.stdout)

    def user(self) -> User:
        settings = load_settings(home=self.home, environment=self.settings)
        return User(worker_config(settings, "user"), self.home / "user.log")


def columns_of(entry: Entry) -> list[str]:
    """The columns by which Spark, and with it a JDBC client, knows the table without its log."""
    return [field["name"] for field in json.loads(entry.parameters["spark.sql.sources.schema"])["fields"]]


@pytest.mark.long
def test_a_synced_table_on_s3_is_read_and_written_by_name_and_its_location_stays(
    s3: S3Server, metastore_on_s3: EmbeddedMetastore, tmp_path: Path
) -> None:
    one = Installation(make_home(tmp_path / "home", s3.endpoint, prefix=tmp_path.name), metastore_on_s3.uri)
    store = HiveMetastore(metastore_on_s3.uri)
    place = f"{BUCKET}/{tmp_path.name}/orders"

    def entry() -> Entry:
        found = store.get(*NAME.split("."))
        assert found is not None
        return found

    def synced() -> Entry:
        """The entry after a sync, which a second one finds as it should be."""
        one.said("metastore", "sync", NAME)
        once = entry()
        assert one.said("metastore", "diff", NAME) == []
        one.said("metastore", "sync", NAME)
        assert entry() == once and once.location == f"s3a://{place}"
        return once

    user = one.user()
    try:
        user.sql(f"CREATE DATABASE s3db LOCATION '{(tmp_path / 's3db').as_uri()}'")
        user.sql(f"CREATE TABLE {NAME} (id BIGINT) USING delta LOCATION 's3a://{place}'")
        for number in range(2):
            user.sql(f"INSERT INTO {NAME} VALUES ({number})")
        assert command(one.home, "init", settings=one.settings).returncode == 0
        row = one.said("tables", "register", f"s3://{place}", "--name", NAME)
        assert row["location"] == f"s3://{place}"
        assert columns_of(synced()) == ["id"]

        user.sql(f"REFRESH TABLE {NAME}")
        user.sql(f"ALTER TABLE {NAME} ADD COLUMNS (late INT)")
        user.sql(f"INSERT INTO {NAME} VALUES (2, 40)")
        assert user.sql(f"SELECT count(*), sum(late) FROM {NAME}") == [[3, 40]]
        assert columns_of(synced()) == ["id", "late"]
    finally:
        user.end()
        store.close()
