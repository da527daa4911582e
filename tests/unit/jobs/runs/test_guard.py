"""Which standings forbid which actions: the guard's rules, one by one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lakewarden.catalog.errors import ConflictError, RevokedError
from lakewarden.catalog.formats.files_elsewhere import Look
from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.pending_purge import PURGE_AFTER, PURGE_HEAD, PURGE_UNKNOWN, PURGE_VERSION
from lakewarden.catalog.model.pending_quarantine import quarantined
from lakewarden.catalog.model.rollbacks import RollbackLock
from lakewarden.catalog.model.rows import Mode, PolicySettings, Source, TableRow, TableState
from lakewarden.catalog.policy.effective import DownstreamPromise
from lakewarden.catalog.policy.scopes import govern
from lakewarden.jobs.actions.answers import AnyAction
from lakewarden.jobs.actions.compact import Compact
from lakewarden.jobs.actions.convert import Convert
from lakewarden.jobs.actions.log_care import LogCare
from lakewarden.jobs.actions.metadata_care import MetadataCare
from lakewarden.jobs.actions.properties import SetProperties
from lakewarden.jobs.actions.purge import Purge
from lakewarden.jobs.actions.rollback import RollBack
from lakewarden.jobs.actions.statistics import RefreshStatistics
from lakewarden.jobs.actions.sync import SyncMetastore
from lakewarden.jobs.actions.vacuum import Vacuum
from lakewarden.jobs.actions.world import Standing
from lakewarden.jobs.runs.guard import RunGuard, refusal
from support.fakes.clock import ManualClock

NOW = datetime(2026, 11, 22, tzinfo=UTC)
HERE = "file:///lake/t"
DAY = 86_400
ROW = TableRow(
    row=9,
    table_id="t1",
    name="db.t",
    location=HERE,
    owner="ana",
    source=Source.CONVERT,
    registered_at=NOW,
    registered_by="ana",
    updated_at=NOW,
    updated_by="ana",
)
VACUUM = Vacuum(requires=Head(3), retention_seconds=30 * DAY)
CLEANING = LogCare(requires=Head(3), retention_seconds=400 * DAY, clean_before_version=3)
CHECKPOINT = LogCare(requires=Head(3), retention_seconds=400 * DAY)
COMPACT = Compact(requires=Head(3), target_bytes=1, min_small_files=2, quiet_seconds=0)
PURGE = Purge(requires=Head(3, "u@3@1"), files=1, bytes=1)
CONVERT = Convert(name=None, location=HERE)
ROLLBACK = RollBack(rollback_id="r1")
STATISTICS = RefreshStatistics(requires=Head(3), name=None)
PROPERTIES = SetProperties(requires=Head(3), properties=())
SYNC = SyncMetastore(requires=Head(3), name="db.t")
ACTIVE_ONLY = (VACUUM, CLEANING, CHECKPOINT, COMPACT, STATISTICS, PROPERTIES, SYNC)


def purging(**properties: str) -> TableRow:
    marks = {PURGE_AFTER: (NOW - timedelta(days=1)).isoformat(), PURGE_VERSION: "3", PURGE_HEAD: "u@3@1"}
    return replace(ROW, state=TableState.PURGING, properties=marks | properties)


OF_OLD = {PURGE_AFTER: (NOW - timedelta(days=1)).isoformat(), PURGE_VERSION: "3"}
"""What an older lakewarden wrote of a purge."""


def standing(row: TableRow, rollback_id: str | None = None) -> Standing:
    lock = None
    if rollback_id is not None:
        lock = RollbackLock(rollback_id=rollback_id, leads=True, waits=False, undo=False)
    return Standing(governed=govern(row, {}), rollback=lock)


def asked(
    action: AnyAction, row: TableRow = ROW, *, rollback: str | None = None, ordered: bool = True
) -> str:
    return refusal(standing(row, rollback), action, location=HERE, now=NOW, ordered=ordered) or "may"


@pytest.mark.parametrize("action", [*ACTIVE_ONLY, ROLLBACK], ids=lambda one: one.kind)
def test_an_active_table_that_stands_as_it_did_may_be_worked_on(action: AnyAction) -> None:
    assert asked(action) == "may" == asked(action, ordered=False)


def test_a_purge_may_go_on_when_its_grace_is_over_and_a_conversion_while_it_waits() -> None:
    assert asked(PURGE, purging()) == "may"
    assert asked(CONVERT, replace(ROW, state=TableState.CONVERTING)) == "may"


@pytest.mark.parametrize(
    "state", [one for one in TableState if one is not TableState.ACTIVE], ids=lambda one: one.value
)
@pytest.mark.parametrize("action", ACTIVE_ONLY, ids=lambda one: one.kind)
def test_maintenance_is_for_active_tables_alone(action: AnyAction, state: TableState) -> None:
    assert asked(action, replace(ROW, state=state, state_reason="so it is")) == f"is {state}: so it is"


@pytest.mark.parametrize("action", [*ACTIVE_ONLY, PURGE, CONVERT, ROLLBACK], ids=lambda one: one.kind)
def test_a_table_that_is_not_managed_or_not_there_any_more_is_left_alone(action: AnyAction) -> None:
    gone = refusal(None, action, location=HERE, now=NOW)
    assert gone == "is not managed any more"
    assert asked(action, replace(ROW, location="file:///new")) == "has moved to file:///new"


@pytest.mark.parametrize("action", [*ACTIVE_ONLY, ROLLBACK], ids=lambda one: one.kind)
def test_a_pause_stops_everything(action: AnyAction) -> None:
    assert asked(action, replace(ROW, paused="month end")) == "is paused (db.t: month end)"
    assert "is paused" in asked(PURGE, replace(purging(), paused="month end"))


@pytest.mark.parametrize(
    ("action", "forbidden"),
    [
        (VACUUM, True),
        (CLEANING, True),
        (ROLLBACK, True),
        (CHECKPOINT, False),
        (COMPACT, False),
        (SYNC, False),
    ],
    ids=["vacuum", "cleaning", "rollback", "checkpoint", "compact", "sync"],
)
def test_a_legal_hold_forbids_deletion_and_rewind(action: AnyAction, forbidden: bool) -> None:
    said = asked(action, replace(ROW, hold="case 4711"))
    assert said == ("is under legal hold (db.t: case 4711)" if forbidden else "may")
    assert "legal hold" in asked(PURGE, replace(purging(), hold="case 4711"))


@pytest.mark.parametrize("action", ACTIVE_ONLY, ids=lambda one: one.kind)
def test_a_rollback_keeps_others_away_but_not_itself(action: AnyAction) -> None:
    assert asked(action, rollback="r1") == "is held by rollback r1, which is not finished"
    assert (asked(ROLLBACK, rollback="r1"), asked(ROLLBACK, rollback="r2")) == (
        "may",
        "is held by rollback r2, which is not finished",
    )


@pytest.mark.parametrize(
    ("action", "row", "waits"),
    [
        (VACUUM, ROW, True),
        (CLEANING, ROW, True),
        (MetadataCare(requires=Head(3), retention_seconds=400 * DAY, clean=True), ROW, True),
        (PURGE, purging(), True),
        (CHECKPOINT, ROW, False),
        (MetadataCare(requires=Head(3), retention_seconds=400 * DAY, join=True), ROW, False),
        (COMPACT, ROW, False),
        (ROLLBACK, ROW, False),
    ],
    ids=["vacuum", "cleaning", "metadata", "purge", "checkpoint", "manifests", "compact", "rollback"],
)
def test_only_what_deletes_by_age_waits_for_lineage_to_be_read(
    action: AnyAction, row: TableRow, waits: bool
) -> None:
    unread = replace(standing(row), unread="db.x")
    said = refusal(unread, action, location=HERE, now=NOW)
    assert (said is not None and "what db.x was made from has not been read" in said) is waits


@pytest.mark.parametrize("action", [VACUUM, CLEANING], ids=["vacuum", "log care"])
def test_what_has_to_be_kept_longer_by_now_stops_a_deletion(action: AnyAction) -> None:
    longer = replace(ROW, policy=PolicySettings(rollback_promise_seconds=500 * DAY))
    assert asked(action, longer) == "has to keep more by now: 500 days"
    derived = standing(ROW)
    promise = DownstreamPromise(seconds=600 * DAY, name="db.d")
    policy = replace(derived.governed.policy, downstream=promise)
    kept = Standing(governed=replace(derived.governed, policy=policy))
    assert refusal(kept, action, location=HERE, now=NOW) == "has to keep more by now: 600 days"


def test_a_shorter_retention_stops_nothing() -> None:
    assert asked(VACUUM, replace(ROW, policy=PolicySettings(vacuum_retention_seconds=10 * DAY))) == "may"


@pytest.mark.parametrize(
    ("row", "because"),
    [
        (purging(**{PURGE_AFTER: (NOW + timedelta(days=1)).isoformat()}), "may not be deleted before"),
        (purging(**{PURGE_VERSION: "4"}), "was dropped again"),
        (purging(**{PURGE_HEAD: "v@3@1"}), "was dropped again"),
        (replace(purging(), properties=OF_OLD), "by an older lakewarden"),
        (purging(**{PURGE_UNKNOWN: "abc"}), "was dropped again"),
        (replace(ROW, state=TableState.DROPPED), "is dropped"),
        (ROW, "is active"),
    ],
    ids=["grace", "version", "head", "no head", "unknown files", "without purge", "undropped"],
)
def test_a_purge_is_for_what_was_agreed_to_alone(row: TableRow, because: str) -> None:
    assert because in asked(PURGE, row)


def test_a_table_that_this_rollback_set_aside_is_its_business_and_no_other_dropped_one() -> None:
    assert asked(ROLLBACK, quarantined(ROW, "r1", TableState.DROPPED)) == "may"
    assert asked(ROLLBACK, quarantined(ROW, "r1", TableState.QUARANTINED)) == "may"
    assert asked(ROLLBACK, quarantined(ROW, "r2", TableState.DROPPED)).startswith("is dropped")
    assert asked(ROLLBACK, purging()).startswith("is purging")


@pytest.mark.parametrize(
    ("action", "policy"),
    [
        (VACUUM, PolicySettings(mode=Mode.OBSERVE)),
        (PROPERTIES, PolicySettings(mode=Mode.OBSERVE)),
        (VACUUM, PolicySettings(vacuum_enabled=False)),
        (COMPACT, PolicySettings(compaction_enabled=False)),
        (STATISTICS, PolicySettings(statistics_enabled=False)),
        (CLEANING, PolicySettings(log_enabled=False)),
        (SYNC, PolicySettings(metastore_sync=False)),
    ],
)
def test_what_its_owner_switched_off_stops_what_was_planned_and_nothing_that_was_ordered(
    action: AnyAction, policy: PolicySettings
) -> None:
    assert "by now" in asked(action, replace(ROW, policy=policy), ordered=False)
    assert asked(action, replace(ROW, policy=policy)) == "may"


def test_the_guard_asks_the_claim_first_and_says_what_stopped() -> None:
    class Fixed:
        def of(self, table_id: str) -> Standing:
            return standing(replace(ROW, hold="case 4711"))

        def readers_of(self, location: str) -> tuple[TableRow, ...]:
            return ()

        def moved(self, look: Look) -> tuple[TableRow, ...]:
            return ()

    def lost() -> None:
        raise ConflictError("The lease was lost.")

    guard = RunGuard(
        action=VACUUM, standings=Fixed(), claim=lambda: None, clock=ManualClock(NOW), clocks=lambda: None
    )
    with pytest.raises(
        RevokedError, match=r"db\.t is under legal hold \(db\.t: case 4711\); the vacuum stopped"
    ):
        guard.ask("t1", "db.t", HERE)
    with pytest.raises(RevokedError, match=r"the rollback stopped") as stopped:
        replace(guard, action=RollBack(rollback_id="r1")).ask("t1", "db.t", HERE)
    assert "`lakewarden rollback resume r1`" in (stopped.value.hint or "")
    apart = replace(guard, standings=None, clocks=lost)
    with pytest.raises(ConflictError, match="lease"):
        apart.ask("t1", "db.t", HERE)
    with pytest.raises(TypeError, match="clocks"):  # nobody forgets them
        RunGuard(action=VACUUM, standings=None, claim=lambda: None, clock=ManualClock(NOW))  # type: ignore[call-arg]
    with pytest.raises(ConflictError, match="lease"):
        replace(guard, claim=lost).ask("t1", "db.t", HERE)
