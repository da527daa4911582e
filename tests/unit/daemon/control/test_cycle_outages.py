"""A cycle on fakes whose tables or stores do not answer: it goes on, says it once and concludes nothing."""

from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from lakewarden.catalog.errors import FencedError, MetastoreAwayError
from lakewarden.catalog.model.rows import (
    TableState,
)
from lakewarden.catalog.registry.discovery import DiscoveredTable
from lakewarden.daemon.control.cycle_report import CycleReport
from lakewarden.daemon.fleet.stores import IN_A_ROW
from lakewarden.daemon.telemetry.log import configure
from support.builders.daemons import World
from support.builders.tables import observation


def test_storage_that_does_not_answer_concludes_nothing_and_stops_nobody(world: World) -> None:
    away, fine = world.add("db.a"), world.add("db.b")
    world.settle()
    world.reader.down.add(away.location or "")
    world.write(fine, files=12)
    report = world.sweep()
    assert (report.skipped, report.changed, report.trouble) == (1, 1, None)
    assert world.row("db.a").state is TableState.ACTIVE


def test_an_unexpected_error_in_one_table_stops_nobody(world: World) -> None:
    odd, fine = world.add("db.a"), world.add("db.b")
    world.settle()
    world.reader.broken[odd.location or ""] = ZeroDivisionError("a bug")
    world.write(fine, files=12)
    report = world.sweep()
    assert (report.skipped, report.changed, report.trouble) == (1, 2, None)
    assert world.health(fine.name).files == 12


def test_what_a_cycle_had_to_leave_out_is_in_its_report_with_the_first_reason(world: World) -> None:
    rows = [world.add(f"db.t{number}") for number in range(3)]
    world.settle()
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
        world.found.append(DiscoveredTable(where=place, location=place))
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
    world.found.remove(DiscoveredTable(where=places[1], location=places[1]))
    assert lines("info") == ["adoption goes on"], "what is not found any more waits for nothing"
    assert lines("info") == lines("warning") == []


def test_a_store_that_is_away_is_hardly_asked_said_once_and_nothing_of_it_is_concluded(world: World) -> None:
    far = [world.add(f"db.far{number:02}", lake="s3://lake") for number in range(40)]
    near = world.add("db.near")
    world.settle()
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


def test_a_metastore_that_does_not_answer_keeps_nobody_from_other_tables_of_a_store(world: World) -> None:
    far = [world.add(f"db.far{number:02}", lake="s3://lake") for number in range(40)]
    world.settle()
    for row in far[:20]:
        world.reader.broken[row.location or ""] = MetastoreAwayError("The metastore does not answer.")
    for row in far[20:]:
        world.write(row, files=12)
    report = world.sweep()
    assert (report.skipped, report.changed, report.trouble) == (20, 20, None)
    assert {world.row(row.name).state for row in far} == {TableState.ACTIVE}


def test_tables_of_a_store_that_is_away_keep_the_daily_checks_from_no_other(world: World) -> None:
    for number in range(120):
        world.add(f"db.far{number:03}", lake="s3://lake")
    world.settle()
    world.reader.down.update(one for one in world.reader.tables if one.startswith("s3:"))
    world.add("db.near")
    world.clock.advance(timedelta(days=2))
    world.inspector.daily_looks.clear()
    for _ in range(3):
        world.sweep()
    assert "db.near" in world.inspector.daily_looks


def test_a_stale_leader_stops_at_its_first_commit(world: World) -> None:
    row = world.add("db.a")
    world.settle()
    world.store.raise_fence("two", at_least=1)
    world.write(row, files=12)
    with pytest.raises(FencedError):
        world.sweep()
    assert world.health("db.a").files == 10
