"""The system tables are backed up, lost, damaged, and mended from one of several backups,
by the product's own commands."""

from lakewarden.daemon.usecases.sole_repair import LEASE
from support.adversary.moves import move
from support.adversary.stage import Said
from support.adversary.world import World

__all__: list[str] = []

_EVERYTHING, _TABLES = "", "tables"
_LAST_POINT, _PARTLY = 100, 3


@move(0, ours=True)
def back_up(world: World, x: int, y: int, fault: int) -> object:
    """To a folder of its own, or once more to the last one."""
    if world.catalog.broken:
        return False
    backups = world.catalog.backups
    again = bool(backups) and y % 3 == 0
    folder = backups[-1] if again else world.stage.beside / f"backup-{len(backups)}"
    if not again:
        backups.append(folder)
    said = world.act(world.stage.command("system", "backup", str(folder), "-o", "json"), fault)
    if said is not None and said.code == 0:
        world.findings += world.catalog.backed_up(folder)
    return said


@move(0, ours=False)
def lose_catalog(world: World, x: int, y: int, fault: int) -> object:
    """Somebody deletes the system tables, or the one that makes a store of them."""
    if world.catalog.broken:
        return False
    world.catalog.remember()
    world.catalog.lose((_EVERYTHING, _TABLES)[y % 2])
    return True


@move(0, ours=False)
def damage_catalog(world: World, x: int, y: int, fault: int) -> object:
    """Entries of the log of `lakewarden.tables` rot: the last, all, one in the midst; or one of its data files."""
    if world.catalog.broken:
        return False
    world.catalog.remember()
    log = world.catalog.log
    if y % 4 == 3:
        file = world.catalog.files[x % len(world.catalog.files)]
        file.write_bytes(b"\0" + file.read_bytes()[1:-1] + b"\0")
        return True
    for entry in (log[-1:], log, log[x % len(log) :][:1])[y % 4]:
        entry.write_bytes(b"{")
    return True


@move(0, ours=True)
def mend_catalog(world: World, x: int, y: int, fault: int) -> object:
    """`system repair`, from one of the backups (the oldest for 0), or, for a last number, from none;
    with the loss agreed to.
    Who is hit by a fault is killed: a person does not start a second repair while one stands."""
    if not world.catalog.broken:
        return False
    backups = [*world.catalog.backups, None]
    backup = backups[x % len(backups)]
    named = () if backup is None else ("--backup", str(backup))
    world.stage.rest()
    if world.catalog.interrupted:
        world.stage.offset += LEASE  # the one that was killed is believed to be at it for so long
    actor = world.stage.command("system", "repair", *named, "--accept-loss", "--yes", "-o", "json")

    def then(said: Said) -> None:
        if said.out.startswith("["):
            world.findings += world.catalog.repaired(said.json, backup, whole=said.code == 0)
            world.read_anew()

    actor.then = then
    ended = world.act(actor, -fault if 0 < fault <= _LAST_POINT else fault)
    world.catalog.interrupted |= ended is None or (fault > 0 and ended.code not in (0, _PARTLY))
    return ended
