"""What stands against an action is the same for the plan and for the run that acts, as long as nothing changes."""

from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest

from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.pending_purge import PURGE_AFTER, PURGE_HEAD, PURGE_VERSION
from lakewarden.catalog.model.rollbacks import RollbackLock
from lakewarden.catalog.model.rows import GONE, Mode, PolicySettings, TableState
from lakewarden.catalog.policy.scopes import govern
from lakewarden.jobs.actions.action_refusals import Acting, ActionRefusal, Planning, refusals
from lakewarden.jobs.actions.answers import AnyAction, WhyNot
from lakewarden.jobs.actions.compact import Compact
from lakewarden.jobs.actions.convert import Convert
from lakewarden.jobs.actions.log_care import LogCare
from lakewarden.jobs.actions.metadata_care import MetadataCare
from lakewarden.jobs.actions.properties import SetProperties
from lakewarden.jobs.actions.purge import Purge
from lakewarden.jobs.actions.registry import SPECS, spec_of
from lakewarden.jobs.actions.rollback import RollBack
from lakewarden.jobs.actions.statistics import RefreshStatistics
from lakewarden.jobs.actions.sync import SyncMetastore
from lakewarden.jobs.actions.vacuum import Vacuum
from lakewarden.jobs.actions.world import Standing
from support.builders.worlds import NOW, row

ACTIONS: tuple[AnyAction, ...] = (
    Compact(requires=Head(3), target_bytes=1, min_small_files=2, quiet_seconds=0),
    Convert(name=None, location="file:///lake/db/t"),
    LogCare(requires=Head(3), retention_seconds=1),
    MetadataCare(requires=Head(3), retention_seconds=1),
    Purge(requires=Head(3, "u@3@1"), files=1, bytes=1),
    RefreshStatistics(requires=Head(3), name=None),
    RollBack(rollback_id="r1"),
    SetProperties(requires=Head(3)),
    SyncMetastore(requires=Head(3), name="db.t"),
    Vacuum(requires=Head(3), retention_seconds=1),
)
AGREED = {PURGE_AFTER: (NOW - timedelta(days=1)).isoformat(), PURGE_VERSION: "3", PURGE_HEAD: "u@3@1"}
OFF = PolicySettings(
    compaction_enabled=False,
    log_enabled=False,
    metastore_sync=False,
    statistics_enabled=False,
    vacuum_enabled=False,
)
POLICIES = (PolicySettings(), PolicySettings(mode=Mode.OBSERVE), OFF)


def standings(state: TableState, policy: PolicySettings, lock: RollbackLock | None) -> list[Standing]:
    """A table that is free, paused, on hold, and both."""
    base = row(state=state, policy=policy, properties=AGREED)
    rows = [replace(base, paused=paused, hold=hold) for paused, hold in product((None, "p"), (None, "h"))]
    return [Standing(governed=govern(one, {}), rollback=lock) for one in rows]


@pytest.mark.parametrize("action", ACTIONS, ids=lambda one: one.kind)
def test_what_may_be_planned_may_be_done(action: AnyAction) -> None:
    own = RollbackLock(rollback_id="r1", leads=True, waits=False, undo=False)
    allowed = 0
    for state, policy, lock in product(TableState, POLICIES, (None, own)):
        if isinstance(action, RollBack) and state in GONE:
            continue  # its rule asks the journal, which says whether it has set the table aside itself
        for standing in standings(state, policy, lock):
            planned = next(refusals(standing, spec_of(action), Planning()), None)
            acting = Acting(action=action, now=NOW, ordered=False)
            if planned is None:
                allowed += 1
                assert next(refusals(standing, spec_of(action), acting), None) is None, standing
    assert allowed


@pytest.mark.parametrize("action", ACTIONS, ids=lambda one: one.kind)
def test_what_is_not_asked_for_by_anybody_stops_at_the_quiet_hours(action: AnyAction) -> None:
    spec, policy = spec_of(action), PolicySettings(quiet_hours="08:00-18:00")
    one = row(state=spec.of_state or TableState.ACTIVE, policy=policy, properties=AGREED)
    standing = Standing(governed=govern(one, {}))

    def told(hour: int, *, ordered: bool) -> list[WhyNot]:
        acting = Acting(action=action, now=NOW.replace(hour=hour), ordered=ordered)
        return [one.why for one in refusals(standing, spec, acting)]

    assert (WhyNot.QUIET_HOURS in told(9, ordered=False)) == (not spec.asked_for)
    assert WhyNot.QUIET_HOURS not in [*told(7, ordered=False), *told(9, ordered=True)]


def test_there_is_one_of_each_action() -> None:
    assert sorted(one.kind for one in ACTIONS) == sorted(SPECS)


def test_everything_that_stands_against_an_action_is_told_the_most_final_first() -> None:
    lock = RollbackLock(rollback_id="r2", leads=True, waits=False, undo=False)
    off = row(state=TableState.DROPPED, state_reason="by bea", paused="p", hold="h", policy=OFF)
    standing = Standing(governed=govern(off, {}), rollback=lock)
    vacuum = Vacuum(requires=Head(3), retention_seconds=1)
    found = list(refusals(standing, spec_of(vacuum), Acting(action=vacuum, now=NOW, ordered=False)))
    assert found == [
        ActionRefusal(why=WhyNot.NOT_ACTIVE, said="is dropped: by bea", planned="the table is dropped"),
        ActionRefusal(why=WhyNot.PAUSED, said="is paused (db.t: p)", planned="paused by db.t: p"),
        ActionRefusal(why=WhyNot.ON_HOLD, said="is under legal hold (db.t: h)", planned="held by db.t: h"),
        ActionRefusal(
            why=WhyNot.ROLLBACK,
            said="is held by rollback r2, which is not finished",
            planned="rollback r2 of it is not finished",
        ),
        ActionRefusal(
            why=WhyNot.DISABLED,
            said="is not to be touched by now: its policy switched the vacuum off",
            planned="vacuum.enabled = no",
        ),
    ]
