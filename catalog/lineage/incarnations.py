"""Which table a version belongs to: the one whose log we read, or a predecessor at the same place. Pure.

A table that was dropped and made again has a new log that counts from 0, with another UUID; CREATE OR REPLACE changes the
UUID within one log. What was read of a predecessor still carries taint, so predecessors stay in the graph, as tables of
their own that nobody can roll back.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.lineage.versions import Version

__all__ = ["Histories", "Incarnations", "base_of", "is_predecessor", "may_be_same"]

Histories = Mapping[str, Sequence[Version]]
"""By `table_id`, the versions of a log in order."""
_MARK: Final = "#"


def is_predecessor(table_id: str) -> bool:
    """Whether this is a table that is no more, and whose place another one has taken."""
    return _MARK in table_id


def base_of(table_id: str) -> str:
    """The `table_id` under which this table, or the one it is a predecessor of, is managed."""
    return table_id.partition(_MARK)[0]


def may_be_same(one: str | None, other: str | None) -> bool:
    """Whether two UUIDs may be of the same table; one that is not known may be any."""
    return one is None or other is None or one == other


class Incarnations:
    """Numbers tables: those given, and predecessors as they are met. `tables` by number."""

    def __init__(self, tables: Sequence[str], histories: Histories) -> None:
        self.tables = list(tables)
        self.index = {name: number for number, name in enumerate(tables)}
        self._logs = [histories.get(name, ()) for name in tables]
        sole = [{one.format_id for one in log} for log in self._logs]
        self._sole = pa.array([next(iter(ids)) if len(ids) == 1 else None for ids in sole], pa.string())
        self._last = pa.array([log[-1].version if log else None for log in self._logs], pa.int64())

    def locate(self, table: int, version: int, format_id: str | None) -> int | None:
        """The number of the table that a version is of; None if it is of a predecessor that cannot be told."""
        log = self._logs[table] if table < len(self._logs) else ()
        if not log:
            return table
        if version > log[-1].version:
            return None if format_id is None else self._predecessor(table, format_id)
        place = bisect_left(log, version, key=_version)
        stamp = log[place].format_id if log[place].version == version else None
        if stamp is None or format_id is None or stamp == format_id:
            return table
        return self._predecessor(table, format_id)

    def locate_all(self, tables: pa.Array, versions: pa.Array, format_ids: pa.Array) -> pa.Array:
        """`locate` for columns; null where the table is null or cannot be told."""
        last, sole = self._last.take(tables), self._sole.take(tables)
        in_log = pc.less_equal(versions, last)
        same = pc.or_kleene(pc.is_null(format_ids), pc.equal(format_ids, sole))
        plain = pc.or_kleene(pc.is_null(last), pc.and_kleene(in_log, same))
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

    def _predecessor(self, table: int, format_id: str) -> int:
        name = f"{self.tables[table]}{_MARK}{format_id}"
        if name not in self.index:
            self.index[name] = len(self.tables)
            self.tables.append(name)
        return self.index[name]


def _version(one: Version) -> int:
    return one.version
