"""Somebody restores a table by hand: what the daemon does about the tables that were derived from what is gone.

Real Delta tables and a daemon's real cycles, in this process or as a process whose workers need no Spark.
"""

import os
import shutil
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog.errors import ConsentError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.model.rows import Confidence, LineageRow, OnRollback, RollbackState, TableState
from lakewarden.catalog.model.unread_lineage import with_lineage_unread
from lakewarden.catalog.registry.governance import declare_dependency, set_pause, set_policy
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.catalog.system.port import AUDIT, HEALTH, LINEAGE, TABLES, Fence
from lakewarden.daemon.control.assembly import build_daemon
from lakewarden.daemon.control.cycle import Cycle
from lakewarden.daemon.control.restore_cascade import RestoreCascadeDriver
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.daemon.telemetry.webhook import Event, EventKind
from lakewarden.daemon.usecases.rollbacks.request import RollbackWish, request_of
from lakewarden.daemon.usecases.rollbacks.rollback import rollbacks_of_services
from lakewarden.daemon.usecases.status import status_of
from lakewarden.jobs.rollback.execute.saga import Saga
from lakewarden.jobs.rollback.execute.table_steps import StepExecutor
from lakewarden.jobs.rollback.journal.stored_plan import decode_plan
from support.builders.derived import head, ids, reading, write
from support.builders.rollback_messages import SAYS
from support.crashes.crashes import points_of
from support.fakes.engine import FakeEngine
from support.fakes.tools import OneFormat
from support.processes.house import ANA, House

FOLLOWS, WAITS, ASKS = OnRollback.CASCADE, OnRollback.PLAN, OnRollback.BLOCK


@dataclass
class Lake:
    """A source with a bad load in version 2 and what was derived from it, swept by daemons of this process."""

    house: House
    events: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.reads: dict[str, Path] = {}
        self.source = self.path("source")
        write(self.source, 1)
        write(self.source, 2)
        self.reads = {self.register("source"): self.source}
        self.good = {name: head(self.derive(name, 1, 2)) for name in ("first", "second")}
        write(self.source, 99)
        self.fence: Fence | None = None

    def path(self, name: str) -> Path:
        return self.house.folder / "lake" / name

    def register(self, name: str) -> str:
        place = self.path(name)
        return register(self.house.services.registry, str(place), actor=ANA, name=f"db.{name}").row.table_id

    def derive(self, name: str, *numbers: int) -> Path:
        """A job writes a table from the head of the source."""
        write(self.path(name), *numbers, reads=self.reads)
        return self.path(name)

    def declare(self, name: str, what: OnRollback) -> None:
        """The owner of a derived table, managed from now on, says what happens to it."""
        self.register(name)
        declare_dependency(self.house.services.registry, f"db.{name}", "db.source", what, actor=ANA)

    def restore(self, to: int, name: str = "source") -> None:
        """Somebody restores a table with a tool that knows nothing of us."""
        DeltaTable(str(self.path(name))).restore(to)

    def sweep(self, *, anew: bool = False) -> None:
        """One cycle of a daemon that has just started; `anew`: somebody has deleted the operational database, too."""
        if anew:
            for path in self.house.home.glob("state.db*"):
                path.unlink()
        services = type(self.house.services)(self.house.services.settings)
        parts = build_daemon(services, pages=False).parts.cycle.parts
        assert isinstance(parts.cascade_driver, RestoreCascadeDriver)
        parts.cascade_driver.notifier = self
        if self.fence is None:
            self.fence = services.store.raise_fence("test", at_least=1)
        # Who leads is not the question here: the fence alone is what every commit is made under.
        report = Cycle(replace(parts, require=lambda fence: None)).run(self.fence, may_plan=True)
        assert (report.trouble, report.skipped) == (None, 0)

    def tell(self, event: Event) -> None:
        self.events.append(event)

    def told(self) -> list[tuple[EventKind, str]]:
        return [(one.kind, one.name) for one in self.events]

    def journal(self) -> tuple[Rollback, ...]:
        return rollbacks_of_services(self.house.services).journal.all()

    def states(self) -> list[RollbackState]:
        return [one.head.state for one in self.journal()]

    def contents(self) -> list[list[int]]:
        return [ids(self.path(name)) for name in ("source", "first", "second")]

    def go_on(self, rollback_id: str) -> RollbackState:
        """Do what is left to do of a rollback, as a worker does."""
        services = self.house.services
        executor = StepExecutor(
            tools=OneFormat(DeltaReader(), FakeEngine(services.clock)), storage=lambda _: StorageOptions()
        )
        journal = rollbacks_of_services(services).journal
        return (
            Saga(journal=journal, executor=executor, undo_for=timedelta(days=7)).go_on(rollback_id).head.state
        )

    def findings(self, name: str) -> list[str]:
        """What is on record as made from what was taken back."""
        health = next(row for row in self.house.services.store.rows(HEALTH).all() if row.name == name)
        return [one.message for one in health.findings if one.check == "reads_reverted"]

    def record(self) -> list[str]:
        rows = self.house.services.store.rows(AUDIT).all()
        return [row.on for row in rows if row.audit_id.startswith("restored-")]


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    house = House(tmp_path)
    yield Lake(house)
    house.end()


