"""What strangers do, and time: commits, folders that move, are removed or made anew, tables in tables, clocks."""

from collections.abc import Callable
from datetime import timedelta

from support.adversary.book import DAY, Table
from support.adversary.moves import move
from support.adversary.reading import CLEANUP, FILES_FOR, LOG_FOR, is_table
from support.adversary.world import World

__all__: list[str] = []


@move(6, ours=False)
def make(world: World, x: int, y: int, fault: int) -> object:
    if len(world.book.tables) >= 4:
        return False
    table = world.book.open(world.folder(world.new_name()))
    world.stranger.create(table.folder)
    for _ in range(y % 3):
        world.stranger.append(table.folder)
    return _wrote(world, table)


@move(8, ours=False)
def append(world: World, x: int, y: int, fault: int) -> object:
    return _written(world, x, lambda table: world.stranger.append(table.folder))


@move(8, ours=False)
def delete(world: World, x: int, y: int, fault: int) -> object:
    return _written(world, x, lambda table: world.stranger.delete(table.folder, y))


@move(4, ours=False)
def overwrite(world: World, x: int, y: int, fault: int) -> object:
    return _written(world, x, lambda table: world.stranger.overwrite(table.folder))


@move(2, ours=False)
def optimize(world: World, x: int, y: int, fault: int) -> object:
    return _written(world, x, lambda table: world.stranger.compact(table.folder))


@move(5, ours=False)
def restore(world: World, x: int, y: int, fault: int) -> object:
    """RESTORE to any version whose files are all there."""

    def write(table: Table) -> object:
        whole = [one for one, moment in table.moments.items() if not moment.snapshot.files & table.gone]
        if not whole:
            return False
        world.stranger.restore(table.folder, whole[y % len(whole)])
        return True

    return _written(world, x, write)


@move(3, ours=False)
def replace(world: World, x: int, y: int, fault: int) -> object:
    return _written(world, x, lambda table: world.stranger.replace(table.folder))


@move(3, ours=False)
def keep_long(world: World, x: int, y: int, fault: int) -> object:
    """The owner asks for long retention, by some of the three properties."""

    def write(table: Table) -> None:
        chosen = {FILES_FOR: "interval 365 days", LOG_FOR: "interval 365 days", CLEANUP: "false"}
        wanted = {name: value for number, (name, value) in enumerate(chosen.items()) if number != y % 4}
        world.stranger.properties(table.folder, wanted)
        table.asked.update({name: 365 * DAY for name in wanted if name != CLEANUP})

    return _written(world, x, write)


@move(2, ours=False)
def vacuum_by_hand(world: World, x: int, y: int, fault: int) -> object:
    table = world.pick(x)
    if table is None:
        return False
    world.stranger.vacuum(table.folder)
    return True


@move(1, ours=False)
def clean_log_by_hand(world: World, x: int, y: int, fault: int) -> object:
    table = world.pick(x, lambda one: not one.spoiled and one.head > 1)
    if table is None:
        return False
    world.stranger.clean_log(table.folder)
    table.log_from = table.head
    return True


@move(2, ours=False)
def spoil_checkpoint(world: World, x: int, y: int, fault: int) -> object:
    """Not the one that a log begins with after somebody's cleaning:
    then it is his doing that its versions cannot be told."""
    table = world.pick(x, lambda one: one.head >= 1 and one.head > one.log_from)
    if table is None:
        return False
    table.spoiled = True
    world.stranger.spoil_checkpoint(table.folder)
    return _wrote(world, table)


@move(4, ours=False)
def nest(world: World, x: int, y: int, fault: int) -> object:
    """Somebody makes a table of his own in the folder of another one."""
    outer = world.pick(x, lambda one: one.facts is not None)
    if outer is None or len(world.book.tables) >= 5:
        return False
    inner = world.book.open(outer.folder / world.new_name())
    world.stranger.create(inner.folder)
    return _wrote(world, inner)


@move(3, ours=False)
def clone(world: World, x: int, y: int, fault: int) -> object:
    source = world.pick(x, lambda one: bool(one.now.files))
    if source is None or len(world.book.tables) >= 5:
        return False
    made = world.book.open(world.folder(world.new_name()), clone_of=source.key)
    world.stranger.clone(source.folder, made.folder)
    return _wrote(world, made)


@move(3, ours=False)
def link(world: World, x: int, y: int, fault: int) -> object:
    """A live file that the log names by an absolute path through a symbolic link."""
    return _written(
        world,
        x,
        lambda table: world.stranger.add_through_link(table.folder, world.folder(f"link-{table.key}")),
    )


@move(3, ours=False)
def leave_file(world: World, x: int, y: int, fault: int) -> object:
    """Somebody keeps a file of his own in a table's folder."""
    table = world.pick(x)
    if table is None:
        return False
    path = table.folder / "exports" / "precious.csv"
    path.parent.mkdir(exist_ok=True)
    path.write_text("kept\n")
    world.book.precious.add(path)
    return True


@move(3, ours=False)
def move_folder(world: World, x: int, y: int, fault: int) -> object:
    table = world.pick(x)
    if table is None:
        return False
    old, new = table.folder, world.folder(f"{world.new_name()}-moved")
    world.stranger.move(old, new)
    for one in world.book.tables:
        if one.folder.is_relative_to(old):
            one.goes_to(new / one.folder.relative_to(old))
    world.book.precious = {
        new / p.relative_to(old) if p.is_relative_to(old) else p for p in world.book.precious
    }
    return True


@move(3, ours=False)
def remake(world: World, x: int, y: int, fault: int) -> object:
    """The folder is removed and another table made there: another UUID, often the same version."""
    table = world.pick(x)
    if table is None:
        return False
    folder, head = table.folder, table.head
    _removed(world, table)
    made = world.book.open(folder)
    world.stranger.create(folder)
    for _ in range(head if y % 2 else 0):
        world.stranger.append(folder)
    return _wrote(world, made)


@move(1, ours=False)
def remove_folder(world: World, x: int, y: int, fault: int) -> object:
    table = world.pick(x)
    if table is None:
        return False
    _removed(world, table)
    return True


@move(10, ours=False)
def wait(world: World, x: int, y: int, fault: int) -> object:
    """Time goes by; now and then a clock is put back."""
    hours = (1, 26, 24 * 8, 24 * 8, 24 * 40, 24 * 100, -0.5)[y % 7]
    world.stage.offset += timedelta(hours=hours)
    world.said = f"{hours} hours"
    return True


def _written(world: World, x: int, write: Callable[[Table], object]) -> object:
    table = world.pick(x, lambda one: is_table(one.folder))
    if table is None or write(table) is False:
        return False
    world.said = table.folder.name
    return _wrote(world, table)


def _removed(world: World, table: Table) -> None:
    world.stranger.remove(table.folder)
    for one in list(world.book.tables):
        if one.folder.is_relative_to(table.folder):
            world.book.close(one)
    world.book.precious = {one for one in world.book.precious if one.exists()}


def _wrote(world: World, table: Table) -> bool:
    world.wrote(table)
    return True
