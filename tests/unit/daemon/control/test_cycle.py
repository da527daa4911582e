"""The cycle on fakes: what it writes, what it does not, and that nothing stops it."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from lakewarden.catalog.errors import FencedError, UnavailableError
from lakewarden.catalog.formats.files_elsewhere import READS_ELSEWHERE
from lakewarden.catalog.formats.port import Commit, LogProblem, Observation
from lakewarden.catalog.lineage.edges import NOT_KNOWN
from lakewarden.catalog.model.lineage_record import LineageInput, LineageRecord, Operation, RecordVerdict
from lakewarden.catalog.model.pending_conversion import Conversion
from lakewarden.catalog.model.rows import (
    Action,
    Column,
    Confidence,
    Finding,
    LineageRow,
    Outcome,
    PolicySettings,
    Severity,
    Source,
    TableState,
)
from lakewarden.catalog.registry.discovery import Candidate
from lakewarden.catalog.registry.governance import set_pause, set_policy
from lakewarden.catalog.state.port import Hint, HintKind, Result
from lakewarden.catalog.system.port import HEALTH, LINEAGE, SCHEMAS, TABLES, SystemTableName
from lakewarden.daemon.control.cycle_report import CycleReport
from lakewarden.daemon.control.run_recorder import DAEMON
from lakewarden.daemon.fleet.stores import IN_A_ROW
from lakewarden.daemon.telemetry.log import configure
from lakewarden.daemon.telemetry.webhook import EventKind
from support.builders.commits import counted
from support.builders.daemons import LEASE, World
from support.builders.tables import observation

DONE = Result(outcome=Outcome.SUCCEEDED, message="done", committed_version=1)
OLD = timedelta(days=9)


@pytest.fixture
def world() -> World:
    return World()


def settle(world: World) -> None:
    """Sweep and work until there is nothing left to do."""
    for _ in range(20):
        report = world.sweep()
        if report.idle:
            return
        while world.work(Result(outcome=Outcome.SKIPPED, message="nothing to do")) is not None:
            pass
    pytest.fail(f"it never came to rest: {report.sentence()}")


def test_ten_idle_sweeps_make_no_commit(world: World) -> None:
    world.add("db.a")
    settle(world)
    before = len(world.store.commits)
    reports = [world.sweep() for _ in range(10)]
    assert world.store.commits[before:] == []
    assert all(report.idle for report in reports)
    assert reports[-1].sentence().startswith("Looked at 8 tables, none changed; nothing due; took ")


def test_a_restart_makes_no_commit_either(world: World) -> None:
    world.add("db.a")
    settle(world)
    before = len(world.store.commits)
    world.restart()
    world.sweep()
    world.sweep()
    assert world.store.commits[before:] == []


def test_a_row_of_an_older_lakewarden_is_looked_at_by_the_first_sweep_though_nothing_moved(
    world: World,
) -> None:
    row, clone = world.add("db.a"), world.add("db.clone")
    settle(world)
    assert world.row("db.clone").properties == {READS_ELSEWHERE: ""}
    source = world.reader.tables[clone.location or ""]
    assert isinstance(source, Observation)
    world.reader.tables[clone.location or ""] = replace(source, elsewhere=(row.location or "",))
    old = replace(world.row("db.clone"), properties={})
    world.store.edit(TABLES, lambda _: [old], because="an older lakewarden wrote it")
    world.restart()
    world.sweep()
    assert world.row("db.clone").properties == {READS_ELSEWHERE: row.location}
    reads = world.reader.reads
    assert world.sweep().idle and world.reader.reads == reads


def test_one_whose_log_cannot_be_read_counts_as_looked_at(world: World) -> None:
    row = world.add("db.a")
    world.reader.tables[row.location or ""] = LogProblem(check="log_readable", message="Commit 1 is garbage.")
    world.sweep()
    assert world.row("db.a").properties == {READS_ELSEWHERE: ""}


def test_a_moved_table_is_read_once_and_written_in_one_commit_per_table(world: World) -> None:
    rows = [world.add(f"db.t{number}") for number in range(9)]
    settle(world)
    reads, before = world.reader.reads, len(world.store.commits)
    for row in rows:
        world.write(row, files=11)
    report = world.sweep()
    assert (report.changed, world.reader.reads - reads) == (9, 9)
    assert [name for name, _ in world.store.commits[before:]] == [SystemTableName.HEALTH]
    assert {world.health(row.name).files for row in rows} == {11}


def test_a_broken_table_is_quarantined_told_and_released_when_repaired(world: World) -> None:
    row, other = world.add("db.a"), world.add("db.b")
    settle(world)
    good = world.reader.tables[row.location or ""]
    assert isinstance(good, Observation)
    world.reader.tables[row.location or ""] = LogProblem(check="log_readable", message="Commit 1 is garbage.")
    world.sweep()
    assert world.row("db.a").state is TableState.QUARANTINED
    assert [(one.kind, one.name) for one in world.told.events] == [(EventKind.QUARANTINED, "db.a")]
    reads = world.reader.reads
    world.sweep()
    assert world.reader.reads == reads, "a broken log is not read again by every sweep"
    world.reader.tables[row.location or ""] = replace(good, version=2)
    world.sweep()
    assert world.row("db.a").state is TableState.ACTIVE
    assert world.row(other.name).state is TableState.ACTIVE
    assert len(world.told.events) == 1


@pytest.mark.parametrize(
    ("dropped", "state"),
    [
        pytest.param(False, TableState.QUARANTINED, id="lost"),
        pytest.param(True, TableState.DROPPED, id="dropped by its users"),
    ],
)
def test_a_table_that_vanishes(world: World, dropped: bool, state: TableState) -> None:
    row = world.add("db.a")
    settle(world)
    if dropped:
        world.inspector.dropped_names.add("db.a")
    del world.reader.tables[row.location or ""]
    world.sweep()
    assert world.row("db.a").state is state
    before = len(world.store.commits)
    world.sweep()
    assert world.store.commits[before:] == []


def test_storage_that_does_not_answer_concludes_nothing_and_stops_nobody(world: World) -> None:
    away, fine = world.add("db.a"), world.add("db.b")
    settle(world)
    world.reader.down.add(away.location or "")
    world.write(fine, files=12)
    report = world.sweep()
    assert (report.skipped, report.changed, report.trouble) == (1, 1, None)
    assert world.row("db.a").state is TableState.ACTIVE


def test_an_unexpected_error_in_one_table_stops_nobody(world: World) -> None:
    odd, fine = world.add("db.a"), world.add("db.b")
    settle(world)
    world.reader.broken[odd.location or ""] = ZeroDivisionError("a bug")
    world.write(fine, files=12)
    report = world.sweep()
    assert (report.skipped, report.changed, report.trouble) == (1, 2, None)
    assert world.health(fine.name).files == 12


def test_due_work_is_queued_once_recorded_once_and_not_planned_again(world: World) -> None:
    row = world.add("db.a")
    world.write(row, tombstones=5, tombstone_bytes=500, oldest_tombstone_at=world.clock.now() - OLD)
    assert world.sweep().queued == 1
    assert world.sweep().queued == 0
    run = world.work(DONE)
    assert run is not None and run.request.action is Action.VACUUM
    world.write(row, tombstones=0, oldest_tombstone_at=None)
    report = world.sweep()
    assert [one.run_id for one in report.recorded] == [run.request.run_id]
    assert (report.queued, world.queue.finished(9)) == (0, ())
    (recorded,) = world.runs()
    assert (recorded.outcome, recorded.committed_version) == (Outcome.SUCCEEDED, 1)
    assert recorded.payload == run.request.payload
    assert world.sweep().idle


def test_a_restarted_daemon_remembers_what_runs_came_to(world: World) -> None:
    row = world.add("db.a")
    world.write(row, tombstones=5, tombstone_bytes=500, oldest_tombstone_at=world.clock.now() - OLD)
    world.sweep()
    world.work(Result(outcome=Outcome.SKIPPED, message="all protected"))
    world.sweep()
    world.restart()
    assert world.sweep().queued == 0


def test_a_run_that_finishes_while_the_cycle_looks_is_not_planned_twice(world: World) -> None:
    row = world.add("db.a")
    world.write(row, tombstones=5, tombstone_bytes=500, oldest_tombstone_at=world.clock.now() - OLD)
    world.sweep()
    listen = world.cycle.parts.ears.listen

    def finish_meanwhile() -> object:
        world.work(DONE)
        return listen()

    world.cycle.parts.ears.listen = finish_meanwhile  # type: ignore[method-assign,assignment]  # between record and plan
    assert world.sweep().queued == 0
    assert len(world.runs()) == 0
    world.cycle.parts.ears.listen = listen  # type: ignore[method-assign]  # as it was
    assert world.sweep().queued == 0
    assert len(world.runs()) == 1


def test_a_lost_run_is_settled_by_the_tables_log(world: World) -> None:
    row = world.add("db.a")
    world.write(row, tombstones=5, tombstone_bytes=500, oldest_tombstone_at=world.clock.now() - OLD)
    world.sweep()
    run = world.queue.claim("w", LEASE)
    assert run is not None and world.queue.start(run.request.run_id, "w", LEASE)
    commit = counted(
        version=2, committed_at=world.clock.now(), operation="VACUUM END", run_id=run.request.run_id
    )
    world.reader.history[row.location or ""] = [commit]
    world.clock.advance(LEASE)
    assert world.sweep().reaped == 1
    (recorded,) = world.runs()
    assert (recorded.outcome, recorded.committed_version) == (Outcome.SUCCEEDED, 2)
    [line] = world.run_log.read(run.request.run_id)
    assert (line.level, "outcome=succeeded" in line.message) == ("info", True)
    assert "Its worker was lost after it had committed version 2." in line.message


def test_a_run_lost_without_a_commit_is_tried_again_and_at_last_abandoned(world: World) -> None:
    row = world.add("db.a")
    world.write(row, tombstones=5, tombstone_bytes=500, oldest_tombstone_at=world.clock.now() - OLD)
    world.sweep()
    for attempt in (1, 2, 3):
        run = world.queue.claim("w", LEASE)
        assert run is not None and run.request.attempt == attempt
        world.clock.advance(LEASE)
        assert world.sweep().reaped == 1
        world.clock.advance(timedelta(minutes=2))
    (recorded,) = world.runs()
    assert (recorded.outcome, recorded.attempt) == (Outcome.ABANDONED, 3)
    lines = [one.message for one in world.run_log.read(recorded.run_id)]
    assert lines[:2] == ["run lost: attempt 2 follows", "run lost: attempt 3 follows"]
    assert lines[2:] == ["run settled outcome=abandoned message=Its worker was lost in 3 attempts."]
    assert [one.kind for one in world.told.events] == [EventKind.RUN_FAILED]


def test_a_vacuum_beyond_its_breaker_asks_for_consent(world: World) -> None:
    row = world.add("db.a")
    world.write(row, tombstones=5, tombstone_bytes=500, oldest_tombstone_at=world.clock.now() - OLD)
    world.sweep()
    asks = Result(
        outcome=Outcome.FAILED,
        error_class="ConsentError",
        message="It would delete 90%.",
        hint="Add --consent.",
    )
    world.work(asks)
    world.sweep()
    (event,) = world.told.events
    assert (event.kind, event.owner, event.hint) == (EventKind.CONSENT_NEEDED, "ana", "Add --consent.")
    assert world.sweep().queued == 0


def test_schema_changes_are_recorded_with_stable_ids(world: World) -> None:
    row = world.add("db.a")
    settle(world)
    columns = (Column(id=1, path="b", type="string"), Column(id=2, path="a", type="long"))
    world.write(row, schema=columns)
    world.sweep()
    first, second = sorted(world.store.rows(SCHEMAS).find(table_id=row.table_id), key=lambda one: one.version)
    assert {one.path: one.id for one in first.columns} == {"a": 1}
    assert {one.path: one.id for one in second.columns} == {"a": 1, "b": 2}


def test_requests_in_table_properties_are_taken_once(world: World) -> None:
    row = world.add("db.a")
    settle(world)
    world.write(row, properties={"lakewarden.vacuum.retention": "9 days"})
    world.sweep()
    assert world.row("db.a").policy.vacuum_retention_seconds == 9 * 86_400
    world.sweep()
    before = len(world.store.commits)
    world.sweep()
    assert world.store.commits[before:] == []


def test_a_rewound_request_changes_nothing(world: World) -> None:
    row = world.add("db.a")
    settle(world)
    world.write(row, properties={"lakewarden.vacuum.retention": "9 days"})
    world.reader.history[row.location or ""] = [
        counted(version=1, committed_at=world.clock.now(), operation="RESTORE")
    ]
    world.sweep()
    assert world.row("db.a").policy.vacuum_retention_seconds is None


def test_a_changed_policy_is_judged_at_once(world: World) -> None:
    row = world.add("db.a")
    settle(world)
    finding = Finding(
        check="retention_properties", severity=Severity.WARNING, message="Too short.", since=world.clock.now()
    )
    world.inspector.also["db.a"] = (finding,)
    world.sweep()
    assert world.health("db.a").findings == ()
    changed = replace(world.row("db.a"), updated_at=world.clock.now() + timedelta(seconds=1))
    world.store.edit(TABLES, lambda _: [changed], because="policy")
    report = world.sweep()
    assert world.health(row.name).findings == (finding,)
    assert report.queued == 1


def test_a_policy_that_changes_nothing_is_on_record_as_looked_at_once(world: World) -> None:
    world.add("db.a")
    settle(world)
    world.clock.advance(timedelta(seconds=1))
    set_policy(world.cycle.parts.desk, "db.a", {"vacuum.retention": 30 * 86_400}, actor=DAEMON)
    before = len(world.store.commits)
    for _ in range(5):
        world.sweep()
        world.restart()
    assert [name for name, _ in world.store.commits[before:]] == [SystemTableName.HEALTH]
    assert world.health("db.a").observed_at > world.row("db.a").updated_at


def test_the_policy_of_a_scope_is_judged_at_once_its_pause_is_not(world: World) -> None:
    for name in ("db.a", "db.b", "other.c"):
        world.add(name)
    settle(world)
    desk, reads = world.cycle.parts.desk, world.reader.reads
    set_pause(desk, "db.*", "a look around", actor=DAEMON)
    world.sweep()
    set_pause(desk, "db.*", None, actor=DAEMON)
    world.sweep()
    assert world.reader.reads == reads
    set_policy(desk, "db.*", {"vacuum.retention": 30 * 86_400}, actor=DAEMON)
    for _ in range(3):
        world.sweep()
    assert world.reader.reads == reads + 2


def test_hints_about_known_tables_make_it_look_and_unknown_ones_are_adopted(world: World) -> None:
    world.add("db.a")
    settle(world)
    location = "file:///lake/new"
    world.reader.tables[location] = observation(location, world.clock.now())
    now = world.clock.now()
    world.inbox.put(
        [
            Hint(hint_id="1", subject="db.a", kind=HintKind.ALTERED, at=now),
            Hint(hint_id="2", subject=location, kind=HintKind.CREATED, at=now),
            Hint(hint_id="3", subject="file:///lake/nothing", kind=HintKind.CREATED, at=now),
        ]
    )
    reads = world.reader.reads
    report = world.sweep()
    assert (report.adopted, world.inbox.claim(9)) == (1, ())
    assert world.reader.reads > reads
    adopted = world.row("default.new")
    assert (adopted.source, adopted.state) == (Source.DISCOVER, TableState.ACTIVE)


def test_a_table_that_a_governed_write_changed_is_looked_at_by_the_next_cycle(world: World) -> None:
    row = world.add("db.a")
    settle(world)
    reads = world.reader.reads
    now = world.clock.now()
    world.inbox.put([Hint(hint_id="1", subject=row.location or "", kind=HintKind.WRITTEN, at=now)])
    world.sweep()
    assert world.reader.reads > reads and world.inbox.claim(9) == ()


def test_discovery_adopts_on_its_own_beat_only(world: World) -> None:
    location = "file:///lake/found"
    world.reader.tables[location] = observation(location, world.clock.now())
    world.found.append(Candidate(where=location, location=location))
    assert world.sweep().adopted == 0
    assert world.sweep(discover=True).adopted == 1
    assert world.sweep(discover=True).adopted == 0


def test_what_discovery_finds_is_adopted_in_slices_between_cycles(world: World) -> None:
    for number in range(450):
        location = f"file:///lake/found{number}"
        world.reader.tables[location] = observation(location, world.clock.now())
        world.found += [Candidate(where=location, location=location), None]
    del world.reader.tables["file:///lake/found7"]
    before = world.store.rows(TABLES).version
    reports = [world.sweep(discover=not number) for number in range(4)]
    assert [one.adopted for one in reports] == [199, 200, 50, 0]
    assert [one.searching for one in reports] == [True, True, False, False]
    assert not reports[1].idle
    assert "199 adopted; discovery goes on;" in reports[0].sentence()
    assert world.store.rows(TABLES).version <= before + 6, "a commit for each slice, and one for its sweep"


def test_a_search_that_fails_begins_anew_with_the_next_beat(world: World) -> None:
    early = "file:///lake/early"
    world.reader.tables[early] = observation(early, world.clock.now())

    def broken() -> Iterator[Candidate | None]:
        yield Candidate(where=early, location=early)
        raise UnavailableError("The metastore does not answer.")

    location = "file:///lake/found"
    world.reader.tables[location] = observation(location, world.clock.now())
    world.found.append(Candidate(where=location, location=location))
    calm = world.cycle.parts
    world.cycle.parts = replace(calm, discover=broken)
    configure(level="info", format="json")
    with capture_logs() as said:
        first = world.sweep(discover=True)
        assert (first.adopted, first.searching) == (1, False), "what it found before counts"
        assert not world.sweep(discover=True).searching
        world.cycle.parts = calm
        assert world.sweep().adopted == 0
        assert world.sweep(discover=True).adopted == 1
        world.sweep(discover=True)
    lines = [(one["log_level"], one["event"]) for one in said if "discovery" in one["event"]]
    assert lines == [
        ("warning", "discovery does not get through"),
        ("info", "discovery gets through again"),
    ], "one line when it begins, one when it is over"


def test_what_a_cycle_had_to_leave_out_is_in_its_report_with_the_first_reason(world: World) -> None:
    rows = [world.add(f"db.t{number}") for number in range(3)]
    settle(world)
    world.reader.down.update(row.location or "" for row in rows[:2])
    report = world.sweep()
    assert (report.trouble, report.skipped) == (None, 2)
    assert report.left_out is not None and "does not answer" in report.left_out
    assert report.left_out.startswith("db.t0: ") and report.left_out.endswith(" And 1 more.")
    world.reader.down.clear()
    assert world.sweep().left_out is None


def test_tables_whose_storage_is_away_are_said_once_when_it_begins_and_once_when_it_ends(
    world: World,
) -> None:
    places = [f"file:///lake/away{number}" for number in range(3)]
    for place in places:
        world.reader.tables[place] = observation(place, world.clock.now())
        world.found.append(Candidate(where=place, location=place))
    world.reader.down.update(places[:2])

    def lines(level: str) -> list[str]:
        with capture_logs() as said:
            world.sweep(discover=True)
        return [one["event"] for one in said if one["log_level"] == level and "adoption" in one["event"]]

    configure(level="info", format="json")
    with capture_logs() as said:
        assert world.sweep(discover=True).adopted == 1
    [begins] = [one for one in said if one["event"] == "adoption waits"]
    assert (begins["log_level"], begins["tables"], begins["first"]) == ("warning", "2 tables", places[0])
    assert "does not answer" in begins["problem"]
    assert lines("warning") == []
    world.reader.down.discard(places[0])
    assert lines("warning") == lines("info") == [], "one of them is away still"
    world.found.remove(Candidate(where=places[1], location=places[1]))
    assert lines("info") == ["adoption goes on"], "what is not found any more waits for nothing"
    assert lines("info") == lines("warning") == []


def test_a_store_that_is_away_is_hardly_asked_said_once_and_nothing_of_it_is_concluded(world: World) -> None:
    far = [world.add(f"db.far{number:02}", lake="s3://lake") for number in range(40)]
    near = world.add("db.near")
    settle(world)
    places = {row.location or "" for row in far}
    world.reader.down.update(places)
    world.reader.asked.clear()
    before = [world.health(row.name) for row in far]
    configure(level="info", format="json")

    def sweep() -> tuple[CycleReport, int, list[str]]:
        world.reader.asked.clear()
        with capture_logs() as said:
            report = world.sweep()
        lines = [one["event"] for one in said if "store" in one["event"] or one["event"] == "skipped"]
        return report, sum(one in places for one in world.reader.asked), lines

    world.write(near, files=12)
    report, asked, lines = sweep()
    assert (asked, lines) == (IN_A_ROW, ["skipped"] * IN_A_ROW + ["a store is away"])
    assert (report.skipped, report.changed, report.trouble) == (40, 1, None)
    assert report.left_out == "db.far00: The storage of s3://lake/db.far00 does not answer. And 39 more."
    assert world.health("db.near").files == 12
    for number in range(20):
        report, asked, lines = sweep()
        assert (asked, lines) == (int(number + 1 in (1, 2, 4, 8, 16)), [])
        assert (report.skipped, report.trouble) == (40, None)
        assert report.left_out == "db.far00: The storage of s3://lake/db.far00 does not answer. And 39 more."
    assert [world.health(row.name) for row in far] == before
    assert {world.row(row.name).state for row in far} == {TableState.ACTIVE}
    world.reader.down.clear()
    for row in far:
        world.write(row, files=13)
    world.clock.advance(timedelta(minutes=5))
    report, asked, lines = sweep()
    assert (report.skipped, report.left_out, lines) == (0, None, ["a store is back"])
    assert {world.health(row.name).files for row in far} == {13}


def test_tables_of_a_store_that_is_away_keep_the_daily_checks_from_no_other(world: World) -> None:
    for number in range(120):
        world.add(f"db.far{number:03}", lake="s3://lake")
    settle(world)
    world.reader.down.update(one for one in world.reader.tables if one.startswith("s3:"))
    world.add("db.near")
    world.clock.advance(timedelta(days=2))
    world.inspector.daily_looks.clear()
    for _ in range(3):
        world.sweep()
    assert "db.near" in world.inspector.daily_looks


def test_daily_checks_come_once_a_day(world: World) -> None:
    world.add("db.a")
    settle(world)
    assert world.inspector.daily_looks.count("db.a") == 1
    world.clock.advance(timedelta(days=1))
    world.sweep()
    world.sweep()
    assert world.inspector.daily_looks.count("db.a") == 2


def test_statistics_are_dated_when_their_run_is_recorded(world: World) -> None:
    row = world.add("db.a", files_without_statistics=3)
    world.sweep()
    run = world.work(DONE)
    assert run is not None and run.request.action is Action.STATISTICS
    world.write(row, files_without_statistics=0)
    world.sweep()
    assert world.health("db.a").last_statistics_at is not None
    assert world.sweep().idle


def test_a_stale_leader_stops_at_its_first_commit(world: World) -> None:
    row = world.add("db.a")
    settle(world)
    world.store.raise_fence("two", at_least=1)
    world.write(row, files=12)
    with pytest.raises(FencedError):
        world.sweep()
    assert world.health("db.a").files == 10


def test_nothing_is_planned_while_workers_may_still_report(world: World) -> None:
    row = world.add("db.a")
    world.write(row, tombstones=5, tombstone_bytes=500, oldest_tombstone_at=world.clock.now() - OLD)
    report = world.sweep(may_plan=False)
    assert (report.queued, report.idle) == (0, False)
    assert world.sweep().queued == 1


def test_a_conversion_just_asked_for_is_waited_for(world: World) -> None:
    settle(world)
    wanted = Conversion(location="file:///lake/db.raw", name="db.raw")
    asked = replace(
        world.add("db.raw"),
        state=TableState.CONVERTING,
        properties=wanted.as_properties(),
        registered_at=world.clock.now() + timedelta(seconds=25),
    )
    world.store.edit(TABLES, lambda _: [asked], because="test")
    report = world.sweep()
    assert (report.queued, report.idle) == (0, False)
    assert world.sweep().queued == 1


def test_the_system_tables_are_rows_with_health(world: World) -> None:
    settle(world)
    rows = [row for row in world.store.rows(TABLES).all() if row.source is Source.SELF]
    assert min(rows, key=lambda row: row.row).name == "lakewarden.tables" and len(rows) == 7
    assert {row.table_id for row in world.store.rows(HEALTH).all()} == {row.table_id for row in rows}


def test_every_version_of_a_moved_table_gets_its_lineage_once(world: World) -> None:
    row = world.add("db.a")
    place = row.location or ""
    inputs = (LineageInput(table_id="id-db.b", location="file:///lake/db.b", format="delta", version=7),)
    record = LineageRecord(run_id="r1", operation=Operation.APPEND, user="ana", inputs=inputs)

    def commit(version: int, lineage: LineageRecord | None) -> Commit:
        return counted(
            version=version,
            committed_at=world.clock.now(),
            operation="WRITE",
            parameters={"mode": "Append"},
            data_change=True,
            added_files=1,
            lineage=lineage,
            lineage_verdict=RecordVerdict.ABSENT if lineage is None else RecordVerdict.COMPLETE,
        )

    world.reader.history[place] = [commit(0, None)]
    world.sweep()
    world.write(row)
    world.reader.history[place].append(commit(1, record))
    world.sweep()
    world.restart()
    world.sweep()
    edges = [
        (one.output_version, one.input_id, one.input_version, one.confidence)
        for one in world.store.rows(LINEAGE).find(output_id=row.table_id)
    ]
    assert sorted(edges) == [
        (0, NOT_KNOWN, None, Confidence.HINT),
        (1, "id-db.b", 7, Confidence.COMMITTED),
    ]


def test_a_table_made_anew_gets_lineage_of_its_own_beside_its_predecessors(world: World) -> None:
    row = world.add("db.a")
    place = row.location or ""
    world.reader.history[place] = [
        counted(
            version=number,
            committed_at=world.clock.now(),
            operation="WRITE",
            data_change=True,
            format_id="old",
        )
        for number in range(3)
    ]
    world.write(row)
    world.write(row)
    world.sweep()
    before = len(world.store.rows(LINEAGE).all())
    world.reader.tables[place] = observation(place, world.clock.now(), version=0, format_id="new")
    world.reader.history[place] = [
        counted(
            version=0, committed_at=world.clock.now(), operation="WRITE", data_change=True, format_id="new"
        )
    ]
    for _ in range(2):
        world.sweep()
        world.restart()
    rows = world.store.rows(LINEAGE).all()
    assert len(rows) == before + 1
    assert sorted({one.output_format_id or "" for one in rows}) == ["new", "old"]


def test_a_source_keeps_removed_files_as_long_as_what_is_derived_from_it_promises(world: World) -> None:
    source = world.add("db.source")
    derived = world.add("db.derived", policy=PolicySettings(rollback_promise_seconds=30 * 86_400))
    place = derived.location or ""
    read = LineageInput(table_id=source.table_id, location=source.location or "", format="delta", version=0)
    record = LineageRecord(run_id="r1", operation=Operation.REPLACE, user="ana", inputs=(read,))
    world.write(source, tombstones=5, tombstone_bytes=500, oldest_tombstone_at=world.clock.now() - OLD)
    world.reader.history[place] = [
        counted(
            version=0,
            committed_at=world.clock.now(),
            operation="CREATE TABLE AS SELECT",
            data_change=True,
            added_files=1,
            lineage=record,
            lineage_verdict=RecordVerdict.COMPLETE,
        )
    ]
    for _ in range(2):
        assert world.sweep().queued == 0
        governed = world.cycle.parts.memory.governed()[source.table_id]
        assert governed.policy.vacuum_retention_seconds == 30 * 86_400
        assert governed.policy.held_by == "db.derived is derived from it and promises 30 days"
        world.restart()
    world.store.edit(TABLES, lambda _: [replace(derived, policy=PolicySettings())], because="test")
    assert world.sweep().queued == 1


def test_what_a_session_recorded_of_a_commit_does_not_hide_the_commit(world: World) -> None:
    row = world.add("db.a")
    world.reader.history[row.location or ""] = [
        counted(version=0, committed_at=world.clock.now(), operation="WRITE", data_change=True)
    ]
    seen = LineageRow(
        output_id=row.table_id,
        output_version=0,
        input_id="id-db.b",
        input_version=3,
        operation="append",
        confidence=Confidence.PLAN,
        recorded_at=world.clock.now(),
    )
    world.store.append(LINEAGE, [seen], because="test")
    world.sweep()
    found = {one.confidence for one in world.store.rows(LINEAGE).find(output_id=row.table_id)}
    assert found == {Confidence.PLAN, Confidence.HINT}
