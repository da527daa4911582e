"""A disk that never answers holds up no cycle: neither by a table that its users dropped, nor by a lost run, nor by a
hint. What hangs is asked in a thread, and the other tables are looked at in the same cycle."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from threading import Event

import pytest

from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.metastore.port import Entry
from lakewarden.catalog.metastore.table_heads import as_properties
from lakewarden.catalog.model.identity import CatalogAddress
from lakewarden.catalog.model.left_by_users import left
from lakewarden.catalog.model.rows import TableRow, TableState
from lakewarden.catalog.named_catalogs.port import CatalogEntries
from lakewarden.catalog.registry.batch import register_batch
from lakewarden.catalog.registry.discovery import in_metastore
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.registry.registration import WantedTable
from lakewarden.catalog.registry.service import Registered
from lakewarden.catalog.state.port import Hint, HintKind
from lakewarden.catalog.system.port import TABLES, Fence
from lakewarden.daemon.control import hints
from lakewarden.daemon.control.restore_cascade import OpenRestores
from lakewarden.daemon.fleet.disks import Disks
from lakewarden.daemon.fleet.questions import Questions
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.usecases.discovery import candidates
from lakewarden.daemon.usecases.init import initialise
from support.builders.callers import actor
from support.builders.daemons import LEASE, World
from support.builders.runs import delta_table
from support.builders.system_samples import table_row
from support.fakes.metastore import FakeMetastore

LIMIT = 30
"""Seconds until a test that hangs says so."""


@pytest.fixture
def back() -> Iterator[Event]:
    """Set when the disk answers again."""
    event = Event()
    yield event
    event.set()


def hanging(world: World, place: str, back: Event) -> None:
    """Nobody who asks whether there is a table at a place gets an answer before the disk is back."""
    is_table = world.reader.is_table

    def asked(location: str) -> bool:
        if location == place:
            assert back.wait(LIMIT), "the cycle waits for a dead disk"
        return is_table(location)

    world.reader.is_table = asked  # type: ignore[method-assign]  # a disk that hangs
    world.cycle.parts.questions.longest = 0.2


@dataclass
class Restored:
    """A table that somebody restored, and how often that was followed."""

    row: TableRow
    """The table."""
    carried: int = 0
    """So often."""

    def open(self) -> Sequence[OpenRestores]:
        return (OpenRestores(row=self.row, downstream=frozenset()),)

    def carry(self, one: OpenRestores, fence: Fence) -> bool:
        self.carried += 1
        return False


def until(world: World, is_so: Callable[[], bool]) -> None:
    for _ in range(200):
        if is_so():
            return
        world.sweep()
    raise AssertionError("it never came to that")


def test_a_dropped_table_on_a_dead_disk_is_asked_once_and_comes_back_with_it(
    world: World, back: Event
) -> None:
    gone, other = world.add("db.gone", version=1), world.add("db.other", version=1)
    world.sweep()
    dropped = left(world.row("db.gone"), "its users dropped it", world.clock.now())
    world.store.edit(TABLES, lambda _: [dropped], because="test")
    hanging(world, gone.location or "", back)
    for version in (2, 3):
        world.write(other)
        world.sweep()
        assert world.health("db.other").version == version
    assert world.row("db.gone").state is TableState.DROPPED
    back.set()
    until(world, lambda: world.row("db.gone").state is TableState.ACTIVE)


def test_a_lost_run_on_a_dead_disk_waits_for_it_and_nobody_waits_for_the_run(
    world: World, back: Event
) -> None:
    row, other = world.add("db.a"), world.add("db.other", version=1)
    old = world.clock.now() - timedelta(days=9)
    world.write(row, tombstones=5, tombstone_bytes=500, oldest_tombstone_at=old)
    world.sweep()
    run = world.queue.claim("w", LEASE)
    assert run is not None and world.queue.start(run.request.run_id, "w", LEASE)
    world.clock.advance(LEASE)
    hanging(world, row.location or "", back)
    world.write(other)
    report = world.sweep()
    assert (report.reaped, world.health("db.other").version) == (0, 2)
    assert "does not answer" in (report.left_out or "")
    back.set()
    until(world, lambda: not world.queue.expired())


def test_hints_of_tables_on_a_dead_disk_ask_it_nothing(
    world: World, back: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(location: str) -> str:
        raise AssertionError(f"{location} is asked where it leads")

    known = world.add("db.t", lake="file:///dead", version=1)
    world.sweep()
    monkeypatch.setattr(hints, "canonical", asked)
    world.cycle.parts.questions.disks = Disks(
        patience=0.1, ask=lambda point: assert_back(back), points=lambda: ("/dead",)
    )
    subjects = (known.location or "", "/dead/db.t/", "/dead/new", "file:///dead/newer")
    world.inbox.put(
        Hint(hint_id=f"h{number}", subject=subject, kind=HintKind.WRITTEN, at=world.clock.now())
        for number, subject in enumerate(subjects)
    )
    heard = world.cycle.parts.hints.listen()
    assert set(heard.look) == {known.table_id} and heard.unknown == ()
    assert len(heard.hints) == len(subjects)
    assert heard.left == {"/dead/new", "file:///dead/newer"}, "kept until it answers"


def assert_back(back: Event) -> None:
    assert back.wait(LIMIT)


def test_a_question_without_an_answer_is_asked_once(back: Event) -> None:
    questions, asked = Questions(longest=0.1), list[str]()

    def ask(place: str) -> str:
        asked.append(place)
        if place == "file:///dead/t":
            assert_back(back)
        return place.upper()

    for _ in range(3):
        answers = questions.each(("file:///dead/t", "file:///lake/t"), ask)
        assert answers == {"file:///lake/t": "FILE:///LAKE/T"}
    assert asked.count("file:///dead/t") == 1
    with pytest.raises(UnavailableError, match="does not answer"):
        questions.one("file:///dead/t", lambda: ask("file:///dead/t"))
    back.set()
    for _ in range(1_000):
        answers = questions.each(("file:///dead/t",), ask)
        if answers:
            break
    assert answers == {"file:///dead/t": "FILE:///DEAD/T"}


def test_a_restore_is_followed_once_all_disks_answer(world: World, back: Event) -> None:
    """Which tables it concerns is read from the logs of all of them."""
    driver = Restored(world.add("db.t", version=1))
    world.add("db.far", lake="file:///dead", version=1)
    parts = world.cycle.parts
    world.cycle.parts = replace(parts, cascade_driver=driver)
    world.sweep()
    assert driver.carried == 1
    parts.questions.disks = Disks(
        patience=0.1, ask=lambda point: assert_back(back), points=lambda: ("/dead",)
    )
    report = world.sweep()
    assert driver.carried == 1 and "file:///dead/db.far does not answer" in (report.left_out or "")
    back.set()
    until(world, lambda: driver.carried == 2)


def test_discovery_passes_over_dead_roots_and_entries_and_says_so(tmp_path: Path, back: Event) -> None:
    for name in ("alive", "dead"):
        delta_table(tmp_path / name / "t", commits=1)
    roots = f"{tmp_path}/dead,{tmp_path}/alive"
    services = open_services(home=tmp_path / "home", flags={"discovery.roots": roots})
    initialise(services, services.user)
    dead = str(tmp_path / "dead")
    services.disks = Disks(patience=0.1, ask=lambda point: assert_back(back), points=lambda: (dead,))
    found = list[str]()
    with pytest.raises(UnavailableError, match="dead does not answer"):
        for one in candidates(services):
            found += [] if one is None else [one.where]
    assert found == [f"file://{tmp_path}/alive/t"]
    metastore = FakeMetastore()
    metastore.create_database("db")
    for name in ("alive", "dead"):
        place = f"file:{tmp_path}/{name}/t"
        metastore.create(
            Entry(database="db", table=name, location=place, provider="delta", table_type="EXTERNAL_TABLE")
        )
    looks = in_metastore(
        metastore, services.readers, frozenset(), answers=lambda place: "/dead/" not in place
    )
    assert [one.where for one in looks if one is not None] == ["db.alive"]


class Listing:
    """A declared catalog that tells of these entries."""

    names = ("cat",)

    def __init__(self, files: Mapping[str, str]) -> None:
        self.files = files

    def catalog(self, name: str) -> "Listing":
        return self

    def entries(self) -> CatalogEntries:
        return CatalogEntries(files=self.files)


def test_discovery_in_a_declared_catalog_asks_a_dead_disk_nothing(
    tmp_path: Path, back: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = open_services(home=tmp_path / "home")
    initialise(services, services.user)
    dead, lake, asked = f"{tmp_path}/dead", f"{tmp_path}/lake", list[str]()
    is_link = os.path.islink

    def noted(path: str) -> bool:
        asked.append(path)
        return is_link(path)

    monkeypatch.setattr(os.path, "islink", noted)
    rows = [
        replace(
            table_row(100 + number),
            format="iceberg",
            location=f"file://{place}",
            properties=dict(as_properties(CatalogAddress(catalog="cat", entry=f"db.{number}"))),
        )
        for number, place in enumerate((f"{dead}/0", f"{dead}/1", f"{lake}/2", f"{lake}/3"))
    ]
    services.store.edit(TABLES, lambda _: rows, because="test")
    files = (f"{dead}/0/m.json", f"{lake}/1/m.json", f"{dead}/2/m.json", f"{lake}/3/m.json")
    more = {"db.new": f"{lake}/new/m.json", "db.far": f"{dead}/new/m.json", "db.odd": ""}
    services.__dict__["catalogs"] = Listing({f"db.{n}": file for n, file in enumerate(files)} | more)
    services.disks = Disks(patience=0.1, ask=lambda point: assert_back(back), points=lambda: (dead,))
    asked.clear()
    assert [one.where for one in candidates(services) if one is not None] == ["cat.db.new", "cat.db.odd"]
    assert any(one.startswith(lake) for one in asked)
    assert not [one for one in asked if one.startswith(dead)]
    services.disks = Disks(points=tuple)
    found = [one.where for one in candidates(services) if one is not None]
    assert found == ["cat.db.1", "cat.db.2", "cat.db.new", "cat.db.far", "cat.db.odd"]


def test_tables_come_under_management_beside_those_on_a_dead_disk(
    tmp_path: Path, back: Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = open_services(home=tmp_path / "home")
    initialise(services, services.user)
    dead, asked = f"{tmp_path}/dead", list[str]()
    far = replace(table_row(100), location=f"file://{dead}/far")
    services.store.edit(TABLES, lambda _: [far], because="test")
    is_link = os.path.islink

    def noted(path: str) -> bool:
        asked.append(path)
        return is_link(path)

    monkeypatch.setattr(os.path, "islink", noted)
    services.disks = Disks(patience=0.1, ask=lambda point: assert_back(back), points=lambda: (dead,))
    assert services.disks.held([far.location or ""])
    for name in ("t", "u"):
        delta_table(tmp_path / name, commits=1)
    (came,) = register_batch(services.registry, [WantedTable(where=f"{tmp_path}/t")], actor=actor("ana"))
    assert isinstance(came, Registered) and came.created
    assert register(services.registry, f"{tmp_path}/u", actor=actor("ana")).created
    assert f"{tmp_path}/t" in asked
    assert not [one for one in asked if one.startswith(dead)]


def test_what_a_question_raises_is_raised() -> None:
    def ask() -> str:
        raise UnavailableError("It is away.")

    with pytest.raises(UnavailableError, match="It is away"):
        Questions().one("file:///lake/t", ask)
