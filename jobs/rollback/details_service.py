"""Gathers the details of a plan (jobs/rollback/report/details.py) from what the plan was decided from.

For whoever asks: nothing is decided here, and the plan's hash does not cover it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.formats.files_elsewhere import folders_elsewhere
from lakewarden.catalog.lineage.clones import is_clone_of
from lakewarden.catalog.lineage.graph.graph import NO_NODE, Closure, EdgeArrays
from lakewarden.catalog.lineage.graph.incarnations import base_of
from lakewarden.catalog.lineage.streams.offsets import NO_TABLE
from lakewarden.catalog.lineage.versions import Version
from lakewarden.catalog.model.arrow_columns import coded
from lakewarden.catalog.model.rows import Confidence, TableRow
from lakewarden.catalog.storage.place import Moment
from lakewarden.jobs.rollback.plan.model import Lost, RollbackPlan, TablePlan
from lakewarden.jobs.rollback.plan.taint import Taint, taint_of
from lakewarden.jobs.rollback.planning_service import Gathered
from lakewarden.jobs.rollback.report.details import (
    CommitDetail,
    CommitReason,
    Details,
    TableDetails,
    TaintedRead,
)

__all__ = ["MOST_COMMITS", "details_of"]

MOST_COMMITS: Final = 1000
"""Commits of one plan that are told of; what would be lost comes before what is tainted anyway."""
_MOST_VERSIONS: Final = 20
_STRONGEST_FIRST: Final = tuple(Confidence)


def details_of(found: Gathered) -> Details:
    """The details of a plan. Linear in what the plan was made of."""
    chosen, left_out = _chosen(found.plan)
    confidences = _confidences(found, chosen)
    taint = taint_of(found.plan.request, found.graph, found.facts)
    tables = []
    for table in found.plan.tables:
        row = found.rows.get(table.table_id)
        about = _About(found, taint, confidences, table)
        tables.append(
            TableDetails(
                table_id=table.table_id,
                owner=None if row is None else row.owner,
                commits=tuple(about.commit(*one) for one in chosen.get(table.table_id, ())),
                more=left_out.get(table.table_id, 0),
            )
        )
    clones = list(_clones(found))
    return Details(
        tables=tuple(tables),
        clones=tuple((row.name, source) for row, source in clones),
        beyond=tuple(_beyond(found, {row.table_id: row.name for row, _ in clones})),
    )


def _clones(found: Gathered) -> Iterator[tuple[TableRow, str]]:
    acting, now = [table for table in found.plan.tables if table.acts], Moment()
    planned = {table.table_id for table in found.plan.tables}
    for row in found.rows.values():
        if folders_elsewhere(row) and row.table_id not in planned:
            sources = (one for one in acting if is_clone_of(row, one.table_id, one.location, now))
            yield from ((row, one.name) for one in sources)


def _beyond(found: Gathered, clones: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Readers of a clone that stays as it is, or of an unmanaged table, by name."""
    acting = {table.table_id for table in found.plan.tables if table.acts}
    if not acting:
        return
    inputs = coded(found.lineage["input_id"]).dictionary.to_pylist()
    ids = {row.location: key for key, row in found.rows.items()}
    placed = {one: ids.get(one, one) for one in inputs}
    read = {one: clones.get(of, of) for one, of in placed.items() if of in clones or _is_unmanaged(of)}
    rows = found.lineage.filter(
        pc.is_in(found.lineage["input_id"], value_set=pa.array(sorted(read), pa.string()))
    )
    pairs = rows.group_by(["output_id", "input_id"]).aggregate([]).to_pydict()
    readers = {
        (found.rows[key].name, read[one])
        for key, one in zip(pairs["output_id"], pairs["input_id"], strict=True)
        if key in found.rows and key not in acting
    }
    yield from sorted(readers)


def _is_unmanaged(read: str) -> bool:
    """Whether what was read is a table that may have read others; what a stream gets from elsewhere is none."""
    return "://" in read and not read.startswith(NO_TABLE)


_Chosen = Mapping[str, Sequence[tuple[int, CommitReason]]]


