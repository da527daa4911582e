"""Building the version graph: rows of `lakewarden.lineage` and the logs of the tables that matter. Pure.

What a commit says and what a row says are added up: an edge that only one of them knows counts. Rows alone suffice for
versions whose log entry is gone. Rows that speak of a predecessor at the same place are told apart by UUID.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.lineage.edges import ALIAS, RESTORE
from lakewarden.catalog.lineage.graph.draft import GraphDraft, draft_of, finished
from lakewarden.catalog.lineage.graph.graph import NO_NODE, EdgeArrays, VersionGraph
from lakewarden.catalog.lineage.graph.incarnations import Histories, Incarnations, base_of
from lakewarden.catalog.lineage.graph.numbering import NumberedLineage, encode_rows, numbers
from lakewarden.catalog.lineage.versions import Effect, effect_of
from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.catalog.model.rows import NO_PARENT, UNKNOWN_PARENT, Confidence

__all__ = ["ROW_COLUMNS", "TRUSTED", "build_graph"]

ROW_COLUMNS: Final = (
    "output_id",
    "output_version",
    "output_parent",
    "input_id",
    "input_version",
    "operation",
    "confidence",
    "from_version",
    "output_format_id",
    "input_format_id",
    "run_id",
)
TRUSTED: Final = frozenset({Confidence.COMMITTED, Confidence.STREAM})
"""What automatic work relies on by default; a table's policy may add `plan`."""


def build_graph(
    rows: pa.Table,
    histories: Histories,
    *,
    trusting: frozenset[str] = frozenset(),
    places: Mapping[str, str] | None = None,
    newest: Mapping[str, str] | None = None,
    heads: Mapping[str, int] | None = None,
    empty: frozenset[str] = frozenset(),
    runs: frozenset[str] = frozenset(),
    branching: frozenset[str] = frozenset(),
    unread: frozenset[str] = frozenset(),
) -> VersionGraph:
    """The graph of everything that `rows` (columns `ROW_COLUMNS`) and `histories` speak of.

    Histories have to be read after the rows. `trusting` are the tables whose policy lets edges of confidence `plan`
    move them. `places` maps managed locations to `table_id`. `newest` has the last UUID of each table without a log, to
    tell it from its predecessors. `heads` has the version at head where that is not the log's last. Those of `empty`
    are at version 0, which no commit made and which holds nothing. The graph finds the commits of `runs`. Of
    `branching` tables, numbers do not tell what a version was made from: where nobody says it, a line ends. Of those of
    `unread`, rows may be lost: no version's inputs are all known. Linear in rows and versions; an incremental read
    counts as as many edges as it read versions.
    """
    encoded, known = encode_rows(rows, histories, places or {}, newest or {}, branching)
    reads = _log_reads(histories, known, places or {})
    draft = draft_of(numbers(known, _pairs(encoded, histories, reads, empty, known)), branching)
    output = draft.numbering.nodes(encoded.output, encoded.column("output_version"))
    source = draft.numbering.nodes(encoded.input, encoded.column("input_version"))
    strong = _strong(encoded, known, trusting)
    _say_heads(draft, histories, heads or {}, empty)
    _say_parents(draft, encoded, output)
    _say_rows(draft, encoded, output, source, strong)
    _say_effects(draft, histories, places or {})
    _say_empty(draft, histories, empty)
    draft.resolve_parents()
    _say_edges(draft, encoded, output, source, strong)
    _log_edges(draft, reads)
    _say_runs(draft, encoded, output, histories, runs)
    for table, name in enumerate(known.tables):
        if base_of(name) in unread:
            begin, end = draft.first[table], draft.first[table + 1]
            draft.known[begin:end] = bytes(end - begin)
    return finished(draft)


def _strong(rows: NumberedLineage, known: Incarnations, trusting: frozenset[str]) -> pa.Array:
    """Which rows are known well enough to act on."""
    confidence = rows.column("confidence")
    strong = pc.is_in(confidence, value_set=pa.array(sorted(TRUSTED), pa.string()))
    numbers = [number for number, name in enumerate(known.tables) if base_of(name) in trusting]
    if not numbers:
        return strong
    relied_on = pc.is_in(rows.output, value_set=pa.array(numbers, pa.int64()))
    return pc.or_(strong, pc.and_(relied_on, pc.equal(confidence, Confidence.PLAN.value)))


@dataclass(frozen=True, slots=True)
class _Read:
    """One input as a commit tells it, with tables by number."""

    reader: int
    version: int
    source: int
    upto: int | None
    """None: nobody can tell what it was."""
    after: int | None
    own: bool = False
    """Of the changes it read it kept what each did of itself."""


