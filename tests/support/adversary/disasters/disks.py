"""Disks that are away and come back, copies, folders that change places:
what is found at a place may be another table."""

import shutil
from pathlib import Path

from support.adversary.book import Table
from support.adversary.moves import move
from support.adversary.world import World

__all__: list[str] = []

_MOST = 5


@move(0, ours=False)
def make_there(world: World, x: int, y: int, fault: int) -> object:
    """Somebody makes a table on the disk that may be away later."""
    if len(world.book.tables) >= _MOST or world.book.away:
        return False
    table = world.book.open(_disk(world) / world.new_name())
    world.stranger.create(table.folder)
    for _ in range(y % 3):
        world.stranger.append(table.folder)
    world.wrote(table)
    return True


@move(0, ours=False)
def copy_folder(world: World, x: int, y: int, fault: int) -> object:
    """Somebody copies a table's folder, log and all: a table with the same UUID at another place."""
    table = world.pick(x, _is_by_itself)
    if table is None or len(world.book.tables) >= _MOST:
        return False
    made = world.book.open(world.folder(f"{world.new_name()}-copy"))
    world.stranger.copy(table.folder, made.folder)
    made.moments, made.gone, made.log_from = dict(table.moments), set(table.gone), table.log_from
    return True


@move(0, ours=False)
def unplug(world: World, x: int, y: int, fault: int) -> object:
    """The disk is away: where it is mounted there is an empty folder."""
    disk = _disk(world)
    gone = [one for one in world.book.tables if one.folder.is_relative_to(disk)]
    if not gone:
        return False
    shutil.move(disk, _elsewhere(world))
    disk.mkdir()
    world.book.take_away(gone)
    return True


@move(0, ours=False)
def plug(world: World, x: int, y: int, fault: int) -> object:
    """The disk is back, as it was."""
    disk = _disk(world)
    if not world.book.away or any(disk.iterdir()):
        return False
    disk.rmdir()
    shutil.move(_elsewhere(world), disk)
    world.book.bring_back()
    return True


@move(0, ours=False)
def swap(world: World, x: int, y: int, fault: int) -> object:
    """Two tables change places, as by mounts in another order. A row is for what lies at its place, as it is
    where a table is made anew every night; but what was decided before was decided on the other one."""
    one = world.pick(x)
    other = world.pick(x + 1 + y)
    if one is None or other is None or not _apart(world, one, other):
        return False
    here, there, aside = one.folder, other.folder, world.stage.beside / "changing-places"
    for source, target in ((here, aside), (there, here), (aside, there)):
        world.stranger.move(source, target)
    world.book.change_places(one, other, world.stage.now())
    return True


@move(0, ours=False)
def make_anew(world: World, x: int, y: int, fault: int) -> object:
    """A table is removed and another one made at its place, as every night; the row is for that one then."""
    old = world.pick(x, lambda one: one.clone_of is None)
    if old is None or any(
        one is not old and one.folder.is_relative_to(old.folder) for one in world.book.tables
    ):
        return False
    head = old.head
    world.stranger.remove(old.folder)
    world.book.close(old)
    made = world.book.open(old.folder)
    world.book.takes_over(made, old, world.stage.now())
    world.stranger.create(made.folder)
    for number in range(head if y % 2 else 0):
        (world.stranger.overwrite if number % 2 else world.stranger.append)(made.folder)
    world.wrote(made)
    return True


def _apart(world: World, one: Table, other: Table) -> bool:
    """Whether they are two, neither a copy of the other, and neither lies in another table or has one in it."""
    if (
        one is other
        or one.now.uuid == other.now.uuid
        or one.clone_of is not None
        or other.clone_of is not None
    ):
        return False
    folders = [table.folder for table in world.book.tables]
    return not any(
        a != b and a.is_relative_to(b)
        for a in folders
        for b in folders
        if {a, b} & {one.folder, other.folder}
    )


def _is_by_itself(table: Table) -> bool:
    """Whether it names no file outside its folder."""
    files = (path for moment in table.moments.values() for path in moment.snapshot.files)
    return not any(path.startswith(("/", "file:")) for path in files)


def _disk(world: World) -> Path:
    return world.folder("disk")


def _elsewhere(world: World) -> Path:
    return world.stage.beside / "unplugged"
