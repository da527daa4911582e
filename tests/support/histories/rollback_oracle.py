"""What a rollback has to do, by brute force: contents as symbols, computed twice. Shares no code with the product.

A content is a hash of the operation, what it kept of its parent, and what it read. Every version is computed with two
different values for the seeds: where the two contents are equal, the version does not depend on a seed. Nothing is
followed forward, no closure is formed.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from support.histories.fleets import CONTENT, FRESH, MAINTENANCE, Event, Fleet, Kind, Place, Told

__all__ = ["Expected", "Truth", "expected_of", "lost_between", "rows_left", "rows_without"]


class Truth:
    """Contents of one fleet for one value of the seeds.
    With `only_told`, reads that the product cannot know do not count."""

    def __init__(self, fleet: Fleet, seeds: Iterable[int], salt: int, *, only_told: bool) -> None:
        self._fleet, self._seeds, self._salt, self._only_told = fleet, frozenset(seeds), salt, only_told
        self.state: dict[Place, str] = {}
        self.change: dict[Place, str] = {}
        self.own: dict[Place, str] = {}
        for event in fleet.events:
            self._compute(event)

    def _compute(self, event: Event) -> None:
        table, life, version = event.place
        parent = self.state[table, life, version - 1] if version else "nothing"
        kept = "" if event.number in self._seeds and event.kind not in CONTENT else parent
        match event.kind:
            case Kind.OPTIMIZE | Kind.VACUUM | Kind.PROPERTIES | Kind.OURS | Kind.SCHEMA:
                state, change, own = kept, "none", "alias"
            case Kind.RESTORE:
                assert event.target is not None
                state = self.state[table, life, event.target]
                change, own = _hash(parent, state), "alias"
            case _:
                own = self._own(event, parent)
                state = own if event.kind in FRESH else _hash(own, parent)
                change = own if event.kind is Kind.APPEND else _hash(own, parent)
        self.state[event.place], self.change[event.place], self.own[event.place] = state, change, own

    def _own(self, event: Event, parent: str) -> str:
        salt = self._salt if event.number in self._seeds else 0
        parts = [event.kind, str(event.number), str(salt)]
        if self._only_told and event.told in (Told.NOTHING, Told.HINT):
            return _hash(*parts)
        if event.reads_self:
            parts.append(parent)
        for read in event.reads:
            table, life, version = read.place
            if read.after is None:
                parts.append(self.state[read.place])
            else:
                parts.extend(self.change[table, life, one] for one in range(read.after + 1, version + 1))
        return _hash(*parts)


@dataclass(frozen=True, kw_only=True)
class Expected:
    """One table: head and target versions (None: born tainted), tainted versions, and those that head would
    lose although they are clean."""

    head: int
    target: int | None
    tainted: tuple[int, ...]
    collateral: tuple[int, ...]


def expected_of(
    fleet: Fleet, seeds: frozenset[int], named: Mapping[str, int], cut: Mapping[str, int]
) -> dict[str, Expected]:
    """What has to become of every table, going by what the product can know. `named` are versions asked for by table,
    `cut` the versions with which logs begin: of those before it nobody knows which were mere maintenance."""
    one, other = (Truth(fleet, seeds, salt, only_told=True) for salt in (1, 2))
    return {
        table: _expected(fleet, table, seeds, named.get(table), one, other, cut.get(table, 0))
        for table in fleet.lives
    }


def _expected(
    fleet: Fleet, table: str, seeds: frozenset[int], named: int | None, one: Truth, other: Truth, first: int
) -> Expected:
    events = fleet.current(table)
    head = len(events) - 1
    start = head if named is None else named
    if start + 1 >= first and all(event.kind in MAINTENANCE for event in events[start + 1 :]):
        start = head
    clean = {event.place[2] for event in events if one.state[event.place] == other.state[event.place]}
    target = next((version for version in _way_back(events, start) if version in clean), None)
    own = {
        event.place[2]
        for event in events
        if event.number in seeds or one.own[event.place] != other.own[event.place]
    }
    lost = lost_between(events, target, named)
    return Expected(
        head=head, target=target, tainted=tuple(sorted(own)), collateral=tuple(sorted(lost - own))
    )


def lost_between(events: list[Event], target: int | None, named: int | None) -> set[int]:
    """The versions that head holds and `target` does not, and that somebody could miss. `named` was asked for."""
    head = len(events) - 1
    if target is None or target == head:
        return set()  # what was never clean keeps its data
    rows = set(_held(events, head)) - set(_held(events, target))
    columns = set(_shaping(events, head)) - set(_way_back(events, target))
    return {
        version
        for version in _way_back(events, head)
        if version in (columns if events[version].kind is Kind.SCHEMA else rows)
        and _can_be_missed(events[version], asked=named is not None and version > named)
    }


def _can_be_missed(event: Event, *, asked: bool) -> bool:
    """Whether it changed rows, or, unless that was asked to be undone, columns."""
    if event.kind is Kind.SCHEMA:
        return not asked
    return event.kind in CONTENT and bool(event.hit or event.added)


def _held(events: list[Event], version: int) -> list[int]:
    """The way back as far as rows may have come along it: to an overwrite that did not read what was there."""
    way = []
    for one in _way_back(events, version):
        way.append(one)
        if events[one].kind in FRESH and not _read_what_was_there(events[one]):
            break
    return way


def _shaping(events: list[Event], version: int) -> list[int]:
    """The way back as far as columns may have come along it: to a table made anew."""
    way = []
    for one in _way_back(events, version):
        way.append(one)
        if events[one].kind is Kind.REPLACE:
            break
    return way


def _read_what_was_there(event: Event) -> bool:
    """As far as anything tells: an overwrite of which nobody knows what it read has removed what was there."""
    if event.told is Told.NOTHING:
        return False
    table, life, version = event.place
    return event.reads_self or any(read.place == (table, life, version - 1) for read in event.reads)


def _way_back(events: list[Event], version: int) -> list[int]:
    way = []
    while version >= 0:
        way.append(version)
        event = events[version]
        version = event.target if event.kind is Kind.RESTORE and event.target is not None else version - 1
    return way


def rows_left(fleet: Fleet, table: str, removed: Iterable[int]) -> list[str]:
    """The rows of a table's head, file by file as symbols, when the files that some versions added are taken away."""
    gone = {name for version in removed for name in fleet.current(table)[version].added}
    contents = _files(fleet, frozenset())
    head = fleet.head(table).place
    return sorted(row for name in fleet.files[head] if name not in gone for row in contents[head][name])