@pytest.mark.parametrize("what", [WAITS, ASKS])
def test_a_plan_is_made_once_kept_and_told_whatever_is_deleted_or_restarted(
    lake: Lake, what: OnRollback
) -> None:
    lake.derive("first", 99)
    lake.declare("first", what)
    lake.restore(1)
    lake.sweep()
    (made,) = lake.journal()
    assert (made.head.state, made.head.actor) == (RollbackState.PLANNED, "lakewarden")
    plan = decode_plan(made.head.payload or "").plan
    assert [(one.name, one.from_version, one.to_version) for one in plan.tables if one.acts] == [
        ("db.first", 1, lake.good["first"])
    ]
    assert lake.told() == [(EventKind.PLAN_WAITS, "db.first")]
    message = lake.events[0].message
    assert "took back. Plan " + made.rollback_id in message and lake.events[0].owner == "ana"
    assert ("cannot be applied yet: db.first is derived" in message) == (what is ASKS)
    lake.sweep()
    assert lake.findings("db.first") == [
        "Version 1 was made from version 2 of db.source, which the RESTORE in version 3 took back."
    ]
    versions = lake.house.versions()
    lake.sweep(anew=True)
    lake.sweep()
    assert lake.house.versions() == versions, "nothing is written a second time"
    assert len(lake.events) == 1 and lake.contents()[0:2] == [[1, 2], [1, 2, 99]]


def test_the_plan_that_waits_does_the_rest_when_its_owner_applies_it(lake: Lake) -> None:
    lake.derive("first", 99)
    lake.declare("first", WAITS)
    lake.restore(1)
    lake.sweep()
    (made,) = lake.journal()
    rollbacks_of_services(lake.house.services).begin(made.rollback_id, actor=ANA)
    assert lake.go_on(made.rollback_id) is RollbackState.DONE
    assert lake.contents() == [[1, 2]] * 3
    assert [lake.house.operations(str(lake.path(name)))["RESTORE"] for name in ("source", "first")] == [1, 1]
    lake.sweep()
    assert lake.findings("db.first") == [] and len(lake.journal()) == 1, "what we restore sets nothing off"


def test_an_owner_who_wants_to_be_asked_is(lake: Lake) -> None:
    lake.derive("first", 99)
    lake.declare("first", ASKS)
    lake.restore(1)
    lake.sweep()
    (made,) = lake.journal()
    with pytest.raises(ConsentError, match="its owner wants to be asked") as raised:
        rollbacks_of_services(lake.house.services).begin(made.rollback_id, actor=ANA)
    assert "--agreed db.first" in raised.value.hint


