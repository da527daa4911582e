"""An upsert that reads nothing of its target: what may be written so, and the keys and rows that are. Pure."""

from typing import Final

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.keyed_merge import lacks_key
from lakewarden.jobs.sql.compile.values import TableSchema, quoted
from lakewarden.jobs.upsert.statement import DELETED
from lakewarden.jobs.upsert.target_columns import Columns
from lakewarden.jobs.upsert.type_trees import missing_fields
from lakewarden.jobs.upsert.upsert_options import NullKeys, UpsertOptions

__all__ = ["keys_query", "require_blind", "rows_query"]

_COMPARED: Final = (
    "boolean", "int", "bigint", "decimal", "date", "timestamp", "timestamp_ntz", "string", "binary"
)  # fmt: skip
"""Types whose values every engine compares alike: of floating-point numbers NaN and the two zeros differ."""
_MERGE: Final = 'Upsert with write="table", which reads the table.'


def require_blind(
    options: UpsertOptions,
    columns: Columns,
    source: TableSchema,
    target: TableSchema,
    uuids: frozenset[str] = frozenset(),
) -> None:
    """Return if an upsert with these options comes to the same without reading the target. `uuids`: its columns, in
    lower case, that are texts for Spark alone. Raises `UsageError`."""
    if options.newer_by is not None or options.partial:
        what = "newer by" if options.newer_by is not None else "partial"
        raise UsageError(
            f"`{what}` compares with the rows of the table, and an upsert by equality deletes does not read them.",
            hint=_MERGE,
        )
    types = {one.name: "uuid" if one.name.lower() in uuids else one.type for one in target}
    odd = next((key for key in columns.keys if types[key].partition("(")[0] not in _COMPARED), None)
    if odd is not None:
        raise UsageError(
            f"The key {odd} is {types[odd]}, of which equality deletes do not tell all values apart.",
            hint=f"{_MERGE} Keys may be: {', '.join(_COMPARED)}.",
        )
    given = {one.name.lower(): one.type for one in source}
    lacking = [one.name for one in target if one.name.lower() not in given]
    for one in target:
        if one.name.lower() in given:
            lacking += missing_fields(given[one.name.lower()], one.type, one.name)
    if lacking:
        raise UsageError(
            f"The source has no {', '.join(lacking)}: what the table holds there is not read, and would be lost.",
            hint=f"Give whole rows. Or: {_MERGE}",
        )


def keys_query(options: UpsertOptions, columns: Columns, view: str) -> str:
    """The keys in the prepared `view` whose rows in the target go: each once."""
    named = ", ".join(f"{quoted(columns.source[key])} AS {quoted(key)}" for key in columns.keys)
    if options.null_keys is NullKeys.MATCH:
        return f"SELECT {named} FROM {view}"
    lacks = lacks_key([quoted(columns.source[key]) for key in columns.keys])
    return f"SELECT {named} FROM {view} WHERE NOT ({lacks})"


def rows_query(columns: Columns, view: str) -> str:
    """The rows in the prepared `view` that the target has afterwards."""
    named = ", ".join(f"{quoted(ours)} AS {quoted(name)}" for name, ours in columns.source.items())
    return f"SELECT {named} FROM {view} WHERE NOT {quoted(DELETED)}"
