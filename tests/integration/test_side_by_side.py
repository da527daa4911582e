"""The real code of the commit before the last change of the system tables and today's, at once on one home: either
one's work is kept whole, or it is refused in words. What does it first is `init`, which may be killed half-way."""

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog.system.schema import SCHEMA_VERSION, UPGRADE_PROPERTY, VERSION_PROPERTY
from support.crashes.crashes import points_of
from support.processes.old_tree import TODAY, Tree, tree_of
from support.servers.postgres import PostgresServer

pytestmark = [pytest.mark.crash, pytest.mark.postgres]

BEFORE: Final = "1188c50bed8b4ea31dc9efbe9142f7404a940c05"
"""The last commit with schema version 7 of the system tables. Its operational database is like today's: nothing but
the system tables keeps the two apart."""
QUICK: Final = {
    "LAKEWARDEN_LEASE_TTL": "3 s",
    "LAKEWARDEN_SWEEP_INTERVAL": "1 s",
    "LAKEWARDEN_RUN_LEASE": "5 s",
    "LAKEWARDEN_RUN_HEARTBEAT": "1 s",
    "LAKEWARDEN_HTTP_PORT": "0",
    "LAKEWARDEN_LOG_FORMAT": "json",
}
OUTDATED: Final = f"has schema version {SCHEMA_VERSION}, this lakewarden knows 7"
DAEMON, HOST = ("-m", "lakewarden.daemon", "daemon"), ("-m", "lakewarden.daemon", "worker")
WRITER: Final = """
import sys
import time
from dataclasses import replace
from pathlib import Path
from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.installation.services import open_services

store, number = open_services(home=Path(sys.argv[1])).store, 0
while True:
    def noted(rows):
        (row,) = rows.find(name="db.t")
        return [replace(row, aliases=(*row.aliases, str(number)))]
    try:
        store.edit(TABLES, noted, because="somebody of before")
    except LakewardenError as error:
        print(type(error).__name__, error, flush=True)
        break
    print(number, flush=True)
    number += 1
    time.sleep(0.1)
"""


