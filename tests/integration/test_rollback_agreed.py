"""What a plan asks consent for, what a consent covers, and what counts as read:
`lakewarden rollback` on real tables."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from support.builders.derived import overwrite, reading, write
from support.processes.commands import Cli, Said, registered


class Desk:
    """`db.source` with a bad load as version 1; tables are derived from it as a test needs them."""

    def __init__(self, folder: Path, call: Cli) -> None:
        self.call, self.folder = call, folder
        self.source, self.derived = folder / "lake" / "source", folder / "lake" / "derived"
        write(self.source, 1)

    def register(self, place: Path) -> str:
        return registered(self.call, place)

    def plan(self, *options: str, to: str = "0") -> Said:
        asked = ("db.source", "--to-version", to, "--cascade", "-o", "json")
        return self.call("rollback", "plan", *asked, *options)


@pytest.fixture
def registry(tmp_path: Path, cli: Cli) -> Desk:
    return Desk(tmp_path, cli)


def planned(said: Said) -> dict[str, Any]:
    """The tables of a plan by name."""
    return {one["name"]: one for one in said.json["tables"]}


def test_an_unknown_commit_that_may_be_lost_is_not_asked_about_as_a_clean_one(registry: Desk) -> None:
    registry.register(registry.source)
    write(registry.source, 99)
    write_deltalake(str(registry.source), pa.table({"id": pa.array([7], pa.int64())}), mode="append")
    asked = ("rollback", "plan", "db.source", "--bad", "1", "--consent", "lose_unknown", "-o", "json")
    said = registry.call(*asked)
    assert (said.code, planned(said)["db.source"]["collateral"]) == (0, [])


def test_a_restore_in_the_range_that_is_to_be_undone_needs_no_consent(registry: Desk) -> None:
    registry.register(registry.source)
    write(registry.source, 99)
    DeltaTable(str(registry.source)).restore(0)
    write(registry.source, 98)
    said = registry.plan()
    assert (said.code, planned(said)["db.source"]["collateral"]) == (0, [])


def test_an_overwrite_by_no_rows_has_read_what_it_read(registry: Desk) -> None:
    reads = {registry.register(registry.source): registry.source}
    overwrite(registry.derived)
    write(registry.source, 99)
    overwrite(registry.derived, reads=reads)
    registry.register(registry.derived)
    said = registry.plan()
    assert said.code == 0 and planned(said).get("db.derived", {}).get("tainted") == [1], said.out


def test_what_was_read_before_it_was_registered_is_known(registry: Desk) -> None:
    write(registry.derived, 1)
    write(registry.source, 99)
    record = reading({"nobody": registry.source})
    by_place = replace(record, inputs=tuple(replace(one, table_id=None) for one in record.inputs))
    write(registry.derived, 99, said=by_place)
    registry.register(registry.source)
    registry.register(registry.derived)
    said = registry.plan()
    assert said.code == 0, said.json["why_not"]
    assert (planned(said)["db.derived"]["tainted"], planned(said)["db.derived"]["unknown"]) == ([1], [])


def test_a_table_that_is_left_tainted_is_not_called_clean(registry: Desk) -> None:
    reads = {registry.register(registry.source): registry.source}
    write(registry.derived, 1)
    before = DeltaTable(str(registry.derived)).file_uris()
    write(registry.source, 99)
    overwrite(registry.derived, 99, reads=reads)
    registry.register(registry.derived)
    for gone in before:
        Path(gone.removeprefix("file://")).unlink()
    asked = ("db.source", "--to-version", "0", "--cascade", "--consent", "skip_unreachable")
    said = registry.call("rollback", "plan", *asked)
    assert "its head is clean" not in said.out and "its head is tainted and stays so" in said.out, said
