"""What a hint told is kept until somebody could act on it."""

from dataclasses import replace
from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from lakewarden.catalog.errors import MetastoreAwayError
from lakewarden.catalog.metastore.port import Entry
from lakewarden.catalog.state.port import Hint, HintKind
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.telemetry.log import configure
from support.builders.daemons import World
from support.builders.tables import observation
from support.fakes.metastore import FakeMetastore

PLACE = "file:///lake/new"


def hinted(world: World, *places: str, kind: HintKind = HintKind.CREATED) -> None:
    for place in places:
        world.reader.tables.setdefault(place, observation(place, world.clock.now()))
        hint_id = f"{place} {world.clock.now()}"
        world.inbox.put([Hint(hint_id=hint_id, subject=place, kind=kind, at=world.clock.now())])


def managed(world: World, place: str = PLACE) -> bool:
    return bool(world.store.rows(TABLES).find(location=place))


def waiting(world: World) -> list[str]:
    return [hint.subject for hint in world.inbox.claim(1_000_000)]


def test_a_table_whose_storage_is_away_for_a_moment_is_adopted_later_and_the_outage_said_once(
    world: World,
) -> None:
    world.settle()
    hinted(world, PLACE)
    hinted(world, PLACE)
    world.reader.down.add(PLACE)
    configure(level="info", format="json")
    with capture_logs() as said:
        for _ in range(3):
            assert world.sweep().adopted == 0
        assert waiting(world) == [PLACE], "one of each place is enough"
        world.reader.down.clear()
        assert world.sweep().adopted == 1
    assert managed(world) and waiting(world) == []
    told = [(one["log_level"], one["event"]) for one in said if "hint" in one["event"]]
    assert told == [("warning", "what a hint told of waits"), ("info", "no hint waits any more")]


def test_what_is_no_table_is_not_kept(world: World) -> None:
    world.settle()
    world.inbox.put([Hint(hint_id="1", subject=PLACE, kind=HintKind.CREATED, at=world.clock.now())])
    assert world.sweep().adopted == 0
    assert waiting(world) == []


def test_a_managed_table_that_a_hint_told_of_is_looked_at_as_soon_as_it_answers(world: World) -> None:
    row = world.add("db.a")
    world.settle()
    hinted(world, "db.a", kind=HintKind.ALTERED)
    world.reader.down.add(row.location or "")
    reads = world.reader.reads
    for _ in range(2):
        world.sweep()
    assert world.reader.reads == reads
    world.reader.down.clear()
    for _ in range(2):
        world.sweep()
    assert world.reader.reads == reads + 1


def test_places_that_stay_away_cost_their_time_once_in_a_cycle_and_keep_no_other_waiting(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.settle()
    places = [f"file:///lake/new{number}" for number in range(5)]
    hinted(world, *places)
    world.reader.down.update(places)
    asked: list[str] = []
    is_table = world.reader.is_table

    def noted(place: str) -> bool:
        asked.append(place)
        return is_table(place)

    monkeypatch.setattr(world.reader, "is_table", noted)
    world.sweep()
    assert set(asked) == set(places)
    for place in places:
        asked.clear()
        world.sweep()
        assert set(asked) == {place}
    world.reader.down.remove(places[1])
    hinted(world, PLACE)
    assert world.sweep().adopted == 1 and managed(world)
    assert world.sweep().adopted == 1 and managed(world, places[1])


def test_what_does_not_answer_for_a_day_is_given_up(world: World) -> None:
    world.settle()
    hinted(world, PLACE)
    world.reader.down.add(PLACE)
    world.sweep()
    world.clock.advance(timedelta(days=1))
    configure(level="info", format="json")
    with capture_logs() as said:
        world.sweep()
    assert [one["place"] for one in said if one["event"] == "given up"] == [PLACE]
    assert waiting(world) == []


def test_kept_hints_take_no_room_from_others(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakewarden.daemon.control.hints._BATCH", 1)
    world.settle()
    hinted(world, PLACE)
    world.reader.down.add(PLACE)
    world.sweep()
    hinted(world, "file:///lake/another")
    assert world.sweep().adopted == 1
    assert waiting(world) == [PLACE]


@pytest.fixture
def metastore(world: World) -> FakeMetastore:
    """One that the daemon listens to, with an entry for a table that it does not manage."""
    made = FakeMetastore()
    made.create_database("db")
    hints, reaper = world.cycle.parts.hints, world.cycle.parts.reaper
    hints._metastore = made
    registry = replace(reaper.registry, metastore=made)
    world.cycle.parts = replace(world.cycle.parts, registry=registry)
    world.settle()
    world.reader.tables[PLACE] = observation(PLACE, world.clock.now())
    entry = Entry(database="db", table="new", location=PLACE, provider="delta", table_type="EXTERNAL_TABLE")
    made.create(entry)
    return made


@pytest.mark.usefixtures("metastore")
def test_what_the_metastore_told_is_kept_while_the_tables_storage_is_away(world: World) -> None:
    world.reader.down.add(PLACE)
    for _ in range(2):
        assert world.sweep().adopted == 0
    assert waiting(world) == ["db.new"]
    world.reader.down.clear()
    assert world.sweep().adopted == 1 and managed(world)
    assert waiting(world) == []


def test_what_the_metastore_told_is_kept_while_it_does_not_name_the_table(
    world: World, metastore: FakeMetastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(database: str, table: str) -> Entry | None:
        raise MetastoreAwayError("The metastore does not answer.")

    with monkeypatch.context() as patched:
        patched.setattr(metastore, "get", away)
        assert world.sweep().adopted == 0
    assert world.sweep().adopted == 1 and managed(world)


@pytest.mark.usefixtures("metastore")
def test_news_of_a_cycle_that_fails_is_heard_by_the_next(world: World) -> None:
    parts = world.cycle.parts

    def lost(fence: object) -> None:
        raise MetastoreAwayError("The database does not answer.")

    world.cycle.parts = replace(parts, require=lost, adopt=False)
    assert world.sweep().trouble == "The database does not answer."
    world.cycle.parts = parts
    assert world.sweep().adopted == 1 and managed(world)
