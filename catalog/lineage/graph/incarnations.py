"""Which table a version belongs to: the one whose log we read, or a predecessor at the same place. Pure.

A table that was dropped and made again has a new log that counts from 0, with another UUID; CREATE OR REPLACE
changes the UUID within one log, and its row names the UUID that it replaced. So the UUIDs of one log hang
together, back to the first of them. What was read of a predecessor still carries taint, so predecessors stay
in the graph, as tables of their own that nobody can roll back.
"""

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.lineage.versions import Version

__all__ = ["Histories", "Incarnations", "Uuid", "Uuids", "base_of", "is_predecessor", "may_be_same"]

Histories = Mapping[str, Sequence[Version]]
"""By `table_id`, the versions of a log in order."""
Uuid = tuple[int, str]
"""A table, by number, and a UUID that it or a predecessor had."""
_MARK: Final = "#"
_ENDLESS: Final = 2**63 - 1


def is_predecessor(table_id: str) -> bool:
    """Whether the table is gone and another one has taken its place."""
    return _MARK in table_id


def base_of(table_id: str) -> str:
    """The `table_id` under which this table, or the one it is a predecessor of, is managed."""
    return table_id.partition(_MARK)[0]


def may_be_same(one: str | None, other: str | None) -> bool:
    """Whether two UUIDs may be of the same table; one that is not known may be any."""
    return one is None or other is None or one == other


@dataclass(frozen=True, kw_only=True, slots=True)
class Uuids:
    """What rows tell of UUIDs: which one each replaced in its log, and which had a first version."""

    replaced: Mapping[Uuid, str] = field(default_factory=dict)
    begun: frozenset[Uuid] = frozenset()
    newest: Mapping[int, str] = field(default_factory=dict)
    """The last UUIDs of tables whose log is not there."""


class Incarnations:
    """Numbers tables: those given, and predecessors as they are met. `tables` by number."""

    def __init__(
        self, tables: Sequence[str], histories: Histories, uuids: Uuids, branching: Collection[str] = ()
    ) -> None:
        """`branching`: the tables whose newest versions may expire before older ones. Of those, whatever is named
        with their UUID was there."""
        self.tables = list(tables)
        self.index = {name: number for number, name in enumerate(tables)}
        self._branching = frozenset(self.index[name] for name in branching if name in self.index)
        self._logs = [histories.get(name, ()) for name in tables]
        sole = [{one.format_id for one in log} for log in self._logs]
        self._sole = pa.array([next(iter(ids)) if len(ids) == 1 else None for ids in sole], pa.string())
        lasts = [log[-1].version if log else None for log in self._logs]
        for number in self._branching:
            lasts[number] = None if lasts[number] is None else _ENDLESS
        self._last = pa.array(lasts, pa.int64())
        self._begun = uuids.begun
        self._replaced = {**uuids.replaced, **_told_by(self._logs)}
        self._logless = pa.array(sorted(uuids.newest), pa.int64())
        stamps = [{one for one in ids if one is not None} for ids in sole]
        for table, newest in uuids.newest.items():
            stamps[table].add(newest)
        self._own = [
            frozenset(self._first(table, one) for one in ids) for table, ids in enumerate(stamps)
        ]  # the first UUID of each log; more than one where rows do not tell how they hang together

    def locate(self, table: int, version: int, format_id: str | None) -> int | None:
        """The number of the table that a version is of; None if it is of a predecessor that cannot be told, or of this
        log, which does not reach so far: it was read meanwhile, or what was written down of it is wrong. A log that
        branches has lost it then."""
        known = table < len(self._logs)
        if not known or not (self._logs[table] or self._own[table]):
            return table
        last = self._logs[table][-1].version if self._logs[table] else version
        beyond = table if table in self._branching else None
        if format_id is None:
            return table if version <= last else beyond
        first = self._first(table, format_id)
        if version <= last and not self._is_elsewhere(table, version, first):
            return table
        if version > last and first in self._own[table]:
            return beyond
        return self._predecessor(table, first)

    def locate_all(self, tables: pa.Array, versions: pa.Array, format_ids: pa.Array) -> pa.Array:
        """`locate` for columns; null where the table is null or cannot be told."""
        last, sole = self._last.take(tables), self._sole.take(tables)
        in_log = pc.less_equal(versions, last)
        same = pc.or_kleene(pc.is_null(format_ids), pc.equal(format_ids, sole))
        untold = pc.and_(pc.is_null(last), pc.invert(pc.is_in(tables, value_set=self._logless)))
        plain = pc.or_kleene(untold, pc.and_kleene(in_log, same))
        plain = pc.or_(pc.or_(pc.fill_null(plain, False), pc.is_null(versions)), pc.is_null(tables))
        if pc.all(plain).as_py() in (True, None):
            return tables
        found = tables.to_pylist()
        places = pc.indices_nonzero(pc.invert(plain)).to_pylist()
        odd = pc.indices_nonzero(pc.invert(plain))
        told = zip(versions.take(odd).to_pylist(), format_ids.take(odd).to_pylist(), strict=True)
        for place, (version, format_id) in zip(places, told, strict=True):
            found[place] = self.locate(found[place], version, format_id)
        return pa.array(found, pa.int64())

    def _is_elsewhere(self, table: int, version: int, first: str) -> bool:
        """Whether a UUID with a log that began with `first` surely belongs to another log.

        A log from which nothing was cleaned tells all its UUIDs, and a version that it has, its own. Before
        it begins, two UUIDs that both had a first version are of two logs.
        """
        log, own = self._logs[table], self._own[table]
        if first in own:
            return False
        if log and log[0].parent is None:
            return bool(own)
        place = bisect_left(log, version, key=_version)
        if log and log[place].version == version and log[place].format_id is not None:
            return True
        return (table, first) in self._begun and any((table, one) in self._begun for one in own)

    def _first(self, table: int, format_id: str) -> str:
        """The first UUID of the log that this one is of, as far as rows tell."""
        passed = {format_id}
        while (before := self._replaced.get((table, format_id))) is not None and before not in passed:
            passed.add(before)
            format_id = before
        return format_id

    def _predecessor(self, table: int, format_id: str) -> int:
        name = f"{self.tables[table]}{_MARK}{format_id}"
        if name not in self.index:
            self.index[name] = len(self.tables)
            self.tables.append(name)
        return self.index[name]


def _told_by(logs: Sequence[Sequence[Version]]) -> Mapping[Uuid, str]:
    return {
        (table, one.format_id): one.replaced
        for table, log in enumerate(logs)
        for one in log
        if one.replaced is not None and one.format_id is not None
    }


def _version(one: Version) -> int:
    return one.version