def _log_reads(histories: Histories, known: Incarnations, places: Mapping[str, str]) -> list[_Read]:
    """What the commits of the logs read; inputs that nobody manages are left out."""
    found = []
    for table_id, history in histories.items():
        table = known.index[table_id]
        for one in history:
            if not one.inputs and not one.reads_self:
                continue
            ids = [read.table_id or places.get(read.location) for read in one.inputs]
            if one.reads_self and one.parent is not None:
                found.append(_Read(table, one.version, table, one.parent, None))
            for input_id, read in zip(ids, one.inputs, strict=True):
                told = known.index.get(input_id or "")
                if told is None or read.version is None:
                    continue
                source = known.locate(told, read.version, read.format_id)
                upto = None if source is None else read.version
                own = one.operation == Operation.REMOVE_FILES
                found.append(_Read(table, one.version, source or 0, upto, read.from_version, own))
    return found


def _pairs(
    rows: NumberedLineage,
    histories: Histories,
    reads: Sequence[_Read],
    empty: Iterable[str],
    known: Incarnations,
) -> Iterator[tuple[pa.Array, pa.Array]]:
    yield rows.output, rows.column("output_version")
    yield rows.input, rows.column("input_version")
    tables: list[int] = [known.index[table_id] for table_id in empty]
    versions: list[int] = [0] * len(tables)
    for table_id, history in histories.items():
        tables.extend([known.index[table_id]] * len(history))
        versions.extend([one.version for one in history])
        targets = [one.target for one in history if one.target is not None]
        tables.extend([known.index[table_id]] * len(targets))
        versions.extend(targets)
    for read in reads:
        if read.upto is not None:
            tables.append(read.source)
            versions.append(read.upto)
    yield pa.array(tables, pa.int64()), pa.array(versions, pa.int64())


def _say_heads(
    draft: GraphDraft, histories: Histories, heads: Mapping[str, int], empty: frozenset[str]
) -> None:
    """Heads, as the logs have them."""
    for table in map(draft.numbering.known.index.__getitem__, empty):
        draft.heads[table] = draft.node(table, 0)
    for table_id, history in histories.items():
        if history and table_id not in empty:
            table = draft.numbering.known.index[table_id]
            draft.heads[table] = draft.node(table, heads.get(table_id, history[-1].version))


def _say_parents(draft: GraphDraft, rows: NumberedLineage, output: pa.Array) -> None:
    """The parents that rows tell, as far as they are not just one below."""
    told, version = rows.column("output_parent"), rows.column("output_version")
    odd = pc.fill_null(pc.not_equal(pc.add(told, 1), version), False)
    draft.odd_parents.update(zip(output.filter(odd).to_pylist(), told.filter(odd).to_pylist(), strict=True))
    mine = pc.is_in(rows.output, value_set=pa.array(sorted(draft.branching), pa.int64()))
    mine = pc.and_(mine, pc.fill_null(pc.not_equal(told, UNKNOWN_PARENT), False))
    for node, parent in zip(output.filter(mine).to_pylist(), told.filter(mine).to_pylist(), strict=True):
        if node is not None:
            draft.descends(node, parent)


def _say_runs(
    draft: GraphDraft, rows: NumberedLineage, output: pa.Array, histories: Histories, runs: frozenset[str]
) -> None:
    """The content commits of the runs that somebody asks about."""
    found: dict[str, set[int]] = {run_id: set() for run_id in runs}
    if not found:
        return
    ids = rows.column("run_id")
    mine = pc.is_in(ids, value_set=pa.array(sorted(runs), pa.string()))
    for run_id, node in zip(ids.filter(mine).to_pylist(), output.filter(mine).to_pylist(), strict=True):
        if node is not None:
            found[run_id].add(node)
    for table_id, history in histories.items():
        table = draft.numbering.known.index[table_id]
        for one in history:
            if one.run_id in found:
                found[one.run_id].add(draft.node(table, one.version))
    made_content = (Effect.APPEND, Effect.CHANGE, Effect.FRESH)
    for run_id, nodes in found.items():
        draft.runs[run_id] = tuple(sorted(node for node in nodes if draft.effects[node] in made_content))


