"""The adversary's book: every table in the world with what each version held, and every word that was acknowledged.

Written from the documentation alone: what a promise, a retention, a hold and a pause mean is said here once more.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

import pyarrow.parquet as pq

from support.adversary.reading import (
    AGE,
    FILES_FOR,
    LOG_FOR,
    Commit,
    Snapshot,
    commits_of,
    place_of,
    seconds_set,
    versions_of,
)

__all__ = ["DAY", "Book", "Facts", "Moment", "Pin", "Purging", "Scope", "Table"]

DAY = 86400.0
DEFAULTS = {"rollback.promise": 7 * DAY, "vacuum.retention": 7 * DAY, "log.retention": 30 * DAY}
UNSET = {FILES_FOR: 7 * DAY, LOG_FOR: 30 * DAY, AGE: 5 * DAY}
OF_PROPERTY = {FILES_FOR: "vacuum.retention", LOG_FOR: "log.retention", AGE: "vacuum.retention"}
LONGEST = 36_500 * DAY
"""No retention counts as longer."""
SLACK = timedelta(seconds=5)


@dataclass(frozen=True, kw_only=True)
class Moment:
    """One version: what it holds, when it was made by the world's clock,
    and whether it was the product's doing. `theirs`:
    the properties as they would stand without what the product has set."""

    snapshot: Snapshot
    at: datetime
    ours: bool
    operation: str = ""
    theirs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Purging:
    """A deletion that was agreed to: from when on, of which table at which version."""

    due: datetime
    version: int
    uuid: str | None


@dataclass(frozen=True, kw_only=True)
class Pin:
    """A version that an undo was promised of, until some moment."""

    version: int
    until: datetime


@dataclass(kw_only=True)
class Scope:
    """What was acknowledged for a namespace or for everything."""

    policy: dict[str, float] = field(default_factory=dict)
    hold: bool = False
    paused: bool = False


@dataclass(kw_only=True)
class Facts:
    """What was acknowledged for a managed table. `caught` are the scopes that it was ever in while they held or paused:
    a rename does not let it out of them."""

    table_id: str
    name: str
    state: str = "active"
    policy: dict[str, float] = field(default_factory=dict)
    hold: bool = False
    paused: bool = False
    purging: Purging | None = None
    caught: set[str] = field(default_factory=set)
    sure: bool = True
    """False once a command on it was killed: then either may be true."""


@dataclass(kw_only=True)
class Table:
    """A table in the world, managed or not. `gone`: files that went lawfully, or by a stranger's hand.
    `log_from`: below it somebody else has deleted the log."""

    key: int
    folder: Path
    moments: dict[int, Moment] = field(default_factory=dict)
    facts: Facts | None = None
    gone: set[str] = field(default_factory=set)
    log_from: int = 0
    pins: list[Pin] = field(default_factory=list)
    asked: dict[str, float] = field(default_factory=dict)
    clone_of: int | None = None
    rewinding: bool = False
    consented: int = -1
    """While a rollback is under way: the last version that was there when somebody asked for it."""
    spoiled: bool = False
    places: set[Path] = field(default_factory=set)
    """Where it has ever been."""
    is_delta: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.places.add(self.folder)

    def goes_to(self, folder: Path) -> None:
        """It lies there now."""
        self.folder = folder
        self.places.add(folder)

    @property
    def head(self) -> int:
        return max(self.moments, default=-1)

    @property
    def now(self) -> Snapshot:
        return self.moments[self.head].snapshot if self.moments else Snapshot()

    def is_there(self) -> bool:
        return bool(versions_of(self.folder))

    def is_behind(self) -> bool:
        """Whether there are commits that are not entered."""
        return versions_of(self.folder)[-1:] > [self.head]

    def versions(self) -> list[int]:
        """Those that somebody could go back to by their numbers, oldest first."""
        return list(range(self.head + 1))

    def told(self) -> list[int]:
        """Those of which something is left that tells how they came about."""
        return versions_of(self.folder)

    def previous(self, version: int) -> int:
        """The version before this one."""
        return version - 1

    def after(self, version: int) -> list[int]:
        """What a rollback to a version takes back."""
        return list(range(version + 1, self.head + 1))

    def has(self, version: int) -> bool:
        """Whether the version is a part of the table, as far as the book goes."""
        return version in self.moments

    def own_properties(self) -> Mapping[str, str]:
        """The properties as they would stand without what the product has set."""
        return self.moments[self.head].theirs

    def synced(self, now: datetime, *, ours: bool) -> list[int] | None:
        """Enter what is new on disk; None: the book reads Delta's log."""
        return None

    def rows_at(self, version: int) -> tuple[int, ...] | None:
        """The rows of a version; None: the book knows them by its files."""
        return None

    @property
    def address(self) -> str:
        """What it is registered by."""
        return str(self.folder)

    def also_read(self) -> Iterator[str]:
        """Files that somebody needs even where the table itself may be purged."""
        return iter(())

    def needed(self) -> Iterator[str]:
        """Files that have to stay whatever the retention is, where the book does not know them by versions."""
        return iter(())


