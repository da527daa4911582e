"""Random histories on real Delta tables that are mended:
bad files taken out, lost appends added again, tables set aside.
Then rolled back once more about another write, compared row by row. `LAKEWARDEN_REAL_HISTORIES=300` runs more."""

import os
import random
from collections import Counter
from pathlib import Path

import pytest

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.model.rows import RollbackState, TableState
from lakewarden.daemon.usecases.rollbacks.rollback import RollbackService, rollbacks_of_services
from lakewarden.jobs.rollback.plan.consents import Consent, Consents
from lakewarden.jobs.rollback.plan.model import RollbackPlan, Step, TablePlan
from lakewarden.jobs.rollback.plan.request import BadVersions, RollbackRequest
from support.cases import mostly_long
from support.histories.history_runs import Meddler, services_at
from support.histories.real_histories import ANA, History
from support.histories.scribes import Content, Kind
from support.histories.table_kinds import DeltaTables

pytestmark = pytest.mark.heavy

HISTORIES = int(os.environ.get("LAKEWARDEN_REAL_HISTORIES", "48")) // 4
SEEN: Counter[str] = Counter()
KINDS = {Kind.APPEND: 50, Kind.OVERWRITE: 30, Kind.AGAIN: 10, Kind.COMPACT: 10}
"""Whole rows come and go: so what has to be left can be said from the rows alone."""
AGREED = Consents.to(Consent.COLLATERAL, Consent.QUARANTINE_BORN_TAINTED)


def silent(_: str) -> None:
    """Nobody listens."""


def a_write(history: History, chance: random.Random) -> tuple[str, int, frozenset[int]]:
    """Some write: the table, the version that it made, its number."""
    made = [
        (name, version, one.made)
        for name, moments in history.tables.items()
        for version, one in enumerate(moments)
        if one.made is not None
    ]
    name, version, number = chance.choice(made)
    return name, version, frozenset({number})


def undo_one(history: History, name: str, version: int) -> RollbackRequest:
    seed = BadVersions(table_id=history.ids[name], versions=(version,))
    return RollbackRequest(seeds=(seed,), cascade=True, consents=AGREED, reapply=True)


def left(history: History, table: TablePlan, bad: frozenset[int]) -> Content:
    """What a table holds afterwards, by the plan's word and the history's: rows as they were, none twice."""
    versions = [one.rows for one in history.tables[table.name.removeprefix("db.")]]
    if table.step is Step.REMOVE_FILES:
        return tuple(row for row in versions[-1] if not row[1] & bad)
    if table.step is not Step.RESTORE or table.to_version is None:
        return versions[-1]
    again = {
        row
        for one in table.collateral
        if one.reapplied
        for row in set(versions[one.version]) - set(versions[one.version - 1])
    }
    return tuple(sorted([*versions[table.to_version], *again], key=lambda row: (row[0], sorted(row[1]))))


def by_order(content: Content) -> Content:
    return tuple(sorted(content, key=lambda row: (row[0], sorted(row[1]))))


@pytest.mark.parametrize("seed", mostly_long(range(HISTORIES), [0, 1]))
def test_what_is_mended_holds_every_clean_row_once_and_is_as_good_for_the_next_rollback(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(f"mended {seed}")
    services = services_at(tmp_path / "home", Meddler(SystemClock()))
    history = History(services, chance, (DeltaTables(str(tmp_path / "lake"), kinds=KINDS),))
    name, version, bad = a_write(history, chance)
    rollbacks = rollbacks_of_services(history.services)
    request = undo_one(history, name, version)
    offered = [one for one in rollbacks.plan(request, actor=ANA).plan.tables if one.undoable]
    chosen = frozenset(one.table_id for one in offered if chance.random() < 0.7)
    request = RollbackRequest(seeds=request.seeds, cascade=True, consents=AGREED, reapply=True, undo=chosen)
    plan = rollbacks.plan(request, actor=ANA).plan
    before = {one: history.rows(one) for one in history.tables}
    if not plan.waves():
        SEEN["nothing to do"] += 1
        return
    done = rollbacks.apply(plan.hash, actor=ANA, tell=silent)
    assert done.head.state is RollbackState.DONE, done.head.message
    aside = check(history, plan, bad)
    if seed % 2:
        acted = {one.name.removeprefix("db.") for one in plan.tables if one.acts}
        again(history, rollbacks, request, aside, chance)
        # What an overwrite had healed may be gone back behind by the next rollback; what was mended never is.
        for one in acted - aside:
            assert not any(depends & bad for _, depends in history.rows(one)), one
        return
    assert rollbacks.undo(done.rollback_id, actor=ANA, tell=silent).head.state is RollbackState.COMPENSATED
    assert {one: history.rows(one) for one in history.tables} == before
    states = {history.services.registry.get(table_id).state for table_id in history.ids.values()}
    assert states == {TableState.ACTIVE}


def check(history: History, plan: RollbackPlan, bad: frozenset[int]) -> frozenset[str]:
    """Every table is what it has to be. Returns the tables that were set aside, with their bad rows in them."""
    planned = {one.name.removeprefix("db."): one for one in plan.tables}
    aside = frozenset(name for name, one in planned.items() if one.step is Step.QUARANTINE)
    for name, moments in history.tables.items():
        wanted = left(history, planned[name], bad) if name in planned else moments[-1].rows
        assert by_order(history.rows(name)) == by_order(wanted), name
        assert name in aside or not any(depends & bad for _, depends in wanted), name
    for one in plan.tables:
        SEEN[one.step.value] += 1
        SEEN["added again"] += any(lost.reapplied for lost in one.collateral)
    return aside


def again(
    history: History,
    rollbacks: RollbackService,
    request: RollbackRequest,
    aside: frozenset[str],
    chance: random.Random,
) -> None:
    """The same is nothing to do any more; and another bad write is undone as exactly."""
    assert not rollbacks.plan(request, actor=ANA).plan.waves()
    mended = {one: history.rows(one) for one in history.tables}
    name, version, other = a_write(history, chance)
    plan = rollbacks.plan(undo_one(history, name, version), actor=ANA).plan
    if not plan.waves():
        return
    done = rollbacks.apply(plan.hash, actor=ANA, tell=silent)
    assert done.head.state is RollbackState.DONE, done.head.message
    now_aside = {one.name.removeprefix("db.") for one in plan.tables if one.step is Step.QUARANTINE}
    for one in history.tables.keys() - aside - now_aside:
        assert not any(depends & other for _, depends in history.rows(one)), one
    touched = {table.name.removeprefix("db.") for table in plan.tables if table.acts}
    for one in history.tables.keys() - touched - aside:
        assert not any(depends & other for _, depends in mended[one]), one
    for one in touched - now_aside:
        assert any(depends & other for _, depends in mended[one]), f"{one} was touched in vain"
    SEEN["rolled back once more"] += 1


@pytest.mark.long
def test_every_kind_of_mending_was_among_them() -> None:
    print(dict(SEEN))
    for what in ("remove_files", "added again", "quarantine", "restore", "rolled back once more"):
        assert SEEN[what] >= 1, SEEN
