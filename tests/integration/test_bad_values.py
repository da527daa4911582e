"""An absurd value in one place, on a real home: cycles go on, `why` answers for every table, and trouble is told."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.model.rows import PolicySettings, RowKind, TableRow
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.cli.commands import daemon as command_module
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.telemetry.failed_cycles import Troubles
from support.processes.commands import Cli, Said, caller


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """A home with two tables, `db.odd` and `db.fine`."""
    monkeypatch.setattr(command_module, "configure", lambda **_: None)
    call = caller(tmp_path / "home", monkeypatch, capfdbinary)
    assert call("init").code == 0
    for name in ("odd", "fine"):
        write_deltalake(tmp_path / name, pa.table({"id": [1]}))
        assert call("tables", "register", str(tmp_path / name), "--name", f"db.{name}").code == 0
    return call


def store_of(home: Path) -> Services:
    return Services(load_settings(home=home, environment={}))


def swept(cli: Cli) -> Said:
    return cli("daemon", "--once", "--set", "http.port=0", "--set", "workers.count=1")


def check_all_is_judged(cli: Cli) -> None:
    for table in ("db.odd", "db.fine"):
        said = cli("why", table, "-o", "json")
        assert said.code == 0 and len(said.json) > 5, said
    assert cli("jobs", "plan", "--explain").code == 0


@pytest.mark.parametrize(
    "properties",
    [
        {"lakewarden.compaction.target": "999999999999999 TiB"},
        {"lakewarden.log.retention": "999999999999 days", "lakewarden.rollback.promise": "9" * 400 + " days"},
        {"delta.deletedFileRetentionDuration": "interval 999999999999 days"},
        {"lakewarden.compaction.min_small_files": "9" * 5_000},
        {"lakewarden.mode": "\u0000", "lakewarden.quiet_hours": "99:99-99:99"},
    ],
    ids=["size", "duration", "delta", "count", "text"],
)
def test_a_strangers_property_stops_no_cycle_and_no_why(
    cli: Cli, tmp_path: Path, properties: dict[str, str]
) -> None:
    log = tmp_path / "odd" / "_delta_log" / f"{1:020}.json"
    metadata = DeltaTable(tmp_path / "odd").metadata()
    action = {
        "metaData": {
            "id": str(metadata.id),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": DeltaTable(tmp_path / "odd").schema().to_json(),
            "partitionColumns": [],
            "configuration": properties,
        }
    }
    log.write_text(json.dumps(action))
    write_deltalake(tmp_path / "fine", pa.table({"id": [2]}), mode="append")
    assert swept(cli).code == 0
    check_all_is_judged(cli)
    assert cli("tables", "show", "db.fine", "-o", "json").json["version"] == 1


@pytest.mark.parametrize("scope", [False, True], ids=["in the table's row", "in a scope"])
def test_a_row_that_holds_absurd_values_already_stops_nothing(cli: Cli, tmp_path: Path, scope: bool) -> None:
    absurd = PolicySettings(log_retention_seconds=86_400 * 999_999_999_999, compaction_target_bytes=2**62)
    assert cli("tables", "policy", "set", "db.*" if scope else "db.odd", "log.retention=40 days").code == 0
    store = store_of(tmp_path / "home").store

    def spoiled(rows: object) -> list[TableRow]:
        kind = RowKind.SCOPE if scope else RowKind.TABLE
        found = store.rows(TABLES).find(name="db.*" if scope else "db.odd", kind=kind)
        return [replace(found[0], policy=absurd, updated_at=datetime.now(UTC))]

    store.edit(TABLES, spoiled, because="an older lakewarden")
    assert swept(cli).code == 0
    check_all_is_judged(cli)
    shown = {one["key"]: one["value"] for one in cli("tables", "policy", "show", "db.odd", "-o", "json").json}
    assert (shown["log.retention"], shown["compaction.target"]) == ("36500 days", "1024 GiB")


def test_an_absurd_policy_is_refused_at_the_door(cli: Cli) -> None:
    said = cli("tables", "policy", "set", "db.odd", "log.retention=999999999999 days")
    assert said.code == 2
    assert said.err.startswith("Error: log.retention cannot be more than 36500 days.")
    sql = (
        "UPDATE lakewarden.tables SET policy.compaction.target = '999999999999999 TiB' WHERE name = 'db.odd'"
    )
    assert cli("sql", sql).code == 2


def test_failing_cycles_show_in_status_and_doctor_until_one_goes_through(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("lakewarden.daemon.fleet.fleet_cache.FleetCache.refresh", _broken)
        for _ in range(2):
            assert swept(cli).code == 1
    status = cli("status", "-o", "json").json
    assert status["failed_cycles"] == 2
    assert "An unexpected error (OverflowError: days=999999999999)" in status["failing_because"]
    assert "The last 2 cycles failed, the last at" in cli("doctor").out
    assert swept(cli).code == 0
    assert Troubles(tmp_path / "home").read() is None
    assert cli("status", "-o", "json").json["failed_cycles"] == 0


def test_what_a_cycle_could_not_look_at_shows_in_status_and_doctor_until_it_can(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(DeltaReader, "probe", _refused_for_one(DeltaReader.probe))
        assert swept(cli).code == 0
    left_out = "db.odd: The store refuses."
    assert f"The last cycle had to leave something out. {left_out}" in str(
        cli("status", "-o", "json").json["attention"]
    )
    assert left_out in cli("doctor").out
    assert swept(cli).code == 0
    assert cli("status", "-o", "json").json["left_out"] is None


def _refused_for_one(probe: Any) -> Any:
    def refused(reader: DeltaReader, location: str, **more: Any) -> Any:
        if location.endswith("/odd"):
            raise UnavailableError("The store refuses.")
        return probe(reader, location, **more)

    return refused


def _broken(memory: object) -> None:
    raise OverflowError("days=999999999999")
