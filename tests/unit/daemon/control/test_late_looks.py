"""A look that ends after its table's row has changed says nothing of the row as it is by then: a disk may have hung."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from lakewarden.catalog.model.rows import RowKind, TableRow, TableState
from lakewarden.catalog.system.port import LINEAGE, TABLES
from support.builders.daemons import World
from support.builders.tables import observation


def meanwhile(world: World, place: str, act: Callable[[], None]) -> None:
    """Somebody does something while this place is looked at, once."""
    observe, due = world.reader.observe, [act]

    def slowly(location: str, **words: object) -> object:
        seen = observe(location, **words)  # type: ignore[arg-type]  # as it was called
        if location == place and due:
            due.pop()()
        return seen

    world.reader.observe = slowly  # type: ignore[method-assign, assignment]  # somebody is faster


def edited(world: World, row: TableRow, **changes: object) -> None:
    world.clock.advance(timedelta(seconds=1))
    new = replace(row, updated_at=world.clock.now(), **changes)  # type: ignore[arg-type]  # by name
    world.store.edit(TABLES, lambda _: [new], because="somebody")


def test_a_look_at_the_place_that_a_table_has_left_is_not_written_onto_its_row(world: World) -> None:
    row = world.add("db.t", version=1)
    world.sweep()
    old, new = row.location or "", "file:///moved/t"
    here = observation(old, world.clock.now(), version=7)
    world.reader.tables[new] = replace(here, version=3, files=33)
    world.write(row, version=7)
    meanwhile(world, old, lambda: edited(world, world.row("db.t"), location=new))
    before = world.store.rows(LINEAGE).all()
    report = world.sweep()
    assert (world.health("db.t").version, report.idle) == (1, False)
    assert world.store.rows(LINEAGE).all() == before
    world.sweep()
    assert (world.health("db.t").version, world.health("db.t").files) == (3, 33)
    assert world.row("db.t").location == new


@pytest.mark.parametrize("of_namespace", [False, True], ids=["on the table", "on its namespace"])
def test_a_table_that_came_under_hold_while_it_was_looked_at_does_not_count_as_dropped(
    world: World, of_namespace: bool
) -> None:
    row = world.add("db.t", version=1)
    world.sweep()

    def hold() -> None:
        held = world.row("db.t")
        if of_namespace:
            held = replace(held, row=9_000, table_id="scope", name="db.*", kind=RowKind.SCOPE, location=None)
        edited(world, held, hold="case 4711")

    def dropped(governed: object) -> str:
        hold()
        return "dropped by its users"

    del world.reader.tables[row.location or ""]
    world.inspector.dropped = dropped  # type: ignore[method-assign]  # at that moment
    world.sweep()
    assert world.row("db.t").state is not TableState.DROPPED
