"""Rollbacks of tables whose versions are no line: with branches, heads that were set back, snapshots that expired."""

import pytest

from lakewarden.catalog.lineage.marks import marked
from lakewarden.catalog.lineage.restores import remembered, taken_back
from lakewarden.catalog.model.rows import Mark, MarkVerdict
from lakewarden.jobs.rollback.journal.stored_plan import frozen_request
from lakewarden.jobs.rollback.plan.consents import Consent
from lakewarden.jobs.rollback.plan.model import Blocked, RollbackPlan, Step
from lakewarden.jobs.rollback.plan.request import BadVersions, RollbackRequest, ToVersion
from support.builders.iceberg_histories import NOW, SnapshotTable, graph_of, plan_of, planned, uuid_of


def to(version: int, table_id: str = "a") -> RollbackRequest:
    return RollbackRequest(seeds=(ToVersion(table_id=table_id, version=version),), cascade=True)


def bad(*versions: int, table_id: str = "a") -> RollbackRequest:
    return RollbackRequest(seeds=(BadVersions(table_id=table_id, versions=versions),), cascade=True)


def ways(plan: RollbackPlan) -> dict[str, tuple[int, int | None]]:
    return {one.table_id: (one.from_version, one.to_version) for one in plan.tables}


def why(plan: RollbackPlan) -> list[Blocked]:
    return [one.why for _, one in plan.blockers()]


# what was read, and is gone


def long() -> SnapshotTable:
    """Four snapshots of main."""
    return SnapshotTable(table_id="a").write(1).write(2).write(3).write(4)


def reader(version: int, table_id: str = "c", of: str = "a") -> SnapshotTable:
    """A table whose version 2 was made from that version."""
    return SnapshotTable(table_id=table_id).write(1).write(2, (of, version))


def test_what_was_made_from_a_version_that_main_has_left_and_that_expired_goes_back_with_the_others() -> None:
    a, c = long(), reader(4)
    recorded = (*a.rows, *c.rows)
    a.set_back(3).expire(4)
    assert ways(plan_of(to(1), a, c, recorded=recorded)) == {"a": (3, 1), "c": (2, 1)}


def test_so_does_what_was_made_from_a_branch_that_is_gone() -> None:
    a, c = SnapshotTable(table_id="a").write(1).write(2).write(3).write(4, branch="dev"), reader(4)
    recorded = (*a.rows, *c.rows)
    a.branches.clear()
    a.expire(4)
    assert ways(plan_of(to(1), a, c, recorded=recorded)) == {"a": (3, 1), "c": (2, 1)}


def test_a_version_that_is_gone_can_still_be_called_bad_and_stays_so_when_the_plan_is_made_again() -> None:
    a, c = long(), reader(4)
    recorded = (*a.rows, *c.rows)
    a.set_back(3).expire(4)
    plan = plan_of(bad(4), a, c, recorded=recorded)
    assert ways(plan) == {"a": (3, 3), "c": (2, 1)}
    again = plan_of(frozen_request(plan), a, c, recorded=recorded)
    assert ways(again) == ways(plan) and frozen_request(plan).seeds == bad(4).seeds


def test_of_a_version_that_nobody_ever_recorded_nobody_knows_what_it_held() -> None:
    a, c = long(), reader(4)
    a.set_back(3).expire(4)
    plan = plan_of(to(1), a, c, recorded=c.rows)
    one = planned(plan, "c")
    assert why(plan) == [Blocked.UNKNOWN] and one is not None and one.unknown == (2,)
    assert one.blocked_by[0].consents == (Consent.KEEP_UNKNOWN, Consent.LOSE_UNKNOWN)


def test_a_mark_on_a_version_that_is_gone_speaks_of_this_table_still() -> None:
    a = long().set_back(3).expire(4)

    def standing(of: str, *, branching: bool = True) -> tuple[int, ...]:
        mark = Mark(version=4, verdict=MarkVerdict.BAD, by="ana", at=NOW, format_id=uuid_of(of))
        return marked([mark], MarkVerdict.BAD, a.history, uuid_of("a"), branching=branching)

    assert (standing("a"), standing("b")) == ((4,), ())
    assert standing("a", branching=False) == (), "a log that only grows was put back"


