"""The daemon's statements on the command line: looking, policies and vacuums, on workers that need no Spark."""

import os
import shutil
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog.model.rows import Mode, TableRow
from lakewarden.catalog.policy.access import Actor, Caller, Role
from lakewarden.catalog.state.port import RunRequest
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.usecases.runs.orders import order_run
from lakewarden.daemon.usecases.statements import vacuums
from lakewarden.daemon.usecases.statements.policy import change_policy
from lakewarden.daemon.usecases.statements.vacuums import vacuum_due
from lakewarden.jobs.actions.spec import Order
from support.processes.commands import Cli
from support.processes.daemon_process import FakeWorkerServices
from support.processes.sparkless import sparkless


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """A home with two tables, registered: `db.t` has 2 removed files that are 20 days old and 4 others, `db.fresh` has
    none that was removed."""
    call = sparkless(tmp_path / "home", monkeypatch, capfdbinary)
    assert call("init").code == 0
    lake = tmp_path / "lake"
    for number in range(3):
        write_deltalake(lake / "t", pa.table({"id": [number]}), mode="overwrite")
        write_deltalake(lake / "fresh", pa.table({"id": [number]}), mode="append")
    for number in range(3):
        write_deltalake(lake / "t", pa.table({"id": [10 + number]}), mode="append")
    _made_older(lake / "t", timedelta(days=20))
    for name in ("t", "fresh"):
        assert call("tables", "register", str(lake / name), "--name", f"db.{name}").code == 0
    return call


def _made_older(table: Path, age: timedelta) -> None:
    """As if all of it had happened some time ago."""
    then = time.time() - age.total_seconds()
    for commit in sorted((table / "_delta_log").glob("*.json")):
        text = commit.read_text(encoding="utf-8")
        for key in ("timestamp", "deletionTimestamp", "modificationTime", "createdTime"):
            text = _with_number(text, f'"{key}":', int(then * 1000))
        commit.write_text(text, encoding="utf-8")
    for path in table.rglob("*"):
        os.utime(path, (then, then))


def _with_number(text: str, key: str, number: int) -> str:
    head, *rest = text.split(key)
    return head + "".join(f"{key}{number}{one.lstrip('0123456789')}" for one in rest)


def said(cli: Cli, statement: str) -> list[Mapping[str, Any]]:
    done = cli("sql", statement, "-o", "json")
    assert done.code == 0, done
    rows: list[Mapping[str, Any]] = done.json
    return rows


def files(table: Path) -> int:
    return len(list(table.glob("*.parquet")))


def test_what_is_managed_is_shown(cli: Cli) -> None:
    every = said(cli, "SHOW MANAGED TABLES")
    assert {"lakewarden.tables", "db.t", "db.fresh"} <= {row["name"] for row in every}
    for pattern in ("db.f*", "FRESH", "%res%", "nothing|fresh"):
        (one,) = said(cli, f"SHOW MANAGED TABLES LIKE '{pattern}'")
        assert (one["name"], one["version"], one["files"]) == ("db.fresh", 2, 3)
    assert said(cli, "SHOW MANAGED TABLES LIKE 'db'") == []


def test_a_table_is_described_with_the_level_that_its_policies_come_from(cli: Cli) -> None:
    assert cli("tables", "policy", "set", "db.*", "compaction.target=64 MiB").code == 0
    said(cli, "ALTER TABLE db.t SET POLICY ('vacuum.retention' = '9 days')")
    told = {row["name"]: (row["value"], row["origin"]) for row in said(cli, "DESCRIBE MANAGED db.t")}
    assert told["name"] == ("db.t", None) and told["version"] == ("5", None)
    assert told["vacuum.retention"] == ("9 days", "table")
    assert told["compaction.target"] == ("64 MiB", "db.*")
    assert told["quiet_hours"] == ("", "default")


