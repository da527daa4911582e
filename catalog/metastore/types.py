"""Column types in the three spellings an entry needs: as observed, as Spark stores a schema, as Hive shows it. Pure."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, assert_never

from lakewarden.catalog.model.rows import Column

__all__ = ["LONGEST_HIVE_TYPE", "UnknownTypeError", "hive_type", "same_schema", "spark_schema", "top_level"]

LONGEST_HIVE_TYPE: Final = 4000
"""Letters: what older metastore databases have room for."""

_JSON_NAMES: Final = {"int": "integer", "bigint": "long", "smallint": "short", "tinyint": "byte"}
_HIVE_NAMES: Final = {"timestamp_ntz": "timestamp"}
_HIVE_KNOWS: Final = re.compile(
    r"^(boolean|tinyint|smallint|int|bigint|float|double|string|binary|date|timestamp"
    r"|decimal\(\d+,\d+\)|char\(\d+\)|varchar\(\d+\))$"
)
_NO_HIVE_NAME: Final = re.compile(r"\W")
_SHOWN_AS: Final = "string"
"""The type shown to Hive where Hive has no such type: it cannot read the table anyway."""


class UnknownTypeError(ValueError):
    """A type's text does not follow Spark's grammar (a struct field's name holds a `:` or the like)."""


@dataclass(frozen=True, slots=True)
class _PlainType:
    name: str


@dataclass(frozen=True, slots=True)
class _Array:
    element: "_Type"


@dataclass(frozen=True, slots=True)
class _Map:
    key: "_Type"
    value: "_Type"


@dataclass(frozen=True, slots=True)
class _Struct:
    fields: tuple[tuple[str, "_Type"], ...]


_Type = _PlainType | _Array | _Map | _Struct


def top_level(columns: Sequence[Column]) -> Iterator[Column]:
    """The columns of the table itself, without the fields inside them (which follow their column)."""
    above: Column | None = None
    for column in columns:
        inside = above is not None and "<" in above.type and column.path.startswith(f"{above.path}.")
        if not inside:
            above = column
            yield column


def spark_schema(columns: Sequence[Column]) -> str:
    """The schema as Spark stores it (`StructType.json`). Raises `UnknownTypeError`."""
    nested = {column.path: column for column in columns}
    fields = [
        _json_field(column.path, _parse(column.type), column.path, nested) for column in top_level(columns)
    ]
    return json.dumps({"type": "struct", "fields": fields}, separators=(",", ":"), ensure_ascii=False)


def same_schema(one: str, other: str) -> bool:
    """Whether two stored schemas agree on names, types, nullability and comments; false if one is not a schema."""
    try:
        return bool(_bare(json.loads(one)) == _bare(json.loads(other)))
    except (ValueError, KeyError, TypeError, AttributeError):
        return False


def hive_type(text: str) -> str:
    """The Hive type for a column's type; `string` for what Hive has no word for and for what is too long."""
    try:
        shown = _hive(_parse(text))
    except UnknownTypeError:
        return _SHOWN_AS
    return shown if len(shown) <= LONGEST_HIVE_TYPE else _SHOWN_AS


def _hive(kind: _Type) -> str:
    match kind:
        case _PlainType(name):
            known = _HIVE_NAMES.get(name, name)
            return known if _HIVE_KNOWS.match(known) else _SHOWN_AS
        case _Array(element):
            return f"array<{_hive(element)}>"
        case _Map(key, value):
            return f"map<{_hive(key)},{_hive(value)}>"
        case _Struct(fields):
            inside = ",".join(_NO_HIVE_NAME.sub("_", name) + ":" + _hive(of) for name, of in fields)
            return f"struct<{inside}>"
        case _:
            assert_never(kind)


def _json_field(name: str, kind: _Type, path: str, nested: Mapping[str, Column]) -> Mapping[str, Any]:
    column = nested.get(path)
    comment = column.comment if column is not None else None
    return {
        "name": name,
        "type": _json_type(kind, path, nested),
        "nullable": column.nullable if column is not None else True,
        "metadata": {"comment": comment} if comment is not None else {},
    }


def _json_type(kind: _Type, path: str, nested: Mapping[str, Column]) -> Any:
    match kind:
        case _PlainType(name):
            return _JSON_NAMES.get(name, name)
        case _Array(element):
            inside = _json_type(element, f"{path}.element", nested)
            return {"type": "array", "elementType": inside, "containsNull": True}
        case _Map(key, value):
            return {
                "type": "map",
                "keyType": _json_type(key, f"{path}.key", nested),
                "valueType": _json_type(value, f"{path}.value", nested),
                "valueContainsNull": True,
            }
        case _Struct(fields):
            return {
                "type": "struct",
                "fields": [_json_field(name, of, f"{path}.{name}", nested) for name, of in fields],
            }
        case _:
            assert_never(kind)


def _bare(kind: Any) -> Any:
    """A stored schema without what an observation does not tell: column mapping, nullability inside arrays and maps."""
    if not isinstance(kind, dict):
        return kind
    if "name" in kind:
        comment = (kind.get("metadata") or {}).get("comment")
        return kind["name"], _bare(kind["type"]), bool(kind.get("nullable", True)), comment
    inside = ("fields", "elementType", "keyType", "valueType")
    return kind["type"], *(
        [_bare(field) for field in kind[key]] if key == "fields" else _bare(kind[key])
        for key in inside
        if key in kind
    )


def _parse(text: str) -> _Type:
    kind, rest = _type(text)
    if rest:
        raise UnknownTypeError(text)
    return kind


def _type(text: str) -> tuple[_Type, str]:
    if text.startswith("array<"):
        element, rest = _type(text.removeprefix("array<"))
        return _Array(element), _past(">", rest)
    if text.startswith("map<"):
        key, rest = _type(text.removeprefix("map<"))
        value, rest = _type(_past(",", rest))
        return _Map(key, value), _past(">", rest)
    if text.startswith("struct<"):
        return _struct(text.removeprefix("struct<"))
    plain = re.match(r"[^,<>:()]+(\( *\d+ *(, *\d+ *)?\))?", text)
    if plain is None:
        raise UnknownTypeError(text)
    return _PlainType(plain[0].replace(" ", "") if "(" in plain[0] else plain[0]), text[plain.end() :]


def _struct(text: str) -> tuple[_Type, str]:
    fields: list[tuple[str, _Type]] = []
    while not text.startswith(">"):
        name, colon, text = (text if not fields else _past(",", text)).partition(":")
        if not colon or "," in name or ">" in name:
            raise UnknownTypeError(name)
        kind, text = _type(text)
        fields.append((name, kind))
    return _Struct(tuple(fields)), text[1:]


def _past(letter: str, text: str) -> str:
    if not text.startswith(letter):
        raise UnknownTypeError(text)
    return text[len(letter) :]
