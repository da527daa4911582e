"""Arrow columns as the bytes of Thrift's row sets, without a Python object per value.

`values` are big-endian and without gaps, `nulls` is a bit per row, the lowest first: Arrow has almost the same. What a
column holds under a NULL is a zero or an empty text.
"""

import sys
from array import array
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from TCLIService import ttypes
from thrift.protocol.TProtocol import TProtocolBase
from thrift.Thrift import TType

__all__ = ["row_set"]

_BOOL, _BYTE, _I16, _I32, _I64, _DOUBLE, _STRING, _BINARY = range(1, 9)
"""Fields of `TColumn`."""
_NOTHING: Final = pa.scalar(b"", pa.large_binary())
_CODES: Final = {_I16: "h", _I32: "i", _I64: "q", _DOUBLE: "d"}
_ELEMENTS: Final = {
    _BOOL: TType.BOOL,
    _BYTE: TType.BYTE,
    _I16: TType.I16,
    _I32: TType.I32,
    _I64: TType.I64,
    _DOUBLE: TType.DOUBLE,
    _STRING: TType.STRING,
    _BINARY: TType.STRING,
}


def row_set(batch: pa.RecordBatch, start: int) -> ttypes.TRowSet:
    """Rows of a result whose types are plain (booleans, numbers, texts, bytes); `start` is the first one's number."""
    return ttypes.TRowSet(
        startRowOffset=start, rows=[], columns=[_EncodedColumn(one) for one in batch.columns]
    )


class _EncodedColumn:
    """Writes itself like the `TColumn` that it stands for."""

    def __init__(self, values: pa.Array) -> None:
        self._values, self._field = values, _field(values.type)

    def write(self, protocol: TProtocolBase) -> None:
        protocol.writeStructBegin("TColumn")
        protocol.writeFieldBegin("value", TType.STRUCT, self._field)
        protocol.writeStructBegin("values")
        protocol.writeFieldBegin("values", TType.LIST, 1)
        protocol.writeListBegin(_ELEMENTS[self._field], len(self._values))
        protocol.trans.write(_payload(self._values, self._field))
        protocol.writeListEnd()
        protocol.writeFieldEnd()
        protocol.writeFieldBegin("nulls", TType.STRING, 2)
        protocol.writeBinary(_nulls(self._values))
        protocol.writeFieldEnd()
        protocol.writeFieldStop()
        protocol.writeStructEnd()
        protocol.writeFieldEnd()
        protocol.writeFieldStop()
        protocol.writeStructEnd()


def _field(type_: pa.DataType) -> int:
    if pa.types.is_boolean(type_):
        return _BOOL
    if pa.types.is_integer(type_):
        return {8: _BYTE, 16: _I16, 32: _I32}.get(type_.bit_width, _I64)
    if pa.types.is_floating(type_):
        return _DOUBLE
    return _BINARY if pa.types.is_binary(type_) or pa.types.is_large_binary(type_) else _STRING


def _payload(values: pa.Array, field: int) -> bytes:
    if field == _BOOL:
        return _raw(pc.fill_null(values, False).cast(pa.uint8()), 1)
    if field == _BYTE:
        return _raw(pc.fill_null(values, 0), 1)
    if field in (_STRING, _BINARY):
        return _texts(values)
    if pa.types.is_float32(values.type):  # as Hive does it: 0.1 stays 0.1
        values = values.cast(pa.string())
    wanted = pa.float64() if field == _DOUBLE else values.type
    filled = pc.fill_null(values.cast(wanted), 0)
    return _swapped(_CODES[field], _raw(filled, filled.type.bit_width // 8))


def _texts(values: pa.Array) -> bytes:
    """Each with its length before it."""
    plain = pc.fill_null(values.cast(pa.large_binary()), b"")
    lengths = _swapped("i", _raw(pc.binary_length(plain).cast(pa.int32()), 4))
    before = pa.Array.from_buffers(pa.binary(4), len(plain), [None, pa.py_buffer(lengths)])
    joined: Any = pc.binary_join_element_wise(before.cast(pa.large_binary()), plain, _NOTHING)
    _, offsets, data = joined.buffers()
    if data is None:
        return b""
    ends = memoryview(offsets).cast("q")
    first, last = ends[joined.offset], ends[joined.offset + len(joined)]
    return bytes(memoryview(data)[first:last])


def _raw(values: pa.Array, width: int) -> bytes:
    """The bytes of an array without NULLs."""
    data = values.buffers()[1]
    if data is None:
        return b""
    start = values.offset * width
    return bytes(memoryview(data)[start : start + len(values) * width])


def _swapped(code: str, data: bytes) -> bytes:
    numbers = array(code)
    numbers.frombytes(data)
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers.tobytes()


def _nulls(values: pa.Array) -> bytes:
    if values.null_count == 0:
        return b""
    # A fresh array: its bits begin at the first one, and those behind its end are cleared.
    bits = pa.concat_arrays([pc.is_null(values), pa.array([False] * (-len(values) % 8), pa.bool_())])
    return bytes(memoryview(bits.buffers()[1])[: (len(values) + 7) // 8])
