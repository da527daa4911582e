"""Which tables could be affected at all: whose logs a plan has to read. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

import pyarrow as pa

__all__ = ["tables_reached"]


def tables_reached(
    rows: pa.Table,
    start: Iterable[str],
    *,
    dependencies: Mapping[str, Iterable[str]] | None = None,
    places: Mapping[str, str] | None = None,
) -> frozenset[str]:
    """The tables that could depend on those of `start`, these included,
    whatever the versions and however well it is known.

    `rows` are those of `lakewarden.lineage` (`output_id` and `input_id`), `dependencies` the upstream tables that each
    table declares, `places` the `table_id` of locations that are managed now.
    """
    located = places or {}
    readers: dict[str, set[str]] = defaultdict(set)
    for pair in (
        rows.select(["output_id", "input_id"]).group_by(["output_id", "input_id"]).aggregate([]).to_pylist()
    ):
        readers[located.get(pair["input_id"], pair["input_id"])].add(pair["output_id"])
    for table_id, upstream in (dependencies or {}).items():
        for one in upstream:
            readers[one].add(table_id)
    found = set(start)
    open_ends = list(found)
    while open_ends:
        for reader in readers[open_ends.pop()] - found:
            found.add(reader)
            open_ends.append(reader)
    return frozenset(found)
