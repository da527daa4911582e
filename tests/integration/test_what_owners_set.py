"""What the owner of a table has set, or was promised, outlives our care: commands on real tables, workers without Spark."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.daemon.settings.settings import load_settings
from support.builders.delta_logs import LogWriter, add
from support.builders.estate import numbers
from support.processes.commands import Cli, caller
from support.processes.daemon_process import FakeWorkerServices

FILES, LOG = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"
CLEANUP = "delta.enableExpiredLogCleanup"
YEAR = "interval 365 days"


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Cli:
    """A home whose workers need no Spark."""
    monkeypatch.setattr(
        "lakewarden.daemon.cli.common.open_services",
        lambda home: FakeWorkerServices(load_settings(home=home)),
    )
    made = caller(tmp_path / "home", monkeypatch, capfdbinary)
    assert made("init").code == 0
    return made


def managed(cli: Cli, place: Path) -> Path:
    assert cli("tables", "register", str(place), "--name", "db.t").code == 0
    assert cli("tables", "policy", "set", "db.t", "mode=manage").code == 0
    return place


def table(cli: Cli, place: Path, **properties: str) -> Path:
    """`db.t`, managed, as its owner made it."""
    write_deltalake(str(place), numbers(0), configuration=properties)
    return managed(cli, place)


def properties(place: Path) -> dict[str, str]:
    return dict(DeltaTable(str(place)).metadata().configuration)


@pytest.mark.parametrize(
    "owners", [{FILES: YEAR, LOG: YEAR}, {FILES: YEAR, CLEANUP: "false"}, {LOG: YEAR, CLEANUP: "false"}]
)
def test_a_retention_that_is_longer_stands_whatever_else_was_unset(
    cli: Cli, tmp_path: Path, owners: dict[str, str]
) -> None:
    place = table(cli, tmp_path / "t", **owners)
    assert cli("jobs", "run", "db.t", "properties").code == 0
    assert owners.items() <= properties(place).items()
    assert {FILES, LOG, CLEANUP} <= properties(place).keys(), "what was unset is set"


def test_a_table_that_leaves_has_its_owners_properties_again(cli: Cli, tmp_path: Path) -> None:
    place = table(cli, tmp_path / "t", **{LOG: "interval 3 days", "their.own": "x"})
    before = properties(place)
    assert cli("jobs", "run", "db.t", "properties").code == 0
    assert properties(place)[CLEANUP] == "false"
    said = cli("tables", "drop", "db.t", "--yes")
    assert said.code == 0 and properties(place) == before, said


def test_no_log_goes_before_a_checkpoint_that_names_another_file(cli: Cli, tmp_path: Path) -> None:
    """One byte of a path in it has flipped; protocol and metadata can be read all the same."""
    log = LogWriter(root=tmp_path / "t", now=datetime.now(UTC) - timedelta(days=90))
    log.create()
    for number in range(6):
        log.commit(add(f"file-{number}.parquet"))
    log.checkpoint()
    (checkpoint,) = log.log.glob("*.checkpoint.parquet")
    content = checkpoint.read_bytes()
    assert b"file-3.parquet" in content
    checkpoint.write_bytes(content.replace(b"file-3.parquet", b"fjle-3.parquet"))
    log.now = datetime.now(UTC) - timedelta(minutes=1)
    log.commit(add("late.parquet"))
    place, promised = managed(cli, log.root), log.head - 1
    assert cli("jobs", "run", "db.t", "log_care").code == 0
    found = {one.path for one in DeltaReader().files(canonical(str(place)), version=promised)}
    kept = sorted(path.name for path in log.log.glob("*.json"))
    assert len(kept) == log.head + 1, f"left: {kept}; version {promised} has {sorted(found)}"
