"""Tables that are no longer where they were, found at another place: whose row goes on there, and what is refused."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from lakewarden.catalog.errors import NotAllowedError, PreconditionError, RefusedError
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.model.left_by_users import left
from lakewarden.catalog.model.rows import Mode, PolicySettings, Source, TableRow, TableState
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.registry.removal import undrop
from lakewarden.catalog.registry.service import Registry
from lakewarden.catalog.system.port import HEALTH, TABLES
from support.builders.registries import ANA, NOW, ROOT, folder, made_registry
from support.builders.tables import FakeReader
from support.fakes.clock import ManualClock


@pytest.fixture
def reader() -> FakeReader:
    return FakeReader()


@pytest.fixture
def registry(reader: FakeReader) -> Registry:
    return made_registry(reader)


def taken_away(reader: FakeReader, row: TableRow) -> None:
    """Its folder is moved: nothing is left at its place."""
    place = row.location or ""
    del reader.tables[place]
    Path(place.removeprefix("file://")).rmdir()


def seemed_dropped(registry: Registry, reader: FakeReader, row: TableRow) -> None:
    """A sweep has met its place without it."""
    taken_away(reader, row)
    why = "dropped by its users: neither its files nor its metastore entry are left"
    registry.store.edit(TABLES, lambda _: [left(row, why, NOW)], because="sweep")


def test_a_table_that_seemed_dropped_and_is_found_elsewhere_keeps_its_row(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    row = register(registry, folder(reader, tmp_path / "old", uuid="u"), actor=ANA).row
    row = replace(row, policy=PolicySettings(mode=Mode.MANAGE), owner="bo")
    seemed_dropped(registry, reader, row)
    place = folder(reader, tmp_path / "new", uuid="u")
    came = register(registry, place, actor=ROOT, source=Source.DISCOVER)
    assert (came.row.table_id, came.moved, came.created) == (row.table_id, True, True)
    assert (came.row.state, came.row.location, came.row.aliases) == (
        TableState.ACTIVE, place, (row.location,),
    )  # fmt: skip
    assert (came.row.owner, came.row.policy, came.row.state_reason) == ("bo", row.policy, None)
    assert came.row.properties == row.properties, "nothing says any more that it was dropped"


def test_a_table_that_comes_back_broken_is_quarantined_at_once(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    row = register(registry, folder(reader, tmp_path / "old", uuid="u"), actor=ANA).row
    seemed_dropped(registry, reader, row)
    found = replace(
        registry,
        inspect=lambda row, policy, seen: made_registry(reader).inspect(
            row, policy, LogProblem(check="active_files_exist", message="A file is missing.")
        ),
    )
    came = register(found, folder(reader, tmp_path / "new", uuid="u"), actor=ANA)
    assert (came.row.table_id, came.row.state) == (row.table_id, TableState.QUARANTINED)


def test_a_table_that_comes_back_takes_no_name_from_another(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    row = register(registry, folder(reader, tmp_path / "old", uuid="u"), actor=ANA, name="db.t").row
    seemed_dropped(registry, reader, row)
    other = register(registry, folder(reader, tmp_path / "other", uuid="v"), actor=ANA, name="db.t").row
    place = folder(reader, tmp_path / "new", uuid="u")
    with pytest.raises(RefusedError, match="that name is taken by the table at") as caught:
        register(registry, place, actor=ANA)
    assert f"tables rename {other.table_id}" in (caught.value.hint or "")
    assert register(registry, place, actor=ANA, copy=True, name="db.u").row.table_id != row.table_id


def test_what_is_said_to_have_moved_has_moved_from_somewhere(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    place = folder(reader, tmp_path / "new", uuid="u")
    with pytest.raises(RefusedError, match="No table on record has the UUID") as caught:
        register(registry, place, actor=ANA, moved=True)
    assert "Leave out --moved" in (caught.value.hint or "")
    reader.tables[place] = LogProblem(check="log_readable", message="Version 3 is not JSON.")
    with pytest.raises(RefusedError, match="cannot be read, so that nobody can tell"):
        register(registry, place, actor=ANA, moved=True)
    assert not registry.store.rows(HEALTH).find(name="default.new")


def copies(registry: Registry, reader: FakeReader, tmp_path: Path) -> tuple[TableRow, TableRow]:
    """`db.prod` and its copy `db.dev`, each at a place of its own."""
    prod = register(registry, folder(reader, tmp_path / "prod", uuid="u"), actor=ANA, name="db.prod").row
    place = folder(reader, tmp_path / "dev", uuid="u")
    return prod, register(registry, place, actor=ANA, name="db.dev", copy=True).row


def test_which_of_two_copies_has_moved_is_said_by_its_name(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    prod, dev = copies(registry, reader, tmp_path)
    taken_away(reader, prod)
    taken_away(reader, dev)
    place = folder(reader, tmp_path / "new", uuid="u")
    with pytest.raises(RefusedError, match="same table UUID as db.dev and db.prod, of which none") as caught:
        register(registry, place, actor=ANA)
    assert "--name" in (caught.value.hint or "")
    assert register(registry, place, actor=ANA, name="db.dev").row.table_id == dev.table_id
    other = folder(reader, tmp_path / "newer", uuid="u")
    assert register(registry, other, actor=ANA, name="db.prod").row.table_id == prod.table_id


def test_which_of_two_copies_has_moved_is_told_by_the_commit_that_it_was_last_seen_at(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    prod, dev = copies(registry, reader, tmp_path)
    copied = reader.tables[dev.location or ""]
    assert isinstance(copied, Observation)
    written = replace(copied, version=7, head="the commit of version 7")
    reader.tables[dev.location or ""] = written
    registry.record_health(dev, written)
    taken_away(reader, prod)
    taken_away(reader, dev)
    place = folder(reader, tmp_path / "new", uuid="u")
    reader.tables[place] = replace(written, location=place)
    assert register(registry, place, actor=ANA, source=Source.DISCOVER).row.table_id == dev.table_id


def test_a_hold_is_not_escaped_as_a_copy_while_another_copy_lives(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    prod, _ = copies(registry, reader, tmp_path)
    registry.store.edit(TABLES, lambda _: [replace(prod, hold="case 4711")], because="test")
    taken_away(reader, prod)
    with pytest.raises(NotAllowedError, match="db.prod, which is under a legal hold"):
        register(registry, folder(reader, tmp_path / "new", uuid="u"), actor=ANA, name="db.x", copy=True)


def test_a_copy_may_be_made_while_nobody_can_tell_where_a_held_one_is(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    prod, _ = copies(registry, reader, tmp_path)
    registry.store.edit(TABLES, lambda _: [replace(prod, hold="case 4711")], because="test")
    del reader.tables[prod.location or ""]  # its folder is there: no table in it can be read
    place = folder(reader, tmp_path / "new", uuid="u")
    assert register(registry, place, actor=ANA, name="db.x", copy=True).created


def test_no_table_is_taken_back_to_a_place_that_another_one_has(
    registry: Registry, reader: FakeReader, tmp_path: Path
) -> None:
    row = register(registry, folder(reader, tmp_path / "t", uuid="u"), actor=ANA).row
    seemed_dropped(registry, reader, row)
    assert isinstance(registry.clock, ManualClock)
    registry.clock.advance(timedelta(days=31))
    place = folder(reader, tmp_path / "t", uuid="v")
    other = register(registry, place, actor=ANA, name="db.other", source=Source.DISCOVER).row
    with pytest.raises(RefusedError, match="Another table is at .* by now: db.other"):
        undrop(registry, row.table_id, actor=ANA)
    assert registry.resolve(row.table_id, gone=True).state is TableState.DROPPED
    assert registry.get(other.table_id).state is TableState.ACTIVE


@pytest.mark.parametrize("uuid", ["u", "v"], ids=["the same", "another"])
def test_what_appears_where_a_table_was_dropped_long_ago(
    registry: Registry, reader: FakeReader, tmp_path: Path, uuid: str
) -> None:
    """Within thirty days it has come back whatever its UUID is; later another UUID is another table."""
    row = register(registry, folder(reader, tmp_path / "t", uuid="u"), actor=ANA).row
    seemed_dropped(registry, reader, row)
    place = folder(reader, tmp_path / "t", uuid=uuid)
    with pytest.raises(PreconditionError, match="was dropped from management") as caught:
        register(registry, place, actor=ANA)
    assert "undrop" in (caught.value.hint or "")
    assert isinstance(registry.clock, ManualClock)
    registry.clock.advance(timedelta(days=31))
    came = register(registry, place, actor=ANA, source=Source.DISCOVER).row
    assert (came.table_id == row.table_id, came.state, came.aliases) == (uuid == "u", TableState.ACTIVE, ())