def _chosen(plan: RollbackPlan) -> tuple[_Chosen, Mapping[str, int]]:
    """Which commits are told of, by table in order of version; and how many are not."""
    every: dict[tuple[str, int], CommitReason] = {}
    for role in CommitReason:
        for table in plan.tables:
            for version in _versions(table, role):
                every.setdefault((table.table_id, version), role)
    chosen: dict[str, list[tuple[int, CommitReason]]] = defaultdict(list)
    left_out: dict[str, int] = defaultdict(int)
    for place, ((table_id, version), role) in enumerate(every.items()):
        if place < MOST_COMMITS:
            chosen[table_id].append((version, role))
        else:
            left_out[table_id] += 1
    return {table_id: sorted(of) for table_id, of in chosen.items()}, left_out


def _versions(table: TablePlan, role: CommitReason) -> Sequence[int]:
    match role:
        case CommitReason.LOST:
            bad = set(table.tainted)  # of those, only a change of columns is lost that came with them
            return [one.version for one in table.collateral if one.version not in bad]
        case CommitReason.UNKNOWN:
            return table.unknown
        case CommitReason.TAINTED:
            return table.tainted


_Confidences = Mapping[tuple[str, int, str], Confidence]
"""By output table, its version, and input table: the best that is on record."""


def _confidences(found: Gathered, chosen: _Chosen) -> _Confidences:
    rows = found.lineage
    outputs = pc.is_in(rows["output_id"], value_set=pa.array(sorted(chosen), pa.string()))
    versions = sorted({version for of in chosen.values() for version, _ in of})
    rows = rows.filter(
        pc.and_(outputs, pc.is_in(rows["output_version"], value_set=pa.array(versions, pa.int64())))
    )
    places = {row.location: key for key, row in found.rows.items()}
    best: dict[tuple[str, int, str], Confidence] = {}
    columns = (rows[name].to_pylist() for name in ("output_id", "output_version", "input_id", "confidence"))
    for output, version, source, said in zip(*columns, strict=True):
        confidence = Confidence(said)
        key = (output, version, places.get(source, source))
        best[key] = min(best.get(key, confidence), confidence, key=_STRONGEST_FIRST.index)
    return best


class _About:
    """The commits of one table of the plan."""

    def __init__(self, found: Gathered, taint: Taint, confidences: _Confidences, table: TablePlan) -> None:
        self._found, self._taint, self._confidences, self._table = found, taint, confidences, table
        self._history = {one.version: one for one in found.histories.get(table.table_id, ())}
        self._lost = {one.version: one for one in table.collateral}

    def commit(self, version: int, role: CommitReason) -> CommitDetail:
        """One commit, as far as log and records tell."""
        said, lost = self._history.get(version), self._lost.get(version)
        node = self._found.graph.node(self._table.table_id, version)
        reads = (
            () if role is CommitReason.LOST or node == NO_NODE else tuple(self._reads(node, version, role))
        )
        return CommitDetail(
            version=version,
            role=role,
            operation=_operation(said, lost),
            rows=said.rows if said is not None else None if lost is None else lost.rows,
            user=None if said is None else said.user or said.writer,
            engine=None if said is None else said.engine,
            at=None if said is None else said.committed_at,
            run_id=said.run_id if said is not None else None if lost is None else lost.run_id,
            seed=role is CommitReason.TAINTED and node in self._taint.seeds,
            reads=reads,
        )

    def _reads(self, node: int, version: int, role: CommitReason) -> Iterator[TaintedRead]:
        """The edges that carry taint to a commit, by the table that was read."""
        graph = self._found.graph
        closure: Closure = self._taint.sure if role is CommitReason.TAINTED else self._taint.wide
        found: dict[tuple[str, bool], list[int]] = defaultdict(list)
        for place in graph.inputs.of(node):
            source, flags = graph.inputs.other[place], graph.inputs.flags[place]
            if closure.read(source, flags):
                found[base_of(graph.table_of(source)), bool(flags & EdgeArrays.DELTA)].append(
                    graph.versions[source]
                )
        for (table_id, changes), versions in sorted(found.items()):
            told = sorted(set(versions))
            row = self._found.rows.get(table_id)
            yield TaintedRead(
                table_id=table_id,
                name=table_id if row is None else row.name,
                versions=tuple(told[:_MOST_VERSIONS]),
                more=max(0, len(told) - _MOST_VERSIONS),
                changes=changes,
                # What only the commit itself tells is in its own record.
                confidence=self._confidences.get(
                    (self._table.table_id, version, table_id), Confidence.COMMITTED
                ),
            )


def _operation(said: Version | None, lost: Lost | None) -> str:
    if said is not None:
        return str(said.operation)
    return "unknown" if lost is None else str(lost.operation)
