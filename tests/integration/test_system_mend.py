"""Damaged and lost system tables through the command line:
what is wrong, the next command, and what a backup brings back."""

import shutil
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.model.unread_lineage import LINEAGE_UNREAD
from lakewarden.catalog.state.db import open_database
from lakewarden.catalog.state.lease import DatabaseLeases
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.jobs.runs.standings import open_standings
from lakewarden.jobs.runs.worker_config import WorkerConfig
from support.processes.commands import Cli, caller

Harm = Callable[[Path], None]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def cli(home: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    called = caller(home, monkeypatch, capfdbinary)
    assert called("init").code == 0
    for number in range(3):
        place = home.parent / f"t{number}"
        write_deltalake(str(place), pa.table({"id": [1, 2, 3]}))
        assert called("tables", "register", str(place), "--name", f"db.t{number}").code == 0
    assert called("tables", "policy", "set", "db.t1", "vacuum.retention=90 days").code == 0
    return called


@pytest.fixture
def backup(cli: Cli, tmp_path: Path) -> str:
    folder = str(tmp_path / "backup")
    assert cli("system", "backup", folder).code == 0
    return folder


def log(home: Path) -> list[Path]:
    return sorted((home / "system" / "tables" / "_delta_log").glob("*.json"))


def flip(home: Path) -> None:
    content = log(home)[2].read_bytes()
    log(home)[2].write_bytes(content[:90] + bytes([content[90] ^ 0x55]) + content[91:])


def lose_a_commit(home: Path) -> None:
    log(home)[2].unlink()


def truncate_a_checkpoint(home: Path) -> None:
    DeltaTable(str(home / "system" / "tables")).create_checkpoint()
    [checkpoint] = (home / "system" / "tables" / "_delta_log").glob("*.checkpoint.parquet")
    checkpoint.write_bytes(checkpoint.read_bytes()[:200])


def lose_the_log(home: Path) -> None:
    shutil.rmtree(home / "system" / "tables" / "_delta_log")


def lose_the_table(home: Path) -> None:
    shutil.rmtree(home / "system" / "tables")


def lose_everything(home: Path) -> None:
    shutil.rmtree(home)


def _without(row: dict[str, Any], keys: set[str]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in keys}


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("harm", "goes_back"),
    [
        pytest.param(flip, False, id="flipped-byte"),
        pytest.param(lose_a_commit, False, id="missing-commit"),
        pytest.param(truncate_a_checkpoint, False, id="truncated-checkpoint"),
        pytest.param(lose_the_log, True, id="log-gone"),
        pytest.param(lose_the_table, True, id="table-gone"),
        pytest.param(lose_everything, True, id="home-gone"),
    ],
)
def test_verify_says_the_next_command_and_repair_brings_the_tables_back(
    cli: Cli, home: Path, backup: str, harm: Harm, goes_back: bool
) -> None:
    before = cli("tables", "list", "-o", "json").json
    harm(home)
    said = cli("system", "verify", "--backup", backup, "-o", "json")
    assert said.code == 3 and {row["table"] for row in said.json} >= {"lakewarden.tables"}
    assert f"lakewarden system repair --backup {backup} --dry-run" in said.err
    shown = cli("system", "repair", "--backup", backup, "--dry-run")
    assert shown.code == 0 and "Nothing was changed." in shown.err
    if goes_back:
        assert cli("system", "repair", "--backup", backup, "--yes").code == 4, "it loses what came since"
    done = cli("system", "repair", "--backup", backup, "--yes", "--accept-loss")
    assert done.code == 0, done.err
    assert cli("system", "verify", "--backup", backup).code == 0
    after = cli("tables", "list", "-o", "json").json
    stopped = {row.pop("stopped") for row in after}
    assert stopped == ({"paused"} if goes_back else {None}), "after a loss a person looks first"
    if goes_back:
        unread = {row["name"] for row in after if row["properties"].pop(LINEAGE_UNREAD, None) is not None}
        assert unread == {"db.t0", "db.t1", "db.t2"}, "what they were made from is read again"
    noted = {"stopped", *(("updated_at", "updated_by") if goes_back else ())}
    assert [_without(row, noted) for row in after] == [_without(row, noted) for row in before]
    assert ("lakewarden resume" in done.err) is goes_back
    shown = cli("tables", "policy", "show", "db.t1", "-o", "json")
    assert shown.code == 0 and "90 days" in shown.out


def test_without_a_backup_verify_names_both_ways_out_of_an_empty_home(cli: Cli, home: Path) -> None:
    lose_everything(home)
    said = cli("system", "verify")
    assert said.code == 3
    assert "`lakewarden init`" in said.err and "system repair --backup FOLDER --dry-run" in said.err
    refused = cli("system", "repair", "--yes", "--accept-loss")
    assert refused.code == 4 and "system repair --backup FOLDER" in refused.err
    assert not (home / "system").exists()