def test_what_head_has_left_is_known_from_the_record_once_it_has_expired() -> None:
    a = long()
    recorded = a.rows
    a.set_back(2).expire(3, 4)
    assert taken_back(a.history, (), {3, 4}, head=2) == ()
    history = remembered(a.history, recorded, uuid_of("a"))
    assert taken_back(history, (), {3, 4}, head=2) == (3, 4)
    others = remembered(a.history, recorded, uuid_of("b"))
    assert others == a.history, "another table's rows"


def test_the_record_tells_what_was_made_from_what_where_the_log_has_forgotten_it() -> None:
    a = SnapshotTable(table_id="a").write(1).write(2).compacted(3).write(4, on=1)
    recorded = a.rows
    a.expire(1)
    told = {one.version: (one.parent, one.effect.name) for one in remembered(a.history, recorded, None)}
    assert told == {1: (None, "APPEND"), 2: (1, "APPEND"), 3: (2, "ALIAS"), 4: (1, "APPEND")}


# parents that have expired


def reloaded() -> SnapshotTable:
    """3 was bad: somebody set main back to 2, and loaded anew."""
    return SnapshotTable(table_id="a").write(1).write(2).write(3).set_back(2).write(4)


def test_what_was_thrown_away_is_not_restored_because_its_number_is_next() -> None:
    a = reloaded()
    recorded = a.rows
    a.expire(1, 2)
    plan = plan_of(bad(4), a, recorded=recorded)
    assert (ways(plan), why(plan)) == ({"a": (4, 2)}, [Blocked.UNREACHABLE])
    unrecorded = plan_of(bad(4), a)
    assert (ways(unrecorded), why(unrecorded)) == ({"a": (4, None)}, [Blocked.UNREACHABLE])


def test_what_was_thrown_away_taints_nothing_because_its_number_is_next() -> None:
    a, b, c = reloaded(), reader(3, "b"), reader(4)
    recorded = (*a.rows, *b.rows, *c.rows)
    a.expire(1, 2)
    assert ways(plan_of(bad(3), a, b, c, recorded=recorded)) == {"a": (4, 4), "b": (2, 1)}
    unrecorded = plan_of(bad(3), a, b, c)
    assert ways(unrecorded) == {"a": (4, 4), "b": (2, 1), "c": (2, 2)}
    assert why(unrecorded) == [Blocked.UNKNOWN, Blocked.UNKNOWN], "nobody knows what 4 was made from"


def test_a_line_that_ends_is_not_born_bad_though_another_line_begins_with_the_table() -> None:
    a = reloaded()
    a.tags["first"] = 1
    a.expire(2)
    plan = plan_of(bad(4), a)
    one = planned(plan, "a")
    assert one is not None and (one.to_version, one.step) == (None, Step.NONE)
    assert [(said.why, said.consents) for said in one.blocked_by] == [
        (Blocked.UNREACHABLE, (Consent.SKIP_UNREACHABLE,))
    ]


def test_after_an_expiry_nobody_is_asked_about_what_is_on_record() -> None:
    a = SnapshotTable(table_id="a").write(1).write(2)
    b = (
        SnapshotTable(table_id="b")
        .write(1, ("a", 1))
        .write(2, ("a", 1))
        .write(3, ("a", 1))
        .write(4, ("a", 2))
    )
    recorded = (*a.rows, *b.rows)
    plan = plan_of(to(1), a, b.expire(1, 2), recorded=recorded)
    assert (ways(plan), why(plan)) == ({"a": (2, 1), "b": (4, 3)}, [])
    assert why(plan_of(to(1), a, b)) == [Blocked.UNKNOWN], "nothing is on record of what 3 was made from"


def test_a_row_that_knows_no_parent_overrules_none_that_does() -> None:
    a = reloaded()
    before = a.rows
    after = a.expire(1, 2).rows
    for recorded in ((*before, *after), (*after, *before)):
        graph = graph_of([a], recorded)
        assert graph.versions[graph.parent(graph.head("a"))] == 2