@pytest.mark.few(1)
@pytest.mark.crash
@pytest.mark.parametrize(
    "point", points_of("test_a_table_that_follows_goes_back_by_itself_whatever_is_killed")
)
def test_a_table_that_follows_goes_back_by_itself_whatever_is_killed(lake: Lake, point: str) -> None:
    lake.derive("first", 99)
    lake.declare("first", FOLLOWS)
    lake.derive("second", 99)
    lake.declare("second", WAITS)
    lake.restore(1)
    with lake.house.daemon("idle", failpoint=point) as daemon:
        assert daemon.wait(120) == -signal.SIGKILL, lake.house.log()
    for path in lake.house.home.glob("state.db*"):
        path.unlink()  # the journal and the record of what was looked at are in the system tables
    assert lake.house.run_until_idle() == 0, lake.house.log()
    assert lake.contents() == [[1, 2], [1, 2], [1, 2, 99]]
    assert lake.house.operations(str(lake.source))["RESTORE"] == 1, "it is back already"
    assert lake.house.operations(str(lake.path("first")))["RESTORE"] == 1
    assert sorted(lake.states()) == [RollbackState.DONE, RollbackState.PLANNED]
    assert {one.head.actor for one in lake.journal()} == {"lakewarden"}
    assert lake.findings("db.first") == [] and len(lake.findings("db.second")) == 1
    assert len(lake.record()) == 1
    by_itself = [row for row in lake.house.services.store.rows(AUDIT).all() if row.on.startswith("apply ")]
    assert {(row.actor, row.origin) for row in by_itself} <= {("lakewarden", "daemon")}


def test_what_somebody_undid_on_purpose_is_not_done_again(lake: Lake) -> None:
    lake.derive("first", 99)
    lake.declare("first", FOLLOWS)
    lake.restore(1)
    lake.sweep()
    assert lake.states() == [RollbackState.INTENT] and lake.told() == [(EventKind.ROLLED_BACK, "db.first")]
    journal = rollbacks_of_services(lake.house.services).journal
    (begun,) = journal.all()
    lake.sweep()
    assert lake.record() == [], "what is under way comes to its end first"
    journal.save(begun.with_head(RollbackState.COMPENSATED), expects=RollbackState.INTENT, because="ana")
    lake.sweep()
    assert sorted(lake.states()) == [RollbackState.COMPENSATED, RollbackState.PLANNED]
    assert lake.contents()[1] == [1, 2, 99] and len(lake.record()) == 1


def test_what_cannot_go_back_without_consent_is_kept_and_told(lake: Lake) -> None:
    lake.derive("first", 99)
    write(lake.path("first"), 5)
    lake.declare("first", FOLLOWS)
    lake.restore(1)
    lake.sweep()
    assert lake.states() == [RollbackState.PLANNED] and lake.contents()[1] == [1, 2, 5, 99]
    assert (
        "cannot be applied yet: 1 clean commit of db.first (1 row) would be lost." in lake.events[0].message
    )


def test_nothing_goes_back_by_itself_while_everything_is_paused(lake: Lake) -> None:
    lake.derive("first", 99)
    lake.declare("first", FOLLOWS)
    set_pause(lake.house.services.registry, "*", "incident", actor=ANA)
    lake.restore(1)
    lake.sweep()
    assert lake.states() == [RollbackState.PLANNED]
    assert "db.first is paused" in lake.events[0].message


def test_a_table_that_is_restored_to_where_it_was_takes_the_plan_back(lake: Lake) -> None:
    lake.derive("first", 99)
    lake.declare("first", WAITS)
    lake.restore(1)
    lake.sweep()
    assert lake.states() == [RollbackState.PLANNED]
    lake.restore(2)
    lake.sweep()
    assert lake.states() == [] and len(lake.record()) == 2


def test_a_further_restore_makes_one_plan_about_all_that_is_gone(lake: Lake) -> None:
    write(lake.path("third"), 0)
    lake.restore(1)
    lake.derive("third", 1, 2)
    lake.restore(2)
    lake.derive("third", 99)
    lake.declare("third", WAITS)
    plans = []
    for target in (1, 0):
        lake.restore(target)
        lake.sweep()
        (made,) = lake.journal()
        plan = decode_plan(made.head.payload or "").plan
        plans.append(
            {one.name: (one.tainted, one.to_version) for one in plan.tables if one.name != "db.first"}
        )
    assert plans == [
        {"db.source": ((2,), 5), "db.third": ((2,), 1)},
        {"db.source": ((1, 2), 6), "db.third": ((1, 2), 0)},
    ]
    assert [one.name for one in lake.events] == ["db.third"] * 2