class Book:
    """Everything that is known, and what follows from it."""

    def __init__(self) -> None:
        self.tables: list[Table] = []
        self.closed: list[Table] = []
        self.away: list[Table] = []
        self.scopes: dict[str, Scope] = {}
        self.arrivals: dict[Path, list[tuple[datetime, int]]] = {}
        self.precious: set[Path] = set()
        self.foreign: set[Path] = set()
        """Files in tables' folders that tables elsewhere read."""
        self._ids: dict[str, tuple[int, ...]] = {}

    @property
    def known(self) -> list[Table]:
        """All that there are, those on disks that are away with them."""
        return [*self.tables, *self.away]

    def take_away(self, tables: Iterable[Table]) -> None:
        """Their disk is away: nobody sees them, and nobody may take them for gone."""
        self.away += tables
        self.tables = [one for one in self.tables if one not in self.away]

    def bring_back(self) -> None:
        self.tables, self.away = self.known, []

    def change_places(self, one: Table, other: Table, now: datetime) -> None:
        """What is acknowledged for a row goes with its place."""
        for table in (one, other):
            self.arrivals.setdefault(table.folder, [(datetime.min.replace(tzinfo=UTC), table.key)])
        here, there = one.folder, other.folder
        one.goes_to(there)
        other.goes_to(here)
        one.facts, other.facts = other.facts, one.facts
        for table in (one, other):
            self.arrivals[table.folder].append((now, table.key))

    def takes_over(self, table: Table, old: Table, now: datetime) -> None:
        """A table is at the place of one that is gone, and the row is for it."""
        self.arrivals.setdefault(table.folder, [(datetime.min.replace(tzinfo=UTC), old.key)])
        self.arrivals[table.folder].append((now, table.key))
        table.facts, table.places, old.facts = old.facts, old.places | table.places, None

    def registered(self, table: Table, table_id: str, name: str) -> None:
        """A table has come under management, or was under it. At a place that a row is for, it comes under that row:
        what was acknowledged for it (a hold, a pause) is in force for what lies there until somebody lifts it."""
        if self.of_id(table_id) is not None:
            return
        left = [one for one in self.closed if one.facts is not None and one.facts.table_id == table_id]
        table.facts = left[-1].facts if left else Facts(table_id=table_id, name=name)
        for one in left:
            table.places |= one.places
            one.facts = None

    def was_there(self, table: Table, then: datetime) -> bool:
        """Whether a table was at its place at a moment already, not another one. A copy of the one that was, with the
        same log to the file times, is that one to whoever looks: moving a folder to another disk makes no more than a
        copy, either, and the docs say that UUID, version and time of the commit are what a decision is bound to."""
        known = [key for at, key in self.arrivals.get(table.folder, ()) if at <= then]
        return not known or known[-1] == table.key or self._has_log_of(table, known[-1], then)

    def _has_log_of(self, table: Table, key: int, then: datetime) -> bool:
        other = next(one for one in (*self.known, *self.closed) if one.key == key)
        head = max((version for version, moment in other.moments.items() if moment.at <= then), default=-1)
        return head in table.moments and table.moments[head] == other.moments[head]

    def open(self, folder: Path, *, clone_of: int | None = None) -> Table:
        """A new table at a folder."""
        made = Table(key=self.next_key, folder=folder, clone_of=clone_of)
        self.tables.append(made)
        return made

    @property
    def next_key(self) -> int:
        """Of the next table."""
        return len(self.known) + len(self.closed)

    def close(self, table: Table) -> None:
        """It is gone, by a stranger's hand or by a lawful purge."""
        if table in self.tables:
            self.tables.remove(table)
            self.closed.append(table)

    def at(self, folder: Path) -> Table | None:
        return next((one for one in self.tables if one.folder == folder), None)

    def of_id(self, table_id: str) -> Table | None:
        return next((one for one in self.known if one.facts and one.facts.table_id == table_id), None)

    def innermost(self, path: Path) -> Table | None:
        """The table in whose folder a path lies."""
        around = [one for one in self.tables if path.is_relative_to(one.folder)]
        return max(around, key=lambda one: len(one.folder.parts), default=None)

    def sync(self, table: Table, now: datetime, *, ours: bool) -> list[int]:
        """Enter the commits that are new on disk. Returns their versions."""
        own = table.synced(now, ours=ours)
        if own is not None:
            return own
        new = []
        for commit in commits_of(table.folder, after=table.head):
            after = table.now.after(commit)
            for path in commit.adds:
                self._read(table, path)
            theirs = _theirs(table, commit, after.properties, ours=ours)
            table.moments[commit.version] = Moment(
                snapshot=after, at=now, ours=ours, operation=commit.operation, theirs=theirs
            )
            new.append(commit.version)
        return new

    def rows(self, table: Table, version: int) -> Counter[int]:
        """The rows of a version, by id."""
        own = table.rows_at(version)
        if own is not None:
            return Counter(own)
        found: Counter[int] = Counter()
        for path in table.moments[version].snapshot.files:
            found.update(self._ids.get(path.rpartition("/")[2], ()))
        return found

    def added_by_strangers(self, table: Table, after: int) -> Counter[int]:
        """Rows that others appended after a version and nobody but us has taken away."""
        found: Counter[int] = Counter()
        for version in sorted(one for one in table.moments if one > max(after, 0)):
            last = table.previous(version)
            moment, before = table.moments[version], table.moments.get(last)
            if not moment.ours and before is not None:
                found += self.rows(table, version) - self.rows(table, last)
                found -= self.rows(table, last) - self.rows(table, version)
        return found

    def held(self, table: Table) -> bool:
        """Whether a legal hold is in force that somebody was told of."""
        facts = table.facts
        return facts is not None and (
            facts.hold or any(self._scope(one).hold for one in self.scopes_of(facts))
        )

    def paused(self, table: Table) -> bool:
        facts = table.facts
        return facts is not None and (
            facts.paused or any(self._scope(one).paused for one in self.scopes_of(facts))
        )

    def scopes_of(self, facts: Facts) -> set[str]:
        return {"*", f"{facts.name.partition('.')[0]}.*"} | facts.caught

    def policy(self, table: Table, key: str) -> float:
        """The value in force, in seconds."""
        facts = table.facts
        levels = [] if facts is None else [facts.policy]
        if facts is not None:
            levels += [self._scope(one).policy for one in (f"{facts.name.partition('.')[0]}.*", "*")]
        return next((level[key] for level in levels if key in level), DEFAULTS[key])

    def asked_for(self, table: Table, key: str) -> bool:
        """Whether anybody has set a key for this table at any level."""
        facts = table.facts
        if facts is None:
            return False
        scopes = (f"{facts.name.partition('.')[0]}.*", "*")
        return key in facts.policy or any(key in self._scope(one).policy for one in scopes)

    def window(self, table: Table, name: str) -> timedelta:
        """How long files (or log entries) of the past have to stay: the longest of what is asked for."""
        own = min(seconds_set(table.now.properties, name) or UNSET[name], LONGEST)
        if table.facts is None or table.facts.state != "active":
            return timedelta(seconds=own)
        key = OF_PROPERTY[name]
        values = [self.policy(table, "rollback.promise"), self.policy(table, key)]
        if not self.asked_for(table, key) and name in table.asked:
            values.append(table.asked[name])
        return timedelta(seconds=max(values))

    def protected_from(self, table: Table, now: datetime, name: str = FILES_FOR) -> int:
        """The oldest version that has to stay readable: the parent of the oldest young commit, or what is pinned."""
        since = now - self.window(table, name) + SLACK
        young = [version for version, one in table.moments.items() if one.at > since]
        oldest = max(min(young) - 1, 0) if young else table.head
        return min([oldest, *(pin.version for pin in table.pins if pin.until > now + SLACK)])

    def protected(self, table: Table, now: datetime) -> Iterator[str]:
        """The files (as the log names them) of all versions that have to stay, but for those that had gone before."""
        if table.clone_of is not None and table.facts is None:
            return  # a clone that nobody told us of cannot be protected, and the docs say so
        if not table.is_delta:
            yield from set(table.needed()) - table.gone
            return
        first = self.protected_from(table, now)
        seen: set[str] = set(table.gone)
        for version in range(table.head, first - 1, -1):
            if version in table.moments:
                yield from table.moments[version].snapshot.files - seen
                seen |= table.moments[version].snapshot.files

    def purges(self, table: Table, now: datetime) -> bool:
        """Whether its files may be deleted right now."""
        facts = table.facts
        if facts is None or facts.purging is None or facts.state != "purging":
            return False
        wanted = facts.purging
        agreed = (table.head, table.now.uuid) == (wanted.version, wanted.uuid) and now + SLACK >= wanted.due
        return agreed and not self.held(table) and not self.paused(table)

    def forget_missing(self) -> None:
        """What is not there now went lawfully, or was reported: it is not looked for again."""
        for table in list(self.tables):
            for moment in table.moments.values():
                table.gone |= {
                    one for one in moment.snapshot.files if not place_of(table.folder, one).exists()
                }
            table.gone |= {one for one in table.needed() if not place_of(table.folder, one).exists()}
            if not table.is_there():
                self.close(table)

    def missing(self, table: Table, now: datetime) -> Iterable[str]:
        return sorted(one for one in self.protected(table, now) if not place_of(table.folder, one).exists())

    def _scope(self, name: str) -> Scope:
        return self.scopes.setdefault(name, Scope())

    def scope(self, name: str) -> Scope:
        """What was acknowledged for a scope."""
        return self._scope(name)

    def catch(self) -> None:
        """Tables that are in a scope which holds or pauses stay caught, whatever they are called later."""
        for table in self.known:
            facts = table.facts
            if facts is not None:
                inside = ("*", f"{facts.name.partition('.')[0]}.*")
                facts.caught |= {one for one in inside if self._scope(one).hold or self._scope(one).paused}

    def _read(self, table: Table, path: str) -> None:
        name = path.rpartition("/")[2]
        if name not in self._ids and place_of(table.folder, path).exists():
            read = pq.read_table(place_of(table.folder, path), columns=["id"], partitioning=None)
            self._ids[name] = tuple(read["id"].to_pylist())


def _theirs(table: Table, commit: Commit, after: Mapping[str, str], *, ours: bool) -> dict[str, str]:
    """The properties of a version without what the product has set: whoever restores one restores these, too."""
    last = table.moments.get(commit.version - 1)
    if last is None:
        return dict(after)
    if ours:
        return dict(last.theirs)
    if commit.restored in table.moments:
        return dict(table.moments[commit.restored].theirs)
    changed = {
        name
        for name in {*last.snapshot.properties, *after}
        if last.snapshot.properties.get(name) != after.get(name)
    }
    kept = {name: value for name, value in last.theirs.items() if name not in changed}
    return kept | {name: after[name] for name in changed if name in after}
