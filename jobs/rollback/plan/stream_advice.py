"""The effect of a rollback on streaming queries around its tables, and the duties of their owners. Pure.

A query that writes a table goes on from its checkpoint: what was taken back it writes again only if the checkpoint goes
back, too. How one that reads a table goes on, the table's format says; what it has to read anew is told from the
batches on record that are no longer in its own table.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.formats.registry import formats
from lakewarden.catalog.formats.stream_ways import ReadingQuery, StreamWays
from lakewarden.catalog.lineage.versions import Effect, Version
from lakewarden.catalog.model.lineage_record import OPERATION, STATEMENT
from lakewarden.catalog.model.rows import DELTA, UNKNOWN_PARENT, Confidence, TableRow
from lakewarden.jobs.rollback.plan.model import RollbackPlan, Step, StreamAdvice, TablePlan

__all__ = ["with_streams"]

_BEFORE_ALL: Final = -1
_NO_HISTORIES: Final[Mapping[str, Sequence[Version]]] = MappingProxyType({})


def with_streams(
    plan: RollbackPlan,
    rows: pa.Table,
    managed: Mapping[str, TableRow],
    histories: Mapping[str, Sequence[Version]] = _NO_HISTORIES,
) -> RollbackPlan:
    """The plan with advice for the streams of each table that it changes. `rows` are those that the graph was built
    from, and those of upserts (`rows_of_upserts`); the tables' own rows and their histories are by `table_id`. Its hash
    does not change. Linear in rows and versions."""
    told = rows.filter(
        pc.and_(pc.equal(rows["confidence"], Confidence.STREAM.value), pc.is_valid(rows["run_id"]))
    )
    scene = _StreamScene(
        told=told,
        planned={one.table_id: one for one in plan.tables},
        managed=managed,
        lines={key: _Line(history) for key, history in histories.items()},
    )
    tables = [
        replace(one, streams=(*_writers(one, scene), *_readers(one, scene))) if _takes_away(one) else one
        for one in plan.tables
    ]
    return replace(plan, tables=tuple(tables))


class _Line:
    """What a table's versions were made from."""

    def __init__(self, history: Sequence[Version] = ()) -> None:
        self._by_number = {one.version: one for one in history}
        self._known: dict[int, tuple[frozenset[int], int]] = {}

    def has(self, version: int, at: int) -> bool:
        """Whether what a version added is in what the table holds at another one, if nothing took it away since. Older
        than all that is known: by the numbers."""
        found, rest = self._of(at)
        return version in found or version <= rest

    def made_at(self, version: int | None) -> datetime | None:
        """When a version was made, None where nothing tells."""
        one = None if version is None else self._by_number.get(version)
        return None if one is None else one.committed_at

    def clean(self, first: int, last: int, tainted: Sequence[int]) -> bool:
        """Whether any version among these brought rows that were not bad."""
        if not self._by_number:
            return not set(range(first, last + 1)) <= set(tainted)
        among = (one for number, one in self._by_number.items() if first <= number <= last)
        brought = (one.version for one in among if one.effect not in (Effect.ALIAS, Effect.RESTORE))
        return any(version not in tainted for version in brought)

    def _of(self, at: int) -> tuple[frozenset[int], int]:
        if at not in self._known:
            found, version = set[int](), at
            while version in self._by_number and version not in found:
                found.add(version)
                one = self._by_number[version]
                goes_back = one.effect is Effect.RESTORE and one.target is not None
                before = one.target if goes_back else one.parent
                if before == UNKNOWN_PARENT:
                    break  # and what is older is told by its number
                version = _BEFORE_ALL if before is None else before
            self._known[at] = frozenset(found), version
        return self._known[at]


@dataclass(frozen=True, kw_only=True, slots=True)
class _StreamScene:
    """What the advice is made of."""

    told: pa.Table
    """The rows of batches."""
    planned: Mapping[str, TablePlan]
    managed: Mapping[str, TableRow]
    lines: Mapping[str, _Line]
    nothing: _Line = field(default_factory=_Line)

    def ways(self, table_id: str) -> StreamWays | None:
        """How streams of a table's format go on; None where it has none."""
        row = self.managed.get(table_id)
        spec = formats().get(DELTA if row is None or row.format is None else row.format)
        return None if spec is None else spec.stream_ways

    def name(self, table_id: str) -> str:
        """What a table is called."""
        row = self.managed.get(table_id)
        return table_id if row is None else row.name

    def line(self, table_id: str) -> _Line:
        """What its versions were made from."""
        return self.lines.get(table_id, self.nothing)


def _takes_away(table: TablePlan) -> bool:
    return table.acts and table.step in (Step.RESTORE, Step.REMOVE_FILES)


