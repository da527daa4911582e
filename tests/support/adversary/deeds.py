"""What users and the product do: commands, cycles of the daemon, runs of workers,
and those who stood still and go on."""

from datetime import timedelta

from support.adversary.book import Pin, Purging, Table
from support.adversary.invariants import Finding
from support.adversary.moves import move
from support.adversary.reading import AGE, CLEANUP, FILES_FOR, LOG_FOR, seconds_of
from support.adversary.stage import Said
from support.adversary.world import World

__all__: list[str] = []

GRACE = timedelta(days=7)
UNDO = timedelta(days=7)
KEPT = (FILES_FOR, LOG_FOR, CLEANUP, AGE)


@move(9, ours=True)
def register(world: World, x: int, y: int, fault: int) -> object:
    table = world.pick_any(x, lambda one: one.facts is None or y % 3 == 0)
    if table is None:
        return False

    def then(said: Said) -> None:
        world.book.registered(table, said.json["table_id"], said.json["name"])

    asks = table.facts is None and y % 4 < 3
    named = ("--name", f"db.{table.folder.name.replace('-', '_')}{table.key}") if asks else ()
    return world.command("tables", "register", table.address, *named, "-o", "json", fault=fault, then=then)


_POLICIES: tuple[dict[str, str], ...] = (
    {"mode": "manage"},
    {"vacuum.retention": "365 days"},
    {"rollback.promise": "1 day", "vacuum.retention": "1 day", "mode": "manage"},
    {
        "rollback.promise": "1 day",
        "vacuum.retention": "1 day",
        "log.retention": "1 day",
        "log.checkpoint_commits": "2",
        "mode": "manage",
    },
    {"rollback.promise": "30 days", "vacuum.retention": "30 days", "log.retention": "30 days"},
    {"compaction.min_small_files": "2", "compaction.quiet": "1 s", "mode": "manage"},
    {"rollback.promise": "365 days", "vacuum.retention": "365 days", "log.retention": "365 days"},
)


@move(8, ours=True)
def policy(world: World, x: int, y: int, fault: int) -> object:
    found = world.managed(x)
    if found is None:
        return False
    facts = found[1]
    chosen = _POLICIES[y % len(_POLICIES)]
    scope = ("db.*", "*")[y % 2] if x % 5 == 0 else None

    def then(said: Said) -> None:
        into = facts.policy if scope is None else world.book.scope(scope).policy
        into.update(
            {
                key: seconds_of(f"interval {value}") or 0.0
                for key, value in chosen.items()
                if "." in key and "." not in value
            }
        )

    words = [f"{key}={value}" for key, value in chosen.items()]
    return world.command(
        "tables",
        "policy",
        "set",
        scope or facts.table_id,
        *words,
        "-o",
        "json",
        fault=fault,
        then=then,
        facts=facts,
    )


@move(5, ours=True)
def hold(world: World, x: int, y: int, fault: int) -> object:
    return _switch(world, x, y, fault, "hold")


@move(5, ours=True)
def pause(world: World, x: int, y: int, fault: int) -> object:
    return _switch(world, x, y, fault, "paused")


