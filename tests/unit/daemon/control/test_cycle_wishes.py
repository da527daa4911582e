"""What people ask for, on fakes: properties, policies, hints, and tables that are found."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.model.rows import (
    Finding,
    Severity,
    Source,
    TableState,
)
from lakewarden.catalog.registry.discovery import DiscoveredTable
from lakewarden.catalog.registry.governance import set_pause, set_policy
from lakewarden.catalog.state.port import Hint, HintKind
from lakewarden.catalog.system.port import TABLES, SystemTableName
from lakewarden.daemon.control.run_recorder import DAEMON
from lakewarden.daemon.telemetry.log import configure
from support.builders.commits import counted
from support.builders.daemons import World
from support.builders.tables import observation


def test_requests_in_table_properties_are_taken_once(world: World) -> None:
    row = world.add("db.a")
    world.settle()
    world.write(row, properties={"lakewarden.vacuum.retention": "9 days"})
    world.sweep()
    assert world.row("db.a").policy.vacuum_retention_seconds == 9 * 86_400
    world.sweep()
    before = len(world.store.commits)
    world.sweep()
    assert world.store.commits[before:] == []


def test_a_rewound_request_changes_nothing(world: World) -> None:
    row = world.add("db.a")
    world.settle()
    world.write(row, properties={"lakewarden.vacuum.retention": "9 days"})
    world.reader.history[row.location or ""] = [
        counted(version=1, committed_at=world.clock.now(), operation="RESTORE")
    ]
    world.sweep()
    assert world.row("db.a").policy.vacuum_retention_seconds is None


def test_a_changed_policy_is_judged_at_once(world: World) -> None:
    row = world.add("db.a")
    world.settle()
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
    world.settle()
    world.clock.advance(timedelta(seconds=1))
    set_policy(world.cycle.parts.registry, "db.a", {"vacuum.retention": 30 * 86_400}, actor=DAEMON)
    before = len(world.store.commits)
    for _ in range(5):
        world.sweep()
        world.restart()
    assert [name for name, _ in world.store.commits[before:]] == [SystemTableName.HEALTH]
    assert world.health("db.a").observed_at > world.row("db.a").updated_at


def test_the_policy_of_a_scope_is_judged_at_once_its_pause_is_not(world: World) -> None:
    for name in ("db.a", "db.b", "other.c"):
        world.add(name)
    world.settle()
    registry, reads = world.cycle.parts.registry, world.reader.reads
    set_pause(registry, "db.*", "a look around", actor=DAEMON)
    world.sweep()
    set_pause(registry, "db.*", None, actor=DAEMON)
    world.sweep()
    assert world.reader.reads == reads
    set_policy(registry, "db.*", {"vacuum.retention": 30 * 86_400}, actor=DAEMON)
    for _ in range(3):
        world.sweep()
    assert world.reader.reads == reads + 2


def test_hints_about_known_tables_make_it_look_and_unknown_ones_are_adopted(world: World) -> None:
    world.add("db.a")
    world.settle()
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
    world.settle()
    reads = world.reader.reads
    now = world.clock.now()
    world.inbox.put([Hint(hint_id="1", subject=row.location or "", kind=HintKind.WRITTEN, at=now)])
    world.sweep()
    assert world.reader.reads > reads and world.inbox.claim(9) == ()


def test_discovery_adopts_on_its_own_beat_only(world: World) -> None:
    location = "file:///lake/found"
    world.reader.tables[location] = observation(location, world.clock.now())
    world.found.append(DiscoveredTable(where=location, location=location))
    assert world.sweep().adopted == 0
    assert world.sweep(discover=True).adopted == 1
    assert world.sweep(discover=True).adopted == 0


@pytest.mark.heavy
def test_what_discovery_finds_is_adopted_in_slices_between_cycles(world: World) -> None:
    for number in range(450):
        location = f"file:///lake/found{number}"
        world.reader.tables[location] = observation(location, world.clock.now())
        world.found += [DiscoveredTable(where=location, location=location), None]
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

    def broken() -> Iterator[DiscoveredTable | None]:
        yield DiscoveredTable(where=early, location=early)
        raise UnavailableError("The metastore does not answer.")

    location = "file:///lake/found"
    world.reader.tables[location] = observation(location, world.clock.now())
    world.found.append(DiscoveredTable(where=location, location=location))
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