def _writers(table: TablePlan, scene: _StreamScene) -> Iterator[StreamAdvice]:
    """For those whose batches are among what is undone."""
    mine = scene.told.filter(pc.equal(scene.told["output_id"], table.table_id))
    sources: defaultdict[str, set[str]] = defaultdict(set)
    for app_id, source in zip(mine["run_id"].to_pylist(), mine["input_id"].to_pylist(), strict=True):
        if source in scene.planned and _takes_away(scene.planned[source]):
            sources[app_id].add(source)
    batches: defaultdict[str, list[int]] = defaultdict(list)
    for app_id, number in table.transactions:
        batches[app_id].append(number)
    for app_id, numbers in sorted(batches.items()):
        if app_id.startswith((OPERATION, STATEMENT)):
            continue  # done by hand, and done anew if it is called again
        first, last = min(numbers), max(numbers)
        which = f"batch {first}" if first == last else f"batches {first} to {last}"
        ways = (scene.ways(one) for one in sorted(sources[_query_of(app_id)]))
        told = dict.fromkeys(one.goes_back_too(first) for one in ways if one is not None)
        then = " ".join(told) or (
            f"If they are to be written again, take its checkpoint back to before batch {first}; "
            "else just start it."
        )
        what = f"{app_id} wrote {which} of what is undone. Stop it before `apply`. {then}"
        yield StreamAdvice(query_id=app_id, reads=False, sink=table.name, what_to_do=what)


def _query_of(app_id: str) -> str:
    """The query that an application id is of: deletions in its batches have numbers of their own (jobs/upsert)."""
    return app_id.partition(" ")[0]


def _readers(table: TablePlan, scene: _StreamScene) -> Iterator[StreamAdvice]:
    ways = scene.ways(table.table_id)
    if ways is None:
        return
    mine = scene.told.filter(pc.equal(scene.told["input_id"], table.table_id))
    for sink in pc.unique(mine["output_id"]).to_pylist():
        batches = mine.filter(pc.equal(mine["output_id"], sink))
        query = _reader(table, sink, batches, scene)
        what = ways.reading(query)
        yield StreamAdvice(query_id=query.query_id, reads=True, sink=query.sink, what_to_do=what)


def _reader(table: TablePlan, sink_id: str, batches: pa.Table, scene: _StreamScene) -> ReadingQuery:
    """Of the queries that wrote one table from another the last one may still run; all of them brought its rows."""
    sink, line = scene.planned.get(sink_id), scene.line(table.table_id)
    last = _last(batches, sink, scene)
    query_id, target = last["run_id"], table.from_version if table.to_version is None else table.to_version
    kept, lost, out = _kept_and_lost(sink, sink_id, batches, scene)
    upto = pc.max(kept["input_version"]).as_py()
    undone = () if sink is None or not _takes_away(sink) else sink.transactions
    return ReadingQuery(
        query_id=query_id,
        sink=scene.name(sink_id),
        table=table.name,
        head=table.from_version,
        target=table.to_version,
        removes_files=table.step is Step.REMOVE_FILES,
        upto=upto,
        again=pc.min(pc.fill_null(lost["from_version"], _BEFORE_ALL)).as_py(),
        out=out,
        missed=out is not None and line.clean(*out, table.tainted),
        first_undone=min(
            (number for app_id, number in undone if _query_of(app_id) == query_id), default=None
        ),
        is_behind=line.has(last["input_version"], target),
        keeps_clean=upto is not None and line.has(upto, target),
        head_at=line.made_at(table.from_version),
        target_at=line.made_at(table.to_version),
    )


def _last(batches: pa.Table, sink: TablePlan | None, scene: _StreamScene) -> Mapping[str, Any]:
    """The last batch that its table has, of those that were undone before none; of all where it has none."""
    every: list[Mapping[str, Any]] = batches.sort_by("output_version").to_pylist()
    if sink is not None:
        line = scene.line(sink.table_id)
        there = [one for one in every if line.has(one["output_version"], sink.from_version)]
        every = there or every
    return every[-1]


def _kept_and_lost(
    sink: TablePlan | None, sink_id: str, batches: pa.Table, scene: _StreamScene
) -> tuple[pa.Table, pa.Table, tuple[int, int] | None]:
    """The batches whose rows the sink keeps, those that it loses by going back, and the versions that those had read
    which are taken out of its middle."""
    nothing = batches.slice(0, 0)
    if sink is None or not _takes_away(sink):
        return batches, nothing, None
    if sink.step is Step.REMOVE_FILES:
        gone = batches.filter(
            pc.is_in(batches["output_version"], value_set=pa.array(sink.undoable, pa.int64()))
        )
        first = pc.min(pc.fill_null(gone["from_version"], _BEFORE_ALL)).as_py()
        return batches, nothing, None if first is None else (first + 1, pc.max(gone["input_version"]).as_py())
    if sink.to_version is None:
        return batches, nothing, None
    line, made = scene.line(sink_id), batches["output_version"].to_pylist()
    stays = [line.has(version, sink.to_version) for version in made]
    leaves = [
        line.has(version, sink.from_version) and not one for version, one in zip(made, stays, strict=True)
    ]
    return batches.filter(pa.array(stays, pa.bool_())), batches.filter(pa.array(leaves, pa.bool_())), None