# commits that are numbered after head


@pytest.mark.parametrize(("dev", "main"), [(3, 2), (2, 3)], ids=["after head", "before head"])
def test_an_unknown_commit_of_a_branch_counts_whatever_its_number(dev: int, main: int) -> None:
    a, b = SnapshotTable(table_id="a").write(1).write(2), SnapshotTable(table_id="b").write(1, ("a", 1))
    for number in sorted((dev, main)):
        if number == main:
            b.write(main, ("a", 2))
        else:
            b.write(dev, on=1, branch="dev", operation=None)
    plan = plan_of(to(1), a, b, reader(dev, of="b"))
    assert ways(plan) == {"a": (2, 1), "b": (main, 1), "c": (2, 2)}
    assert why(plan) == [Blocked.UNKNOWN]


def test_a_bad_commit_of_a_branch_is_told_of_whatever_its_number() -> None:
    a = SnapshotTable(table_id="a").write(1).write(2)
    b = SnapshotTable(table_id="b").write(1, ("a", 1)).write(2, ("a", 2), on=1, branch="dev").write(3)
    for head in (3, 1):
        one = planned(plan_of(to(1), a, b.set_back(head)), "b")
        assert one is not None and (one.from_version, one.tainted, one.step) == (head, (2,), Step.NONE)


# seeds


def test_what_main_never_had_is_no_seed_of_a_version_to_go_back_to() -> None:
    a = SnapshotTable(table_id="a").write(1).write(2, branch="dev").write(3)
    plan = plan_of(to(1), a, reader(2, "b"), reader(3))
    assert ways(plan) == {"a": (3, 1), "c": (2, 1)}


def test_what_main_had_is_a_seed_though_another_branch_has_it_still() -> None:
    came_over = SnapshotTable(table_id="a").write(1).write(2, branch="dev").set_back(2).write(3)
    assert ways(plan_of(to(1), came_over, reader(2))) == {"a": (3, 1), "c": (2, 1)}
    went = SnapshotTable(table_id="a").write(1).write(2, branch="dev").set_back(2).set_back(1).write(3)
    assert ways(plan_of(to(1), went, reader(2))) == {"a": (3, 1), "c": (2, 1)}, "the log of moves shows it"
    ours = SnapshotTable(table_id="a").write(1).write(2).restored(3, to=1, run_id="rollback-r-1").write(4)
    ours.branches["kept"], ours.moves = 2, []
    assert ways(plan_of(to(1), ours, reader(2))) == {"a": (4, 1), "c": (2, 1)}, "a rollback of ours tells it"


def test_what_was_published_by_a_copy_is_as_bad_as_the_copy_and_the_other_way_round() -> None:
    a = SnapshotTable(table_id="a").write(1).write(2, on=1, aside=True, operation=None, wap__id="w")
    a.write(3).write(4, operation=None, source_snapshot_id="200", published_wap_id="w")
    expected = {"a": (4, 3), "b": (2, 1), "c": (2, 1)}
    assert ways(plan_of(to(3), a, reader(2, "b"), reader(4))) == expected
    assert ways(plan_of(bad(2), a, reader(2, "b"), reader(4))) == expected
    assert ways(plan_of(to(3), a.expire(2), reader(4))) == {"a": (4, 3), "c": (2, 1)}


def test_what_was_staged_and_never_published_is_no_seed_of_a_version_to_go_back_to() -> None:
    a = SnapshotTable(table_id="a").write(1).write(2, on=1, aside=True, wap__id="w").write(3)
    assert ways(plan_of(to(1), a, reader(2))) == {"a": (3, 1)}


def test_a_version_on_a_way_that_main_has_left_is_gone_back_to_though_only_maintenance_came_later() -> None:
    a = SnapshotTable(table_id="a").write(1).write(2).set_back(1).compacted(3)
    assert ways(plan_of(to(2), a)) == {"a": (3, 2)}
    assert ways(plan_of(to(1), a)) == {"a": (3, 3)}, "nothing but maintenance came after it"
