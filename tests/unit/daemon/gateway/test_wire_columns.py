"""Row sets as a client of the real protocol reads them."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyhive.hive import _unwrap_column
from TCLIService import ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TMemoryBuffer

from lakewarden.daemon.gateway.wire_columns import row_set

VALUES: tuple[tuple[pa.DataType, st.SearchStrategy[Any]], ...] = (
    (pa.bool_(), st.booleans()),
    (pa.int8(), st.integers(-(2**7), 2**7 - 1)),
    (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.string(), st.text()),
    (pa.large_string(), st.text()),
)


def read(batch: pa.RecordBatch) -> list[list[Any]]:
    buffer = TMemoryBuffer()
    row_set(batch, 7).write(TBinaryProtocol(buffer))
    found = ttypes.TRowSet()
    found.read(TBinaryProtocol(TMemoryBuffer(buffer.getvalue())))
    assert found.startRowOffset == 7
    return [_unwrap_column(one) for one in found.columns]


@pytest.mark.heavy
@given(st.data())
def test_what_a_client_reads_is_what_was_there_with_nulls_and_slices(data: st.DataObject) -> None:
    type_, values = data.draw(st.sampled_from(VALUES))
    rows = data.draw(st.lists(st.none() | values, max_size=40))
    start = data.draw(st.integers(0, len(rows)))
    batch = pa.record_batch({"c": pa.array(rows, type_)}).slice(start)
    assert read(batch) == [rows[start:]]


def test_a_float_looks_as_it_was_written() -> None:
    batch = pa.record_batch({"c": pa.array([0.1, None, float("inf")], pa.float32())})
    assert read(batch) == [[0.1, None, float("inf")]]


def test_bytes_stay_bytes() -> None:
    buffer = TMemoryBuffer()
    row_set(pa.record_batch({"c": pa.array([b"\xff\x00", None, b""])}), 0).write(TBinaryProtocol(buffer))
    found = ttypes.TRowSet()
    found.read(TBinaryProtocol(TMemoryBuffer(buffer.getvalue())))
    assert found.columns[0].binaryVal.values == [b"\xff\x00", b"", b""]
    assert found.columns[0].binaryVal.nulls == b"\x02"
