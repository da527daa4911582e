"""A plain RESTORE: what it took back, and what is done about the tables derived from that."""

from dataclasses import replace

import pytest

from lakewarden.catalog.lineage.edges import rows_of
from lakewarden.catalog.lineage.restores import (
    RestoreCommit,
    informed,
    is_foreign_restore,
    restored_away,
    restores_of,
    still_undone,
    taken_back,
)
from lakewarden.catalog.lineage.versions import Version
from lakewarden.catalog.model.rollbacks import Undone, is_mark
from lakewarden.catalog.model.rows import Dependency, OnRollback, RollbackRow, RollbackState
from lakewarden.jobs.rollback.execute.table_steps import mark_of
from lakewarden.jobs.rollback.plan.cascade import Reaction, concerned, reaction, request_after, whole_request
from lakewarden.jobs.rollback.plan.facts import TableFacts
from lakewarden.jobs.rollback.plan.model import RollbackPlan
from support.builders.tables_by_hand import facts, history, plan
from support.histories.fleet_logs import NOW

SOURCE = history("create", "append", "append", "append", "RESTORE 1")
"""Versions 2 and 3 were taken back."""


@pytest.mark.parametrize(
    ("lines", "lost"),
    [
        pytest.param(["append", "append", "RESTORE 0"], (1, 2), id="what came after the target"),
        pytest.param(["append", "OPTIMIZE", "SET TBLPROPERTIES", "RESTORE 0"], (1,), id="only content"),
        pytest.param(["append", "RESTORE 0", "append"], (1,), id="with commits after it"),
        pytest.param(["append", "append", "RESTORE 0", "RESTORE 2"], (), id="restored to where it was"),
        pytest.param(["append", "append", "RESTORE 0", "RESTORE 1"], (2,), id="restored half-way"),
        pytest.param(["append", "RESTORE 0", "append", "RESTORE 0"], (1, 3), id="restored twice"),
        pytest.param(["append", "RESTORE 0", "append", "RESTORE 2"], (1, 3), id="to what it was restored to"),
        pytest.param(["append", "overwrite", "RESTORE 0"], (1, 2), id="an overwrite and what it replaced"),
        pytest.param(["append", "RESTORE"], (), id="nobody knows where it went"),
        pytest.param(["append", "RESTORE 0", "RESTORE"], (), id="and whether it brought that back"),
        pytest.param(["append", "RESTORE", "append", "append", "RESTORE 3"], (4,), id="known since then"),
        pytest.param(["append", "RESTORE", "append", "RESTORE 0"], (1, 3), id="gone, whichever way"),
    ],
)
def test_what_a_restore_took_back(lines: list[str], lost: tuple[int, ...]) -> None:
    log = history("create", *lines)
    assert taken_back(log, {one.version for one in log if is_foreign_restore(one)}) == lost


@pytest.mark.parametrize(
    ("lines", "away"),
    [
        pytest.param(["append", "append", "RESTORE 0", "append"], [(1, 2)], id="up to the restore"),
        pytest.param(["append", "append", "RESTORE 0", "RESTORE 2"], [], id="brought back"),
        pytest.param(["append", "append", "RESTORE 0", "RESTORE 1"], [(2, 2)], id="half of it brought back"),
        pytest.param(["append", "RESTORE 0", "append", "RESTORE 0"], [(1, 1), (3, 3)], id="twice"),
        pytest.param(["append", "RESTORE 0", "append", "RESTORE 2"], [(1, 1), (3, 3)], id="to a restore"),
        pytest.param(
            ["append", "RESTORE 0", "RESTORE 1", "RESTORE 0"], [(1, 1), (3, 3)], id="there and back"
        ),
        pytest.param(["append", "RESTORE"], [], id="nobody knows"),
    ],
)
def test_what_may_no_longer_be_read_after_a_restore(lines: list[str], away: list[tuple[int, int]]) -> None:
    """By numbers alone: it is for warnings, so it need not be as exact as a plan."""
    rows = [row for one in history("create", *lines) for row in rows_of("a", one, at=NOW)]
    found = restored_away(restores_of(rows), "db.a")
    assert sorted((one.first, one.last) for one in found) == away
    assert all(one.by.startswith("the RESTORE in version ") for one in found)


def test_a_rollback_is_no_longer_warned_of_where_somebody_restored_what_it_took_back() -> None:
    one = Undone(table_id="a", name="db.a", first=3, last=5, by="rollback r1", format_id="u1")

    def left(*restores: tuple[int, int | None]) -> list[tuple[int, int]]:
        told = [
            RestoreCommit(table_id="a", version=version, target=target, ours=False, format_id="u1")
            for version, target in restores
        ]
        return [(rest.first, rest.last) for rest in still_undone(one, told)]

    assert left((6, 2), (7, 1), (8, None)) == [(3, 5)], "only what was taken back can be brought back"
    assert left((5, 3)) == [(3, 5)], "that was before the rollback"
    assert (left((7, 4)), left((7, 5))) == ([(5, 5)], [])
    assert (left((7, 4), (8, 3)), left((7, 3), (8, 4))) == ([(5, 5)], [(5, 5)])


def test_what_is_on_record_of_a_restore_tells_where_it_went() -> None:
    log = history("create", "append", "append", "RESTORE", "append")

    def lost(*on_record: tuple[int, int | None, str]) -> tuple[int, ...]:
        told = [
            RestoreCommit(table_id="a", version=version, target=target, ours=False, format_id=uuid)
            for version, target, uuid in on_record
        ]
        return taken_back(informed(log, told), {3})

    assert lost((3, 1, "u1")) == (2,)
    assert lost((3, 1, "u1"), (3, 0, "of its predecessor")) == (2,)
    assert lost() == lost((3, None, "u1")) == lost((3, 0, "of its predecessor")) == ()