def test_init_does_not_put_an_empty_table_in_the_place_of_one_that_was_lost(
    cli: Cli, home: Path, backup: str
) -> None:
    lose_the_table(home)
    refused = cli("init")
    assert refused.code == 4 and "system repair --backup" in refused.err
    assert not (home / "system" / "tables").exists()


def test_a_table_that_waited_to_be_purged_is_not_purged_after_a_restore(
    cli: Cli, home: Path, tmp_path: Path
) -> None:
    assert cli("tables", "drop", "db.t0", "--purge", "--at-version", "0", "--yes").code == 0
    backup = str(tmp_path / "late")
    assert cli("system", "backup", backup).code == 0
    lose_the_table(home)
    assert cli("system", "repair", "--backup", backup, "--yes", "--accept-loss").code == 0
    rows = {row["name"]: row for row in cli("tables", "list", "--all", "-o", "json").json}
    assert rows["db.t0"]["state"] == "dropped"
    assert cli("tables", "undrop", "db.t0").code == 0
    assert (tmp_path / "t0" / "_delta_log").exists()


def test_nothing_is_repaired_under_a_leading_daemon(cli: Cli, home: Path, backup: str) -> None:
    settings = load_settings(home=home)
    leases = DatabaseLeases(open_database(settings.database_url))
    assert leases.acquire(settings.lease_name, "somebody", settings.lease_ttl) is not None
    lose_the_table(home)
    refused = cli("system", "repair", "--backup", backup, "--yes", "--accept-loss")
    assert refused.code == 4 and "A daemon leads here (somebody)" in refused.err
    assert not (home / "system" / "tables").exists()
    leases.release(settings.lease_name, "somebody")
    assert cli("system", "repair", "--backup", backup, "--yes", "--accept-loss").code == 0


def test_a_home_without_system_tables_is_no_backup(cli: Cli, tmp_path: Path) -> None:
    said = cli("system", "repair", "--backup", str(tmp_path / "nowhere"), "--yes")
    assert said.code == 1 and "There is no backup" in said.err


def test_a_second_damage_that_the_first_one_hid_is_named_and_not_called_repaired(
    cli: Cli, home: Path, backup: str
) -> None:
    table = home / "system" / "tables"
    [lost, *_] = DeltaTable(str(table)).file_uris()
    Path(lost).unlink()
    flip(home)  # while the log is damaged nobody can say which files the table has
    shown = cli("system", "repair", "--backup", backup, "--dry-run", "-o", "json")
    assert [row["step"] for row in shown.json] == ["RestoreFiles"]
    done = cli("system", "repair", "--backup", backup, "--yes")
    assert done.code == 3
    assert "Repaired in part: " in done.err and "Repaired.\n" not in done.err
    assert Path(lost).name in done.err and f"system repair --backup {backup} --dry-run" in done.err
    again = cli("system", "repair", "--backup", backup, "--yes")
    assert again.code == 0 and "Repaired.\n" in again.err
    assert cli("system", "verify", "--backup", backup).code == 0


def test_a_backup_from_before_everything_was_lost_is_not_mixed_into_what_init_made_then(
    cli: Cli, home: Path, backup: str
) -> None:
    lose_everything(home)
    time.sleep(1.1)  # what is noted says when, to the second
    assert cli("init").code == 0
    for number in range(3, 8):
        place = home.parent / f"t{number}"
        write_deltalake(str(place), pa.table({"id": [1]}))
        assert cli("tables", "register", str(place), "--name", f"db.t{number}").code == 0
    kept = len([*(Path(backup) / "tables" / "_delta_log").glob("*.json")])
    assert len(log(home)) > kept
    for entry in log(home)[:kept]:
        entry.write_bytes(b"{")
    told = cli("system", "repair", "--backup", backup, "--dry-run", "-o", "json")
    [step] = [one for one in told.json if one["table"] == "lakewarden.tables"]
    assert step["step"] == "RestoreTable" and "Changes of lakewarden.tables after" in step["loses"]


def test_a_second_repair_is_refused_while_one_is_under_way_and_one_that_was_killed_blocks_nobody_for_ever(
    cli: Cli, home: Path, backup: str
) -> None:
    flip(home)
    settings = load_settings(home=home)
    leases, name = DatabaseLeases(open_database(settings.database_url)), f"{settings.lease_name} repair"
    assert leases.acquire(name, "ana on far.away, pid 4711", timedelta(seconds=3)) is not None
    again = cli("system", "repair", "--backup", backup, "--yes")
    assert again.code == 4 and "Another repair is under way (ana on far.away, pid 4711)" in again.err
    assert cli("system", "verify", "--backup", backup).code == 3, "nothing was changed"
    time.sleep(3.2)
    assert cli("system", "repair", "--backup", backup, "--yes").code == 0
    assert leases.current(name) is None


