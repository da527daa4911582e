"""The stored form of system rows: derived from the row types, stable, and ready for columns that come later."""

from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.model.rows import RunRow
from lakewarden.catalog.system.codec import aligned, codec
from lakewarden.catalog.system.port import LINEAGE, RUNS, SYSTEM_TABLES, TABLES, SystemTable
from lakewarden.catalog.system.schema import (
    LAYOUTS,
    SCHEMA_VERSION,
    arrow_type,
    bucket_of,
    row_schema,
    statistics_columns,
    stored_schema,
)
from support.builders.system_samples import sample, table_row

RELEASED = {
    1: "7aef203aca09c92a",
    2: "c221fab734c82d1a",
    3: "d1eb03bd19f067ed",
    4: "37bdf694adddd236",
    5: "104bc5f61fad1643",
    6: "c7e5bfa143160073",
    7: "103abbd705c4934d",
    8: "b72476d5f689cf3e",
    9: "1b2edc3d0d958d11",
    10: "df072d5e6ee403be",
}
"""The fingerprint of each schema version. Changed a row type? Raise SCHEMA_VERSION and add a line here: stores out
there have the old columns, and `migrate.upgrade` adds the new ones only when the version moves."""


def test_a_change_of_columns_comes_with_a_new_schema_version() -> None:
    columns = [
        f"{table.name}.{one.name} {one.type}" for table in SYSTEM_TABLES for one in stored_schema(table)
    ]
    assert RELEASED[SCHEMA_VERSION] == sha256("\n".join(columns).encode()).hexdigest()[:16]
    assert max(RELEASED) == SCHEMA_VERSION


@pytest.mark.parametrize("table", SYSTEM_TABLES, ids=lambda table: table.name)
def test_columns_are_the_fields_of_the_row_type(table: SystemTable[Any]) -> None:
    assert row_schema(table).names == [one.name for one in fields(table.row_type)]
    assert stored_schema(table).names[-1] == "bucket"
    assert set(table.key) <= set(statistics_columns(table)) and table.bucket_by in table.key
    assert table.name in LAYOUTS


def test_a_type_without_a_stored_form_is_refused() -> None:
    with pytest.raises(TypeError, match="no stored form"):
        arrow_type(complex)


def test_buckets_never_change() -> None:
    assert [bucket_of(value, 32) for value in ("", "a", "table-000001", "größe")] == [0, 3, 17, 9]


@pytest.mark.parametrize("table", SYSTEM_TABLES, ids=lambda table: table.name)
def test_rows_survive_storage(table: SystemTable[Any]) -> None:
    rows = [sample(table, number) for number in range(24)]
    encoded = codec(table).encode(rows)
    assert encoded.schema.equals(row_schema(table))
    assert codec(table).decode(encoded) == rows
    assert codec(table).decode(encoded.slice(5, 7)) == rows[5:12]
    assert codec(table).decode(encoded.slice(0, 0)) == []


def test_equal_nested_values_are_shared() -> None:
    first, second = codec(TABLES).decode(codec(TABLES).encode([table_row(2), table_row(4)]))
    assert first.policy is second.policy


def test_columns_that_a_file_does_not_have_yet_take_their_defaults() -> None:
    old = codec(RUNS).encode([sample(RUNS, 1)]).drop_columns(["attempt", "worker", "predicted_seconds"])
    row = codec(RUNS).decode(old)[0]
    assert isinstance(row, RunRow) and (row.attempt, row.worker, row.predicted_seconds) == (1, None, None)


def test_nested_fields_that_a_file_does_not_have_yet_are_null() -> None:
    whole = codec(TABLES).encode([table_row(7), table_row(9)])
    narrow = pa.struct([("vacuum_retention_seconds", pa.int64())])
    dependency = pa.list_(pa.struct([("upstream", pa.string())]))
    schema = pa.schema(
        [
            pa.field(one.name, {"policy": narrow, "dependencies": dependency}.get(one.name, one.type))
            for one in whole.schema
        ]
    )
    rows = codec(TABLES).decode(aligned(aligned(whole, schema), row_schema(TABLES)))
    assert [row.policy for row in rows] == [table_row(7).policy, table_row(9).policy]
    assert rows[1].dependencies[0].upstream == "table-000000"


def test_a_missing_value_that_has_no_default_is_no_row() -> None:
    broken = codec(LINEAGE).encode([sample(LINEAGE, 1)]).drop_columns(["operation"])
    with pytest.raises(UnreadableError, match="operation is missing"):
        codec(LINEAGE).decode(broken)


@pytest.mark.parametrize("table", SYSTEM_TABLES, ids=lambda table: table.name)
def test_delta_keeps_the_types(table: SystemTable[Any], tmp_path: Any) -> None:
    DeltaTable.create(str(tmp_path), stored_schema(table), partition_by=["bucket"])
    kept = DeltaTable(str(tmp_path)).schema()
    assert kept == Schema.from_arrow(stored_schema(table))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Tuple:
    values: tuple[tuple[int, ...], ...] = ()


def test_nested_tuples_have_a_form_too() -> None:
    assert arrow_type(_Tuple) == pa.struct([("values", pa.list_(pa.list_(pa.int64())))])
