"""Random histories of a few real tables, with what each version holds kept beside them, row by row.

Every row names the write that made it and all writes its value depends on; every version, all writes that had
a part in it (also in what is not there any more). So what a rollback has to give back can be said without a
version graph: the newest content on a table's way back that no bad write had a part in.
Which formats the tables have, who executes the writes, and on which storage, is given (table_kinds.py, scribes.py).
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from lakewarden.catalog.registry.register import register
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.daemon.control.assembly import build_daemon
from lakewarden.daemon.control.main_loop import Until
from lakewarden.daemon.installation.services import Services
from support.builders.callers import actor
from support.histories.scribes import Content, Deed, Kind, Row, Scribe, Source
from support.histories.table_kinds import TableKind

__all__ = ["ANA", "History", "Moment", "Size"]

ANA = actor("ana", admin=True)
_SHARE_BORN_LATE: Final = 0.4
"""In so many histories a table is made when the others have a past: it may be derived from nothing but bad writes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Size:
    """How large a history gets: from and to, both included."""

    tables: tuple[int, int] = (3, 5)
    events: tuple[int, int] = (6, 14)


@dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    """One version: what it holds, the writes it came about by, the write that made it."""

    rows: Content
    depends: frozenset[int]
    made: int | None = None
    before: int | None = None
    """The version that comes next on the way back; None: there is none."""


_NOTHING: Final = Moment(rows=(), depends=frozenset())


