"""Random fleets: tables that write, read, overwrite, compact, restore, drop and recreate one another, event by event.

An `Event` is the truth about one commit. What the product gets to see of it (commits, lineage rows) is made by
support/fleet_logs.py, what the truth implies is worked out by support/rollback_oracle.py.
"""

import random
from dataclasses import dataclass, field
from enum import StrEnum

__all__ = [
    "CONTENT",
    "FRESH",
    "MAINTENANCE",
    "Event",
    "Fleet",
    "Kind",
    "Place",
    "Read",
    "Told",
    "random_fleet",
]

Place = tuple[str, int, int]
"""Table, life (each recreation begins a new one), version."""


class Kind(StrEnum):
    CREATE = "create"
    APPEND = "append"
    MERGE = "merge"
    UPDATE = "update"
    DELETE = "delete"
    PARTIAL = "partial overwrite"
    OVERWRITE = "overwrite"
    REPLACE = "replace"
    OPTIMIZE = "optimize"
    VACUUM = "vacuum"
    PROPERTIES = "properties"
    OURS = "our properties"
    SCHEMA = "schema"
    RESTORE = "restore"


FRESH = frozenset({Kind.CREATE, Kind.OVERWRITE, Kind.REPLACE})
CONTENT = FRESH | {Kind.APPEND, Kind.MERGE, Kind.UPDATE, Kind.DELETE, Kind.PARTIAL}
MAINTENANCE = frozenset({Kind.OPTIMIZE, Kind.VACUUM, Kind.OURS})
"""What nobody who reads the table can see, or what is set again after every rewind."""
_MAY_BE_IDLE = CONTENT - {Kind.CREATE, Kind.UPDATE, Kind.DELETE}
_SHARE_IDLE = 0.15
"""Of the writes that bring rows, these bring none."""
_SHARE_RECREATED = 0.03
_WEIGHTS = {
    Kind.APPEND: 36,
    Kind.MERGE: 9,
    Kind.UPDATE: 4,
    Kind.DELETE: 4,
    Kind.PARTIAL: 5,
    Kind.OVERWRITE: 9,
    Kind.REPLACE: 4,
    Kind.OPTIMIZE: 9,
    Kind.VACUUM: 3,
    Kind.PROPERTIES: 3,
    Kind.OURS: 2,
    Kind.SCHEMA: 3,
    Kind.RESTORE: 7,
}


class Told(StrEnum):
    """How the product learns what an event read: from its commit, from a stream's rows, as a hint, or not at all."""

    COMMIT = "commit"
    STREAM = "stream"
    HINT = "hint"
    NOTHING = "nothing"


@dataclass(frozen=True, kw_only=True)
class Read:
    """What an event read; only the changes after version `after` where that is set."""

    place: Place
    after: int | None = None


@dataclass(frozen=True, kw_only=True)
class Event:
    """One commit. `hit` are the files it rewrites or takes away, `added` those it brings;
    `format_id` holds after it."""

    number: int
    place: Place
    kind: Kind
    reads: tuple[Read, ...] = ()
    reads_self: bool = False
    target: int | None = None
    told: Told = Told.COMMIT
    run_id: str
    format_id: str
    hit: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


@dataclass(kw_only=True)
class Fleet:
    """`events` in the order they were committed; `lives` the current life of each table."""

    events: list[Event] = field(default_factory=list)
    lives: dict[str, int] = field(default_factory=dict)
    files: dict[Place, tuple[str, ...]] = field(default_factory=dict)
    heads: dict[tuple[str, int], int] = field(default_factory=dict)
    at: dict[Place, Event] = field(default_factory=dict)

    def current(self, table: str) -> list[Event]:
        """The events of a table's current life, in order."""
        life = self.lives[table]
        return [self.at[table, life, version] for version in range(self.heads[table, life] + 1)]

    def head(self, table: str) -> Event:
        """The newest event of a table."""
        return self.current(table)[-1]


def random_fleet(chance: random.Random, *, foreign: float) -> Fleet:
    """A fleet of 2 to 7 tables and up to 45 commits; a share `foreign` of the writes is not told by its commit."""
    fleet = Fleet()
    tables = [f"t{number}" for number in range(chance.randint(2, 7))]
    for table in tables:
        _create(fleet, table, chance, foreign)
    for _ in range(chance.randint(4, 38)):
        table = chance.choice(tables)
        if chance.random() < _SHARE_RECREATED:
            fleet.lives[table] += 1
            _create(fleet, table, chance, foreign)
        else:
            _commit(fleet, table, chance, foreign)
    return fleet


