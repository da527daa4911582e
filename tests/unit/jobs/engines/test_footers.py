"""Per-file statistics from Parquet footers: what is exact is told, what is not certain is left out."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakewarden.jobs.engines.delta.parquet_footers import Leaf, file_statistics, indexed_leaves


def told(tmp_path: Path, data: pa.Table, *leaves: Leaf, **writing: Any) -> dict[str, Any]:
    path = tmp_path / "f.parquet"
    pq.write_table(data, path, **writing)
    said: dict[str, Any] = json.loads(file_statistics(pq.read_metadata(path), leaves))
    return said


def column(tmp_path: Path, values: pa.Array, kind: str, **writing: Any) -> dict[str, Any]:
    return told(tmp_path, pa.table({"c": values}), Leaf(("c",), kind), **writing)


MOMENT = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
WITHOUT_ZONE = MOMENT.replace(tzinfo=None)


@pytest.mark.parametrize(
    ("kind", "values", "low", "high"),
    [
        pytest.param("long", pa.array([3, None, 1]), 1, 3, id="long"),
        pytest.param("byte", pa.array([3, 1], pa.int8()), 1, 3, id="byte"),
        pytest.param("string", pa.array(["b", "a"]), "a", "b", id="string"),
        pytest.param("string", pa.array(["x" * 40]), "x" * 32, "x" * 32 + "\U0010ffff", id="long text"),
        pytest.param("date", pa.array([date(2026, 1, 2)]), "2026-01-02", "2026-01-02", id="date"),
        pytest.param(
            "timestamp",
            pa.array([MOMENT], pa.timestamp("us", "UTC")),
            "2026-01-02T03:04:05.678Z",
            "2026-01-02T03:04:05.679Z",
            id="a time between two milliseconds",
        ),
        pytest.param(
            "timestamp_ntz",
            pa.array([WITHOUT_ZONE.replace(microsecond=5000)], pa.timestamp("us")),
            "2026-01-02T03:04:05.005",
            "2026-01-02T03:04:05.005",
            id="a time without zone",
        ),
        pytest.param(
            "decimal(10,2)",
            pa.array([Decimal("-3.50"), Decimal("1.25")], pa.decimal128(10, 2)),
            -3.5,
            1.25,
            id="decimal",
        ),
    ],
)
def test_exact_bounds_are_told(
    tmp_path: Path, kind: str, values: pa.Array, low: object, high: object
) -> None:
    said = column(tmp_path, values, kind)
    assert said["numRecords"] == len(values)
    assert (said["minValues"], said["maxValues"]) == ({"c": low}, {"c": high})
    assert said["nullCount"] == {"c": values.null_count}


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        pytest.param("double", pa.array([1.0, float("nan")]), id="NaN, which Arrow leaves out of bounds"),
        pytest.param("float", pa.array([1.5], pa.float32()), id="any float that Arrow wrote"),
        pytest.param("boolean", pa.array([True]), id="boolean"),
        pytest.param("binary", pa.array([b"x"]), id="binary"),
        pytest.param("date", pa.array([date(1500, 1, 1)]), id="a date in another calendar"),
        pytest.param(
            "timestamp", pa.array([WITHOUT_ZONE], pa.timestamp("us")), id="a time of the wrong kind"
        ),
        pytest.param("decimal(20,2)", pa.array([Decimal("1.25")], pa.decimal128(20, 2)), id="many digits"),
        pytest.param("decimal(10,3)", pa.array([Decimal("1.25")], pa.decimal128(10, 2)), id="another scale"),
        pytest.param("string", pa.array([1]), id="another type"),
        pytest.param("long", pa.array([None, None], pa.int64()), id="nulls only"),
    ],
)
def test_uncertain_bounds_are_left_out_and_rows_and_nulls_told(
    tmp_path: Path, kind: str, values: pa.Array
) -> None:
    said = column(tmp_path, values, kind)
    assert said == {"numRecords": len(values), "nullCount": {"c": values.null_count}}


def test_bounds_span_all_row_groups(tmp_path: Path) -> None:
    said = column(tmp_path, pa.array([5, 6, None, None, 1, 2]), "long", row_group_size=2)
    assert (said["minValues"], said["maxValues"], said["nullCount"]) == ({"c": 1}, {"c": 6}, {"c": 2})


def test_one_row_group_without_statistics_spoils_the_bounds(tmp_path: Path) -> None:
    assert column(tmp_path, pa.array([1, 2]), "long", write_statistics=False) == {"numRecords": 2}


def test_dates_that_an_old_spark_wrote_are_left_out(tmp_path: Path) -> None:
    data = pa.table({"c": pa.array([date(2026, 1, 2)])})
    legacy = data.replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})
    assert "minValues" not in told(tmp_path, legacy, Leaf(("c",), "date"))


def test_structs_are_followed_and_arrays_are_not(tmp_path: Path) -> None:
    data = pa.table({"s": [{"a": 1, "b": {"c": "x"}}, None], "l": [[1], [2]]})
    leaves = (Leaf(("s", "a"), "long"), Leaf(("s", "b", "c"), "string"), Leaf(("l",), "array"))
    said = told(tmp_path, data, *leaves)
    assert said["minValues"] == {"s": {"a": 1, "b": {"c": "x"}}}
    assert said["nullCount"] == {"s": {"a": 1, "b": {"c": 1}}}


def test_names_are_found_in_any_case_and_left_alone_where_ambiguous(tmp_path: Path) -> None:
    assert told(tmp_path, pa.table({"id": [1]}), Leaf(("Id",), "long"))["minValues"] == {"Id": 1}
    assert "minValues" not in told(tmp_path, pa.table({"a": [1], "A": [2]}), Leaf(("a",), "long"))
    assert "minValues" not in told(tmp_path, pa.table({"a.b": [1]}), Leaf(("a.b",), "long"))


def test_a_column_that_the_file_lacks_is_not_spoken_of(tmp_path: Path) -> None:
    assert told(tmp_path, pa.table({"a": [1]}), Leaf(("b",), "long")) == {"numRecords": 1}


def schema(*fields: dict[str, Any]) -> str:
    return json.dumps({"type": "struct", "fields": fields})


def field(name: str, kind: Any = "long", **metadata: str) -> dict[str, Any]:
    return {"name": name, "type": kind, "nullable": True, "metadata": metadata}


INNER = {"type": "struct", "fields": [field("x"), field("y")]}
FIELDS = schema(field("a"), field("s", INNER), field("p"), field("z"))


@pytest.mark.parametrize(
    ("properties", "paths"),
    [
        pytest.param({}, ["a", "s.x", "s.y", "z"], id="all, without partition columns"),
        pytest.param({"delta.dataSkippingNumIndexedCols": "2"}, ["a", "s.x"], id="the first two"),
        pytest.param({"delta.dataSkippingNumIndexedCols": "0"}, [], id="none"),
        pytest.param(
            {"delta.dataSkippingNumIndexedCols": "-1"}, ["a", "s.x", "s.y", "z"], id="without limit"
        ),
        pytest.param({"delta.dataSkippingStatsColumns": "z, `s`"}, ["s.x", "s.y", "z"], id="by name"),
    ],
)
def test_the_table_says_which_columns_are_indexed(properties: dict[str, str], paths: list[str]) -> None:
    assert [".".join(leaf.path) for leaf in indexed_leaves(FIELDS, properties, ["p"])] == paths


def test_column_mapping_names_the_physical_columns() -> None:
    mapped = schema(field("a", **{"delta.columnMapping.physicalName": "col-1"}))
    assert indexed_leaves(mapped, {}, []) == (Leaf(("col-1",), "long"),)


def test_only_the_first_32_columns_are_indexed() -> None:
    assert len(indexed_leaves(schema(*(field(f"c{n}") for n in range(40))), {}, [])) == 32