@dataclass
class History:
    """Tables `t0`, `t1`, ...; a table reads only from those before it, and from itself."""

    services: Services
    chance: random.Random
    kinds: Sequence[TableKind]
    size: Size = field(default_factory=Size)
    tables: dict[str, list[Moment]] = field(default_factory=dict)
    """Of each table its moments, by their versions. Before the first version of its kind there is an empty one."""
    kind_of: dict[str, TableKind] = field(default_factory=dict)
    heads: dict[str, int] = field(default_factory=dict)
    ids: dict[str, str] = field(default_factory=dict)
    writes: int = 0
    commits: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.services.settings.home.mkdir(parents=True)
        store = self.services.store
        store.create(system_rows(store, now=self.services.clock.now(), actor="root"))
        names = [f"t{number}" for number in range(self.chance.randint(*self.size.tables))]
        late = names.pop() if self.chance.random() < _SHARE_BORN_LATE else None
        for name in names:
            self._create(name)
        events = self.chance.randint(*self.size.events)
        for number in range(events):
            if late is not None and 2 * number >= events:
                self._create(late)
                late = None
            self._event(self.chance.choice(list(self.tables)))

    def place(self, name: str) -> str:
        """The canonical location of a table."""
        return self.kind_of[name].place(name)

    def head(self, name: str) -> int:
        """The version that the history has brought a table to."""
        return self.heads[name]

    def now(self, name: str) -> Moment:
        """What the history has brought a table to."""
        return self.tables[name][self.heads[name]]

    def earlier(self, name: str) -> Sequence[int]:
        """The versions before head that the table can go back to."""
        if self.kind_of[name].restores_by_commit:
            return range(self.kind_of[name].first, self.heads[name])
        return sorted(self._way_back(name))

    def _way_back(self, name: str) -> Iterator[int]:
        version = self.now(name).before
        while version is not None:
            yield version
            version = self.tables[name][version].before

    def rows(self, name: str) -> Content:
        """What the table holds now, read from the table."""
        return self.kind_of[name].rows(name)

    def bad_after(self, name: str, version: int) -> frozenset[int]:
        """The writes that made the table's versions after `version`."""
        return frozenset(one.made for one in self.tables[name][version + 1 :] if one.made is not None)

    def newest_clean(self, name: str, bad: frozenset[int], start: int | None = None) -> Content | None:
        """The newest content, on the way back from version `start` (or head), that no bad write had a part in."""
        version: int | None = self.head(name) if start is None else start
        while version is not None:
            one = self.tables[name][version]
            if not one.depends & bad:
                return one.rows
            version = one.before
        return None

    def source(self, name: str, version: int) -> Source:
        """A version as something to read."""
        kind = self.kind_of[name]
        return Source(
            table_id=self.ids[name],
            location=self.place(name),
            format=kind.format,
            version=version,
            format_id=kind.identity(name),
            sql=kind.sql(name, None if version == self.head(name) else version),
        )

    def _create(self, name: str) -> None:
        kind = self.kind_of[name] = self.kinds[0] if len(self.kinds) == 1 else self.chance.choice(self.kinds)
        kind.create(name)
        self.tables[name] = [_NOTHING] * kind.first
        self._write(name, Kind.APPEND, self._some_inputs(name), by=kind.scribes[0])
        row = register(self.services.registry, kind.address(name), actor=ANA, name=f"db.{name}").row
        self.ids[name] = row.table_id

    def _event(self, name: str) -> None:
        of = self.kind_of[name]
        kind = self.chance.choices(list(of.kinds), list(of.kinds.values()))[0]
        by = self.chance.choice(of.scribes)
        match kind:
            case Kind.COMPACT:
                if by.compact(self.place(name)):
                    now = self.now(name)
                    self._happened(
                        name, Moment(rows=now.rows, depends=now.depends, before=self.heads[name]), by
                    )
            case Kind.RESTORE:
                self._restore(name, by)
            case Kind.SEVERAL:
                self._write_both(name, self.chance.choice(list(self.tables)), by)
            case _:
                self._write(name, kind, self._some_inputs(name), by=by)

    def _restore(self, name: str, by: Scribe) -> None:
        of = self.kind_of[name]
        if not of.restores_by_commit:
            self._set_back(name, by)
        elif self.earlier(name):
            target = self.chance.randrange(of.first, self.head(name))
            by.restore(self.place(name), target)
            then = self.tables[name][target]
            self._happened(name, Moment(rows=then.rows, depends=then.depends, before=target), by)

    def _set_back(self, name: str, by: Scribe) -> None:
        """Head is set to another version, and no commit says so: a daemon that looks before and after has seen it."""
        others = [
            version
            for version in range(self.kind_of[name].first, len(self.tables[name]))
            if version != self.heads[name]
        ]
        if others:
            self.heads[name] = self.chance.choice(others)
            self._look()
            by.restore(self.place(name), self.heads[name])
            self._look()
            self.commits["set_back"] += 1

    def _look(self) -> None:
        build_daemon(self.services).run(Until.ONCE)

    def _some_inputs(self, name: str) -> list[tuple[str, int]]:
        """Some tables before this one, at their heads or, by readers that came late, at older versions."""
        others = [one for one in self.tables if one < name and self.kind_of[name].reads_others]
        chosen = self.chance.sample(others, min(len(others), self.chance.choice((0, 1, 1, 2))))
        late = self.chance.random() < 0.2
        return [
            (one, self.chance.choice((*self.earlier(one), self.head(one))) if late else self.head(one))
            for one in chosen
        ]

    def _write(self, name: str, kind: Kind, inputs: Sequence[tuple[str, int]], *, by: Scribe) -> None:
        before = self.now(name).rows if name in self.heads else ()
        if len(before) < 2 and kind not in (Kind.APPEND, Kind.OVERWRITE):
            kind = Kind.APPEND  # so that none is ever empty, and a key to change is always there
        deed, moment = self._deed(name, kind, inputs)
        by.write(deed)
        self._happened(name, moment, by)

    def _write_both(self, one: str, other: str, by: Scribe) -> None:
        """Update a row in each of two tables, by what the other one holds."""
        if one == other:
            return
        first, then = (
            self._deed(one, Kind.UPDATE, [(other, self.head(other))]),
            self._deed(other, Kind.UPDATE, [(one, self.head(one))]),
        )
        if by.write_both(first[0], then[0]):
            self._happened(one, first[1], by)
            self._happened(other, then[1], by)
            self.commits["several"] += 1

    def _deed(self, name: str, kind: Kind, inputs: Sequence[tuple[str, int]]) -> tuple[Deed, Moment]:
        """A write, and what the table is after it."""
        number, self.writes = self.writes, self.writes + 1
        before = self.now(name) if name in self.heads else _NOTHING
        sources = [self.tables[one][version] for one, version in inputs]
        depends = frozenset({number}).union(*(one.depends for one in sources))
        deed = Deed(
            kind=kind,
            place=self.place(name),
            number=number,
            sources=tuple(self.source(one, version) for one, version in inputs),
            key=self.chance.choice([write for write, _ in before.rows] or [number]),
            before=before.rows,
            sql=self.kind_of[name].sql(name, None),
            reads=frozenset({number}).union(*(row for one in sources for _, row in one.rows)),
        )
        if kind is not Kind.OVERWRITE:
            depends |= before.depends
        rows = _sorted(_rows_after(deed, before.rows))
        return deed, Moment(rows=rows, depends=depends, made=number, before=self.heads.get(name))

    def _happened(self, name: str, moment: Moment, by: Scribe) -> None:
        self.commits[by.name] += 1
        self.tables[name].append(moment)
        self.heads[name] = len(self.tables[name]) - 1
        assert self.kind_of[name].head(name) == self.heads[name], (name, moment)


def _rows_after(deed: Deed, before: Content) -> Iterable[Row]:
    """What a table holds after a write: worked out here, whoever executes it."""
    new: Row = (deed.number, deed.reads)
    match deed.kind:
        case Kind.APPEND:
            return (*before, new)
        case Kind.OVERWRITE:
            return (new,)
        case Kind.AGAIN:
            made = deed.reads.union(*(depends for _, depends in before))
            return (*((write, made) for write, _ in before), (deed.number, made))
        case Kind.DELETE:
            return (row for row in before if row[0] != deed.key)
        case Kind.PARTIAL:
            return (*(row for row in before if row[0] != deed.key), (deed.key, deed.reads))
        case Kind.UPDATE:
            return _changed(before, deed)
        case Kind.MERGE:
            return (*_changed(before, deed), new)
        case Kind.COMPACT | Kind.RESTORE | Kind.SEVERAL:
            raise AssertionError("no write of one table")


def _changed(rows: Content, deed: Deed) -> Iterator[Row]:
    """The row with the key depends on the write, and on what it read, too."""
    for write, depends in rows:
        yield (write, depends | deed.reads) if write == deed.key else (write, depends)


def _sorted(rows: Iterable[Row]) -> Content:
    return tuple(sorted(rows, key=lambda row: (row[0], sorted(row[1]))))
