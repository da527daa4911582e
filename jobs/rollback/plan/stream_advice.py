"""The effect of a rollback on streaming queries around its tables, and the duties of their owners. Pure.

A query that writes a table goes on from its checkpoint: what was taken back it writes again only if the checkpoint goes
back, too. A query that reads one stops at the commit by which the rollback took files away. What it has to read anew is
told from the batches on record that are no longer in its own table.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.model.lineage_record import OPERATION, STATEMENT
from lakewarden.catalog.model.rows import Confidence
from lakewarden.jobs.rollback.plan.model import RollbackPlan, Step, StreamAdvice, TablePlan

__all__ = ["with_streams"]

_BEFORE_ALL = -1


def with_streams(plan: RollbackPlan, rows: pa.Table, names: Mapping[str, str]) -> RollbackPlan:
    """The plan with advice for the streams of each table that it changes. `rows` are those that the graph was built
    from, and those of upserts (`rows_of_upserts`); `names` the tables' names by `table_id`. Its hash does not change.
    Linear in rows."""
    told = rows.filter(
        pc.and_(pc.equal(rows["confidence"], Confidence.STREAM.value), pc.is_valid(rows["run_id"]))
    )
    planned = {one.table_id: one for one in plan.tables}
    tables = [
        replace(one, streams=(*_writers(one, told, planned), *_readers(one, told, planned, names)))
        if _takes_away(one)
        else one
        for one in plan.tables
    ]
    return replace(plan, tables=tuple(tables))


def _takes_away(table: TablePlan) -> bool:
    return table.acts and table.step in (Step.RESTORE, Step.REMOVE_FILES)


def _writers(table: TablePlan, told: pa.Table, planned: Mapping[str, TablePlan]) -> Iterator[StreamAdvice]:
    """For those whose batches are among what is undone."""
    restored = pa.array([key for key, one in planned.items() if _takes_away(one)], pa.string())
    from_here = pc.and_(
        pc.equal(told["output_id"], table.table_id), pc.is_in(told["input_id"], value_set=restored)
    )
    anew = set(told.filter(from_here)["run_id"].to_pylist())
    batches: defaultdict[str, list[int]] = defaultdict(list)
    for app_id, number in table.transactions:
        batches[app_id].append(number)
    for app_id, numbers in sorted(batches.items()):
        if app_id.startswith((OPERATION, STATEMENT)):
            continue  # done by hand, and done anew if it is called again
        first, last = min(numbers), max(numbers)
        which = f"batch {first}" if first == last else f"batches {first} to {last}"
        if app_id in anew:
            then = (
                "Its source goes back, too: there it says how to start it again. If it reads the change "
                f"feed, take its checkpoint back to before batch {first} instead."
            )
        else:
            then = (
                f"If they are to be written again, take its checkpoint back to before batch {first}; "
                "else just start it."
            )
        what = f"{app_id} wrote {which} of what is undone. Stop it before `apply`. {then}"
        yield StreamAdvice(query_id=app_id, reads=False, sink=table.name, what_to_do=what)


@dataclass(frozen=True, kw_only=True, slots=True)
class _StreamReader:
    """A query that reads the table and writes another."""

    query_id: str
    name: str
    """The name of the table that the query writes."""
    upto: int | None
    """The last version whose rows that table still has, None if it has none."""
    again: int | None
    """The query lost batches whose reads begin after this version."""
    out: tuple[int, int] | None = None
    """Batches are taken out of its middle, and had read versions from the first of these up to the second."""


def _readers(
    table: TablePlan, told: pa.Table, planned: Mapping[str, TablePlan], names: Mapping[str, str]
) -> Iterator[StreamAdvice]:
    mine = told.filter(pc.equal(told["input_id"], table.table_id))
    for sink in pc.unique(mine["output_id"]).to_pylist():
        batches = mine.filter(pc.equal(mine["output_id"], sink))
        reader = _reader(batches, planned.get(sink), names.get(sink, sink))
        what = _advice(table, reader)
        yield StreamAdvice(query_id=reader.query_id, reads=True, sink=reader.name, what_to_do=what)


def _reader(batches: pa.Table, sink: TablePlan | None, name: str) -> _StreamReader:
    """Of the queries that wrote one table from another the last one may still run; all of them brought its rows."""
    last = batches.sort_by("output_version")["run_id"][-1].as_py()
    if sink is not None and sink.step is Step.REMOVE_FILES and _takes_away(sink):
        return _thinned(batches, sink, name=name, last=last)
    keeps = sink.to_version if sink is not None and _takes_away(sink) else None
    kept, lost = batches, batches.slice(0, 0)
    if sink is not None and keeps is not None:
        stays = pc.less_equal(batches["output_version"], keeps)
        kept, lost = batches.filter(stays), batches.filter(pc.invert(stays))
    begins = pc.fill_null(lost["from_version"], _BEFORE_ALL)
    return _StreamReader(
        query_id=last,
        name=name,
        upto=pc.max(kept["input_version"]).as_py(),
        again=pc.min(begins).as_py(),
    )


def _thinned(batches: pa.Table, sink: TablePlan, *, name: str, last: str) -> _StreamReader:
    gone = batches.filter(pc.is_in(batches["output_version"], value_set=pa.array(sink.undoable, pa.int64())))
    first = pc.min(pc.fill_null(gone["from_version"], _BEFORE_ALL)).as_py()
    return _StreamReader(
        query_id=last,
        name=name,
        upto=pc.max(batches["input_version"]).as_py(),
        again=None,
        out=None if first is None else (first + 1, pc.max(gone["input_version"]).as_py()),
    )


def _advice(table: TablePlan, reader: _StreamReader) -> str:
    made = table.from_version + 1
    newest = table.from_version if table.to_version is None else table.to_version
    clean = made if table.step is Step.REMOVE_FILES else newest
    begins = f"`startingVersion` {made} and `skipChangeCommits`"
    who = (
        f"{reader.query_id} (writes {reader.name}) reads it and fails at version {made}. "
        "Stop it before `apply`"
    )
    anew = f"{who}, then start it with a new checkpoint"
    missing = reader.upto if reader.again is None else reader.again
    if reader.upto is None:
        return f"{anew} and without `startingVersion`: {reader.name} has nothing of it any more."
    if reader.again == _BEFORE_ALL:
        return (
            f"{who}, then empty {reader.name} and start it with a new checkpoint: "
            "its undone batches were made from all that it had ever read."
        )
    said = f"{anew}, {begins}."
    if missing is not None and missing < newest:
        said += (
            f" Before that, take to {reader.name} what version {clean} of {table.name} has "
            f"and version {missing} has not."
        )
    if reader.out is not None and not set(range(reader.out[0], reader.out[1] + 1)) <= set(table.tainted):
        said += (
            f" What is taken out of {reader.name} had also read clean ones of the versions {reader.out[0]} "
            f"to {reader.out[1]}: add their rows by hand."
        )
    return said
