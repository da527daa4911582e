"""Iceberg's schema JSON as columns: leaves and struct fields with Spark's type names and the table's own ids. Pure.

Nested fields follow their parent: `s` (`struct<a:int>`), `s.a`; inside lists and maps as `a.element.x`, `m.value.x`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from lakewarden.catalog.model.rows import Column

__all__ = ["columns_of", "unknown_types"]

_TYPES: Final = {
    "long": "bigint",
    "timestamp": "timestamp_ntz",
    "timestamptz": "timestamp",
    "uuid": "string",
}
"""What Spark calls them, where that is something else."""
_AS_THEY_ARE: Final = frozenset({"boolean", "int", "float", "double", "date", "string", "binary", "variant"})
_NOT_SPARKS: Final = frozenset({"time", "timestamp_ns", "timestamptz_ns", "unknown"})
"""Types that Spark has no name for."""
_WITH_PARAMETERS: Final = ("decimal(", "fixed[", "geometry", "geography")

Json = Mapping[str, Any]


def columns_of(schema: Json) -> tuple[Column, ...]:
    """The columns in order, depth first, with the ids of the table. Raises KeyError, TypeError or ValueError for a
    schema that makes no sense."""
    return tuple(
        Column(
            id=int(field["id"]),
            path=path,
            type=_type(field["type"]),
            nullable=not field["required"],
            comment=field.get("doc"),
        )
        for path, field in _fields(schema, "")
    )


def unknown_types(schema: Json) -> tuple[str, ...]:
    """Types that no version of the format has that lakewarden knows, sorted."""
    return tuple(sorted({one for one in _leaves(schema) if not _is_known(one)}))


def _fields(kind: Any, prefix: str) -> Iterator[tuple[str, Json]]:
    if not isinstance(kind, dict):
        return
    match kind["type"]:
        case "struct":
            for field in kind["fields"]:
                path = f"{prefix}{field['name']}"
                yield path, field
                yield from _fields(field["type"], f"{path}.")
        case "list":
            yield from _fields(kind["element"], f"{prefix}element.")
        case "map":
            yield from _fields(kind["key"], f"{prefix}key.")
            yield from _fields(kind["value"], f"{prefix}value.")


def _type(kind: Any) -> str:
    """Spark's name of a type (`catalogString`)."""
    if isinstance(kind, str):
        if kind.startswith("fixed["):
            return "binary"
        return _TYPES.get(kind, kind.replace(" ", ""))
    match kind["type"]:
        case "struct":
            members = (f"{field['name']}:{_type(field['type'])}" for field in kind["fields"])
            return f"struct<{','.join(members)}>"
        case "list":
            return f"array<{_type(kind['element'])}>"
        case "map":
            return f"map<{_type(kind['key'])},{_type(kind['value'])}>"
        case other:
            raise ValueError(f"no type: {other}")


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
