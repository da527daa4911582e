"""Iceberg tables are registered, swept and judged without a JVM. What is done to them is in
test_iceberg_maintenance.py; all else is refused in one sentence."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from lakewarden.catalog.model.rows import Action
from lakewarden.catalog.system.port import RUNS
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.jobs.actions.answers import WhyNot
from support.builders.iceberg_tables import IcebergWriter
from support.processes import daemon_process, house
from support.processes.commands import Cli
from support.processes.daemon_process import FakeWorkerServices
from support.processes.sparkless import sparkless

QUICK = [f"{key}={value}" for key, value in house.QUICK.items()]
NOTHING_ELSE = (
    "lakewarden vacuums, compacts, purges and rolls back Iceberg tables, cares for their metadata and statistics, "
    "and sets their retention; it does not do anything else to them yet"
)
EAGER = (
    "mode=manage",
    "compaction.enabled=no",
    "vacuum.enabled=no",
    "statistics.enabled=no",
    "log.checkpoint_commits=1",
)
"""Whatever else can be due is due."""


class IcebergSite:
    """A home with an Iceberg table `db.ice` of many small files, some of them removed."""

    def __init__(self, folder: Path, call: Cli) -> None:
        self.folder, self.call = folder, call
        retention = {"history.expire.max-snapshot-age-ms": str(7 * 86_400_000)}  # the default policy's
        self.table = IcebergWriter(root=folder / "lake" / "ice", properties=retention)
        names = [f"{number}.parquet" for number in range(30)]
        self.append(*names)
        self.table.commit(remove=tuple(names[:5]), operation="delete")
        assert call("init").code == 0
        said = call("tables", "register", str(self.table.root), "--name", "db.ice", "-o", "json")
        assert said.code == 0, said.err
        self.table_id = str(said.json["table_id"])

    def append(self, *names: str) -> None:
        """Files of ten rows each, in one snapshot."""
        self.table.root.mkdir(parents=True, exist_ok=True)
        for name in names:
            pq.write_table(pa.table({"x": pa.array(range(10), pa.int32())}), self.table.root / name)
        self.table.commit(add=tuple((name, (self.table.root / name).stat().st_size) for name in names))

    def files(self) -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in sorted(self.table.root.rglob("*")) if path.is_file()}

    def shown(self) -> dict[str, object]:
        found: dict[str, object] = self.call("tables", "show", "db.ice", "-o", "json").json
        return found

    def sweep(self) -> str:
        """A daemon with workers until nothing is left to do, with no Java in reach. Returns what it said."""
        done = subprocess.run(
            [sys.executable, daemon_process.__file__, str(self.folder / "home"), "idle", *QUICK],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                "JAVA_HOME": "/nowhere",
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    def manage(self) -> None:
        assert self.call("tables", "policy", "set", "db.ice", *EAGER).code == 0


@pytest.fixture
def site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> IcebergSite:
    return IcebergSite(tmp_path, sparkless(tmp_path / "home", monkeypatch, capfdbinary))


def test_it_is_registered_shown_and_swept_without_a_jvm(site: IcebergSite) -> None:
    shown = site.shown()
    assert (shown["format"], shown["state"], shown["version"], shown["files"], shown["rows"]) == (
        "iceberg", "active", 2, 25, 250,
    )  # fmt: skip
    site.append("new.parquet")
    site.sweep()
    shown = site.shown()
    assert (shown["version"], shown["files"], shown["state"]) == (3, 26, "active")
    renamed = {"id": 1, "name": "y", "required": False, "type": "int"}
    site.table.schema = {**site.table.schema, "fields": [renamed]}
    site.table.publish()
    site.append("newer.parquet")
    site.sweep()
    history = site.call("tables", "history", "db.ice", "--schema", "-o", "json").json
    assert history[0]["changes"][0]["change"] == "rename", "ids are the table's own"
    commits = site.call("tables", "history", "db.ice", "-o", "json").json
    assert [(one["version"], one["operation"]) for one in commits] == [
        (4, "append"), (3, "append"), (2, "delete"), (1, "append"),
    ]  # fmt: skip


def test_its_branches_and_tags_are_shown_and_seen_when_they_change(site: IcebergSite) -> None:
    first, second = (one["snapshot-id"] for one in site.table.snapshots)
    site.append("on_a_branch.parquet")
    assert site.table.current is not None
    site.table.more["refs"] = {
        "main": {"snapshot-id": second, "type": "branch"},
        "audit": {"snapshot-id": site.table.current, "type": "branch"},
        "q1": {"snapshot-id": first, "type": "tag", "max-ref-age-ms": 3_600_000},
        "kept": {"snapshot-id": first, "type": "tag", "max-ref-age-ms": 9_223_372_036_854_775_807},
    }
    site.table.move_main(second)
    versions = site.call("tables", "history", "db.ice", "-o", "json").json
    assert [(one["version"], one["branches"], one["tags"]) for one in versions] == [
        (3, ["audit"], []), (2, ["main", "audit"], []), (1, ["main", "audit"], ["kept", "q1"]),
    ]  # fmt: skip
    said = site.call("tables", "show", "db.ice").out
    assert "branch main at 2, branch audit at 3, tag kept at 1, tag q1 at 1 until 2026-03-01 01:01:00" in said
    shown = site.shown()["references"]
    assert isinstance(shown, list)
    assert [(one["name"], one["kind"], one["version"]) for one in shown] == [
        ("main", "branch", 2), ("audit", "branch", 3), ("kept", "tag", 1), ("q1", "tag", 1),
    ]  # fmt: skip
    site.sweep()
    before = site.shown()
    del site.table.more["refs"]["q1"]
    site.table.publish()
    site.sweep()
    after = site.shown()
    assert after["version"] == before["version"] == 2 and after["head"] != before["head"]


def test_a_table_whose_metadata_is_gone_is_shown_without_branches(site: IcebergSite) -> None:
    site.table.head.unlink()
    said = site.call("tables", "show", "db.ice", "-o", "json")
    assert said.code == 0 and "references" not in said.json
    assert "Its branches and tags cannot be told: " in said.err and "is missing" in said.err


def test_a_missing_file_is_found_and_the_daemon_goes_on(site: IcebergSite) -> None:
    (site.table.root / "7.parquet").unlink()
    said = site.call("tables", "validate", "db.ice", "-o", "json")
    missing = [one["message"] for one in said.json if one["check"] == "head_files"]
    assert said.code == 3 and "1 of 25 live files missing, such as 7.parquet." in missing[0]
    next(site.table.metadata.glob(f"snap-{site.table.current}.avro")).unlink()
    site.table.publish()
    site.sweep()
    shown = site.shown()
    assert shown["state"] == "quarantined" and "Traceback" not in str(shown)
    assert f"metadata/snap-{site.table.current}.avro is missing" in str(shown["state_reason"])


@pytest.mark.long
def test_status_and_why_speak_of_it(site: IcebergSite) -> None:
    assert site.call("status").code == 0
    site.manage()
    site.sweep()
    said = site.call("why", "db.ice", "-o", "json").json
    because = {one["action"]: (one["verdict"], one["because"]) for one in said}
    for action in set(Action) - {
        Action.CONVERT,
        Action.PURGE,
        Action.VACUUM,
        Action.COMPACT,
        Action.ROLLBACK,
        Action.METADATA_CARE,
        Action.LOG_CARE,
        Action.PROPERTIES,
        Action.STATISTICS,
    }:
        assert because[action.value] == (WhyNot.UNSUPPORTED, NOTHING_ELSE)
    assert because["metadata_care"][1].endswith("policy allows 1") and "log_care" not in because
    (foretold,) = site.call("jobs", "run", "db.ice", "statistics", "--dry-run", "-o", "json").json
    assert foretold["message"] == "would count the distinct values of 1 column (x)"
    asked = site.call("jobs", "run", "db.ice", "log_care")
    assert asked.code == 4 and "db.ice gets no log_care: Iceberg tables have no checkpoints." in asked.err


def test_an_eager_policy_makes_no_run_and_changes_no_byte(site: IcebergSite) -> None:
    site.manage()
    before = site.files()
    site.sweep()
    services = FakeWorkerServices(load_settings(home=site.folder / "home"))
    assert [run for run in services.store.rows(RUNS).all() if run.table_id == site.table_id] == []
    assert site.files() == before


def test_whoever_orders_a_change_hears_that_there_is_none(site: IcebergSite) -> None:
    site.manage()
    before = site.files()
    said = site.call("jobs", "run", "db.ice", "sync")
    assert said.code in (4, 5), (said.out, said.err)
    assert NOTHING_ELSE in said.err and "Traceback" not in said.err
    assert (site.files(), site.shown()["state"]) == (before, "active")


def test_it_leaves_and_comes_back_with_its_files_as_they_are(site: IcebergSite) -> None:
    before = site.files()
    assert site.call("tables", "drop", "db.ice", "--yes").code == 0
    assert site.call("tables", "undrop", "db.ice").code == 0
    site.sweep()
    assert (site.files(), site.shown()["state"]) == (before, "active")


def test_a_copy_of_its_folder_is_refused_until_somebody_says_what_it_is(site: IcebergSite) -> None:
    twin = site.folder / "lake" / "twin"
    shutil.copytree(site.table.root, twin)
    said = site.call("tables", "register", str(twin), "--name", "db.twin")
    assert said.code == 5 and "carries the same table UUID as db.ice" in said.err


def test_a_delta_table_that_shows_itself_to_iceberg_readers_as_well_stays_a_delta_table(
    site: IcebergSite,
) -> None:
    both = site.folder / "lake" / "both"
    write_deltalake(str(both), pa.table({"x": [1, 2, 3]}))
    IcebergWriter(root=both).commit()
    said = site.call("tables", "register", str(both), "--name", "db.both", "-o", "json")
    assert (said.json["format"], said.json["rows"], said.json["state"]) == ("delta", 3, "active")
    assert NOTHING_ELSE not in said.err


def test_what_lies_below_a_discovery_root_is_adopted(
    site: IcebergSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = IcebergWriter(root=site.folder / "lake" / "deep" / "other")
    other.commit()
    monkeypatch.setenv("LAKEWARDEN_DISCOVERY_ROOTS", str(site.folder / "lake"))
    assert site.call("tables", "adopt").code == 0
    listed = site.call("tables", "list", "--format", "iceberg", "-o", "json").json
    assert {one["location"] for one in listed} == {f"file://{one.root}" for one in (site.table, other)}
