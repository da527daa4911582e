"""What the owner of a table has set, or was promised, outlives our care:
commands on real tables, workers without Spark."""

from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from support.builders.estate import numbers
from support.processes.commands import Cli

FILES, LOG = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"
CLEANUP = "delta.enableExpiredLogCleanup"
YEAR = "interval 365 days"


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
