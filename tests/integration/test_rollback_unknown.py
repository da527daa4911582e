"""Commits of unknown origin in rollbacks of real Delta tables:
kept and lost all the same, added again, or lost as agreed."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from support.builders.derived import ids, write
from support.processes.commands import Cli, Said, registered

RETENTION = "delta.logRetentionDuration"


class Desk:
    """`db.derived` read a bad version of `db.source`; then somebody appended to it who says nothing of what
    they read."""

    def __init__(self, folder: Path, call: Cli) -> None:
        self.call = call
        self.source, self.derived = folder / "lake" / "source", folder / "lake" / "derived"
        write(self.source, 1)
        reads = {registered(call, self.source): self.source}
        write(self.derived, 1, reads=reads)
        write(self.source, 99)
        write(self.derived, 99, reads=reads)
        registered(call, self.derived)
        write_deltalake(str(self.derived), pa.table({"id": pa.array([7], pa.int64())}), mode="append")

    def plan(self, *options: str) -> Said:
        asked = ("db.source", "--to-version", "0", "--cascade", "-o", "json")
        return self.call("rollback", "plan", *asked, *options)

    def apply(self, *options: str) -> str:
        """Returns the rollback's id."""
        planned = self.plan(*options)
        assert planned.code == 0, planned
        done = self.call("rollback", "apply", planned.json["hash"], "-o", "json")
        assert done.code == 0 and done.json["state"] == "done", done
        return str(done.json["rollback_id"])


@pytest.fixture
def registry(tmp_path: Path, cli: Cli) -> Desk:
    return Desk(tmp_path, cli)


def derived_in(said: Said) -> Any:
    return next(one for one in said.json["tables"] if one["name"] == "db.derived")


def test_what_is_kept_as_unknown_and_goes_all_the_same_takes_a_consent_of_its_own(registry: Desk) -> None:
    refused = registry.plan("--consent", "keep_unknown")
    assert refused.code == 4
    assert [one["message"] for one in derived_in(refused)["blocked_by"]] == [
        "1 commit of unknown origin of db.derived (1 row) would be lost."
    ]
    registry.apply("--consent", "keep_unknown", "--consent", "collateral=db.derived@2")
    assert ids(registry.derived) == [1]


def test_it_is_added_again_where_it_is_a_pure_append(registry: Desk) -> None:
    done = registry.apply("--consent", "keep_unknown", "--reapply")
    assert ids(registry.derived) == [1, 7]
    assert registry.call("rollback", "undo", done).code == 0
    assert ids(registry.derived) == [1, 7, 99]


def test_what_was_agreed_to_as_lost_though_unknown_takes_no_other_consent_nor_do_our_own_properties(
    registry: Desk,
) -> None:
    planned = registry.plan("--consent", "lose_unknown")
    assert (planned.code, derived_in(planned)["collateral"]) == (0, [])
    DeltaTable(str(registry.derived)).alter.set_table_properties({RETENTION: "interval 9 days"})
    planned = registry.plan("--consent", "lose_unknown")
    assert (planned.code, derived_in(planned)["collateral"]) == (0, [])
    registry.apply("--consent", "lose_unknown")
    assert ids(registry.derived) == [1]
    assert DeltaTable(str(registry.derived)).metadata().configuration[RETENTION] == "interval 9 days"