@pytest.mark.parametrize("trusts", [True, False], ids=["trusted", "not trusted"])
def test_what_only_an_executed_plan_showed_moves_a_table_if_its_policy_says_so(
    lake: Lake, trusts: bool
) -> None:
    write(lake.path("third"), 1)
    write_deltalake(str(lake.path("third")), pa.table({"id": pa.array([99], pa.int64())}), mode="append")
    lake.declare("third", FOLLOWS)
    registry = lake.house.services.registry
    row = registry.resolve("db.third")
    set_policy(registry, "db.third", {"rollback.trust_plans": trusts}, actor=ANA)
    seen = LineageRow(
        output_id=row.table_id,
        output_version=1,
        input_id=registry.resolve("db.source").table_id,
        input_version=2,
        operation="append",
        confidence=Confidence.PLAN,
        recorded_at=row.registered_at,
    )
    registry.store.append(LINEAGE, [seen], because="a session saw it")
    lake.restore(1)
    lake.sweep()
    if not trusts:
        assert lake.states() == [] and lake.told() == [(EventKind.PLAN_WAITS, "db.third")]
        assert "1 commit of db.third may have read something tainted" in lake.events[0].message
        return
    (begun,) = lake.journal()
    assert lake.go_on(begun.rollback_id) is RollbackState.DONE
    assert ids(lake.path("third")) == [1] and lake.told() == [(EventKind.ROLLED_BACK, "db.third")]


def test_who_read_a_table_across_its_replacement_is_found_though_it_was_made_anew_since(lake: Lake) -> None:
    place = lake.path("first")
    lake.derive("first", 99)
    lake.register("first")
    lake.sweep()
    DeltaTable.create(str(place), DeltaTable(str(place)).schema(), mode="overwrite")
    lake.sweep()
    row = lake.house.services.registry.resolve("db.first")
    said = reading({row.table_id: place})
    changes = replace(said, inputs=(replace(said.inputs[0], from_version=0),))
    write(lake.path("second"), 99, said=changes)
    shutil.rmtree(place)
    for number in (1, 2, 3, 4):
        write(place, number)
    lake.register("second")
    lake.restore(1)
    lake.sweep()
    (made,) = lake.journal()
    plan = decode_plan(made.head.payload or "").plan
    assert {one.name: (one.tainted, one.to_version) for one in plan.tables if one.acts} == {
        "db.second": ((1,), 0)
    }


def test_where_nothing_was_derived_nothing_is_made(lake: Lake) -> None:
    lake.declare("first", FOLLOWS)
    lake.restore(1)
    lake.sweep()
    assert (lake.states(), lake.events) == ([], [])
    assert lake.record() == ["RESTORE of db.source in version 3: nothing derived holds what it took back"]


def test_a_broken_table_is_left_to_people(lake: Lake) -> None:
    lake.derive("first", 99)
    lake.declare("first", FOLLOWS)
    Path(DeltaTable(str(lake.path("first"))).file_uris()[0].removeprefix("file://")).unlink()
    lake.restore(1)
    lake.sweep()
    assert lake.house.state_of("db.first") is TableState.QUARANTINED
    assert lake.states() == [RollbackState.PLANNED] and lake.told() == [(EventKind.PLAN_WAITS, "db.first")]


@pytest.mark.parametrize("on_record", [True, False], ids=["seen before", "never seen"])
def test_a_derived_table_that_cannot_be_read_waits_and_is_told_once(lake: Lake, on_record: bool) -> None:
    lake.derive("first", 99)
    lake.declare("first", FOLLOWS)
    lake.derive("second", 99)
    lake.declare("second", FOLLOWS)
    if on_record:
        lake.sweep()
    (lake.path("first") / "_delta_log" / f"{1:020d}.json").write_text("{")
    lake.restore(1)
    lake.sweep()
    assert lake.states() == [RollbackState.PLANNED], "what can be read waits for it"
    assert set(lake.told()) == {(EventKind.PLAN_WAITS, "db.first"), (EventKind.PLAN_WAITS, "db.second")}
    said = SAYS["unreadable table"] if on_record else SAYS["unreadable table, never seen"]
    assert f"cannot be applied yet: {said}" in lake.events[0].message
    lake.sweep()
    assert len(lake.events) == 2 and len(lake.record()) == 1


