"""docs/reference/columns.md: every column of the system tables, from the schemas they are stored with."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

import pyarrow as pa

from lakewarden.catalog.model.rows import PolicySettings
from lakewarden.catalog.system.port import SYSTEM_TABLES, SystemTable
from lakewarden.catalog.system.schema import BUCKET, arrow_type, row_schema, stored_schema
from support.reference.column_meanings import MEANINGS, NESTED, WRITERS
from support.reference.meanings import NOTICE, cell, meant

__all__ = ["columns_page"]

_INTRO = """\
# Columns of the system tables

What can be asked for with `lakewarden sql "SELECT ... FROM lakewarden.<table>"`, and what Spark reads. Every
column can be null; times are UTC, sizes bytes. How the tables are kept is in
[system tables](system-tables.md). `bucket` is the partition that a row is stored in, and means nothing else.
"""


def columns_page() -> str:
    """The page. Raises `Undocumented` for a column without a meaning."""
    writers = meant("who writes a table", (table.name.value for table in SYSTEM_TABLES), WRITERS)
    lines = [NOTICE, _INTRO]
    for table in SYSTEM_TABLES:
        lines += _table(table, writers[table.name.value])
    lines += _parts()
    return "\n".join(lines).rstrip() + "\n"


def _table(table: SystemTable[Any], writers: str) -> Iterator[str]:
    schema = row_schema(table)
    meanings = meant(table.name.value, schema.names, MEANINGS[table.name.value])
    yield f"## {table.name.value}\n"
    yield f"Key: {', '.join(f'`{one}`' for one in table.key)}. Written by: {writers}\n"
    yield "| column | type | meaning |"
    yield "|---|---|---|"
    parts = _structs(table)
    for name, meaning in meanings.items():
        kind = _type(schema.field(name).type, parts.get(name))
        yield f"| `{name}` | {kind} | {cell(meaning)} |"
    yield (
        f"| `{BUCKET}` | {stored_schema(table).field(BUCKET).type} | The partition: "
        f"a hash of `{table.bucket_by}`. |\n"
    )


def _parts() -> Iterator[str]:
    yield "## What stands in columns\n"
    yield f"`{PolicySettings.__name__}` has one field per [policy key](policies.md): "
    yield f"{', '.join(f'`{one.name}`' for one in fields(PolicySettings))}.\n"
    structs = {one.__name__: one for table in SYSTEM_TABLES for one in _structs(table).values()}
    structs.pop(PolicySettings.__name__)
    meant("what stands in columns", structs, dict.fromkeys(NESTED, "."))
    for name, struct in sorted(structs.items()):
        hints = get_type_hints(struct)
        yield f"### {name}\n"
        yield "| field | type | meaning |"
        yield "|---|---|---|"
        for field, meaning in meant(name, (one.name for one in fields(struct)), NESTED[name]).items():
            yield f"| `{field}` | {_type(arrow_type(hints[field]), None)} | {cell(meaning)} |"
        yield ""


def _structs(table: SystemTable[Any]) -> dict[str, Any]:
    """The columns that hold structs, with the struct's type."""
    found = {}
    for name, hint in get_type_hints(table.row_type).items():
        for one in (hint, *get_args(hint)):
            if is_dataclass(one):
                found[name] = one
    return found


def _type(kind: pa.DataType, struct: Any) -> str:
    if struct is not None:
        of = (
            f"[{struct.__name__}](#{struct.__name__.lower()})"
            if struct is not PolicySettings
            else struct.__name__
        )
        return f"list of {of}" if pa.types.is_list(kind) else of
    if pa.types.is_list(kind):
        return f"list of {kind.value_type}"
    return "timestamp" if pa.types.is_timestamp(kind) else cell(str(kind))
