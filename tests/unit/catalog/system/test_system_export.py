"""Arrow -> JSON: the same text a slow and simple writer would make."""

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakewarden.catalog.system.codec import codec
from lakewarden.catalog.system.export import write_json
from lakewarden.catalog.system.port import SYSTEM_TABLES, SystemTable
from support.builders.system_samples import sample

NOON = datetime(2026, 11, 21, 12, 0, 0, 5, tzinfo=UTC)


def exported(table: pa.Table) -> Any:
    stream = io.BytesIO()
    write_json(table, stream)
    return json.loads(stream.getvalue())


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (pa.string(), 'quoted "x" \\ back', 'quoted "x" \\ back'),
        (pa.string(), "line\nbreak\ttab\x00", "line\nbreak\ttab\x00"),
        (pa.string_view(), "größe 🏞", "größe 🏞"),
        (pa.large_string(), "", ""),
        (pa.int64(), 2**63 - 1, 2**63 - 1),
        (pa.float64(), 0.1, 0.1),
        (pa.float64(), 1e-300, 1e-300),
        (pa.float64(), float("nan"), None),
        (pa.float64(), float("-inf"), None),
        (pa.bool_(), True, True),
        (pa.timestamp("us", tz="UTC"), NOON, "2026-11-21T12:00:00.000005Z"),
        (pa.date32(), date(2026, 11, 21), "2026-11-21"),
        (pa.decimal128(10, 2), Decimal("12.50"), "12.50"),
        (pa.list_(pa.int64()), [1, None, 3], [1, None, 3]),
        (pa.list_(pa.string()), [], []),
        (pa.struct([("a", pa.int64()), ("b", pa.string())]), {"a": 1, "b": None}, {"a": 1, "b": None}),
        (pa.map_(pa.string(), pa.string()), [("k", "v"), ("l", None)], {"k": "v", "l": None}),
        (pa.map_(pa.string(), pa.string()), [], {}),
        (pa.list_(pa.struct([("a", pa.list_(pa.string()))])), [{"a": ["x"]}], [{"a": ["x"]}]),
        (pa.dictionary(pa.int32(), pa.string()), "word", "word"),
        (pa.null(), None, None),
    ],
)
def test_a_value_and_a_null_of_each_type(kind: pa.DataType, value: object, expected: object) -> None:
    table = pa.table({"v": pa.array([value, None, value], kind)})
    assert exported(table) == [{"v": expected}, {"v": None}, {"v": expected}]
    assert exported(table.slice(1)) == [{"v": None}, {"v": expected}]


def test_no_rows_are_an_empty_array() -> None:
    assert exported(pa.table({"a": pa.array([], pa.int64())})) == []


def test_many_rows_are_written_in_pieces() -> None:
    assert exported(pa.table({"n": list(range(50_000))})) == [{"n": number} for number in range(50_000)]


@pytest.mark.parametrize("table", SYSTEM_TABLES, ids=lambda table: table.name)
def test_system_rows_keep_their_columns_in_order(table: SystemTable[Any]) -> None:
    rows = codec(table).encode([sample(table, number) for number in range(12)])
    objects = exported(rows)
    assert list(objects[0]) == rows.column_names and len(objects) == 12
    assert objects == json.loads(json.dumps(rows.to_pylist(maps_as_pydicts="strict"), default=_iso))


@given(st.lists(st.one_of(st.none(), st.text())))
def test_any_text_survives(texts: list[str | None]) -> None:
    valid = [None if text is None else text.encode("utf-8", "replace").decode() for text in texts]
    assert exported(pa.table({"t": pa.array(valid, pa.string())})) == [{"t": text} for text in valid]


def _iso(value: object) -> str:
    assert isinstance(value, datetime)
    text = value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")
    return f"{text}Z"
