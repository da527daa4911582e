"""How the system tables are stored: Arrow schemas derived from the row types, buckets, properties, schema version.

Nothing is listed twice: a column exists because a field of a row type in `catalog/model/rows.py` exists.
Every stored column is nullable, so that a column can be added at any time; a null in a column whose field is
not optional stands for the field's default.
"""

import types
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import pyarrow as pa

from lakewarden.catalog.system.port import SystemTable, SystemTableName

__all__ = [
    "BUCKET",
    "BUCKETS_PROPERTY",
    "LAYOUTS",
    "LEADER",
    "SCHEMA_VERSION",
    "UNDER_WAY",
    "UPGRADE_PROPERTY",
    "VERSION_PROPERTY",
    "Layout",
    "arrow_type",
    "bucket_of",
    "kept_properties",
    "row_schema",
    "statistics_columns",
    "stored_schema",
    "table_properties",
    "unwrap",
]

SCHEMA_VERSION = 10
"""Raise it with every change of a row type; `tests/unit/catalog/system/test_system_schema.py` says when."""

BUCKET = "bucket"
BUCKETS_PROPERTY = "lakewarden.buckets"
VERSION_PROPERTY = "lakewarden.schema_version"
UPGRADE_PROPERTY = "lakewarden.upgrade"
"""Of `lakewarden.tables`: whether an upgrade of all seven is under way. It is the first that an upgrade changes."""
UNDER_WAY = "under way"
LEADER = "lakewarden.leader"

_TIMESTAMP = pa.timestamp("us", tz="UTC")
_SCALARS: Mapping[type, pa.DataType] = {
    str: pa.string(),
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    datetime: _TIMESTAMP,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Layout:
    """How one system table is laid out: the number of buckets a new one gets, how long old versions stay readable.

    Many buckets make replacing a row cheap (one bucket's file is rewritten), few keep appended files together.
    """

    buckets: int
    audit_window: timedelta


LAYOUTS: Mapping[SystemTableName, Layout] = {
    SystemTableName.TABLES: Layout(buckets=32, audit_window=timedelta(days=90)),
    SystemTableName.HEALTH: Layout(buckets=32, audit_window=timedelta(days=2)),
    SystemTableName.LINEAGE: Layout(buckets=8, audit_window=timedelta(days=30)),
    SystemTableName.SCHEMAS: Layout(buckets=8, audit_window=timedelta(days=30)),
    SystemTableName.RUNS: Layout(buckets=4, audit_window=timedelta(days=30)),
    SystemTableName.ROLLBACKS: Layout(buckets=4, audit_window=timedelta(days=90)),
    SystemTableName.AUDIT: Layout(buckets=4, audit_window=timedelta(days=90)),
}


def bucket_of(value: str, buckets: int) -> int:
    """The bucket of a row whose `bucket_by` column holds `value`: CRC-32 of its UTF-8 bytes, modulo `buckets`."""
    return zlib.crc32(value.encode()) % buckets


def arrow_type(hint: Any) -> pa.DataType:
    """The stored type of a field's type hint. Raises TypeError for one that has no stored form."""
    hint, _ = unwrap(hint)
    if get_origin(hint) is tuple:
        return pa.list_(arrow_type(get_args(hint)[0]))
    if get_origin(hint) is dict:
        key, value = get_args(hint)
        return pa.map_(arrow_type(key), arrow_type(value))
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        return pa.struct([(one.name, arrow_type(hints[one.name])) for one in fields(hint)])
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return pa.string()
    if hint in _SCALARS:
        return _SCALARS[hint]
    raise TypeError(f"{hint} has no stored form")


def unwrap(hint: Any) -> tuple[Any, bool]:
    """A type hint without `| None`, and whether it had it."""
    if get_origin(hint) in (Union, types.UnionType):
        inner = [one for one in get_args(hint) if one is not type(None)]
        if len(inner) == 1:
            return inner[0], True
    return hint, False


@cache
def row_schema(table: SystemTable[Any]) -> pa.Schema:
    """The columns of a system table's row type, in order."""
    return pa.schema(list(arrow_type(table.row_type)))


@cache
def stored_schema(table: SystemTable[Any]) -> pa.Schema:
    """The columns of a system table as stored: those of its rows and the partition column `bucket`."""
    return row_schema(table).append(pa.field(BUCKET, pa.int32()))


@cache
def statistics_columns(table: SystemTable[Any]) -> tuple[str, ...]:
    """Columns that files carry minimum and maximum of: the key and every whole number."""
    schema = row_schema(table)
    return tuple(name for name in schema.names if name in table.key or schema.field(name).type == pa.int64())


def table_properties(table: SystemTable[Any]) -> dict[str, str]:
    """The Delta properties a new system table gets: the log is kept whole, removed files for the audit window."""
    layout = LAYOUTS[table.name]
    days = f"interval {layout.audit_window // timedelta(days=1)} days"
    return {
        "delta.checkpointInterval": "50",
        **kept_properties(table),
        "delta.deletedFileRetentionDuration": days,
        "delta.logRetentionDuration": days,
        BUCKETS_PROPERTY: str(layout.buckets),
        VERSION_PROPERTY: str(SCHEMA_VERSION),
    }


def kept_properties(table: SystemTable[Any]) -> dict[str, str]:
    """The properties on which time travel as an audit trail depends; `verify` insists on them."""
    return {
        "delta.dataSkippingStatsColumns": ",".join(statistics_columns(table)),
        "delta.enableExpiredLogCleanup": "false",
    }
