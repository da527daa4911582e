"""Building the version graph: rows of `lakewarden.lineage` and the logs of the tables that matter. Pure.

What a commit says and what a row says are added up: an edge that only one of them knows counts. Rows alone suffice for
versions whose log entry is gone. Rows that speak of a predecessor (a table that was dropped and made again at the same
place) are told apart by UUID and by versions after the head, and left out.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.lineage.draft import Draft, draft_of, finished
from lakewarden.catalog.lineage.graph import NO_NODE, EdgeArrays, VersionGraph
from lakewarden.catalog.lineage.numbering import Rows, encode_rows, numbers
from lakewarden.catalog.lineage.record import LineageInput
from lakewarden.catalog.lineage.rows import ALIAS, RESTORE
from lakewarden.catalog.lineage.versions import Effect, Version, effect_of
from lakewarden.catalog.model import Confidence

__all__ = ["ROW_COLUMNS", "TRUSTED", "Histories", "build_graph"]

ROW_COLUMNS: Final = (
    "output_id",
    "output_version",
    "input_id",
    "input_version",
    "operation",
    "confidence",
    "from_version",
    "output_format_id",
    "input_format_id",
)
TRUSTED: Final = frozenset({Confidence.COMMITTED, Confidence.STREAM})
"""What automatic work may rely on by default; a policy may add `plan`."""
Histories = Mapping[str, Sequence[Version]]
"""By `table_id`, the versions of a log in order."""


def build_graph(
    rows: pa.Table,
    histories: Histories,
    *,
    trusted: frozenset[Confidence] = TRUSTED,
    places: Mapping[str, str] | None = None,
) -> VersionGraph:
    """The graph of everything that `rows` (columns `ROW_COLUMNS`) and `histories` speak of.

    Histories have to be read after the rows. `places` gives the `table_id` of locations that are managed now. Linear in
    rows and versions; an incremental read counts as as many edges as it read versions.
    """
    encoded, tables = encode_rows(rows, histories, places or {})
    index = {name: number for number, name in enumerate(tables)}
    numbering = numbers(tables, _pairs(encoded, histories, index))
    draft = draft_of(numbering)
    formats = _say_logs(draft, histories)
    output, source = _own(encoded, draft, formats)
    strong = pc.is_in(encoded.column("confidence"), value_set=pa.array(sorted(trusted), pa.string()))
    _say_rows(draft, encoded, output, source, strong)
    _say_effects(draft, histories)
    draft.doubt_gaps()
    _say_edges(draft, encoded, output, source, strong)
    _log_edges(draft, histories, places or {}, formats)
    return finished(draft)


def _pairs(rows: Rows, histories: Histories, index: Mapping[str, int]) -> Iterator[tuple[pa.Array, pa.Array]]:
    yield rows.output, rows.column("output_version")
    yield rows.input, rows.column("input_version")
    tables: list[int] = []
    versions: list[int] = []
    for table_id, history in histories.items():
        tables.extend([index[table_id]] * len(history))
        versions.extend([one.version for one in history])
        targets = [one.target for one in history if one.target is not None]
        tables.extend([index[table_id]] * len(targets))
        versions.extend(targets)
        for read in (read for one in history for read in one.inputs):
            number = index.get(read.table_id or "")
            if number is not None and read.version is not None:
                tables.append(number)
                versions.append(read.version)
    yield pa.array(tables, pa.int64()), pa.array(versions, pa.int64())


def _say_logs(draft: Draft, histories: Histories) -> list[str | None]:
    """Heads, as the logs have them; returns the UUID of each node, None where no log tells."""
    formats: list[str | None] = [None] * len(draft.versions)
    for table_id, history in histories.items():
        table = draft.numbering.index[table_id]
        for one in history:
            formats[draft.node(table, one.version)] = one.format_id
        if history:
            draft.heads[table] = draft.node(table, history[-1].version)
    return formats


def _own(rows: Rows, draft: Draft, formats: Sequence[str | None]) -> tuple[pa.Array, pa.Array]:
    """The nodes of outputs and inputs, null where the row speaks of nothing or of a predecessor."""
    late = bytearray(len(draft.versions))
    for table, head in enumerate(draft.heads):
        if head != NO_NODE:
            late[head + 1 : draft.first[table + 1]] = b"\x01" * (draft.first[table + 1] - head - 1)
    beyond = pa.array(late, pa.uint8()) if late else pa.array([], pa.uint8())
    stamps = pa.array(formats, pa.string())

    def ours(tables: pa.Array, version: str, format_id: str) -> pa.Array:
        nodes = draft.numbering.nodes(tables, rows.column(version))
        other = pc.fill_null(pc.not_equal(stamps.take(nodes), rows.column(format_id)), False)
        gone = pc.or_(other, pc.fill_null(pc.equal(beyond.take(nodes), 1), False))
        return pc.if_else(gone, pa.scalar(None, nodes.type), nodes)

    return (
        ours(rows.output, "output_version", "output_format_id"),
        ours(rows.input, "input_version", "input_format_id"),
    )


def _say_rows(draft: Draft, rows: Rows, output: pa.Array, source: pa.Array, strong: pa.Array) -> None:
    """What rows say of the versions they were written for: their effect, and whether all inputs are known."""
    operations = rows.column("operation")
    for operation in pc.unique(operations).to_pylist():
        mine = pc.equal(operations, operation)
        effect = {ALIAS: Effect.ALIAS, RESTORE: Effect.RESTORE}.get(operation, effect_of(operation))
        for node in output.filter(mine).drop_null().to_pylist():
            draft.effects[node] = effect
        if operation == RESTORE:
            pairs = zip(output.filter(mine).to_pylist(), source.filter(mine).to_pylist(), strict=True)
            draft.targets.update({node: to for node, to in pairs if None not in (node, to)})
    for node in output.filter(strong).drop_null().to_pylist():
        draft.known[node] = 1
    unpinned = pc.and_(pc.is_valid(rows.input), pc.is_null(rows.column("input_version")))
    for node in output.filter(pc.and_(strong, pc.or_(rows.unsaid, unpinned))).drop_null().to_pylist():
        draft.known[node] = 0
    _head_rows(draft, output)


def _head_rows(draft: Draft, output: pa.Array) -> None:
    """The newest version of a table whose log was not read is the newest that a row was written for."""
    open_heads = {table for table, head in enumerate(draft.heads) if head == NO_NODE}
    for node in pc.unique(output).drop_null().to_pylist():
        table = draft.owners[node]
        if table in open_heads and draft.heads[table] < node:
            draft.heads[table] = node


def _say_effects(draft: Draft, histories: Histories) -> None:
    """What the logs say: they know better what was done; what was read, a row may know better."""
    for table_id, history in histories.items():
        table = draft.numbering.index[table_id]
        for one in history:
            node = draft.node(table, one.version)
            told = draft.known[node]
            if not (told and not one.known and draft.effects[node] == Effect.CHANGE):
                draft.effects[node] = one.effect
            draft.known[node] = 1 if one.known or told else 0
            if one.target is not None:
                draft.targets[node] = draft.node(table, one.target)


def _say_edges(draft: Draft, rows: Rows, output: pa.Array, source: pa.Array, strong: pa.Array) -> None:
    """The edges that rows tell."""
    self_made = pc.is_in(rows.column("operation"), value_set=pa.array([ALIAS, RESTORE]))
    whole = pc.is_null(rows.column("from_version"))
    flags = pc.if_else(strong, pa.scalar(0, pa.uint8()), pa.scalar(EdgeArrays.WEAK, pa.uint8()))
    edges = pa.table({"input": source, "output": output, "flags": flags})
    draft.told.append(edges.filter(pc.and_(whole, pc.invert(self_made))).drop_null())
    parts = pa.table(
        {
            "output": output,
            "table": rows.input,
            "after": rows.column("from_version"),
            "upto": rows.column("input_version"),
            "flags": flags,
            "own": source,
        }
    ).filter(pc.invert(whole))
    for part in parts.drop_null().to_pylist():
        draft.changes(part["table"], part["after"], part["upto"], part["output"], part["flags"])


def _log_edges(
    draft: Draft, histories: Histories, places: Mapping[str, str], formats: Sequence[str | None]
) -> None:
    """The edges that commits tell themselves."""
    for table_id, history in histories.items():
        table = draft.numbering.index[table_id]
        for one in history:
            if not one.inputs and not one.reads_self:
                continue
            node = draft.node(table, one.version)
            ids = [read.table_id or places.get(read.location) for read in one.inputs]
            if one.reads_self and table_id not in ids and node > draft.first[table]:
                draft.edge(node - 1, node)
            for input_id, read in zip(ids, one.inputs, strict=True):
                _log_edge(draft, input_id, read, node, formats)


def _log_edge(
    draft: Draft, input_id: str | None, read: LineageInput, node: int, formats: Sequence[str | None]
) -> None:
    table = draft.numbering.index.get(input_id or "")
    if table is None or read.version is None:
        return
    source = draft.node(table, read.version)
    head = draft.heads[table]
    if source != NO_NODE and head != NO_NODE and source > head:
        return  # a version after the head: the log was begun anew since
    if source != NO_NODE and read.format_id and formats[source] not in (None, read.format_id):
        return
    if read.from_version is not None:
        draft.changes(table, read.from_version, read.version, node, 0)
    elif source != NO_NODE:
        draft.edge(source, node)
