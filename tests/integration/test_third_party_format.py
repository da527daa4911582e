"""A format that lakewarden does not know, installed beside it: its tables live as any others do."""

import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewarden.catalog.model.lineage_record import LineageInput, LineageRecord, Operation
from lakewarden.catalog.model.rows import Outcome, RollbackState, RunRow
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.catalog.system.port import RUNS
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.usecases.rollbacks.rollback import RollbackService, rollbacks_of_services
from support.builders.callers import actor
from support.builders.derived import ids, write
from support.manifest_format.spec import forget, install
from support.manifest_format.writer import ManifestWriter
from support.processes import daemon_process, house
from support.processes.commands import Cli, Said, registered
from support.processes.daemon_process import FakeWorkerServices
from support.processes.sparkless import sparkless

QUICK = [f"{key}={value}" for key, value in house.QUICK.items()]
MANAGED = (
    "mode=manage",
    "compaction.quiet=0 s",
    "compaction.min_small_files=10",
    "vacuum.max_share=1",
    "log.checkpoint_commits=10",
)


class Site:
    """A home with a manifest table `db.raw`, most of it old, and a Delta table `db.sums` that is derived from it."""

    def __init__(self, folder: Path, call: Cli) -> None:
        self.folder, self.call = folder, call
        self.raw, self.sums = folder / "lake" / "raw", folder / "lake" / "sums"
        self.must("init")
        self.writer = ManifestWriter(root=self.raw, now=datetime.now(UTC) - timedelta(days=60))
        self.audited = [self.writer.write([number]) for number in range(3)][1]
        self.writer.protect("audit", self.audited)
        self.writer.write([3])
        self.later(days=10)
        self.writer.write([100], operation="overwrite")
        self.later(days=10)
        for number in range(101, 112):
            self.writer.write([number])
        self.raw_id = self.register(self.raw)
        self.derive(100)
        self.register(self.sums)

    @property
    def services(self) -> FakeWorkerServices:
        return FakeWorkerServices(load_settings(home=self.folder / "home"))

    @property
    def rollbacks(self) -> RollbackService:
        return rollbacks_of_services(self.services)

    @property
    def head(self) -> int:
        return self.writer.manifest.main

    def later(self, **duration: int) -> None:
        self.writer.now += timedelta(**duration)

    def must(self, *arguments: str) -> Said:
        said = self.call(*arguments)
        assert said.code == 0, (arguments, said.out, said.err)
        return said

    def register(self, place: Path) -> str:
        return registered(self.call, place)

    def derive(self, *found: int) -> int:
        """A governed write to `db.sums`, from the head of `db.raw`."""
        read = LineageInput(
            table_id=self.raw_id,
            location=canonical(str(self.raw)),
            format="manifest",
            version=self.head,
            format_id=self.writer.manifest.table_id,
        )
        record = LineageRecord(run_id=uuid4().hex, operation=Operation.APPEND, user="ana", inputs=(read,))
        return write(self.sums, *found, said=record)

    def work(self, *, failpoint: str = "") -> str:
        """A daemon that works, with its workers, until nothing is left to do. Returns what it said."""
        done = subprocess.run(
            [sys.executable, daemon_process.__file__, str(self.folder / "home"), "idle", *QUICK],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                "WORKER_FAILPOINT": failpoint,
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    def runs(self) -> dict[str, RunRow]:
        """The last run of each action on `db.raw`."""
        rows = [row for row in self.services.store.rows(RUNS).all() if row.name == "db.raw"]
        return {row.action.value: row for row in rows}

    def bad_write(self) -> int:
        """A user writes something wrong, which is derived from. Returns the version before it."""
        before = self.head
        self.later(days=39)
        self.writer.write([666])
        self.derive(666)
        return before


@pytest.fixture
def site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Iterator[Site]:
    install(tmp_path / "site", monkeypatch)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    yield Site(tmp_path, sparkless(tmp_path / "home", monkeypatch, capfdbinary))
    forget()


def test_its_tables_are_looked_after(site: Site) -> None:
    shown = site.must("tables", "show", "db.raw", "-o", "json").json
    assert (shown["format"], shown["version"], shown["files"]) == ("manifest", site.head, 12)
    assert site.must("tables", "validate", "db.raw", "-o", "json").json == []
    site.must("tables", "policy", "set", "db.raw", *MANAGED)
    rows = site.writer.rows()
    site.work()
    found = {name: (row.outcome, row.message) for name, row in site.runs().items()}
    assert found.pop("vacuum") == (Outcome.SUCCEEDED, "deleted 2 files (968 B)"), (
        "and none that a ref protects"
    )
    assert {name: outcome for name, (outcome, _) in found.items()} == {
        "compact": Outcome.SUCCEEDED,
        "log_care": Outcome.SUCCEEDED,
    }
    manifest = site.writer.manifest
    assert site.writer.rows() == rows and len(manifest.versions[manifest.main].files) == 1
    assert all((site.raw / file.path).exists() for file in manifest.versions[site.audited].files)


def planned(site: Site, to: int) -> str:
    """A plan for `db.raw` and what is derived from it. Returns its hash."""
    said = site.must("rollback", "plan", "db.raw", "--to-version", str(to), "--cascade", "-o", "json")
    return str(said.json["hash"])


def contents(site: Site) -> tuple[bool, list[int]]:
    """Whether `db.raw` has the wrong row, and what `db.sums` has."""
    return 666 in site.writer.rows(), ids(site.sums)


def test_it_is_rolled_back_together_with_the_delta_table_made_from_it(site: Site) -> None:
    plan = planned(site, site.bad_write())
    site.must("rollback", "apply", plan)
    assert contents(site) == (False, [100])
    site.must("rollback", "undo", plan)
    assert contents(site) == (True, [100, 666])


@pytest.mark.long
@pytest.mark.crash
def test_killed_after_each_of_its_restores_the_rollback_goes_on(site: Site) -> None:
    plan = planned(site, site.bad_write())
    site.rollbacks.begin(plan, actor=actor("root", admin=True))
    assert site.work(failpoint="rollback.restored").count('"code": -9') == 2
    assert site.rollbacks.journal.get(plan).head.state is RollbackState.DONE
    assert contents(site) == (False, [100])
    made = [one.operation for one in site.writer.manifest.versions.values()]
    assert made.count("restore") == 1


@pytest.mark.long
@pytest.mark.crash
def test_killed_after_its_commit_a_compaction_is_not_done_again(site: Site) -> None:
    site.must("tables", "policy", "set", "db.raw", *MANAGED)
    assert '"code": -9' in site.work(failpoint="compact.compacted")
    assert site.runs()["compact"].outcome is Outcome.SUCCEEDED
    made = [one.operation for one in site.writer.manifest.versions.values()]
    assert made.count("compact") == 1


def test_a_folder_of_parquet_is_converted_to_it_by_its_own_engine(site: Site) -> None:
    folder = site.folder / "lake" / "plain"
    folder.mkdir()
    pq.write_table(pa.table({"x": [1, 2, 3]}), folder / "a.parquet")
    os.utime(folder / "a.parquet", (0, 0))
    said = site.call("tables", "convert", str(folder), "--name", "db.plain", "--to", "nosuch")
    assert said.code == 5 and "No engine for the table format nosuch is installed here." in said.err
    site.must("tables", "convert", str(folder), "--name", "db.plain", "--to", "manifest")
    shown = site.must("tables", "show", "db.plain", "-o", "json").json
    assert (shown["format"], shown["state"], shown["rows"]) == ("manifest", "active", 3)
    assert site.call("tables", "convert", str(folder)).code == 0, "it is managed already"


def test_rows_of_two_of_its_versions_are_compared_by_its_own_engine(site: Site) -> None:
    before = site.bad_write()
    said = site.must(
        *("rollback", "plan", "db.raw", "--to-version", str(before), "--diff", "db.raw", "-o", "json")
    )
    (diff,) = said.json["diffs"]
    assert (diff["goes"], diff["comes_back"]) == (1, 0)


def test_a_head_that_goes_back_by_hand_is_seen_and_makes_a_plan_stale(site: Site) -> None:
    before = site.bad_write()
    plan = planned(site, before)
    site.writer.move_main(before)
    said = site.call("rollback", "apply", plan)
    assert said.code == 4 and "The plan is stale: db.raw is at version" in said.err
    site.work()
    shown = site.must("tables", "show", "db.raw", "-o", "json").json
    assert (shown["version"], shown["state"], shown["findings"]) == (before, "active", [])


def held(site: Site, check: str) -> list[str]:
    """What this check says of `db.sums`."""
    found = site.must("tables", "validate", "db.sums", "-o", "json").json
    return [one["message"] for one in found if one["check"] == check]


@pytest.mark.long
def test_what_was_derived_from_versions_that_a_head_left_by_hand_is_found_and_can_be_undone(
    site: Site,
) -> None:
    site.work()
    before = site.bad_write()
    bad = site.head
    site.work()
    assert held(site, "reads_reverted") == []
    site.writer.move_main(before)
    assert "reads what was undone" in site.work()
    said = f"which moving head back to version {before} took back."
    assert held(site, "reads_reverted") == [f"Version 1 was made from version {bad} of db.raw, {said}"]
    plans = site.must("rollback", "list", "-o", "json").json
    assert [one["state"] for one in plans] == ["planned"]
    site.must("rollback", "apply", plans[0]["rollback_id"])
    assert contents(site) == (False, [100]) and site.head == before
    site.work()
    assert held(site, "reads_reverted") == []


@pytest.mark.long
def test_a_head_that_comes_back_by_hand_takes_the_finding_with_it(site: Site) -> None:
    before = site.bad_write()
    bad = site.head
    site.work()
    site.writer.move_main(before)
    site.work()
    assert held(site, "reads_reverted") != []
    site.writer.move_main(bad)
    site.work()
    assert held(site, "reads_reverted") == []


@pytest.mark.long
def test_what_is_derived_from_a_head_that_was_left_is_undone_by_itself_where_it_is_declared(
    site: Site,
) -> None:
    site.must("lineage", "declare", "db.sums", "--upstream", "db.raw", "--on-rollback", "cascade")
    before = site.bad_write()
    site.work()
    site.writer.move_main(before)
    site.work()
    assert contents(site) == (False, [100]) and site.head == before