def rows_without(fleet: Fleet, table: str, never: frozenset[int]) -> list[str]:
    """The rows of a table's head had some events (by number) never happened."""
    contents = _files(fleet, never)
    return sorted(row for rows in contents[fleet.head(table).place].values() for row in rows)


Rows = dict[str, tuple[str, ...]]
"""By file, its rows as symbols."""


def _files(fleet: Fleet, never: frozenset[int]) -> dict[Place, Rows]:
    """By version, the rows of each file. One row per file is enough, compaction keeps those it found."""
    contents: dict[Place, Rows] = {}
    changes: dict[Place, str] = {}
    for event in fleet.events:
        table, life, version = event.place
        before = contents[table, life, version - 1] if version else {}
        if event.number in never:
            after = before
        elif event.kind is Kind.RESTORE:
            assert event.target is not None
            after = contents[table, life, event.target]
        else:
            after = _after(event, before, contents, changes)
        contents[event.place] = after
        changes[event.place] = _changed(event, before, after)
    return contents


def _changed(event: Event, before: Rows, after: Rows) -> str:
    if event.kind in MAINTENANCE:
        return "none"
    if event.kind is Kind.APPEND:
        return _hash(*sorted(row for name in event.added for row in after.get(name, ())))
    return "none" if before == after else _hash(_whole(before), _whole(after))


def _after(event: Event, before: Rows, contents: dict[Place, Rows], changes: dict[Place, str]) -> Rows:
    whole = _whole(before)
    read = []
    for one in event.reads:
        table, life, version = one.place
        if one.after is None:
            read.append(_whole(contents[one.place]))
        else:
            read.extend(changes[table, life, step] for step in range(one.after + 1, version + 1))
    made = _hash(event.kind, str(event.number), *read, whole if event.reads_self else "")
    kept = {} if event.kind in FRESH else before
    after = {name: rows for name, rows in kept.items() if name not in event.hit}
    for name in event.hit:
        for row in before.get(name, ()):
            place = f"{name}~{event.number}"
            match event.kind:
                case Kind.OPTIMIZE:
                    after[place] = (*after.get(place, ()), row)
                case Kind.UPDATE | Kind.DELETE:
                    after[place] = (*after.get(place, ()), _hash(made, row))
                case Kind.MERGE:
                    after[place] = (*after.get(place, ()), _hash(made, row, whole))
    new = f"f{event.number}"
    if new in event.added:
        after[new] = (_hash(made, whole if event.kind is Kind.MERGE else ""),)
    return after


def _whole(rows: Rows) -> str:
    return _hash(*sorted(row for found in rows.values() for row in found))


def _hash(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=8).hexdigest()
