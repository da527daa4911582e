"""What strangers do to Iceberg tables. Nothing happens on a stage without Spark's session."""

from collections.abc import Callable

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from support.adversary.book import DAY
from support.adversary.iceberg.ice_book import IceTable, is_ours
from support.adversary.iceberg.ice_py import is_installed, written_by_pyiceberg
from support.adversary.iceberg.ice_reading import LEAST
from support.adversary.iceberg.ice_stranger import IceStranger
from support.adversary.moves import move
from support.adversary.reading import AGE
from support.adversary.world import World

__all__: list[str] = []

_MOST = 4
_MODES = ("copy-on-write", "merge-on-read")


@move(0, ours=False)
def make_ice(world: World, x: int, y: int, fault: int) -> object:
    """Somebody makes an Iceberg table: in Hadoop's layout, or (for an odd first number) in a catalog."""
    if world.ices is None or len(world.book.tables) >= _MOST:
        return False
    table = world.open_ice(named=x % 2 == 1)
    world.ices.create(table.folder, {f"write.{one}.mode": _MODES[x // 2 % 2] for one in ("delete", "update")})
    for _ in range(y % 3):
        world.ices.append(table.folder)
    world.wrote(table)
    return True


@move(0, ours=False)
def ice_append(world: World, x: int, y: int, fault: int) -> object:
    return _written(world, x, lambda ices, table: ices.append(table.folder))


@move(0, ours=False)
def ice_overwrite(world: World, x: int, y: int, fault: int) -> object:
    return _written(world, x, lambda ices, table: ices.overwrite(table.folder))


@move(0, ours=False)
def ice_delete(world: World, x: int, y: int, fault: int) -> object:
    return _written(world, x, lambda ices, table: ices.delete_rows(table.folder, y))


@move(0, ours=False)
def ice_spark(world: World, x: int, y: int, fault: int) -> object:
    """A statement of Spark's: it writes, merges on read, or compacts."""

    def write(ices: IceStranger, table: IceTable) -> object:
        rows = table.contents.get(table.head, ())
        if not rows:
            return False
        one, new = rows[y % len(rows)], ices.new_id()
        statements = (
            f"DELETE FROM {{table}} WHERE id = {one}",
            f"UPDATE {{table}} SET id = {new} WHERE id = {one}",
            f"INSERT INTO {{table}} (id) VALUES ({new})",
            f"INSERT OVERWRITE {{table}} (id) VALUES ({new})",
        )
        ices.by_spark(table.folder, statements[y // 7 % len(statements)])
        return True

    return _written(world, x, write)


@move(0, ours=False)
def ice_tag(world: World, x: int, y: int, fault: int) -> object:
    return _written(
        world, x, lambda ices, table: _named(table, y, lambda shot: ices.tag(table.folder, f"t{y}", shot))
    )


@move(0, ours=False)
def ice_branch(world: World, x: int, y: int, fault: int) -> object:
    """A branch that begins at some snapshot, and is written to."""
    return _written(
        world, x, lambda ices, table: _named(table, y, lambda shot: ices.branch(table.folder, f"b{y}", shot))
    )


@move(0, ours=False)
def ice_unname(world: World, x: int, y: int, fault: int) -> object:
    """A branch or a tag of somebody's goes."""

    def write(ices: IceStranger, table: IceTable) -> object:
        refs = {} if table.view is None else table.view.refs
        names = sorted(one for one in refs if not is_ours(one))
        if not names:
            return False
        name = names[y % len(names)]
        ices.drop_ref(table.folder, name, refs[name][0])
        return True

    return _written(world, x, write)


@move(0, ours=False)
def ice_set_main(world: World, x: int, y: int, fault: int) -> object:
    """A rollback of somebody's, without us: main is set to some snapshot."""

    def write(ices: IceStranger, table: IceTable) -> object:
        shots = [] if table.view is None else sorted(table.view.shots.values(), key=lambda one: one.number)
        whole = [one for one in shots if not table.wholes[one.id] & table.gone]
        if not whole:
            return False
        ices.set_main(table.folder, whole[y % len(whole)].id)
        return True

    return _written(world, x, write)


@move(0, ours=False)
def ice_expire(world: World, x: int, y: int, fault: int) -> object:
    """Somebody expires all snapshots but main's newest and what branches and tags point to, as long as these last,
    files and all."""

    def write(ices: IceStranger, table: IceTable) -> object:
        view = table.view
        if view is None or view.main is None:
            return False
        line = [one.id for one in view.line(view.main)][: 1 + y % 2]
        lasting = table.lasting(view, world.stage.now())
        stay = {*line, *(one.id for at in lasting.values() for one in view.line(at))}
        going = view.shots.keys() - stay
        if not going:
            return False
        table.gone |= ices.expire(table.folder, going)
        return True

    return _written(world, x, write)


@move(0, ours=False)
def ice_properties(world: World, x: int, y: int, fault: int) -> object:
    """The owner wants snapshots to stay, or metadata to be forgotten, or says something else."""
    wanted = (
        {LEAST: str(1 + y % 3)},
        {AGE: str(int(365 * DAY * 1000))},
        {"comment": str(y)},
        {"write.metadata.previous-versions-max": str(2 + y % 4)},
    )[y % 4]

    def write(ices: IceStranger, table: IceTable) -> None:
        ices.properties(table.folder, wanted)
        if AGE in wanted:
            table.asked[AGE] = 365 * DAY

    return _written(world, x, write)


@move(0, ours=False)
def ice_column(world: World, x: int, y: int, fault: int) -> object:
    return _written(world, x, lambda ices, table: ices.add_column(table.folder, f"c{ices.new_id()}"))


@move(0, ours=False)
def ice_put_back(world: World, x: int, y: int, fault: int) -> object:
    """Somebody puts an older metadata file back, by hand: snapshots are back, and later ones are none any more."""

    def write(ices: IceStranger, table: IceTable) -> object:
        view = table.view
        older = [] if view is None else [one for one in view.remembered if one.exists()]
        if not older:
            return False
        table.odd = True
        ices.put_back(table.folder, older[y % len(older)])
        table.asked.clear()
        return True

    return _written(world, x, write)


@move(0, ours=False)
def ice_orphan(world: World, x: int, y: int, fault: int) -> object:
    """A write fails: its file stays, and nothing names it."""
    return _written(world, x, lambda ices, table: ices.orphan(table.folder))


@move(0, ours=False)
def ice_share(world: World, x: int, y: int, fault: int) -> object:
    """Another table has a file in the folder, and its metadata there: only a catalog of somebody's knows of it."""

    def write(ices: IceStranger, table: IceTable) -> None:
        elsewhere = world.stage.beside / world.new_name()
        world.book.foreign.add(ices.share(table.folder, elsewhere))
        world.ice_clock.stamp(elsewhere, world.stage.now(), world.stage.offset)

    return _written(world, x, write)


@move(0, ours=False)
def ice_second_name(world: World, x: int, y: int, fault: int) -> object:
    """Somebody gives a table of the catalog a second name there; it is taken away again another time."""
    table = world.pick_ice(x, lambda one: one.pointers is not None and one.file is not None)
    if table is None or table.pointers is None or table.view is None:
        return False
    name = f"second_{table.entry}"
    if table.second is not None:
        table.pointers.remove(name)
        table.second = None
    else:
        table.pointers.add(name, table.view.file)
        table.second = table.view
    return True


@move(0, ours=False)
def ice_py(world: World, x: int, y: int, fault: int) -> object:
    """pyiceberg writes to a table of the catalog: appends, overwrites, deletes, expires, sets properties, tags."""
    table = world.pick_ice(x, lambda one: one.pointers is not None and one.file is not None)
    if table is None or table.pointers is None or table.view is None or not is_installed():
        return False
    world.said = written_by_pyiceberg(table, table.pointers, world.stranger, y, world.stage.now())
    world.wrote(table)
    return True


@move(0, ours=False)
def leave_in_ice(world: World, x: int, y: int, fault: int) -> object:
    """Somebody keeps a file of his own in a table's folder."""
    table = world.pick_ice(x)
    if table is None:
        return False
    path = table.folder / "exports" / "precious.csv"
    path.parent.mkdir(exist_ok=True)
    path.write_text("kept\n")
    world.book.precious.add(path)
    return True


def _named(table: IceTable, y: int, name: Callable[[int], object]) -> object:
    shots = [] if table.view is None else sorted(table.view.shots)
    if not shots or len(table.view.refs if table.view else ()) > _MOST:
        return False
    if any(one in (f"t{y}", f"b{y}") for one in (table.view.refs if table.view else ())):
        return False
    name(shots[y % len(shots)])
    return True


def _written(world: World, x: int, write: Callable[[IceStranger, IceTable], object]) -> object:
    table = world.pick_ice(x, lambda one: one.file is not None)
    if table is None or world.ices is None:
        return False
    try:
        if write(world.ices, table) is False:
            return False
    except (Py4JJavaError, PySparkException) as refused:
        if table.facts is None or table.facts.state != "purging":
            raise
        world.said = f"failed: {str(refused)[:200]}"  # half of its files are gone, and lawfully
    world.said = world.said or table.folder.name
    world.wrote(table)
    return True
