"""Types of result columns: what Spark and Arrow call them, and what HiveServer2's clients are told."""

import re
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from TCLIService import ttypes

__all__ = ["JDBC_TYPES", "ResultColumn", "hive_type", "name_of_arrow", "table_schema"]

_TYPE: Final = ttypes.TTypeId
_BY_NAME: Final = {
    "boolean": _TYPE.BOOLEAN_TYPE,
    "tinyint": _TYPE.TINYINT_TYPE,
    "smallint": _TYPE.SMALLINT_TYPE,
    "int": _TYPE.INT_TYPE,
    "bigint": _TYPE.BIGINT_TYPE,
    "float": _TYPE.FLOAT_TYPE,
    "double": _TYPE.DOUBLE_TYPE,
    "string": _TYPE.STRING_TYPE,
    "varchar": _TYPE.VARCHAR_TYPE,
    "char": _TYPE.CHAR_TYPE,
    "binary": _TYPE.BINARY_TYPE,
    "decimal": _TYPE.DECIMAL_TYPE,
    "date": _TYPE.DATE_TYPE,
    "timestamp": _TYPE.TIMESTAMP_TYPE,
    "timestamp_ntz": _TYPE.TIMESTAMP_TYPE,
    "array": _TYPE.ARRAY_TYPE,
    "map": _TYPE.MAP_TYPE,
    "struct": _TYPE.STRUCT_TYPE,
}
"""What has no counterpart (intervals, variants) goes as text."""
JDBC_TYPES: Final = {
    _TYPE.BOOLEAN_TYPE: 16, _TYPE.TINYINT_TYPE: -6, _TYPE.SMALLINT_TYPE: 5, _TYPE.INT_TYPE: 4,
    _TYPE.BIGINT_TYPE: -5, _TYPE.FLOAT_TYPE: 6, _TYPE.DOUBLE_TYPE: 8, _TYPE.STRING_TYPE: 12,
    _TYPE.VARCHAR_TYPE: 12, _TYPE.CHAR_TYPE: 1, _TYPE.BINARY_TYPE: -2, _TYPE.DECIMAL_TYPE: 3,
    _TYPE.DATE_TYPE: 91, _TYPE.TIMESTAMP_TYPE: 93, _TYPE.ARRAY_TYPE: 2003, _TYPE.MAP_TYPE: 2000,
    _TYPE.STRUCT_TYPE: 2002,
}  # fmt: skip
"""The numbers of java.sql.Types."""
_DECIMAL: Final = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_LENGTH: Final = re.compile(r"(?:var)?char\((\d+)\)")


@dataclass(frozen=True, kw_only=True, slots=True)
class ResultColumn:
    """A column of a result."""

    name: str
    type: str
    """In Spark's words, such as `decimal(10,2)` or `array<int>`."""
    comment: str = ""


def hive_type(name: str) -> int:
    """The `TTypeId` of a type in Spark's words."""
    found: int = _BY_NAME.get(re.split(r"[(<\s]", name, maxsplit=1)[0].lower(), _TYPE.STRING_TYPE)
    return found


def name_of_arrow(type_: pa.DataType) -> str:
    """An Arrow type in Spark's words."""
    checks = (
        (pa.types.is_boolean, "boolean"), (pa.types.is_int8, "tinyint"), (pa.types.is_int16, "smallint"),
        (pa.types.is_int32, "int"), (pa.types.is_integer, "bigint"), (pa.types.is_float32, "float"),
        (pa.types.is_floating, "double"), (pa.types.is_binary, "binary"),
        (pa.types.is_large_binary, "binary"),
        (pa.types.is_date, "date"), (pa.types.is_timestamp, "timestamp"), (pa.types.is_map, "map"),
    )  # fmt: skip
    for holds, name in checks:
        if holds(type_):
            return (
                f"map<{name_of_arrow(type_.key_type)},{name_of_arrow(type_.item_type)}>"
                if name == "map"
                else name
            )
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return f"array<{name_of_arrow(type_.value_type)}>"
    if pa.types.is_struct(type_):
        return f"struct<{','.join(f'{one.name}:{name_of_arrow(one.type)}' for one in type_)}>"
    return "string"


def table_schema(columns: tuple[ResultColumn, ...]) -> ttypes.TTableSchema:
    """What a client is told of a result's columns."""
    return ttypes.TTableSchema(
        columns=[
            ttypes.TColumnDesc(
                columnName=one.name,
                typeDesc=ttypes.TTypeDesc(types=[ttypes.TTypeEntry(primitiveEntry=_entry(one.type))]),
                position=position,
                comment=one.comment,
            )
            for position, one in enumerate(columns, start=1)
        ]
    )


def _entry(name: str) -> ttypes.TPrimitiveTypeEntry:
    return ttypes.TPrimitiveTypeEntry(type=hive_type(name), typeQualifiers=_qualifiers(name))


def _qualifiers(name: str) -> ttypes.TTypeQualifiers | None:
    decimal, length = _DECIMAL.fullmatch(name), _LENGTH.fullmatch(name)
    if decimal is not None:
        said = {"precision": int(decimal[1]), "scale": int(decimal[2])}
    elif length is not None:
        said = {"characterMaximumLength": int(length[1])}
    else:
        return None
    return ttypes.TTypeQualifiers(
        qualifiers={key: ttypes.TTypeQualifierValue(i32Value=value) for key, value in said.items()}
    )
