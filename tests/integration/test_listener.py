"""`lakewarden.attach` on a real Spark session: what it sees, what it costs, and what happens when the rest is away."""

import os
import statistics
import subprocess
import sys
import textwrap
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lakewarden
from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.state.db import open_database
from lakewarden.catalog.state.hint_spool import Spool, drain
from lakewarden.catalog.state.inbox import DatabaseInbox
from lakewarden.catalog.state.port import HintKind
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.jobs.session.attached import Attached
from support.builders.states import sqlite_url
from support.fakes.state import FakeInbox

pytestmark = pytest.mark.spark

ROUNDS = 10
LONGEST_END_SECONDS = 6.0
"""Detaching waits 2 s at most; the rest is a busy machine."""
ALLOWED_SHARE = 0.5
"""Far above what was measured, because the machine of a test may be busy with other things."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """What `lakewarden init` leaves, as far as hints need it."""
    (tmp_path / "system").mkdir()
    return tmp_path


@pytest.fixture
def database(spark: SparkSession) -> Iterator[str]:
    """A metastore database of the test's own."""
    name = f"d_{uuid.uuid4().hex[:12]}"
    spark.sql(f"CREATE DATABASE {name}")
    yield name
    spark.sql(f"DROP DATABASE IF EXISTS {name} CASCADE")


def attach(spark: SparkSession, home: Path, **settings: str) -> Attached:
    return lakewarden.attach(
        spark, home=home, settings={key.replace("_", "."): value for key, value in settings.items()}
    )


def away() -> dict[str, str]:
    """Settings of an installation of which nothing answers."""
    return {"database_url": "postgresql://nobody@127.0.0.1:1/none", "system_location": "/nowhere/at/all"}


def told(home: Path) -> list[tuple[str, HintKind]]:
    inbox = DatabaseInbox(open_database(sqlite_url(home)))
    return [(hint.subject, hint.kind) for hint in inbox.claim(1_000)]


def test_conversions_creations_renames_and_drops_are_seen(
    spark: SparkSession, home: Path, database: str
) -> None:
    with attach(spark, home):
        spark.sql(f"CREATE TABLE {database}.Raw (x INT) USING parquet")
        spark.sql(f"INSERT INTO {database}.raw VALUES (1)")
        spark.sql(f"CONVERT TO DELTA {database}.raw")
        spark.sql(f"CREATE TABLE {database}.b USING delta AS SELECT 1 AS x")
        spark.sql(f"ALTER TABLE {database}.b RENAME TO {database}.c")
        spark.sql(f"DROP TABLE {database}.c")
        spark.sql(f"DROP DATABASE {database} CASCADE")
    assert sorted(told(home)) == [
        (f"{database}.*", HintKind.DROPPED),
        (f"{database}.b", HintKind.CREATED),
        (f"{database}.b", HintKind.DROPPED),
        (f"{database}.c", HintKind.CREATED),
        (f"{database}.c", HintKind.DROPPED),
        (f"{database}.raw", HintKind.ALTERED),
        (f"{database}.raw", HintKind.CREATED),
    ]


def test_every_session_of_the_application_is_heard(spark: SparkSession, home: Path, database: str) -> None:
    with attach(spark, home):
        spark.newSession().sql(f"CREATE TABLE {database}.t (x INT) USING parquet")
    assert told(home) == [(f"{database}.t", HintKind.CREATED)]


def test_a_hint_arrives_while_the_job_goes_on(spark: SparkSession, home: Path, database: str) -> None:
    with attach(spark, home):
        spark.sql(f"CREATE TABLE {database}.t (x INT) USING parquet")
        until = time.monotonic() + 10
        while not told(home) and time.monotonic() < until:
            time.sleep(0.05)
        assert told(home) == [(f"{database}.t", HintKind.CREATED)]


def test_after_detaching_nothing_is_seen(spark: SparkSession, home: Path, database: str) -> None:
    attach(spark, home).detach()
    spark.sql(f"CREATE TABLE {database}.t (x INT) USING parquet")
    time.sleep(0.5)
    assert told(home) == []


