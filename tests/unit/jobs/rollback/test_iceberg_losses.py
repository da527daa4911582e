"""What the rollback of an Iceberg table asks about: deletes that stand beside the files."""

from typing import Any

import pytest

from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.jobs.rollback.plan.model import Blocked
from lakewarden.jobs.rollback.plan.request import RollbackRequest, ToVersion
from support.builders.iceberg_histories import ONE_FILE, SnapshotTable, plan_of, planned

A_LOAD = RollbackRequest(seeds=(ToVersion(table_id="a", version=1),), cascade=True)


def source() -> SnapshotTable:
    """Of which version 2 is bad."""
    return SnapshotTable(table_id="a").write(1).write(2)


def derived() -> SnapshotTable:
    """Whose version 2 was made from the bad one."""
    return SnapshotTable(table_id="b").write(1, ("a", 1)).write(2, ("a", 2))


@pytest.mark.parametrize(
    ("made", "told"),
    [
        pytest.param("overwrite", {**ONE_FILE, "deleted-data-files": "1"}, id="that copies files"),
        pytest.param("delete", {"added-delete-files": "1", "added-position-deletes": "5"}, id="by position"),
        pytest.param("delete", {"added-delete-files": "1", "added-equality-deletes": "5"}, id="by equality"),
        pytest.param("delete", {"added-delete-files": "1", "removed-delete-files": "1"}, id="by vectors"),
        pytest.param("delete", {"removed-delete-files": "2"}, id="of deletes"),
    ],
)
def test_a_clean_delete_is_lost_however_it_is_stored(made: str, told: dict[str, Any]) -> None:
    b = derived().write(3, operation=Operation.DELETE, made=made, **told)
    one = planned(plan_of(A_LOAD, source(), b), "b")
    assert one is not None and (one.from_version, one.to_version) == (3, 1)
    assert [lost.version for lost in one.collateral] == [3]
    assert [why.why for why in one.blocked_by] == [Blocked.COLLATERAL]


def test_a_write_of_nothing_is_not_asked_about_unless_its_writer_counts_no_files() -> None:
    counted = derived().write(3, operation=Operation.DELETE, made="delete", deleted_records="0")
    assert plan_of(A_LOAD, source(), counted).applicable
    uncounted = derived().write(3, operation=Operation.DELETE, made="delete", deleted_records="0")
    del uncounted.snapshots[-1]["summary"]["total-data-files"]
    assert not plan_of(A_LOAD, source(), uncounted).applicable