def test_a_policy_is_set_and_taken_back(cli: Cli) -> None:
    both = said(cli, "ALTER TABLE db.t SET POLICY ('mode' = 'manage', vacuum.retention = '30 days')")
    assert [(row["name"], row["key"], row["value"]) for row in both] == [
        ("db.t", "mode", Mode.MANAGE.value),
        ("db.t", "vacuum.retention", "30 days"),
    ]
    assert said(cli, "ALTER TABLE db.t UNSET POLICY ('vacuum.retention')")[0]["value"] is None
    asked = (
        "SELECT policy.mode AS mode, policy.vacuum_retention_seconds AS kept FROM lakewarden.tables "
        "WHERE name = 'db.t'"
    )
    assert said(cli, asked) == [{"mode": "manage", "kept": None}]
    refused = cli("sql", "ALTER TABLE db.t SET POLICY ('vacuum.retention' = '1 day')")
    assert refused.code == 2 and "promise" in refused.err


def test_runs_lineage_and_rollbacks_are_shown_where_there_are_none(cli: Cli) -> None:
    for statement in ("SHOW RUNS", "SHOW RUNS FOR db.t LIMIT 3", "SHOW LINEAGE OF db.t", "SHOW ROLLBACKS"):
        assert said(cli, statement) == []
        assert cli("sql", statement).code == 0
    assert cli("sql", "SHOW RUNS FOR db.nothing").code == 1
    assert cli("sql", "SHOW LINEAGE db.nothing").code == 1


def test_rollbacks_are_shown(cli: Cli) -> None:
    done = cli("rollback", "plan", "db.t", "--to-version", "1", "-o", "json")
    (row,) = said(cli, "SHOW ROLLBACKS")
    assert (row["name"], row["state"], row["hash"]) == ("db.t", "planned", done.json["hash"])


def test_vacuum_deletes_what_nobody_is_promised_and_is_on_record(cli: Cli, tmp_path: Path) -> None:
    table = tmp_path / "lake" / "t"
    (dry,) = said(cli, "VACUUM db.t DRY RUN")
    assert (dry["outcome"], dry["files"], files(table)) == ("succeeded", 2, 6)
    (done,) = said(cli, f"VACUUM '{table}' RETAIN 10 DAYS")
    assert (done["name"], done["files"], files(table)) == ("db.t", 2, 4)
    assert sorted(DeltaTable(table).to_pyarrow_table()["id"].to_pylist()) == [2, 10, 11, 12]
    assert [row["action"] for row in said(cli, "SHOW RUNS FOR db.t LIMIT 1")] == ["vacuum"]
    entries = said(cli, 'SELECT `on`, origin FROM lakewarden.audit WHERE what = "run"')
    assert [(row["on"], row["origin"]) for row in entries] == [("vacuum db.t", "sql")] * 2


def test_a_vacuum_that_would_break_a_promise_is_refused(cli: Cli, tmp_path: Path) -> None:
    refused = cli("sql", "VACUUM db.t RETAIN 0 HOURS")
    assert refused.code == 4
    assert "db.t has to keep removed files for 7 days, not only for 0 seconds" in refused.err
    assert files(tmp_path / "lake" / "t") == 6
    said(cli, "VACUUM db.t RETAIN 30 DAYS")
    assert files(tmp_path / "lake" / "t") == 6, "longer than promised is what was asked for"


def test_what_is_not_managed_is_not_ours_to_vacuum(cli: Cli) -> None:
    refused = cli("sql", "VACUUM db.nothing")
    assert refused.code == 1 and "db.nothing is not a managed table" in refused.err
    assert cli("sql", "VACUUM db.t USING INVENTORY (SELECT 1)").code == 5


def test_an_automatic_vacuum_begins_nothing_else_on_a_table_that_was_only_observed(
    cli: Cli, tmp_path: Path
) -> None:
    said(cli, "ALTER TABLE db.t SET POLICY ('compaction.enabled' = 'yes')")
    (first,) = said(cli, "VACUUM db.t AUTO RUN RETAIN 8 DAYS")
    policies = {row["name"]: row["value"] for row in said(cli, "DESCRIBE MANAGED db.t") if row["origin"]}
    assert (policies["mode"], policies["vacuum.enabled"], policies["vacuum.retention"]) == (
        "manage",
        "yes",
        "8 days",
    )
    assert policies["compaction.enabled"] == "yes", "somebody had asked for it"
    assert [policies[key] for key in ("statistics.enabled", "log.enabled", "metastore.sync")] == ["no"] * 3
    assert first["outcome"] == "not due" and "properties" in first["message"]
    assert cli("jobs", "run", "db.t", "properties").code == 0
    assert cli("daemon", "--once", "--set", "http.port=0").code == 0
    queued = said(cli, "SHOW RUNS FOR db.t")[0]
    assert (queued["action"], queued["state"]) == ("vacuum", "queued"), "the daemon does it by itself"
    (off,) = said(cli, "VACUUM db.t AUTO OFF")
    assert (off["key"], off["value"]) == ("vacuum.enabled", "no")