def test_what_another_repair_has_mended_since_the_plan_was_made_is_not_repaired_again(
    cli: Cli, home: Path, backup: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_the_table(home)

    def answered(words: str, *, yes: bool) -> None:
        if not mended:
            mended.append(True)
            assert cli("system", "repair", "--backup", backup, "--accept-loss", "--yes").code == 0
            assert cli("tables", "rename", "db.t0", "db.later").code == 0

    mended: list[bool] = []
    monkeypatch.setattr("lakewarden.daemon.cli.commands.system.confirm", answered)
    second = cli("system", "repair", "--backup", backup, "--accept-loss")
    assert second.code == 4 and "not as they were when this was planned" in second.err
    assert cli("system", "verify").code == 0
    assert {"db.later"} <= {row["name"] for row in cli("tables", "list", "-o", "json").json}


@pytest.fixture
def older(cli: Cli, home: Path, tmp_path: Path) -> Path:
    """The system tables as they were before a hold that the daemon has seen; they were put back by hand."""
    aside, newer = tmp_path / "aside", tmp_path / "newer"
    assert cli(*ONCE).code == 0
    shutil.copytree(home / "system", aside)
    assert cli("tables", "hold", "db.t0", "--reason", "case 4711").code == 0
    assert cli(*ONCE).code == 0
    (home / "system").rename(newer)
    shutil.copytree(aside, home / "system")
    return newer


ONCE = ("daemon", "--once", "--set", "http.port=0")


def held(cli: Cli) -> set[str]:
    return {
        row["name"] for row in cli("tables", "list", "-o", "json").json if "held" in (row["stopped"] or "")
    }


def is_not_led(cli: Cli) -> bool:
    said = cli(*ONCE)
    return said.code == 1 and "was put back from before" in said.err


def test_older_system_tables_in_the_place_of_newer_ones_stop_everything(cli: Cli, older: Path) -> None:
    shown = cli("status", "--check", "-o", "json")
    assert shown.code == 3
    assert shown.json["attention"][0].startswith("Older system tables lie where newer ones were")
    checks = {one["check"]: one for one in cli("doctor", "-o", "json").json}
    assert (
        checks["system tables"]["verdict"] == "fail"
        and "has seen version" in checks["system tables"]["message"]
    )
    for command in (
        ("jobs", "run", "db.t0", "vacuum"),
        ("tables", "drop", "db.t0", "--purge", "--at-version", "0", "--yes"),
    ):
        refused = cli(*command)
        assert refused.code == 4 and "was put back from before" in refused.err, command
    assert is_not_led(cli)
    assert {row["damage"] for row in cli("system", "verify", "-o", "json").json} == {"older"}


@pytest.mark.long
def test_a_person_goes_on_with_the_older_system_tables(cli: Cli, older: Path) -> None:
    assert cli("system", "repair", "--yes").code == 4, "it loses what came since"
    done = cli("system", "repair", "--accept-loss", "--yes")
    assert done.code == 0 and "Everything is paused" in done.err
    assert cli("system", "verify").code == 0 and held(cli) == set()
    assert cli("status", "-o", "json").json["paused"].startswith("an older lakewarden.")
    assert cli(*ONCE).code == 0
    assert cli("resume").code == 0 and cli(*ONCE).code == 0


def test_the_newer_system_tables_come_back_from_a_backup(
    cli: Cli, home: Path, older: Path, tmp_path: Path
) -> None:
    aside, backup = tmp_path / "aside again", str(tmp_path / "late")
    (home / "system").rename(aside)
    older.rename(home / "system")
    assert cli("system", "backup", backup).code == 0
    shutil.rmtree(home / "system")
    aside.rename(home / "system")
    assert is_not_led(cli)
    assert cli("system", "repair", "--backup", backup, "--accept-loss", "--yes").code == 0
    assert cli("system", "verify", "--backup", backup).code == 0 and held(cli) == {"db.t0"}
    assert cli(*ONCE).code == 0


def test_nothing_has_to_be_decided_once_the_newer_system_tables_are_back(
    cli: Cli, home: Path, older: Path
) -> None:
    assert is_not_led(cli)
    shutil.rmtree(home / "system")
    older.rename(home / "system")
    assert cli(*ONCE).code == 0 and held(cli) == {"db.t0"}
    assert cli("status", "-o", "json").json["older"] == []


def test_a_worker_does_not_go_by_older_system_tables(cli: Cli, home: Path, older: Path) -> None:
    services = open_services(home=home)
    [row] = services.store.rows(TABLES).find(name="db.t0")
    settings = services.settings
    config = WorkerConfig(
        name="w", database_url=settings.database_url, system_location=settings.system_location
    )
    standings = open_standings(config, open_database(settings.database_url))
    assert standings is not None
    with pytest.raises(PreconditionError, match="was put back from before"):
        standings.of(row.table_id)
