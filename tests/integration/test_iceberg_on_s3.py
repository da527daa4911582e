"""An Iceberg table on a real S3 server, in a catalog in a real PostgreSQL: written by a user's Spark, swept without a
JVM, vacuumed and compacted by a worker of the installation."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.processes import iceberg_writer
from support.processes.commands import command
from support.servers.jars import postgres_jar
from support.servers.postgres import PostgresServer
from support.servers.s3 import BUCKET, S3Server
from support.servers.s3_home import make_home, settings_of

pytestmark = [pytest.mark.s3, pytest.mark.spark, pytest.mark.postgres, pytest.mark.long]


def test_a_worker_looks_after_a_table_of_a_sql_catalog_on_s3(
    s3: S3Server, postgres: PostgresServer, tmp_path: Path
) -> None:
    home = make_home(
        tmp_path / "home",
        s3.endpoint,
        prefix=tmp_path.name,
        spark={"spark.driver.extraClassPath": str(postgres_jar())},
    )
    with (home / "lakewarden.toml").open("a") as file:
        lines = (
            "[catalogs.prod]",
            'type = "sql"',
            f'uri = "{postgres.fresh_url()}"',
            f'warehouse = "s3a://{BUCKET}/{tmp_path.name}/wh"',
        )
        file.write("\n".join(lines) + "\n")

    def said(*arguments: str) -> Any:
        done = command(home, *arguments, "-o", "json", settings=settings_of())
        logs = "".join(one.read_text()[-4000:] for one in (home / "logs").glob("*.log"))
        assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}\n{logs}"
        return json.loads(done.stdout or "null")

    def spark(*statements: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, iceberg_writer.__file__, str(home), *statements],
            env={**os.environ, **settings_of(), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-4000:]
        return done.stdout.split()

    spark(
        "CREATE NAMESPACE prod.db",
        "CREATE TABLE prod.db.t (id INT) USING iceberg",
        *(f"INSERT INTO prod.db.t VALUES ({number})" for number in range(6)),
        "DELETE FROM prod.db.t WHERE id = 0",
    )
    assert command(home, "init", settings=settings_of()).returncode == 0
    came = said("tables", "register", "prod.db.t")
    assert (came["version"], came["files"], came["rows"], came["state"]) == (7, 5, 5, "active")
    assert came["location"] == f"s3://{BUCKET}/{tmp_path.name}/wh/db/t"
    said("tables", "policy", "set", "db.t", "mode=manage", "compaction.min_small_files=2")
    done = said("jobs", "run", "db.t", "compact")
    assert (done["outcome"], done["committed_version"], done["actual_files"]) == ("succeeded", 8, 5)
    shown = said("tables", "register", "prod.db.t")
    assert (shown["version"], shown["files"], shown["rows"]) == (8, 1, 5)
    assert spark("SELECT count(*), sum(id) FROM prod.db.t") == ["5", "15"]