def _create(fleet: Fleet, table: str, chance: random.Random, foreign: float) -> None:
    life = fleet.lives.setdefault(table, 0)
    number = len(fleet.events)
    _add(
        fleet,
        Event(
            number=number,
            place=(table, life, 0),
            kind=Kind.CREATE,
            reads=_reads(fleet, table, chance),
            told=_told(chance, foreign),
            run_id=_run(chance),
            format_id=f"u{number}",
            added=(f"f{number}",),
        ),
    )


def _commit(fleet: Fleet, table: str, chance: random.Random, foreign: float) -> None:
    kind = chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
    life, number, before = fleet.lives[table], len(fleet.events), fleet.head(table)
    content = kind in CONTENT
    reading = content and kind not in (Kind.UPDATE, Kind.DELETE)
    live = fleet.files[before.place]
    target = chance.randrange(before.place[2] + 1) if kind is Kind.RESTORE else None
    idle = kind in _MAY_BE_IDLE and chance.random() < _SHARE_IDLE
    hit = () if idle and kind is Kind.MERGE else _hit(kind, live, chance)
    kept = fleet.at[table, life, target].format_id if target is not None else before.format_id
    _add(
        fleet,
        Event(
            number=number,
            place=(table, life, before.place[2] + 1),
            kind=kind,
            reads=_reads(fleet, table, chance) if reading else (),
            reads_self=reading and chance.random() < 0.1,
            target=target,
            told=_told(chance, foreign) if content else Told.COMMIT,
            run_id=_run(chance),
            format_id=f"u{number}" if kind is Kind.REPLACE else kept,
            hit=hit,
            added=() if idle else _added(kind, number, hit),
        ),
    )


def _add(fleet: Fleet, event: Event) -> None:
    table, life, version = event.place
    if event.kind is Kind.RESTORE:
        assert event.target is not None
        files = fleet.files[table, life, event.target]
    else:
        before = fleet.files[table, life, version - 1] if version else ()
        files = (*(one for one in before if one not in event.hit), *event.added)
    fleet.events.append(event)
    fleet.at[event.place] = event
    fleet.files[event.place] = files
    fleet.heads[table, life] = version


def _hit(kind: Kind, live: tuple[str, ...], chance: random.Random) -> tuple[str, ...]:
    if kind in FRESH:
        return live
    if kind in (Kind.MERGE, Kind.UPDATE, Kind.DELETE, Kind.PARTIAL, Kind.OPTIMIZE):
        return tuple(one for one in live if chance.random() < 0.35)
    return ()


def _added(kind: Kind, number: int, hit: tuple[str, ...]) -> tuple[str, ...]:
    """New files: rewritten ones keep the old name with a mark, so that the oracle sees what became of which."""
    rewritten = tuple(f"{one}~{number}" for one in hit)
    match kind:
        case Kind.APPEND | Kind.OVERWRITE | Kind.REPLACE | Kind.PARTIAL | Kind.CREATE:
            return (f"f{number}",)
        case Kind.MERGE:
            return (*rewritten, f"f{number}")
        case Kind.UPDATE | Kind.DELETE | Kind.OPTIMIZE:
            return rewritten
        case _:
            return ()


def _reads(fleet: Fleet, table: str, chance: random.Random) -> tuple[Read, ...]:
    """Mostly heads, sometimes old versions, sometimes only changes; now and then an older version of itself."""
    others = [one for one in fleet.lives if one != table or chance.random() < 0.08]
    found = []
    for one in chance.sample(others, min(len(others), chance.choice((0, 0, 1, 1, 1, 2, 3)))):
        life = fleet.lives[one]
        head = fleet.heads.get((one, life))
        if head is None:
            continue
        version = head if chance.random() < 0.6 else chance.randint(0, head)
        after = chance.randrange(-1, version) if chance.random() < 0.15 else None
        found.append(Read(place=(one, life, version), after=after))
    return tuple(found)


def _told(chance: random.Random, foreign: float) -> Told:
    if chance.random() >= foreign:
        return Told.STREAM if chance.random() < 0.15 else Told.COMMIT
    return Told.HINT if chance.random() < 0.3 else Told.NOTHING


def _run(chance: random.Random) -> str:
    return f"run-{chance.randrange(12)}"