def test_what_lost_lineage_may_hide_keeps_a_restore_open_until_it_is_read(lake: Lake) -> None:
    lake.derive("first", 99)
    lake.declare("first", FOLLOWS)
    lake.derive("second", 99)
    lake.declare("second", FOLLOWS)
    lake.sweep()
    store = lake.house.services.store
    second = lake.house.services.registry.resolve("db.second")
    store.edit(
        LINEAGE, lambda _: (), delete=lambda rows: rows.find(output_id=second.table_id), because="lost"
    )
    unsaid = replace(second, dependencies=())
    marked = with_lineage_unread([unsaid], now=datetime.now(UTC), actor="root")
    store.edit(TABLES, lambda _: marked, because="repair")
    log = lake.path("second") / "_delta_log"
    log.rename(lake.path("aside"))
    lake.restore(1)
    lake.sweep()
    lake.sweep()
    assert lake.states() == [RollbackState.PLANNED] and lake.record() == []
    assert set(lake.told()) == {(EventKind.PLAN_WAITS, "db.first"), (EventKind.PLAN_WAITS, "db.second")}
    lake.path("aside").rename(log)
    lake.sweep()
    assert lake.states() == [RollbackState.INTENT], "it follows by itself"
    assert (EventKind.ROLLED_BACK, "db.first") in lake.told()


def test_a_slow_job_that_commits_after_a_rollback_is_flagged_until_the_rollback_is_undone(lake: Lake) -> None:
    lake.register("first")
    slow = reading(lake.reads)
    rollbacks = rollbacks_of_services(lake.house.services)
    wanted = RollbackWish(where="db.source", version=1)
    made = rollbacks.plan(request_of(lake.house.services.registry, wanted), actor=ANA).plan.hash
    rollbacks.begin(made, actor=ANA)
    assert (lake.go_on(made), ids(lake.source)) == (RollbackState.DONE, [1, 2])
    write(lake.path("first"), 99, said=slow)
    lake.sweep()
    message = f"Version 1 was made from version 2 of db.source, which rollback {made} took back."
    assert lake.findings("db.first") == [message]
    assert status_of(lake.house.services).reads_reverted == 1
    lake.sweep(anew=True)
    assert lake.findings("db.first") == [message]
    undoing = rollbacks.journal.get(made).with_head(RollbackState.UNDOING, undo=True)
    rollbacks.journal.save(undoing, expects=RollbackState.DONE, because="test")
    assert lake.go_on(made) is RollbackState.COMPENSATED
    lake.sweep()
    assert lake.findings("db.first") == [] and lake.states() == [RollbackState.COMPENSATED]


def restore_by_time(lake: Lake, version: int) -> None:
    """Somebody restores the source to the time of a version: the commit does not say which it was."""
    commits = sorted((lake.source / "_delta_log").glob("*.json"))
    begin = commits[0].stat().st_mtime - 60 * len(commits)
    for number, path in enumerate(commits):  # delta-rs goes by the times of these files: a minute between two
        os.utime(path, (begin + 60 * number, begin + 60 * number))
    DeltaTable(str(lake.source)).restore(datetime.fromtimestamp(begin + 60 * version + 30, UTC))


def test_a_restore_by_time_sets_off_what_one_by_version_does(lake: Lake) -> None:
    lake.derive("first", 99)
    lake.declare("first", FOLLOWS)
    restore_by_time(lake, 1)
    lake.sweep()
    assert (lake.states(), lake.told()) == ([RollbackState.INTENT], [(EventKind.ROLLED_BACK, "db.first")])
    (begun,) = lake.journal()
    assert lake.go_on(begun.rollback_id) is RollbackState.DONE
    assert lake.contents() == [[1, 2]] * 3


def test_a_restore_by_time_whose_log_is_gone_is_told_to_the_owner(lake: Lake) -> None:
    lake.derive("first", 99)
    lake.declare("first", FOLLOWS)
    restore_by_time(lake, 1)
    DeltaTable(str(lake.source)).create_checkpoint()
    for version in range(3):
        (lake.source / "_delta_log" / f"{version:020d}.json").unlink()
    lake.sweep()
    assert lake.contents()[1] == [1, 2, 99]
    assert (lake.states(), lake.told()) == ([], [(EventKind.PLAN_WAITS, "db.source")])
    assert "the log no longer tells to which version it went" in lake.events[0].message
    lake.sweep()
    assert len(lake.events) == 1


def put_back(lake: Lake, version: int) -> None:
    """Somebody puts back an older copy of the source's log."""
    for path in (lake.source / "_delta_log").glob("*.json"):
        if int(path.stem) > version:
            path.unlink()