def test_only_the_restores_asked_about_count_and_what_is_still_waiting() -> None:
    log = history("create", "append", "RESTORE 0", "append", "RESTORE 0", "append")
    assert taken_back(log, {4}) == (3,)
    assert taken_back(log, {4}, also={1, 5, 9}) == (1, 3), "5 is in head, 9 does not exist"
    assert taken_back((), {4}, also={1}) == ()


def test_a_log_that_begins_late_tells_what_it_has() -> None:
    assert taken_back(history("create", "append", "append", "append", "RESTORE 1")[2:], {4}) == (2, 3)


def test_the_restores_of_our_own_rollbacks_set_nothing_off() -> None:
    row = RollbackRow(
        rollback_id="r1",
        plan_hash="h",
        step=1,
        table_id="a",
        from_version=3,
        to_version=1,
        state=RollbackState.DONE,
        recorded_at=NOW,
    )
    assert is_mark(mark_of(row)) and is_mark(mark_of(row, undo=True)) and not is_mark(None)
    ours = replace(SOURCE[4], run_id=mark_of(row))
    assert not is_foreign_restore(ours) and taken_back((*SOURCE[:4], ours), {4}) == ()
    blind = history("create", "append", "RESTORE")
    logs = {"a": (*SOURCE[:4], ours), "b": SOURCE, "c": blind}
    found = list(
        restores_of(row for name, log in logs.items() for one in log for row in rows_of(name, one, at=NOW))
    )
    assert [(one.table_id, one.version, one.target, one.ours) for one in found] == [
        ("a", 4, 1, True),
        ("b", 4, 1, False),
        ("c", 2, None, False),
    ]
    assert restored_away(found[:1], "db.a") == ()


# what is done about it


def after(tables: dict[str, tuple[Version, ...]], *known: TableFacts, cascade: bool = False) -> RollbackPlan:
    request = request_after("a", taken_back(SOURCE, {4}))
    return plan(whole_request(request) if cascade else request, {"a": SOURCE, **tables}, *known)


def on_rollback(table_id: str, what: OnRollback, **more: object) -> TableFacts:
    return facts(table_id, dependencies=(Dependency(upstream="a", on_rollback=what),), **more)


BAD = history("create", "append <- a@3")


def test_the_restored_table_itself_stays_as_it_is() -> None:
    for cascade in (False, True):
        made = after({"b": BAD}, cascade=cascade)
        assert {one.table_id: one.acts for one in made.tables} == {"a": False, "b": cascade}


def test_nothing_that_holds_it_is_nothing_to_do() -> None:
    made = after(
        {"b": history("create", "append <- a@1"), "c": history("create", "append <- a@3", "RESTORE 0")}
    )
    assert reaction(made, able=True, tried=False) is Reaction.NOTHING


@pytest.mark.parametrize("what", [OnRollback.PLAN, OnRollback.BLOCK, None])
def test_without_cascade_there_is_a_plan_that_waits(what: OnRollback | None) -> None:
    known = [] if what is None else [on_rollback("b", what)]
    assert reaction(after({"b": BAD}, *known), able=True, tried=False) is Reaction.KEEP
    assert [one.table_id for one in concerned(after({"b": BAD}, *known, cascade=True))] == ["b"]


def test_cascade_is_done_where_nobody_has_to_agree() -> None:
    made = after({"b": BAD, "c": BAD}, on_rollback("b", OnRollback.CASCADE))
    assert reaction(made, able=True, tried=False) is Reaction.APPLY
    assert {one.table_id: one.acts for one in made.tables} == {"a": False, "b": True, "c": False}
    assert reaction(made, able=False, tried=False) is Reaction.KEEP, "one of the tables is quarantined"
    assert reaction(made, able=True, tried=True) is Reaction.KEEP, "it was undone on purpose, perhaps"


@pytest.mark.parametrize(
    ("tables", "known"),
    [
        pytest.param({"b": (*BAD, *history("create", "append", "append")[2:])}, {}, id="collateral"),
        pytest.param({"b": BAD}, {"hold": "case 4711"}, id="on hold"),
        pytest.param({"b": BAD}, {"paused": "incident"}, id="paused"),
        pytest.param({"b": BAD}, {"append_only": True}, id="append-only"),
        pytest.param({"b": history("create <- a@3")}, {}, id="born tainted"),
        pytest.param({"b": history("create", "append ?", "append <- a@3")}, {}, id="unknown"),
    ],
)
def test_cascade_waits_where_somebody_has_to_agree(
    tables: dict[str, tuple[Version, ...]], known: dict[str, object]
) -> None:
    made = after(tables, on_rollback("b", OnRollback.CASCADE, **known))
    assert reaction(made, able=True, tried=False) is Reaction.KEEP


def test_an_owner_who_wants_to_be_asked_holds_up_what_would_follow_by_itself() -> None:
    known = [on_rollback("b", OnRollback.CASCADE), on_rollback("c", OnRollback.BLOCK)]
    assert reaction(after({"b": BAD, "c": BAD}, *known), able=True, tried=False) is Reaction.KEEP


def test_a_restored_table_that_holds_it_by_a_detour_is_not_restored_by_itself() -> None:
    source = history("create", "append", "append", "append", "RESTORE 1", "append <- b@1")
    request = request_after("a", taken_back(source, {4}))
    made = plan(request, {"a": source, "b": BAD}, on_rollback("b", OnRollback.CASCADE))
    assert {one.table_id for one in made.tables if one.acts} == {"a", "b"}
    assert reaction(made, able=True, tried=False) is Reaction.KEEP
