"""What the rollback of an Iceberg table asks about: deletes that are stored beside files, columns that change beside
snapshots."""

from dataclasses import replace
from typing import Any

import pytest

from lakewarden.catalog.lineage.versions import Touch
from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.jobs.rollback.plan.consents import Consent, Consents
from lakewarden.jobs.rollback.plan.model import Blocked, Step
from lakewarden.jobs.rollback.plan.request import BadVersions, RollbackRequest, ToVersion
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


# columns, which change beside snapshots


def altered(table: SnapshotTable) -> SnapshotTable:
    """Its owner has changed columns: no snapshot says so."""
    table.schema += 1
    return table


def changes(table: SnapshotTable, request: RollbackRequest = A_LOAD) -> list[tuple[int, Touch, str]]:
    one = planned(plan_of(request, source(), table), table.table_id)
    assert one is not None
    return [(lost.version, lost.touch, str(lost.operation)) for lost in one.collateral]


COLUMNS = (Touch.SCHEMA, "change of columns")


def test_a_change_of_columns_is_listed_with_the_next_snapshot_even_if_its_rows_are_bad() -> None:
    b = altered(SnapshotTable(table_id="b").write(1, ("a", 1))).write(2, ("a", 2))
    assert changes(b) == [(2, *COLUMNS)]
    plan = plan_of(A_LOAD, source(), b)
    assert [one.message for _, one in plan.blockers()] == ["1 schema change of db.b would be lost."]
    agreed = replace(A_LOAD, consents=Consents.to(Consent.COLLATERAL))
    assert plan_of(agreed, source(), b).applicable


def test_a_change_of_columns_is_listed_with_a_compaction() -> None:
    assert changes(altered(derived()).compacted(3)) == [(3, *COLUMNS)]


def test_a_clean_commit_with_other_columns_is_lost_as_a_commit() -> None:
    assert changes(altered(derived()).write(3)) == [(3, Touch.CONTENT, "append")]


def test_a_change_of_columns_outlives_an_overwrite() -> None:
    b = altered(derived()).write(3).write(4, ("a", 2), operation=Operation.OVERWRITE, made="overwrite")
    assert changes(b) == [(3, *COLUMNS)]


def test_who_names_a_version_is_not_asked_about_columns_that_came_after_it() -> None:
    a = altered(SnapshotTable(table_id="a").write(1)).write(2)
    assert plan_of(A_LOAD, a).applicable
    marked = RollbackRequest(seeds=(BadVersions(table_id="a", versions=(2,)),))
    assert not plan_of(marked, a).applicable, "its columns are nobody's bad load"


def test_a_compaction_with_other_columns_is_more_than_maintenance() -> None:
    request = RollbackRequest(seeds=(ToVersion(table_id="a", version=2),))
    same = planned(plan_of(request, source().compacted(3)), "a")
    assert same is not None and same.step is Step.NONE
    other = planned(plan_of(request, altered(source()).compacted(3)), "a")
    assert other is not None and (other.to_version, other.step) == (2, Step.RESTORE)


def test_of_a_commit_that_nobody_has_decided_on_its_rows_are_asked_about_first() -> None:
    b = altered(derived()).write(3, operation=None)
    open_ = planned(plan_of(A_LOAD, source(), b), "b")
    assert open_ is not None and ([*open_.collateral], open_.unknown) == ([], (3,))
    for kind, touch in ((Consent.LOSE_UNKNOWN, Touch.SCHEMA), (Consent.KEEP_UNKNOWN, Touch.CONTENT)):
        one = planned(plan_of(replace(A_LOAD, consents=Consents.to(kind)), source(), b), "b")
        assert one is not None and [(lost.version, lost.touch) for lost in one.collateral] == [(3, touch)]


def test_where_the_parent_has_expired_older_snapshots_tell_whether_columns_changed() -> None:
    def cut(table: SnapshotTable) -> list[bool]:
        return [one.changes_columns for one in table.write(3).expire(2).commits]

    assert cut(derived()) == [False, False]
    assert cut(altered(derived())) == [False, True]
    assert cut(altered(SnapshotTable(table_id="b").write(1)).write(2)) == [False, True], "1 or 2 may tell"
