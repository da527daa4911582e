"""Delta's schema JSON as columns: leaves and struct fields with Spark's type names. Pure."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from lakewarden.catalog.formats.delta.errors import LOG_READABLE, BrokenLogError
from lakewarden.catalog.formats.nested_types import NestedTypes
from lakewarden.catalog.model.rows import Column

__all__ = ["PHYSICAL_NAME", "columns_of", "physical_names"]

_ID: Final = "delta.columnMapping.id"
PHYSICAL_NAME: Final = "delta.columnMapping.physicalName"
_TYPES: Final = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint"}


def columns_of(schema_json: str | None, *, mapped: bool) -> tuple[Column, ...]:
    """The columns in order, depth first; no columns where the table has no schema yet.

    With column mapping (`mapped`) ids are the table's own; elsewhere they are positions (from 1), which
    `lakewarden.schemas` turns into ids that last. Raises `BrokenLogError` for a schema that cannot be understood.
    """
    if schema_json is None:
        return ()
    try:
        fields = list(_NESTED.fields(orjson.loads(schema_json)))
        return tuple(
            Column(
                id=int(field["metadata"][_ID]) if mapped else place,
                path=path,
                type=_NESTED.name(field["type"]),
                nullable=bool(field.get("nullable", True)),
                comment=(field.get("metadata") or {}).get("comment"),
            )
            for place, (path, field) in enumerate(fields, start=1)
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BrokenLogError(
            LOG_READABLE, "The schema in the table's metadata cannot be understood."
        ) from error


def physical_names(schema_json: str | None) -> Mapping[str, str]:
    """Top-level column name -> its name in data files and partition values (the same without column mapping)."""
    if schema_json is None:
        return {}
    fields = orjson.loads(schema_json)["fields"]
    return {
        field["name"]: (field.get("metadata") or {}).get(PHYSICAL_NAME, field["name"]) for field in fields
    }


def _leaf(kind: Any) -> str:
    if isinstance(kind, str):
        return _TYPES.get(kind, kind)
    return _NESTED.name(kind["type"])  # user-defined types: {"type": "udt", ...}


_NESTED: Final = NestedTypes(
    array="array", element="elementType", key="keyType", value="valueType", leaf=_leaf
)
