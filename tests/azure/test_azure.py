"""Tables and system tables in Azure's blob storage, as its emulator has it: looked after by delta-rs alone."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lakewarden.catalog.storage.file_store import StorageOptions, open_store
from lakewarden.catalog.storage.secret_files import current
from lakewarden.daemon.cli.commands import daemon as command_module
from support.processes.commands import Cli, caller
from support.processes.log_writers import append_together
from support.servers.azurite import ACCOUNT_KEY, CONTAINER, Azurite, azure_options, running_azurite

SECRET = "AZURE_TEST_KEY"


@pytest.fixture(scope="module")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Azurite]:
    with running_azurite(tmp_path_factory.mktemp("azurite")) as server:
        yield server


@pytest.fixture
def storage(azure: Azurite) -> StorageOptions:
    return azure.storage


@pytest.fixture
def cli(
    azure: Azurite,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> Cli:
    """Commands on a home of its own, whose system tables are there, too."""
    monkeypatch.setattr(command_module, "configure", lambda **_: None)
    monkeypatch.setenv(SECRET, ACCOUNT_KEY)
    options = {**azure_options(azure.endpoint), "azure_storage_account_key": f"env:{SECRET}"}
    home = tmp_path / "home"
    home.mkdir()
    lines = [
        "[system]", f'location = "az://{CONTAINER}/{tmp_path.name}/system"', "[http]", "port = 0",
        "[[storage]]", f'prefix = "az://{CONTAINER}"', "[storage.options]",
        *(f'{name} = "{value}"' for name, value in options.items()),
    ]  # fmt: skip
    (home / "lakewarden.toml").write_text("\n".join(lines) + "\n")
    return caller(home, monkeypatch, capfdbinary)


def test_two_writers_of_delta_rs_lose_no_commit(azure: Azurite, tmp_path: Path) -> None:
    append_together(azure.at(f"{tmp_path.name}/appended"), current(azure.storage), commits=15)


def test_tables_are_registered_swept_and_their_log_is_cared_for_and_spark_stays_out(
    azure: Azurite, storage: StorageOptions, cli: Cli, tmp_path: Path
) -> None:
    location, options = azure.at(f"{tmp_path.name}/lake/orders"), current(storage)
    for number in range(3):
        write_deltalake(location, pa.table({"id": [number]}), mode="append", storage_options=options)
    assert cli("init").code == 0
    row = cli("tables", "register", location, "--name", "lake.orders", "-o", "json").json
    assert (row["state"], row["version"], row["location"]) == ("active", 2, location)
    assert (
        cli("tables", "policy", "set", "lake.orders", "mode=manage", "compaction.min_small_files=2").code == 0
    )
    write_deltalake(location, pa.table({"id": [99]}), mode="append", storage_options=options)
    assert cli("daemon", "--once").code == 0
    assert cli("tables", "show", "lake.orders", "-o", "json").json["version"] == 3
    assert cli("tables", "validate", "lake.orders").code == 0
    done = cli("jobs", "run", "lake.orders", "log_care", "-o", "json")
    assert done.code == 0 and "checkpoint of version 3" in done.json["message"], done
    refused = cli("jobs", "run", "lake.orders", "compact")
    assert refused.code == 4 and "az://" in refused.err and "abfs://" in refused.err, refused
    why = {one["action"]: one["because"] for one in cli("why", "lake.orders", "-o", "json").json}
    assert "az://" in why["compact"]
    assert cli("system", "verify").code == 0
    shown = cli("config", "show", "-o", "json")
    assert "azure_storage_account_key" in shown.out and ACCOUNT_KEY not in shown.out


def test_a_container_that_lets_nobody_in_is_no_table_that_is_gone(
    azure: Azurite, storage: StorageOptions, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location, options = azure.at(f"{tmp_path.name}/lake/orders"), current(storage)
    write_deltalake(location, pa.table({"id": [1]}), storage_options=options)
    monkeypatch.setenv("LAKEWARDEN_SYSTEM_LOCATION", str(tmp_path / "system"))
    assert cli("init").code == 0
    assert cli("tables", "register", location, "--name", "lake.orders").code == 0
    monkeypatch.setenv(SECRET, "d3Jvbmc=")
    assert cli("daemon", "--once").code == 0
    assert cli("tables", "show", "lake.orders", "-o", "json").json["state"] == "active"
    monkeypatch.setenv(SECRET, ACCOUNT_KEY)
    assert cli("daemon", "--once").code == 0
    assert [one.path for one in open_store(location, storage).list("") if one.is_dir] == ["_delta_log"]
