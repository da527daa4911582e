"""A table that never answers holds up no other one: a named pipe in its log, a look that hangs, a dead disk."""

import os
import threading
import time
from pathlib import Path

import pytest

from lakewarden.catalog.errors import UnavailableError, UnreadableError
from lakewarden.catalog.formats.port import LogProblem
from lakewarden.catalog.model.rows import TableState
from lakewarden.catalog.storage.file_store import open_store
from lakewarden.catalog.system.port import HEALTH, TABLES
from lakewarden.daemon.fleet.disks import Disks
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.usecases.doctor.diagnosis import CheckResult
from lakewarden.daemon.usecases.doctor.examinations import examine_only
from lakewarden.daemon.usecases.init import initialise
from support.builders.daemons import World
from support.processes.commands import command
from support.processes.house import House


def test_a_named_pipe_as_next_commit_is_a_finding_and_the_others_are_looked_at(tmp_path: Path) -> None:
    house = House(tmp_path)
    hurt, sound = house.table("hurt", commits=1), house.table("sound", commits=1)
    os.mkfifo(Path(hurt) / "_delta_log" / f"{1:020}.json")
    house.append(sound, 7)
    with house.daemon("once") as daemon:
        assert daemon.wait(60) == 0, house.log()
    rows = {row.name: row for row in house.services.store.rows(TABLES).all()}
    assert rows["db.hurt"].state is TableState.QUARANTINED
    assert "a pipe" in (rows["db.hurt"].state_reason or "")
    health = {row.name: row.version for row in house.services.store.rows(HEALTH).all()}
    assert health["db.sound"] == 1
    said = command(house.home, "status")
    assert "Quarantined: 1 table" in said.stdout + said.stderr


@pytest.mark.parametrize("name", ["pipe", "folder"])
def test_what_is_no_file_is_not_read(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    store = open_store(tmp_path.as_uri())
    for read in (store.read, store.open):
        with pytest.raises((UnreadableError, IsADirectoryError)):
            read(name)


def test_a_look_that_hangs_is_left_alone_and_taken_up_when_it_is_over() -> None:
    world = World()
    stuck, other = world.add("db.stuck", version=1), world.add("db.other", version=1)
    world.sweep()
    released, observe = threading.Event(), world.reader.observe

    def slowly(location: str, **words: object) -> object:
        if location == stuck.location:
            assert released.wait(60)
        return observe(location, **words)  # type: ignore[arg-type]  # as it was called

    world.reader.observe = slowly  # type: ignore[method-assign, assignment]  # a disk that hangs
    world.cycle._rounds.longest_look = 0.3
    world.write(stuck)
    world.write(other)
    report = world.sweep()
    assert world.health("db.other").version == 2 and world.health("db.stuck").version == 1
    assert report.left_out is not None and "db.stuck" in report.left_out
    world.write(other)
    again = world.sweep()
    assert world.health("db.other").version == 3 and "db.stuck" in (again.left_out or "")
    released.set()
    until = time.monotonic() + 30
    while world.health("db.stuck").version == 1 and time.monotonic() < until:
        report = world.sweep()
    assert world.health("db.stuck").version == 2 and report.left_out is None


def test_a_disk_that_does_not_answer_is_left_alone() -> None:
    world = World()
    world.add("db.t", version=1)
    world.sweep()
    back = threading.Event()
    place = next(row.location or "" for row in world.store.rows(TABLES).all() if row.name == "db.t")
    point = place.removeprefix("file://")
    disks = Disks(patience=0.1, ask=lambda one: assert_back(back), points=lambda: (point,))
    world.cycle._rounds.disks = disks
    world.write(world.row("db.t"))
    report = world.sweep()
    assert "db.t" in (report.left_out or "") and world.health("db.t").version == 1
    back.set()
    until = time.monotonic() + 30
    while (report := world.sweep()).left_out is not None and time.monotonic() < until:
        pass
    assert report.left_out is None and world.health("db.t").version == 2


def assert_back(event: threading.Event) -> None:
    assert event.wait(60)


def test_system_tables_on_a_disk_that_does_not_answer_hold_nobody_up(tmp_path: Path) -> None:
    first = open_services(home=tmp_path)
    initialise(first, first.user)
    services, back = open_services(home=tmp_path), threading.Event()
    services.disks = Disks(patience=0.1, ask=lambda one: assert_back(back), points=lambda: (str(tmp_path),))
    with pytest.raises(UnavailableError, match="The storage of .*system does not answer"):
        services.require_initialised()
    told = {one.check: one for one in examine_only(services, ("system tables", "clock"))}
    assert {one.verdict for one in told.values()} == {CheckResult.FAIL}
    assert "does not answer" in told["clock"].message
    back.set()
    until = time.monotonic() + 30
    while services.disks.hanging() and time.monotonic() < until:
        time.sleep(0.01)
    services.require_initialised()


def test_a_log_that_is_a_pipe_is_told_by_the_reader(tmp_path: Path) -> None:
    house = House(tmp_path)
    hurt = house.table("hurt", commits=1)
    os.mkfifo(Path(hurt) / "_delta_log" / f"{1:020}.json")
    seen = house.services.readers[0].observe(Path(hurt).as_uri())
    assert isinstance(seen, LogProblem) and "pipe" in seen.message