@dataclass(frozen=True, kw_only=True)
class Lake:
    """A home with a table, made by the code of before."""

    folder: Path
    before: Tree

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def table(self) -> Path:
        return self.folder / "lake" / "t"

    def append(self, number: int) -> None:
        write_deltalake(str(self.table), pa.table({"id": pa.array([number], pa.int64())}), mode="append")

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def said(self, name: str) -> str:
        return self.log(name).read_text()

    @contextmanager
    def running(self, tree: Tree, *program: str, name: str, **more: str) -> Iterator[subprocess.Popen[bytes]]:
        with tree.running(self.home, self.log(name), *program, **QUICK, **more) as process:
            yield process

    def until(self, check: Callable[[], object], seconds: float = 90) -> None:
        until = time.monotonic() + seconds
        while not check():
            assert time.monotonic() < until, self.logs()
            time.sleep(0.05)

    def logs(self) -> str:
        return "\n".join(f"{one.name}: {one.read_text()[-3000:]}" for one in self.folder.glob("*.log"))

    def schema_versions(self) -> dict[str, str]:
        """By table, as Delta has them."""
        return {
            one.name: DeltaTable(str(one)).metadata().configuration[VERSION_PROPERTY]
            for one in sorted(log.parent for log in (self.home / "system").glob("*/_delta_log"))
        }

    def recorded(self) -> list[int]:
        """The versions of the table whose making is on record, each as often as it is."""
        ours = self.row()["table_id"]
        return sorted(one["output_version"] for one in self.rows("lineage") if one["output_id"] == ours)

    def row(self) -> dict[str, Any]:
        """The table's row, as Delta has it."""
        (found,) = (one for one in self.rows("tables") if one["name"] == "db.t")
        return found

    def rows(self, table: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = (
            DeltaTable(str(self.home / "system" / table)).to_pyarrow_table().to_pylist()
        )
        return found


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    return tree_of(BEFORE, tmp_path_factory.mktemp("before"))


@pytest.fixture(scope="module")
def made(before: Tree, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """What every test begins with, and leaves alone."""
    lake = Lake(folder=tmp_path_factory.mktemp("made"), before=before)
    lake.append(0)
    before.must(lake.home, "init")
    before.must(lake.home, "tables", "register", str(lake.table), "--name", "db.t")
    return lake


@pytest.fixture
def lake(made: Lake) -> Iterator[Lake]:
    """The same home at the same place, as it was left."""
    aside = made.folder.with_name(f"{made.folder.name}-left")
    if not aside.exists():
        shutil.copytree(made.folder, aside)
    yield made
    shutil.rmtree(made.folder)
    shutil.copytree(aside, made.folder)


def leads(said: str) -> bool:
    return any(json.loads(line)["event"] == "leading" for line in said.splitlines() if line.startswith("{"))


def test_an_upgrade_beside_a_leader_and_a_writer_of_before_loses_nothing_that_either_was_told_is_done(
    lake: Lake,
) -> None:
    with (
        lake.running(lake.before, *DAEMON, name="daemon-before") as old,
        lake.running(lake.before, "-c", WRITER, str(lake.home), name="writer-before") as writer,
    ):
        lake.until(lambda: leads(lake.said("daemon-before")))
        lake.append(1)
        with lake.running(TODAY, *DAEMON, name="daemon-today") as today:
            lake.until(lambda: "following" in lake.said("daemon-today"))
            lake.append(2)
            acknowledged = len(lake.said("writer-before").splitlines())
            lake.until(lambda: len(lake.said("writer-before").splitlines()) > acknowledged)
            TODAY.must(lake.home, "init")
            assert (old.wait(30), writer.wait(30)) == (1, 0)
            assert "stepping down" in lake.said("daemon-before") and OUTDATED in lake.said("daemon-before")
            lake.until(lambda: leads(lake.said("daemon-today")))
            lake.append(3)
            lake.until(lambda: lake.recorded() == [0, 1, 2, 3])
            assert today.poll() is None
    *done, last = lake.said("writer-before").splitlines()
    assert last.startswith("OutdatedError ") and OUTDATED in last
    assert len(done) > 3 and lake.row()["aliases"] == done == [str(number) for number in range(len(done))]
    assert set(lake.schema_versions().values()) == {str(SCHEMA_VERSION)}
    TODAY.must(lake.home, "system", "verify")
    refused = lake.before.says(lake.home, "tables", "policy", "set", "db.t", "compaction.enabled=no")
    assert refused.returncode == 1 and OUTDATED in refused.stderr and "newer" in refused.stderr


def test_a_daemon_of_today_leaves_the_lead_to_one_of_before_until_somebody_upgrades(lake: Lake) -> None:
    with lake.running(TODAY, *DAEMON, name="daemon-today"):
        lake.until(lambda: f"waits for the upgrade to {SCHEMA_VERSION}" in lake.said("daemon-today"))
        assert "lakewarden init" in lake.said("daemon-today")
        lake.append(1)
        with lake.running(lake.before, *DAEMON, name="daemon-before"):
            lake.until(lambda: leads(lake.said("daemon-before")))
            lake.until(lambda: lake.recorded() == [0, 1])
        assert not leads(lake.said("daemon-today"))
        TODAY.must(lake.home, "init")
        lake.until(lambda: leads(lake.said("daemon-today")))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("point", "upgraded"),
    [
        ("system.upgrade.tables", 0),
        *(
            (one, 1)
            for one in points_of("test_an_upgrade_killed_half_way_lets_whoever_may_write_write_and_goes_on")
        ),
        ("system.create.tables", 7),
    ],
    ids=["before its first step", "after its first step", "before its last step"],
)
def test_an_upgrade_killed_half_way_lets_whoever_may_write_write_and_goes_on(
    lake: Lake, point: str, upgraded: int
) -> None:
    killed = TODAY.says(lake.home, "init", LAKEWARDEN_FAILPOINT=point)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert list(lake.schema_versions().values()).count(str(SCHEMA_VERSION)) == upgraded
    policy = ("tables", "policy", "set", "db.t")
    old = lake.before.says(lake.home, *policy, "vacuum.retention=9 days")
    if upgraded:
        assert old.returncode == 1 and OUTDATED in old.stderr
    else:
        assert old.returncode == 0, old.stderr
    new = TODAY.says(lake.home, *policy, "vacuum.retention=10 days")
    assert new.returncode == 4 and "`lakewarden init`" in new.stderr, new.stderr
    TODAY.must(lake.home, "init")
    assert set(lake.schema_versions().values()) == {str(SCHEMA_VERSION)}
    assert lake.row()["policy"]["vacuum_retention_seconds"] == (None if upgraded else 9 * 86_400)
    done = [row["what"] for row in lake.rows("audit") if row["allowed"]]
    assert done.count("policy") == (0 if upgraded else 1), "what was refused changed nothing"
    properties = DeltaTable(str(lake.home / "system" / "tables")).metadata().configuration
    assert properties[UPGRADE_PROPERTY] == "done"


@pytest.mark.long
def test_runs_are_begun_by_workers_of_the_version_that_the_system_tables_have(
    lake: Lake, postgres: PostgresServer
) -> None:
    shared = {"LAKEWARDEN_DATABASE_URL": postgres.fresh_url(), "LAKEWARDEN_WORKERS_EXTERNAL": "yes"}

    def order(tree: Tree) -> subprocess.CompletedProcess[str]:
        """Somebody has the log cared for, and waits for what it comes to."""
        return tree.says(lake.home, "jobs", "run", "db.t", "log_care", "-o", "json", **QUICK, **shared)

    with lake.running(lake.before, *HOST, name="host-before", **shared) as old:
        with lake.running(TODAY, *HOST, name="host-today", **shared):
            first = order(lake.before)
            assert first.returncode == 0, (first.stderr, lake.logs())
            assert "worker started" not in lake.said("host-today"), "it waits for the upgrade"
        TODAY.must(lake.home, "init")
        second = order(TODAY)
        assert second.returncode == 1 and OUTDATED in second.stderr, (
            "a host that began before changes nothing"
        )
        assert old.poll() is None
    with lake.running(lake.before, *HOST, name="host-again", **shared) as again:
        assert again.wait(30) == 1 and OUTDATED in lake.said("host-again")
    with lake.running(TODAY, *HOST, name="host-today", **shared):
        third = order(TODAY)
        assert third.returncode == 0, (third.stderr, lake.logs())
