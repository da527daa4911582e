"""Rollbacks over lineage: tables made from others, marks, plans with what they ask for,
and everybody who acts meanwhile."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from support.adversary.book import Facts, Table
from support.adversary.invariants import Finding
from support.adversary.moves import move
from support.adversary.rollback_book import Agreed, Cause, Place, Rewind
from support.adversary.rollback_writes import (
    RECORD,
    Input,
    absurd_properties,
    derive,
    property_commit,
    record,
)
from support.adversary.stage import Said
from support.adversary.world import World

__all__: list[str] = []

INTERRUPTED = 130
_MOST = 4
_ABSURD = (
    {"lakewarden.compaction.target": "999999999999999 TiB"},
    {"lakewarden.log.retention": "999999999999 days", "lakewarden.rollback.promise": f"{'9' * 400} days"},
    {"delta.deletedFileRetentionDuration": "interval 999999999999 days"},
    {"lakewarden.compaction.min_small_files": "9" * 5000},
    {"lakewarden.mode": "\u0000", "lakewarden.quiet_hours": "99:99-99:99"},
)
_ABSURD_POLICIES = ("log.retention=999999999999 days", "compaction.target=999999999999999 TiB")


@move(0, ours=True)
def found(world: World, x: int, y: int, fault: int) -> object:
    """Somebody makes a table from others, and has it registered."""
    if len(world.book.tables) >= 5:
        return False
    folder = world.folder(world.new_name())
    reads = _reads(list(_known(world)), x, y)
    derive(world.stranger, folder, "append", 2, [_input(*one) for one in reads])
    return _registered(world, folder, reads)


@move(0, ours=True)
def recreate(world: World, x: int, y: int, fault: int) -> object:
    """A table is dropped and made anew at its place: another UUID, versions from 0."""
    old = world.pick(x, lambda one: one.facts is not None and one.facts.state == "active")
    if old is None:
        return False
    folder, head = old.folder, old.head
    world.stranger.remove(folder)
    world.book.close(old)
    for number in range(y % (head + 2) + 1):
        derive(world.stranger, folder, "append", 2, [])
        if number == 0:
            made = world.book.open(folder)
        world.wrote(made)
        world.rewinds.reads[made.key, made.head] = ()
    return _register(world, made)


@move(0, ours=False)
def make_from(world: World, x: int, y: int, fault: int) -> object:
    """Append to a table, or overwrite it, by what is read from tables before it."""
    return _derived(world, x, y, "append" if y % 5 < 3 else "overwrite", 2)


@move(0, ours=False)
def load(world: World, x: int, y: int, fault: int) -> object:
    """Append what came from outside."""
    table = _any(world, x)
    return False if table is None else _written(world, table, "append", 2, [])


@move(0, ours=False)
def empty(world: World, x: int, y: int, fault: int) -> object:
    """Overwrite a table by what it is derived from, of which no row is left."""
    return _derived(world, x, y, "overwrite", 0, late=y % 2 == 0)


@move(0, ours=False)
def note(world: World, x: int, y: int, fault: int) -> object:
    """A commit of properties alone."""
    table = world.pick(x, lambda one: one.facts is not None and one.facts.state == "active")
    if table is None:
        return False
    property_commit(table.folder, "delta.checkpointInterval", str(10 + y % 7))
    world.wrote(table)
    return True


@move(0, ours=False)
def spoil(world: World, x: int, y: int, fault: int) -> object:
    """A stranger sets absurd properties on his table."""
    table = world.pick(x, lambda one: one.facts is not None and one.facts.state == "active")
    if table is None:
        return False
    absurd_properties(table.folder, _ABSURD[y % len(_ABSURD)])
    world.rewinds.absurd.add(table.key)
    world.wrote(table)
    return True


@move(0, ours=True)
def spoil_policy(world: World, x: int, y: int, fault: int) -> object:
    """Somebody sets an absurd policy; it has to be refused."""
    found_ = world.managed(x)
    if found_ is None:
        return False
    value = _ABSURD_POLICIES[y % len(_ABSURD_POLICIES)]
    said = world.command("tables", "policy", "set", found_[1].table_id, value, "-o", "json")
    if said is not None and said.code == 0:
        world.findings.append(Finding("bounds", found_[1].name, f"{value} was accepted"))
    return said


@move(0, ours=True)
def trespass(world: World, x: int, y: int, fault: int) -> object:
    """Somebody wants a name among the system tables; it has to be refused."""
    found_ = world.managed(x)
    if found_ is None:
        return False
    table, facts = found_
    said = world.command("tables", "rename", facts.table_id, f"lakewarden.t{table.key}", "-o", "json")
    if said is not None and said.code == 0:
        world.findings.append(Finding("closed", facts.name, "it is called like a system table now"))
        facts.name = f"lakewarden.t{table.key}"
    return said


@move(0, ours=True)
def ask(world: World, x: int, y: int, fault: int) -> object:
    """Somebody asks why nothing happens to a table; that is answered for every table."""
    found_ = world.managed(x)
    if found_ is None:
        return False
    said = world.command("why", found_[1].table_id, "-o", "json")
    if said is not None and said.code not in (0, 3):
        world.findings.append(
            Finding("looked after", found_[1].name, f"`why` ends with {said.code}: {said.err[-200:]}")
        )
    return said


@move(0, ours=True)
def sweep(world: World, x: int, y: int, fault: int) -> object:
    """A cycle; when it has gone through, every table was looked at, and its lineage is on record."""
    said = world.act(world.stage.cycle(), fault)
    if said is not None and said.code == 0:
        world.findings += [*world.rewinds.on_record(), *world.rewinds.looked_after()]
    return said


@move(0, ours=True)
def mark(world: World, x: int, y: int, fault: int) -> object:
    """An owner says that a version is bad. Nobody strikes him: what he marked has to be known."""
    found_ = world.managed(x, "active")
    places = [] if found_ is None else _content(world, found_[0])
    if found_ is None or not places:
        return False
    version = places[y % len(places)]

    def then(said: Said) -> None:
        world.rewinds.marked.setdefault(found_[0].key, set()).add(version)

    return world.command(
        "lineage", "mark", found_[1].table_id, str(version), "--bad", "-o", "json", then=then
    )  # fmt: skip


@move(0, ours=True)
def cascade(world: World, x: int, y: int, fault: int) -> object:
    """Plan a rollback with everything that was made from what is bad, and agree to what the plan lists."""
    found_ = world.managed(x, "active")
    places = [] if found_ is None else _content(world, found_[0])
    if found_ is None or not places:
        return False
    table, facts = found_
    how, bad, named = _seeds(world, table, places, y)
    blank = ["--consent", "collateral"] if y % 4 == 1 else []
    agreed = list(blank)
    for _ in range(_MOST):
        said = world.command(
            "rollback", "plan", facts.table_id, *how, "--cascade", *agreed, "-o", "json",
            fault=fault, but="lakewarden.rollbacks",
        )  # fmt: skip
        if said is None or not said.json.get("hash"):
            return said
        rewind = Rewind(text=said.json["hash"], bad=set(bad), named=dict(named))
        _agree(world, rewind, said.json, agreed)
        world.findings += world.rewinds.asked_for_nothing(rewind, _listed(world, said.json))
        if said.json["applicable"]:
            world.rewinds.rewinds.setdefault(rewind.text, rewind).agreed |= rewind.agreed
            return said
        more = list(_asked(said.json, y))
        if not more:
            return said
        agreed += more
    return said


@move(0, ours=True)
def apply_cascade(world: World, x: int, y: int, fault: int) -> object:
    waiting = [one for one in world.rewinds.rewinds.values() if not one.begun]
    if not waiting:
        return False
    rewind = waiting[-1]
    world.rewinds.begin(rewind)
    said = _told(world, rewind, ("apply", rewind.text), fault)
    if said is not None and rewind.state == "planned":
        rewind.since = -1
    return said


@move(0, ours=True)
def resume_cascade(world: World, x: int, y: int, fault: int) -> object:
    """Go on with one that was begun; agree to exactly what it asks for, at times."""
    rewind = _begun(world, x, "intent", "conflict", "undoing")
    if rewind is None:
        return False
    said = _told(world, rewind, ("resume", rewind.text), fault)
    if said is not None and said.code != 0 and y % 2:
        flags = re.findall(r"--consent ([a-z_]+=[^ `]+@[\d,-]+)", said.err)
        if flags:
            rewind.agreed |= {one for flag in flags for one in _agreements(world, flag)}
            rewind.since = -1
            words = [word for flag in flags for word in ("--consent", flag)]
            said = _told(world, rewind, ("resume", rewind.text, *words), 0)
    return said


@move(0, ours=True)
def undo_cascade(world: World, x: int, y: int, fault: int) -> object:
    rewind = _begun(world, x, "done", "intent", "conflict", "undoing")
    if rewind is None:
        return False
    return _told(world, rewind, ("undo", rewind.text), fault)


def _told(world: World, rewind: Rewind, words: tuple[str, ...], fault: int) -> Said | None:
    """A command about a rollback, without a daemon: whoever waits for a dead worker does not wait for ever."""
    world.stage.rest()
    said = world.act(world.stage.command("rollback", *words, "-o", "json"), fault)
    if said is not None and said.code == INTERRUPTED and "starting a worker" in said.err:
        heard = f"`rollback {words[0]}` waits for ever for a worker that is gone"
        world.findings.append(Finding("ends", "world", heard))
    return said


def _begun(world: World, x: int, *states: str) -> Rewind | None:
    fitting = [one for one in world.rewinds.rewinds.values() if one.begun and one.state in states]
    return fitting[-1 - x % len(fitting)] if fitting else None


def _seeds(
    world: World, table: Table, places: Sequence[int], y: int
) -> tuple[list[str], list[Place], dict[int, int]]:
    """How a plan is asked for, what is bad by that, and the version that is named."""
    marked = [one for one in world.rewinds.marked.get(table.key, ()) if one in places]
    if marked and y % 3 == 0:
        return ["--marked"], [(table.key, one) for one in marked], {}
    if y % 3 == 1:
        bad = places[(y // 3) % len(places)]
        return ["--bad", str(bad)], [(table.key, bad)], {}
    older = table.versions()[:-1]
    target = older[(y // 3) % len(older)]
    content = [
        version
        for version in table.after(target)
        if world.rewinds.fates[table.key, version].cause not in (Cause.SAME, Cause.RESTORED)
    ]
    return ["--to-version", str(target)], [(table.key, one) for one in content], {table.key: target}


def _asked(plan: Mapping[str, Any], y: int) -> Iterator[str]:
    """Consents to what a plan asks for; to all of a kind, or to exactly the commits that it lists."""
    for one in plan["tables"]:
        for blocker in one["blocked_by"]:
            kinds = blocker["consents"]
            if not kinds:
                return
            kind = kinds[y % len(kinds)] if len(kinds) > 1 else kinds[0]
            kind = "quarantine_born_tainted" if "born_tainted" in kind else kind
            versions = ",".join(str(lost["version"]) for lost in one["collateral"])
            exact = kind == "collateral" and y % 2 and versions
            yield from ("--consent", f"collateral={one['name']}@{versions}" if exact else kind)


def _agree(world: World, rewind: Rewind, plan: Mapping[str, Any], consents: Sequence[str]) -> None:
    """Enter what the plan lists into what somebody agreed to."""
    for words in plan["agreed_to"]:
        kind, _, rest = words.partition(" ")
        rewind.agreed |= set(_agreements(world, f"{kind}={rest}"))
        stays = world.book.of_id(rest)
        if stays is not None and kind == "skip_unreachable":
            rewind.excused.add(stays.key)
    if any(one.startswith("collateral") for one in consents):
        for key, versions in _listed(world, plan).items():
            rewind.agreed |= {("collateral", key, version) for version in versions}


def _listed(world: World, plan: Mapping[str, Any]) -> dict[int, set[int]]:
    """The commits that a plan says are lost, by table."""
    listed: dict[int, set[int]] = {}
    for one in plan["tables"]:
        table = world.book.of_id(one["table_id"])
        if table is not None and table in world.book.tables:
            listed[table.key] = {lost["version"] for lost in one["collateral"]}
    return listed


def _agreements(world: World, flag: str) -> Iterator[Agreed]:
    """`collateral=db.t@7-9,12`, by name or by id."""
    kind, _, rest = flag.partition("=")
    name, _, versions = rest.rpartition("@")
    table = world.book.of_id(name) or world.rewinds.of_name(name)
    for part in versions.split(",") if table is not None and name else ():
        first, _, last = part.partition("-")
        for version in range(int(first), int(last or first) + 1):
            yield kind, table.key if table is not None else -1, version


def _content(world: World, table: Table) -> list[int]:
    """The versions of a table, but its first, that are content."""
    world.findings += world.rewinds.catch_up()
    return [
        version
        for version in table.versions()[1:]
        if world.rewinds.fates[table.key, version].cause not in (Cause.SAME, Cause.RESTORED)
        and not table.moments[version].ours
    ]


def _known(world: World) -> Iterator[tuple[Table, Facts]]:
    for table in world.book.tables:
        if table.facts is not None and table.facts.state == "active" and table.versions():
            yield table, table.facts


def _any(world: World, x: int) -> Table | None:
    found_ = world.managed(x, "active")
    return None if found_ is None else found_[0]


def _reads(
    sources: Sequence[tuple[Table, Facts]], x: int, y: int, *, late: bool = False
) -> list[tuple[Table, Facts, int]]:
    """One or two tables at their heads, or, by a job that came late, at an older version."""
    if not sources:
        return []
    chosen = {x % len(sources), (x + y) % len(sources)} if y % 3 == 0 else {x % len(sources)}
    return [
        (table, facts, _some(table.versions(), y // 3) if late or y % 7 == 6 else table.head)
        for table, facts in (sources[number] for number in sorted(chosen))
    ]


def _some(versions: Sequence[int], y: int) -> int:
    return versions[y % len(versions)]


def _input(table: Table, facts: Facts, version: int) -> Input:
    kind = "delta" if table.is_delta else "iceberg"
    return facts.table_id, table.folder, version, table.moments[version].snapshot.uuid, kind


def _derived(world: World, x: int, y: int, mode: str, rows: int, *, late: bool = False) -> object:
    known = list(_known(world))
    if len(known) < 2:
        return False
    place = 1 + x % (len(known) - 1)
    return _written(world, known[place][0], mode, rows, _reads(known[:place], y // 7, y, late=late))


def _written(
    world: World, table: Table, mode: str, rows: int, reads: Sequence[tuple[Table, Facts, int]]
) -> object:
    inputs = [_input(*one) for one in reads]
    if table.is_delta:
        derive(world.stranger, table.folder, mode, rows, inputs)
    elif world.ices is None or not rows:
        return False
    else:
        write = world.ices.append if mode == "append" else world.ices.overwrite
        write(table.folder, told={RECORD: record(mode, inputs)})
    world.wrote(table)
    world.rewinds.reads[table.key, table.head] = tuple((one.key, version) for one, _, version in reads)
    world.said = f"{table.folder.name}@{table.head} from {[f'{o.folder.name}@{v}' for o, _, v in reads]}"
    return True


@move(0, ours=True)
def found_ice(world: World, x: int, y: int, fault: int) -> object:
    """Somebody makes an Iceberg table from others, and has it registered."""
    if world.ices is None or len(world.book.tables) >= 5:
        return False
    reads = _reads(list(_known(world)), x, y)
    table = world.open_ice(named=x % 3 == 0)
    world.ices.create(table.folder, {})
    world.ices.append(table.folder, told={RECORD: record("append", [_input(*one) for one in reads])})
    world.wrote(table)
    world.rewinds.reads[table.key, table.head] = tuple((one.key, version) for one, _, version in reads)
    return _register(world, table)


def _registered(world: World, folder: Path, reads: Sequence[tuple[Table, Facts, int]]) -> object:
    table = world.book.open(folder)
    world.wrote(table)
    world.rewinds.reads[table.key, 0] = tuple((one.key, version) for one, _, version in reads)
    return _register(world, table)


def _register(world: World, table: Table) -> object:
    def then(said: Said) -> None:
        world.book.registered(table, said.json["table_id"], said.json["name"])

    name = f"db.{table.folder.name.replace('-', '_')}"
    return world.command("tables", "register", table.address, "--name", name, "-o", "json", then=then)