def plan_to(lake: Lake, version: int) -> set[str]:
    """The tables that a cascading rollback of the source would take back."""
    wish = request_of(
        lake.house.services.registry, RollbackWish(where="db.source", version=version, cascade=True)
    )
    plan = rollbacks_of_services(lake.house.services).plan(wish, actor=ANA).plan
    return {one.name for one in plan.tables if one.acts}


@pytest.mark.few(2)
@pytest.mark.parametrize("seen", ["as it was put back", "only after it was written on"])
@pytest.mark.parametrize("reader", ["seen before", "committed before, seen after"])
def test_versions_of_a_log_that_was_put_back_are_not_those_with_the_same_numbers(
    lake: Lake, seen: str, reader: str
) -> None:
    for name in ("first", "second"):
        lake.register(name)
    lake.sweep()
    lake.derive("first", 99)
    if reader == "seen before":
        lake.sweep()
    put_back(lake, 1)
    if seen == "as it was put back":
        lake.sweep()
    write(lake.source, 3)
    lake.derive("second", 3)
    for _ in range(2):
        lake.sweep()
    message = "Version 1 was made from version 2 of db.source, which moving head back to version 1 took back."
    assert (lake.findings("db.first"), lake.findings("db.second")) == ([message], [])
    write(lake.source, 4)
    lake.sweep(anew=True)
    assert (lake.findings("db.first"), lake.findings("db.second"), lake.findings("db.source")) == (
        [message],
        [],
        [],
    )
    assert plan_to(lake, 1) == {"db.source", "db.second"}


def test_a_restore_in_a_log_that_was_put_back_is_another_one_though_it_has_the_same_number(
    lake: Lake,
) -> None:
    lake.derive("first", 99)
    lake.declare("first", FOLLOWS)
    lake.restore(1)
    lake.sweep()
    (begun,) = lake.journal()
    assert lake.go_on(begun.rollback_id) is RollbackState.DONE
    lake.sweep()
    assert len(lake.record()) == 1
    put_back(lake, 2)
    lake.derive("second", 99)
    lake.declare("second", WAITS)
    lake.restore(1)
    lake.sweep()
    (made,) = (one for one in lake.journal() if one.head.state is RollbackState.PLANNED)
    plan = decode_plan(made.head.payload or "").plan
    assert {one.name for one in plan.tables if one.acts} == {"db.second"}
    lake.sweep()
    versions = lake.house.versions()
    lake.sweep()
    lake.sweep()
    assert lake.house.versions()["audit"] == versions["audit"], "it was looked at"


@pytest.mark.parametrize("version", [0, 1])
def test_what_a_lost_version_was_made_from_is_known(lake: Lake, version: int) -> None:
    write(lake.path("third"), 5)
    lake.derive("third", 99)
    lake.register("third")
    lake.sweep()
    put_back(lake, 1)
    write(lake.source, 3)
    lake.sweep()
    assert plan_to(lake, version) == {"db.source"} | ({"db.third"} if version == 0 else set())


def test_a_log_that_was_copied_without_its_times_is_the_same(lake: Lake) -> None:
    lake.derive("first", 99)
    lake.register("first")
    lake.sweep()
    before = lake.house.services.store.rows(LINEAGE).all()
    later = datetime.now(UTC).timestamp() + 60
    for path in (lake.source / "_delta_log").glob("*.json"):
        os.utime(path, (later, later))
    write(lake.source, 3)
    lake.sweep()
    assert lake.findings("db.first") == []
    assert set(before) <= set(lake.house.services.store.rows(LINEAGE).all())


def test_a_sweep_that_ends_between_lineage_and_health_is_made_good(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.derive("first", 99)
    for name in ("first", "second"):
        lake.register(name)
    lake.sweep()
    put_back(lake, 1)
    write(lake.source, 3)
    lake.derive("second", 3)
    with monkeypatch.context() as patch:
        patch.setattr(FleetCache, "wrote_lineage", lambda *_: 1 / 0)
        with pytest.raises(AssertionError, match="ZeroDivisionError"):
            lake.sweep()
    for _ in range(2):
        lake.sweep()
    assert len(lake.findings("db.first")) == 1
    assert plan_to(lake, 1) == {"db.source", "db.second"}
    rows = [one for one in lake.house.services.store.rows(LINEAGE).all() if one.output_version == 2]
    assert {(one.output_format_id or "").count("~") for one in rows} == {0, 1}