def _switch(world: World, x: int, y: int, fault: int, what: str) -> object:
    """Put it under hold or pause, or lift that: a table, a namespace, everything."""
    found = world.managed(x, "active", "dropped", "purging") if what == "hold" else world.managed(x)
    if found is None:
        return False
    facts = found[1]
    if facts.state != "active":
        return False
    scope = (None, "db.*", "*")[y % 3]
    target = scope or facts.table_id
    on = (y // 3) % 3 != 2
    if what == "hold":
        words = ["tables", "hold", target, *(["--reason", "case"] if on else ["--lift"])]
    else:
        words = ["pause", target, "--reason", "stop"] if on else ["resume", target]

    def then(said: Said) -> None:
        setattr(facts if scope is None else world.book.scope(scope), what, on)
        if scope is not None and not on:
            for table in world.book.known:
                if (
                    table.facts is not None
                    and not world.book.scope(scope).hold
                    and not world.book.scope(scope).paused
                ):
                    table.facts.caught.discard(scope)
        elif not on:
            facts.caught.clear()

    return world.command(*words, "-o", "json", fault=fault, then=then, facts=facts)


@move(4, ours=True)
def rename(world: World, x: int, y: int, fault: int) -> object:
    found = world.managed(x)
    if found is None:
        return False
    table, facts = found
    name = f"{('free', 'db')[y % 2]}.r{table.key}_{y % 7}"

    def then(said: Said) -> None:
        facts.name = name

    return world.command(
        "tables", "rename", facts.table_id, name, "-o", "json", fault=fault, then=then, facts=facts
    )


@move(4, ours=True)
def drop(world: World, x: int, y: int, fault: int) -> object:
    """Leave management; what was set on the table for us is set back."""
    found = world.managed(x)
    if found is None:
        return False
    table, facts = found

    def then(said: Said) -> None:
        facts.state = "dropped"
        world.stamp_quietly()
        theirs = table.own_properties()
        left = {key for key in KEPT if table.now.properties.get(key) != theirs.get(key)}
        if left and not table.rewinding and "tries again" not in said.err:
            words = f"it was dropped, and {', '.join(sorted(left))} stay as we had set them"
            world.findings.append(Finding("leaving", facts.name, words))

    world.stage.rest()
    return world.command(
        "tables", "drop", facts.table_id, "--yes", "-o", "json", fault=fault, then=then, facts=facts
    )


@move(7, ours=True)
def purge(world: World, x: int, y: int, fault: int) -> object:
    found = world.managed(x)
    if found is None:
        return False
    table, facts = found
    version = str(table.head)

    def agreed() -> None:
        due = world.stage.now() + GRACE - timedelta(minutes=1)
        facts.purging = Purging(due=due, version=int(version), uuid=table.now.uuid)

    def then(said: Said) -> None:
        facts.state = "purging"
        if not fault:
            agreed()  # the grace counts from when it was asked for, however long who asked stood still

    if fault:
        agreed()  # who is killed may have said so before

    return world.command(
        "tables", "drop", facts.table_id, "--purge", "--at-version", version, "--yes", "-o", "json",
        fault=fault, then=then, facts=facts,
    )  # fmt: skip


@move(6, ours=True)
def undrop(world: World, x: int, y: int, fault: int) -> object:
    found = world.managed(x, "dropped", "purging")
    if found is None:
        return False
    facts = found[1]

    def then(said: Said) -> None:
        facts.state, facts.purging = "active", None

    return world.command(
        "tables", "undrop", facts.table_id, "-o", "json", fault=fault, then=then, facts=facts
    )


@move(10, ours=True)
def order(world: World, x: int, y: int, fault: int) -> object:
    """A run is ordered and left lying: the daemon's workers are busy, and who ordered it does not wait."""
    found = world.managed(x)
    if found is None:
        return False
    facts = found[1]
    action = (
        ("vacuum", "--consent"),
        ("vacuum", "--full", "--consent"),
        ("log_care",),
        ("properties",),
        ("compact",),
    )
    wanted = action[(0, 1, 0, 1, 1, 2, 3, 4)[y % 8]]
    if wanted == ("log_care",) and not found[0].is_delta:
        wanted = ("metadata_care",)
    world.stage.lead()
    actor = world.stage.command("jobs", "run", facts.table_id, *wanted, "-o", "json")
    actor.interrupts = True
    return world.act(actor, fault)


@move(0, ours=True)
def foretell(world: World, x: int, y: int, fault: int) -> object:
    """A dry run of a vacuum, which changes nothing, and then the vacuum, which deletes exactly what that said."""
    found = world.managed(x)
    if found is None:
        return False
    table, facts = found
    words = ["jobs", "run", facts.table_id, "vacuum", *(["--full"] if y % 2 else []), "-o", "json"]
    world.stage.rest()
    before = world.digest()
    told = world.act(world.stage.command(*words, "--dry-run"))
    if told is None or told.code != 0:
        return told
    if world.digest()[table.folder.name] != before[table.folder.name]:
        world.findings.append(Finding("dry run", facts.name, "it changed the table"))
    world.deleted.clear()
    done = world.act(world.stage.command(*words, "--consent"))
    if done is not None and done.code == 0:
        gone = sum(one.is_relative_to(table.folder) for one in world.deleted)
        said, did = told.json["actual_files"] or 0, done.json["actual_files"] or 0
        if not said == did == gone:
            heard = f"{said} files were foretold, {did} are told as deleted, {gone} were"
            world.findings.append(Finding("dry run", facts.name, heard))
    return done


@move(7, ours=True)
def plan(world: World, x: int, y: int, fault: int) -> object:
    found = world.managed(x)
    if found is None or len(found[0].versions()) < 2:
        return False
    table, facts = found
    head, older = table.head, table.versions()[:-1]
    target = older[y % len(older)]

    def then(said: Said) -> None:
        if said.json.get("hash"):
            world.plans.append((said.json["hash"], table, target, head))

    return world.command(
        "rollback", "plan", facts.table_id, "--to-version", str(target), "--consent", "collateral", "-o",
        "json", fault=fault, then=then, but="lakewarden.rollbacks",
    )  # fmt: skip


@move(7, ours=True)
def apply(world: World, x: int, y: int, fault: int) -> object:
    if not world.plans:
        return False
    text, table, target, head = world.plans.pop()
    if table not in world.book.tables:
        return False
    table.rewinding, table.consented = True, table.head
    consented = table.head
    world.rolled.append((text, table, head, target))
    world.stage.rest()

    def then(said: Said) -> None:
        if said.code == 0 and said.json.get("state") == "done":
            _ended(world, table, target, f"rollback to {target}", consented)
            table.pins.append(Pin(version=head, until=world.stage.now() + UNDO))

    actor = world.stage.command("rollback", "apply", text, "-o", "json")
    actor.then = then
    return world.act(actor, fault)


@move(4, ours=True)
def undo(world: World, x: int, y: int, fault: int) -> object:
    return _again(world, x, fault, "undo", "compensated")


@move(4, ours=True)
def resume_rollback(world: World, x: int, y: int, fault: int) -> object:
    return _again(world, x, fault, "resume", "done")


def _again(world: World, x: int, fault: int, verb: str, state: str) -> object:
    if not world.rolled:
        return False
    text, table, head, target = world.rolled[x % len(world.rolled)]
    if table not in world.book.tables:
        return False
    table.consented = consented = table.head
    table.pins = [pin for pin in table.pins if pin.version != head]
    world.stage.rest()
    at = table.head

    def then(said: Said) -> None:
        if said.code == 0 and said.json.get("state") == state:
            _ended(world, table, head if verb == "undo" else target, verb, consented)

    actor = world.stage.command("rollback", verb, text, "-o", "json")
    actor.then = then
    said = world.act(actor, fault)
    return said if at <= table.head else None


def _ended(world: World, table: Table, target: int, what: str, consented: int) -> None:
    """What was acknowledged as rolled back or undone holds the rows of `target`, and what others wrote since.
    `consented` was head when somebody asked for it."""
    world.stamp()
    world.stamp_quietly()
    if table not in world.book.tables or target not in table.moments:
        return
    since = [one for version, one in table.moments.items() if version > target and not one.ours]
    after = [v for v, one in table.moments.items() if v > consented and not one.ours]
    if after or (what == "undo" and since):
        return  # somebody wrote meanwhile: what is left then is for the invariant of rows
    if world.book.rows(table, table.head) != world.book.rows(table, target):
        name = table.facts.name if table.facts is not None else table.folder.name
        words = (
            f"{what} was acknowledged as done, and head {table.head} does not hold "
            f"the rows of version {target}"
        )
        world.findings.append(Finding("rows", name, words))


@move(9, ours=True)
def cycle(world: World, x: int, y: int, fault: int) -> object:
    return world.act(world.stage.cycle(), fault)


@move(16, ours=True)
def work(world: World, x: int, y: int, fault: int) -> object:
    return world.act(world.stage.work(), fault)


@move(8, ours=True)
def wake(world: World, x: int, y: int, fault: int) -> object:
    """Somebody who stood still goes on."""
    if not world.stage.frozen:
        return False
    actor = world.stage.frozen[x % len(world.stage.frozen)]
    world.stage.take(actor)
    world.after()
    world.said = f"{actor.name}{'' if actor.said is None else ': ' + actor.said.err.strip()[-200:]}"
    return True
