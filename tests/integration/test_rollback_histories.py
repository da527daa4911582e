"""Random histories on real Delta tables, rolled back for real, compared row by row; for half of them somebody writes in
the middle. `LAKEWARDEN_REAL_HISTORIES=300` runs more."""

import os
import random
from collections import Counter
from pathlib import Path

import pytest

from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.model import RollbackState
from lakewarden.catalog.rollbacks import Rollback
from lakewarden.daemon.rollback import Rollbacks, rollbacks_of_services
from lakewarden.jobs.rollback.request import Consent, RollbackRequest, ToVersion
from lakewarden.jobs.rollback.values import Blocked, Step
from support.real_histories import ANA, FOREIGN, History, Meddler

pytestmark = pytest.mark.heavy

HISTORIES = int(os.environ.get("LAKEWARDEN_REAL_HISTORIES", "48"))
SEEN: Counter[str] = Counter()


def silent(_: str) -> None:
    """Nobody listens."""


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_what_a_rollback_gives_back_depends_on_nothing_bad_and_is_the_newest_such(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    history = History(tmp_path, chance)
    written_to = [name for name, versions in history.tables.items() if len(versions) > 1]
    seeded = min(chance.choice(written_to), chance.choice(written_to))  # rather one that others read
    version = chance.randrange(len(history.tables[seeded]) - 1)
    bad = history.bad_after(seeded, version)
    request = RollbackRequest(
        seeds=(ToVersion(table_id=history.ids[seeded], version=version),),
        cascade=True,
        consents=frozenset({Consent.COLLATERAL}),
    )
    rollbacks = rollbacks_of_services(history.services)
    plan = rollbacks.plan(request, actor=ANA).plan
    wanted = {name: history.newest_clean(name, bad) for name in history.tables}
    before = {name: history.rows(name) for name in history.tables}
    assert before == {name: versions[-1] for name, versions in history.tables.items()}
    blocked = {blocker.why for _, blocker in plan.blockers()}
    assert blocked == ({Blocked.BORN_TAINTED} if None in wanted.values() else set())
    acting = [one for one in plan.tables if one.step is Step.RESTORE]
    if blocked or not acting:
        SEEN["born tainted" if blocked else "nothing to do"] += 1
        return
    if seed % 2:
        meddled(history, rollbacks, plan.hash, chance.choice(acting).name.removeprefix("db."), chance, bad)
        return
    done = rollbacks.apply(plan.hash, actor=ANA, tell=silent)
    assert done.head.state is RollbackState.DONE
    assert {name: history.rows(name) for name in history.tables} == wanted
    undone = rollbacks.undo(done.rollback_id, actor=ANA, tell=silent)
    assert undone.head.state is RollbackState.COMPENSATED
    assert {name: history.rows(name) for name in history.tables} == before
    SEEN["rolled back and undone"] += 1
    SEEN["collateral"] += any(one.collateral for one in plan.tables)
    SEEN["cascaded"] += len(acting) > 1


def meddled(
    history: History, rollbacks: Rollbacks, plan: str, where: str, chance: random.Random, bad: frozenset[int]
) -> None:
    """Somebody appends to a table of the plan at some moment: their row stays, whatever becomes of the rollback."""
    engine = history.services.engine
    assert isinstance(engine, Meddler)
    engine.place, engine.turn = history.place(where), chance.randrange(3)
    ended = ending(rollbacks, plan)
    happened = engine.place is None
    engine.place = None
    assert ended.head.state in (RollbackState.DONE, RollbackState.CONFLICT), ended.head.message
    if ended.head.state is RollbackState.DONE:
        clean = [name for name in history.tables if not (happened and name == where)]
        assert not any(depends & bad for name in clean for _, depends in history.rows(name))
    else:
        SEEN["stopped"] += 1
        assert ended.head.message
        assert FOREIGN in written(history, where)
        try:
            rollbacks.undo(ended.rollback_id, actor=ANA, tell=silent)
        except LakewardenError:
            SEEN["undo stopped too"] += 1
    assert (FOREIGN in written(history, where)) is happened
    SEEN["with another writer"] += happened


def ending(rollbacks: Rollbacks, plan: str) -> Rollback:
    try:
        return rollbacks.apply(plan, actor=ANA, tell=silent)
    except LakewardenError:
        return rollbacks.journal.find(plan)


def written(history: History, name: str) -> set[int]:
    return {write for write, _ in history.rows(name)}


def test_every_kind_of_history_was_among_them() -> None:
    print(dict(SEEN))
    for what in ("rolled back and undone", "cascaded", "collateral", "with another writer", "stopped"):
        assert SEEN[what] >= 1, SEEN
