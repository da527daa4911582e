"""Rows as frozen values <-> Arrow, column by column, in both directions and fast enough for a fleet.

Equal nested values (most tables share one policy) are decoded once and shared: they are frozen.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import Any, Generic, TypeVar, get_args, get_origin, get_type_hints

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.system.port import Key, R, SystemTable
from lakewarden.catalog.system.schema import arrow_type, row_schema, unwrap

__all__ = ["Codec", "aligned", "codec", "keys_of"]

V = TypeVar("V")
Decode = Callable[[pa.Array], list[Any]]
Encode = Callable[[Sequence[Any]], pa.Array]
_TIMESTAMP = arrow_type(datetime)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Codec(Generic[R]):
    """Encodes and decodes the rows of one system table."""

    def __init__(self, table: SystemTable[R]) -> None:
        self._table = table
        self.schema = row_schema(table)
        self._columns = _columns(table.row_type)

    def encode(self, rows: Sequence[R]) -> pa.Table:
        """Rows as a table of `schema`, in the order given."""
        arrays = [one.encode([getattr(row, one.name) for row in rows]) for one in self._columns]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def decode(self, stored: pa.Table) -> list[R]:
        """The rows of a stored table; columns it does not have yet count as null.

        Raises `UnreadableError` for values that no row can have.
        """
        try:
            return _instances(self._table.row_type, self._columns, aligned(stored, self.schema))
        except (TypeError, ValueError) as error:
            raise UnreadableError(
                f"lakewarden.{self._table.name} holds a row that cannot be understood: {error}.",
                hint="`lakewarden system verify` names it, `lakewarden system repair` offers what to do.",
            ) from error


@cache
def codec(table: SystemTable[R]) -> Codec[R]:
    """The codec of a system table (made once)."""
    return Codec(table)


def aligned(stored: pa.Table, schema: pa.Schema) -> pa.Table:
    """The stored columns in the shape of `schema`: by name, missing ones null, nested ones likewise."""
    if stored.schema.equals(schema):
        return stored
    arrays = []
    for column in schema:
        index = stored.schema.get_field_index(column.name)
        if index < 0:
            arrays.append(pa.nulls(stored.num_rows, column.type))
        elif stored.schema.field(index).type.equals(column.type):
            arrays.append(stored.column(index))
        else:
            arrays.append(_reshaped(_one_array(stored.column(index)), column.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _reshaped(array: pa.Array, wanted: pa.DataType) -> pa.Array:
    if array.type.equals(wanted):
        return array
    if pa.types.is_struct(wanted):
        present = {one.name: position for position, one in enumerate(array.type)}
        children = [
            _reshaped(pc.struct_field(array, [present[one.name]]), one.type)
            if one.name in present
            else pa.nulls(len(array), one.type)
            for one in wanted
        ]
        return pa.StructArray.from_arrays(children, fields=list(wanted), mask=array.is_null())
    if pa.types.is_list(wanted):
        return _as_list(
            array.value_lengths().to_pylist(), _reshaped(array.flatten(), wanted.value_type), wanted
        )
    return array.cast(wanted)


def _as_list(lengths: Sequence[int | None], values: pa.Array, wanted: pa.DataType) -> pa.Array:
    offsets: list[int | None] = []
    end = 0
    for length in lengths:
        offsets.append(None if length is None else end)
        end += length or 0
    return pa.ListArray.from_arrays(pa.array([*offsets, end], pa.int32()), values, type=wanted)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


class _FieldCodec:
    """One field of a dataclass: its name and how its values are encoded and decoded."""

    __slots__ = ("decode", "default", "encode", "name", "optional")

    def __init__(self, declared: "Field[Any]", hint: Any) -> None:
        inner, self.optional = unwrap(hint)
        self.name = declared.name
        self.default = _default(declared)
        self.encode = _encoder(inner)
        self.decode = _decoder(inner)

    def values(self, array: pa.Array) -> list[Any]:
        """Decoded values; nulls are None where the field is optional, its default elsewhere."""
        nulls = array.null_count
        if self.optional:
            return [None] * len(array) if nulls == len(array) else self.decode(array)
        if nulls == 0:
            return self.decode(array)
        if self.default is None:
            raise ValueError(f"{self.name} is missing")
        return [self.default() if one is None else one for one in self.decode(array)]


def _default(declared: "Field[Any]") -> Callable[[], Any] | None:
    if declared.default_factory is not MISSING:
        return declared.default_factory
    if declared.default is not MISSING:
        return lambda: declared.default
    return None


def _columns(of: type) -> tuple[_FieldCodec, ...]:
    assert is_dataclass(of)
    hints = get_type_hints(of)
    return tuple(_FieldCodec(one, hints[one.name]) for one in fields(of))


def _instances(of: type[V], columns: tuple[_FieldCodec, ...], stored: pa.Table) -> list[V]:
    names = [one.name for one in columns]
    values = [one.values(_one_array(stored.column(one.name))) for one in columns]
    return [of(**dict(zip(names, row, strict=True))) for row in zip(*values, strict=True)]


def _decoder(hint: Any) -> Decode:
    if get_origin(hint) is tuple:
        return _list_decoder(get_args(hint)[0])
    if get_origin(hint) is dict:
        return lambda array: [None if one is None else dict(one) for one in array.to_pylist()]
    if is_dataclass(hint):
        assert isinstance(hint, type)
        return _struct_decoder(hint)
    if hint is datetime:
        return _decode_moments
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        members: Mapping[str | None, StrEnum | None] = {None: None, **{one.value: one for one in hint}}
        return lambda array: [members[one] if one in members else hint(one) for one in array.to_pylist()]
    return lambda array: array.to_pylist()


def _decode_moments(array: pa.Array) -> list[Any]:
    micros = array.cast(pa.int64()).to_pylist()
    return [None if one is None else _EPOCH + timedelta(microseconds=one) for one in micros]


def _list_decoder(hint: Any) -> Decode:
    inner = _decoder(hint)

    def decode(array: pa.Array) -> list[Any]:
        lengths = array.value_lengths().to_pylist()
        values = inner(array.flatten())
        if not values:
            return [None if length is None else () for length in lengths]
        lists: list[Any] = []
        at = 0
        for length in lengths:
            lists.append(None if length is None else tuple(values[at : at + length]))
            at += length or 0
        return lists

    return decode


def _struct_decoder(of: type) -> Decode:
    columns = _columns(of)

    def decode(array: pa.Array) -> list[Any]:
        present = array.is_valid().to_pylist()
        filled = (
            array.drop_null()
        )  # a null struct's children are null as well, and no instance is made of them
        values = [one.values(pc.struct_field(filled, [index])) for index, one in enumerate(columns)]
        made: dict[tuple[Any, ...], Any] = {}
        names = [one.name for one in columns]
        instances = iter(
            [
                made[row] if row in made else made.setdefault(row, of(**dict(zip(names, row, strict=True))))
                for row in zip(*values, strict=True)
            ]
        )
        return [next(instances) if one else None for one in present]

    return decode


def _encoder(hint: Any) -> Encode:
    stored = arrow_type(hint)
    if get_origin(hint) is tuple:
        inner = _encoder(get_args(hint)[0])
        return lambda values: _encode_lists(values, inner, stored)
    if get_origin(hint) is dict:
        return lambda values: pa.array([None if one is None else list(one.items()) for one in values], stored)
    if is_dataclass(hint):
        assert isinstance(hint, type)
        return _struct_encoder(hint, stored)
    if hint is datetime:
        return _encode_moments
    return lambda values: pa.array(values, stored)


def _encode_moments(values: Sequence[Any]) -> pa.Array:
    micros = [None if one is None else (one - _EPOCH) // _MICROSECOND for one in values]
    return pa.array(micros, pa.int64()).cast(_TIMESTAMP)


def _encode_lists(values: Sequence[Any], inner: Encode, stored: pa.DataType) -> pa.Array:
    flat: list[Any] = [item for one in values if one for item in one]
    return _as_list([None if one is None else len(one) for one in values], inner(flat), stored)


def _struct_encoder(of: type, stored: pa.DataType) -> Encode:
    columns = _columns(of)

    def encode(values: Sequence[Any]) -> pa.Array:
        children = [
            one.encode([None if value is None else getattr(value, one.name) for value in values])
            for one in columns
        ]
        mask = pa.array([value is None for value in values], pa.bool_())
        return pa.StructArray.from_arrays(children, fields=list(stored), mask=mask)

    return encode


def keys_of(stored: pa.Table, key: Sequence[str]) -> Iterable[Key]:
    """The key values of every row of a stored table, in order."""
    return zip(*(stored.column(name).to_pylist() for name in key), strict=True)