def test_a_driver_that_cannot_reach_the_database_uses_the_spool(
    spark: SparkSession, home: Path, database: str
) -> None:
    with attach(spark, home, database_url=away()["database_url"]):
        spark.sql(f"CREATE TABLE {database}.t (x INT) USING parquet")
    inbox = FakeInbox()
    assert drain(Spool(canonical(str(home / "system")), StorageOptions()), inbox) == 1
    assert [hint.subject for hint in inbox.claim(10)] == [f"{database}.t"]


def test_a_home_that_was_never_made_is_not_made_and_breaks_nothing(
    spark: SparkSession, tmp_path: Path, database: str
) -> None:
    with attach(spark, tmp_path / "typo") as handle:
        spark.sql(f"CREATE TABLE {database}.t (x INT) USING parquet")
    assert handle.delivered == 0
    assert not (tmp_path / "typo").exists()


def test_settings_that_make_no_sense_are_said_at_once(spark: SparkSession, home: Path) -> None:
    with pytest.raises(UsageError, match="no setting"):
        lakewarden.attach(spark, home=home, settings={"databse.url": "x"})


@pytest.mark.long
def test_attaching_costs_nothing_worth_mentioning(spark: SparkSession, home: Path, database: str) -> None:
    """Statements with and without, in turns, so that the machine's moods hit all alike."""
    settings: dict[str, dict[str, str] | None] = {"without": None, "attached": {}, "all away": away()}
    seconds: dict[str, list[float]] = {name: [] for name in settings}
    for _ in range(ROUNDS):
        for name, given in settings.items():
            handle = None if given is None else attach(spark, home, **given)
            for statement in ("CREATE TABLE {}.t (x INT) USING parquet", "DROP TABLE {}.t") * 5:
                begun = time.perf_counter()
                spark.sql(statement.format(database))
                seconds[name].append(time.perf_counter() - begun)
            if handle is not None:
                handle.detach()
    typical = {name: statistics.quantiles(found)[0] for name, found in seconds.items()}
    print({name: f"{1000 * time:.2f} ms per statement" for name, time in typical.items()})
    assert typical["attached"] < typical["without"] * (1 + ALLOWED_SHARE)
    assert typical["all away"] < typical["without"] * (1 + ALLOWED_SHARE)


JOB = """
    import atexit, sys, time
    from pathlib import Path
    import lakewarden
    from support.servers.spark import start_spark

    spark = start_spark(Path(sys.argv[1]))
    # Registered before, so it runs after lakewarden's own: in between is what attaching adds to a job's end.
    atexit.register(lambda: print("ended after", time.monotonic() - done, flush=True))
    handle = lakewarden.attach(spark, settings={"database.url": sys.argv[2], "system.location": sys.argv[3]})
    spark.sql("CREATE TABLE first_words (x INT) USING parquet")
    until = time.monotonic() + float(sys.argv[4])
    while not handle.delivered and time.monotonic() < until:
        time.sleep(0.05)
    spark.sql("CREATE TABLE last_words (x INT) USING parquet")
    done = time.monotonic()
"""


@pytest.mark.few(1)
@pytest.mark.parametrize("reachable", [True, False], ids=["daemon there", "all away"])
def test_a_job_that_ends_without_detaching_ends_well(home: Path, reachable: bool) -> None:
    url, location = sqlite_url(home), str(home / "system")
    if not reachable:
        url, location = away()["database_url"], away()["system_location"]
    command = [sys.executable, "-c", textwrap.dedent(JOB), str(home / "warehouse"), url, location]
    command.append("60" if reachable else "0")
    tests = Path(__file__).parents[1]
    job = subprocess.run(
        command,
        check=False,
        cwd=home,
        env={**os.environ, "PYTHONPATH": str(tests)},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert job.returncode == 0, job.stderr
    assert float(job.stdout.split()[-1]) < LONGEST_END_SECONDS
    assert "Traceback" not in job.stderr
    words = ["default.first_words", "default.last_words"]
    assert [subject for subject, _ in told(home)] == (words if reachable else [])