def _looked_at(home: Path, name: str) -> None:
    """As a sweep leaves it that comes to nothing else."""
    registry = FakeWorkerServices(load_settings(home=home)).registry
    row = registry.resolve(name)
    registry.record_health(row, registry.reader_at(row.location or "").observe(row.location or ""))


def _make_due(cli: Cli, home: Path) -> None:
    """A vacuum of `db.t` is due; of `db.fresh` it is not."""
    said(cli, "ALTER TABLE 'db.*' SET POLICY (mode = manage, vacuum.retention = '8 days')")
    for name in ("db.t", "db.fresh"):
        assert cli("jobs", "run", name, "properties").code == 0
        _looked_at(home, name)


@pytest.mark.parametrize(
    "statement", ["VACUUM AUTO RUN", pytest.param("VACUUM db.t AUTO RUN", marks=pytest.mark.long)]
)
def test_what_is_due_is_vacuumed_now(cli: Cli, tmp_path: Path, statement: str) -> None:
    assert said(cli, "VACUUM AUTO RUN") == [], "both are only observed"
    _make_due(cli, tmp_path / "home")
    done = said(cli, statement)
    assert [(row["name"], row["outcome"], row["files"]) for row in done] == [("db.t", "succeeded", 2)]
    assert files(tmp_path / "lake" / "t") == 4


@pytest.mark.long
def test_what_is_switched_off_while_the_tables_before_it_are_vacuumed_is_left(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = tmp_path / "lake"
    shutil.copytree(lake / "t", lake / "u")
    assert cli("tables", "register", str(lake / "u"), "--name", "db.u", "--copy").code == 0
    _make_due(cli, tmp_path / "home")
    assert cli("jobs", "run", "db.u", "properties").code == 0
    _looked_at(tmp_path / "home", "db.u")
    first = list[str]()

    def order_and_switch_the_other_off(
        services: Services, row: TableRow, order: Order, *, actor: Actor
    ) -> RunRequest:
        (other,) = {"db.t", "db.u"} - {row.name}
        first.append(other)
        change_policy(
            services,
            other,
            {"vacuum.enabled": False},
            caller=Caller(name="ana", roles=frozenset({Role.ADMIN}), origin="test"),
        )
        return order_run(services, row, order, actor=actor)

    monkeypatch.setattr(vacuums, "order_run", order_and_switch_the_other_off)
    done = {row["name"]: row["outcome"] for row in said(cli, "VACUUM AUTO RUN")}
    (left,) = first
    assert done.pop(left) == "not due" and list(done.values()) == ["succeeded"]
    assert files(lake / left.removeprefix("db.")) == 6


@pytest.mark.long
def test_what_somebody_may_not_do_or_what_fails_is_a_row(cli: Cli, tmp_path: Path) -> None:
    said(cli, "ALTER TABLE db.t SET POLICY (vacuum.max_share = '1%')")
    _make_due(cli, tmp_path / "home")
    services = FakeWorkerServices(load_settings(home=tmp_path / "home"))
    stranger = Caller(name="sam", origin="test")
    (refused,) = vacuum_due(services, caller=stranger, tell=lambda _: None).to_pylist()
    assert refused["outcome"] == "refused" and "sam may not order work on db.t" in refused["message"]
    done = cli("sql", "VACUUM AUTO RUN", "-o", "json")
    (failed,) = done.json
    assert (done.code, failed["outcome"]) == (3, "failed")
    assert "more than vacuum.max_share = 1% allows" in failed["message"]
    assert files(tmp_path / "lake" / "t") == 6
