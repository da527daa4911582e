"""The part of the lineage that one table belongs to: what it comes from, what comes from it. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.lineage.edges import ALIAS, NOT_KNOWN, NOTHING, RESTORE
from lakewarden.catalog.model.arrow_columns import coded
from lakewarden.catalog.model.rows import Confidence

__all__ = ["EDGE_COLUMNS", "Direction", "Edge", "edges_around", "newest"]

EDGE_COLUMNS: Final = (
    "output_id",
    "output_version",
    "input_id",
    "input_version",
    "operation",
    "run_id",
    "confidence",
    "from_version",
)


class Direction(StrEnum):
    """Which way to follow the edges."""

    UPSTREAM = "upstream"
    DOWNSTREAM = "downstream"
    BOTH = "both"


@dataclass(frozen=True, kw_only=True, slots=True)
class Edge:
    """One version edge."""

    output_id: str
    output_version: int
    input_id: str
    """The id of a table, a location, or `rows.NOT_KNOWN`."""
    input_version: int | None
    operation: str
    run_id: str | None
    confidence: Confidence
    from_version: int | None


def edges_around(
    rows: pa.Table, table_id: str, direction: Direction, *, places: Mapping[str, str] | None = None
) -> tuple[Edge, ...]:
    """The edges between tables on any path that leads to (or from) `table_id`, newest output version first.

    `rows` has the columns `EDGE_COLUMNS` of `lakewarden.lineage`. Versions that read nothing and steps within a table
    (maintenance, RESTORE) are no edges between tables; inputs that nobody knows are. `places` gives the `table_id` of
    locations that are managed now and were not when they were read. Linear in rows.
    """
    rows = _placed(rows, places or {})
    between = rows.filter(
        pc.and_(
            pc.invert(pc.is_in(rows["operation"], value_set=pa.array([ALIAS, RESTORE]))),
            pc.and_(
                pc.not_equal(rows["input_id"], NOTHING), pc.not_equal(rows["input_id"], rows["output_id"])
            ),
        )
    )
    pairs = between.group_by(["input_id", "output_id"]).aggregate([]).to_pydict()
    inputs, outputs = defaultdict(set), defaultdict(set)
    for source, target in zip(pairs["input_id"], pairs["output_id"], strict=True):
        inputs[target].add(source)
        outputs[source].add(target)
    up = _reached(table_id, inputs) if direction is not Direction.DOWNSTREAM else set()
    down = _reached(table_id, outputs) if direction is not Direction.UPSTREAM else set()
    wanted = pc.or_(_within(between, "output_id", up), _within(between, "input_id", down))
    found = between.filter(wanted).sort_by([("output_id", "ascending"), ("output_version", "descending")])
    edges = [
        Edge(**{**one, "confidence": Confidence(one["confidence"])})
        for one in found.select(EDGE_COLUMNS).to_pylist()
    ]
    streamed = {(one.output_id, one.output_version) for one in edges if one.confidence is Confidence.STREAM}
    return tuple(
        one for one in edges if not (_is_open(one) and (one.output_id, one.output_version) in streamed)
    )


def _placed(rows: pa.Table, places: Mapping[str, str]) -> pa.Table:
    """The rows with the inputs by `table_id` that were read by location."""
    inputs = coded(rows["input_id"])
    ids = [places.get(one, one) for one in inputs.dictionary.to_pylist()]
    column = pa.array(ids, pa.string()).take(inputs.indices)
    return rows.set_column(rows.schema.get_field_index("input_id"), "input_id", column)


def _is_open(edge: Edge) -> bool:
    """Whether the edge only says that the input was unknown. A checkpoint read later overrules such an edge."""
    return edge.input_id == NOT_KNOWN and edge.confidence is Confidence.HINT


def newest(edges: Iterable[Edge]) -> tuple[Edge, ...]:
    """Of each pair of tables only the edge with the newest output version."""
    kept: dict[tuple[str, str], Edge] = {}
    for edge in edges:
        pair = (edge.input_id, edge.output_id)
        if pair not in kept or edge.output_version > kept[pair].output_version:
            kept[pair] = edge
    return tuple(kept.values())


def _reached(start: str, steps: Mapping[str, set[str]]) -> set[str]:
    reached, ends = {start}, [start]
    while ends:
        for step in steps.get(ends.pop(), ()):
            if step not in reached:
                reached.add(step)
                ends.append(step)
    return reached


def _within(rows: pa.Table, column: str, ids: set[str]) -> pa.ChunkedArray:
    return pc.is_in(rows[column], value_set=pa.array(sorted(ids), pa.string()))