def _say_rows(
    draft: GraphDraft, rows: NumberedLineage, output: pa.Array, source: pa.Array, strong: pa.Array
) -> None:
    """What rows say of the versions they were written for: their effect, and whether all inputs are known."""
    operations = rows.column("operation")
    for operation in pc.unique(operations).to_pylist():
        mine = pc.equal(operations, operation)
        effect = {ALIAS: Effect.ALIAS, RESTORE: Effect.RESTORE}.get(operation, effect_of(operation))
        for node in _each(output.filter(mine)):
            draft.effects[node] = effect
        if operation == Operation.REMOVE_FILES:
            mine = pc.and_(mine, pc.is_null(rows.column("from_version")))
        if operation in (RESTORE, Operation.REMOVE_FILES):
            pairs = zip(output.filter(mine).to_pylist(), source.filter(mine).to_pylist(), strict=True)
            draft.restored(pairs)
    for node in _each(output.filter(strong)):
        draft.known[node] = 1
    for node in _each(output.filter(pc.and_(strong, rows.unsaid))):
        draft.known[node] = 0
    _head_rows(draft, output)


def _each(nodes: pa.Array) -> list[int]:
    """The nodes, each once."""
    found: list[int] = pc.unique(nodes).drop_null().to_pylist()
    return found


def _head_rows(draft: GraphDraft, output: pa.Array) -> None:
    """The newest version of a table whose log was not read is the newest that a row was written for."""
    open_heads = {table for table, head in enumerate(draft.heads) if head == NO_NODE}
    for node in _each(output):
        table = draft.owners[node]
        if table in open_heads and draft.heads[table] < node:
            draft.heads[table] = node


def _say_effects(draft: GraphDraft, histories: Histories, places: Mapping[str, str]) -> None:
    """What the logs say: they know better what was done; what was read, a row may know better."""
    for table_id, history in histories.items():
        table = draft.numbering.known.index[table_id]
        for one in history:
            node = draft.node(table, one.version)
            draft.descends(node, NO_PARENT if one.parent is None else one.parent)
            # A row that takes a write for maintenance was made when an operation without rows was taken for that.
            told = draft.known[node] and (draft.effects[node] != Effect.ALIAS or one.effect is Effect.ALIAS)
            known = one.known or (bool(one.once_managed) and places.keys() >= set(one.once_managed))
            if not (told and not known and draft.effects[node] == Effect.CHANGE):
                draft.effects[node] = one.effect
            draft.known[node] = 1 if known or told else 0
            if one.target is not None:
                draft.targets[node] = draft.node(table, one.target)
            if one.beside:
                draft.beside.add(node)
            if one.copied is not None:
                draft.copies.append((node, draft.node(table, one.copied)))


def _say_empty(draft: GraphDraft, histories: Histories, empty: Iterable[str]) -> None:
    """Version 0 holds nothing, and comes from nothing, where head is there and empty, and where the log begins after it
    with a commit that was made from nothing."""
    begun_later = {
        table_id
        for table_id, history in histories.items()
        if history and history[0].version > 0 and history[0].parent is None
    }
    for table_id in begun_later.union(empty):
        node = draft.node(draft.numbering.known.index[table_id], 0)
        if node != NO_NODE:
            draft.effects[node], draft.known[node] = Effect.FRESH, 1


def _say_edges(
    draft: GraphDraft, rows: NumberedLineage, output: pa.Array, source: pa.Array, strong: pa.Array
) -> None:
    """The edges that rows tell."""
    self_made = pc.is_in(rows.column("operation"), value_set=pa.array([ALIAS, RESTORE]))
    whole = pc.is_null(rows.column("from_version"))
    flags = pc.if_else(strong, pa.scalar(0, pa.uint8()), pa.scalar(EdgeArrays.WEAK, pa.uint8()))
    edges = pa.table({"input": source, "output": output, "flags": flags})
    draft.told.append(edges.filter(pc.and_(whole, pc.invert(self_made))).drop_null())
    kept = pc.equal(rows.column("operation"), Operation.REMOVE_FILES.value)
    parts = pa.table(
        {
            "output": output,
            "table": rows.input,
            "after": rows.column("from_version"),
            "upto": rows.column("input_version"),
            "flags": pc.if_else(kept, pc.bit_wise_or(flags, pa.scalar(EdgeArrays.OWN, pa.uint8())), flags),
            "own": source,
        }
    ).filter(pc.invert(whole))
    for part in parts.drop_null().to_pylist():
        draft.changes(part["table"], part["after"], part["upto"], part["output"], part["flags"])


def _log_edges(draft: GraphDraft, reads: Sequence[_Read]) -> None:
    """The edges that commits tell themselves."""
    for read in reads:
        reader = draft.node(read.reader, read.version)
        if read.upto is None:
            draft.known[reader] = 0
        elif read.after is not None:
            draft.changes(read.source, read.after, read.upto, reader, EdgeArrays.OWN if read.own else 0)
        else:
            draft.edge(draft.node(read.source, read.upto), reader)
