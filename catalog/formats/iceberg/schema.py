"""Iceberg's schema JSON as columns: leaves and struct fields with Spark's type names and the table's own ids. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from lakewarden.catalog.formats.nested_types import Json, NestedTypes
from lakewarden.catalog.model.rows import Column

__all__ = ["columns_of", "countable", "unknown_types"]

_TYPES: Final = {
    "long": "bigint",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "uuid": "string",
}
"""Spark's names, where they differ."""
_AS_THEY_ARE: Final = frozenset({"boolean", "int", "float", "double", "date", "string", "binary", "variant"})
_NOT_SPARKS: Final = frozenset({"time", "timestamp_ns", "timestamptz_ns", "unknown"})
"""Types that Spark has no name for."""
_COUNTED: Final = frozenset({*_TYPES, *_AS_THEY_ARE} - {"variant"})
_MOST_COLUMNS: Final = 100
"""Columns beyond are left out: a sketch of each takes up to 32 KiB in one file."""
_METRICS: Final = "write.metadata.metrics.column."
_WITH_PARAMETERS: Final = ("decimal(", "fixed[", "geometry", "geography")


def columns_of(schema: Json) -> tuple[Column, ...]:
    """The columns in order, depth first, with the ids of the table. Raises KeyError, TypeError or ValueError for a
    schema that makes no sense."""
    return tuple(
        Column(
            id=int(field["id"]),
            path=path,
            type=_NESTED.name(field["type"]),
            nullable=not field["required"],
            comment=field.get("doc"),
        )
        for path, field in _NESTED.fields(schema)
    )


def countable(schema: Json, properties: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the columns whose distinct values can be counted, and of those where nobody can, the table's owner
    wants no metrics, or that are too many."""
    names = {str(one["name"]): one["type"] for one in schema["fields"]}
    able = [
        name
        for name, kind in names.items()
        if _is_counted(kind) and properties.get(f"{_METRICS}{name}", "").strip().lower() != "none"
    ]
    chosen = tuple(able[:_MOST_COLUMNS])
    return chosen, tuple(name for name in names if name not in set(chosen))


def _is_counted(kind: Any) -> bool:
    return isinstance(kind, str) and (kind in _COUNTED or kind.startswith(("decimal(", "fixed[")))


def unknown_types(schema: Json) -> tuple[str, ...]:
    """Types that no version of the format has that lakewarden knows, sorted."""
    return tuple(sorted({one for one in _leaves(schema) if not _is_known(one)}))


def _leaf(kind: Any) -> str:
    if isinstance(kind, str):
        return "binary" if kind.startswith("fixed[") else _TYPES.get(kind, kind.replace(" ", ""))
    raise ValueError(f"no type: {kind['type']}")


_NESTED: Final = NestedTypes(array="list", element="element", key="key", value="value", leaf=_leaf)


def _leaves(kind: Any) -> Iterator[str]:
    if isinstance(kind, str):
        yield kind
        return
    match kind["type"]:
        case "struct":
            for field in kind["fields"]:
                yield from _leaves(field["type"])
        case "list":
            yield from _leaves(kind["element"])
        case "map":
            yield from _leaves(kind["key"])
            yield from _leaves(kind["value"])


def _is_known(kind: str) -> bool:
    return kind in _TYPES or kind in _AS_THEY_ARE or kind in _NOT_SPARKS or kind.startswith(_WITH_PARAMETERS)
