"""The edges around a table, with names instead of identifiers: what `lakewarden lineage show` shows."""

from collections.abc import Mapping

import pyarrow.compute as pc

from lakewarden.catalog.lineage.edges import NOT_KNOWN
from lakewarden.catalog.lineage.queries import EDGE_COLUMNS, Direction, edges_around, newest
from lakewarden.catalog.model.rows import GONE, RowKind, TableRow
from lakewarden.catalog.system.port import LINEAGE, TABLES, SystemStore
from lakewarden.daemon.usecases.lineage.views import UNKNOWN, NamedEdge

__all__ = ["named_edges"]


def named_edges(
    store: SystemStore, row: TableRow, direction: Direction, *, versions: bool
) -> tuple[NamedEdge, ...]:
    """The edges around a table; without `versions` only the newest between each two tables."""
    rows = store.rows(LINEAGE).arrow(EDGE_COLUMNS)
    found = edges_around(rows, row.table_id, direction, places=_places(store))
    names = _names(store)
    return tuple(
        NamedEdge(
            output=names.get(edge.output_id, edge.output_id),
            output_id=edge.output_id,
            output_version=edge.output_version,
            input=names.get(edge.input_id, edge.input_id),
            input_id=edge.input_id,
            input_version=edge.input_version,
            from_version=edge.from_version,
            operation=edge.operation,
            confidence=edge.confidence,
            run_id=edge.run_id,
        )
        for edge in (found if versions else newest(found))
    )


def _places(store: SystemStore) -> Mapping[str, str]:
    """The `table_id` of each location that is managed."""
    tables = store.rows(TABLES).arrow(["table_id", "location", "kind", "state"])
    live = [one for one in tables.to_pylist() if one["kind"] == RowKind.TABLE and one["state"] not in GONE]
    return {one["location"]: one["table_id"] for one in live if one["location"]}


def _names(store: SystemStore) -> Mapping[str, str]:
    """Names by `table_id`, of tables that are gone too: lineage outlives them."""
    tables = store.rows(TABLES).arrow(["table_id", "name", "kind"])
    tables = tables.filter(pc.equal(tables["kind"], RowKind.TABLE.value))
    names = dict(zip(tables["table_id"].to_pylist(), tables["name"].to_pylist(), strict=True))
    return {**names, NOT_KNOWN: UNKNOWN}
