"""Entries to and from thrift's `Table`."""

from copy import deepcopy
from typing import Any, Final
from urllib.parse import unquote

from pymetastore.hive_metastore.ttypes import FieldSchema, SerDeInfo, StorageDescriptor, Table

from lakewarden.catalog.metastore.port import Entry, EntryColumn

__all__ = ["entry_of", "partition_values", "table_of", "with_entry"]

_PROVIDER: Final = "spark.sql.sources.provider"
_PATH: Final = "path"


def entry_of(table: Any) -> Entry:
    """The entry in a thrift `Table`."""
    storage = table.sd
    serde = storage.serdeInfo if storage is not None else None
    parameters = dict(table.parameters or {})
    serde_parameters = dict((serde.parameters if serde is not None else None) or {})
    provider = parameters.get(_PROVIDER)
    location = storage.location if storage is not None else None
    return Entry(
        database=table.dbName,
        table=table.tableName,
        location=(serde_parameters.get(_PATH) or location) if provider else location,
        provider=provider,
        table_type=table.tableType or "",
        columns=_columns(storage.cols if storage is not None else None),
        partition_columns=_columns(table.partitionKeys),
        parameters=parameters,
        serde_parameters=serde_parameters,
        input_format=storage.inputFormat if storage is not None else None,
        output_format=storage.outputFormat if storage is not None else None,
        serde=serde.serializationLib if serde is not None else None,
        owner=table.owner,
    )


def with_entry(table: Any, entry: Entry) -> Any:
    """A copy of a thrift `Table` that says what `entry` says; whatever an entry does not speak of stays."""
    changed = deepcopy(table)
    changed.parameters = dict(entry.parameters)
    storage = changed.sd
    storage.cols = _fields(entry.columns)
    storage.inputFormat, storage.outputFormat = entry.input_format, entry.output_format
    storage.serdeInfo.serializationLib = entry.serde
    storage.serdeInfo.parameters = dict(entry.serde_parameters)
    if entry.location != entry_of(table).location:
        storage.location = entry.location
    return changed


def table_of(entry: Entry, *, now_seconds: int) -> Any:
    """A new thrift `Table`."""
    serde = SerDeInfo(serializationLib=entry.serde, parameters=dict(entry.serde_parameters))
    storage = StorageDescriptor(
        cols=_fields(entry.columns),
        location=entry.location,
        inputFormat=entry.input_format,
        outputFormat=entry.output_format,
        compressed=False,
        numBuckets=-1,
        serdeInfo=serde,
        bucketCols=[],
        sortCols=[],
        parameters={},
    )
    return Table(
        dbName=entry.database,
        tableName=entry.table,
        owner=entry.owner,
        createTime=now_seconds,
        lastAccessTime=0,
        retention=0,
        sd=storage,
        partitionKeys=_fields(entry.partition_columns),
        parameters=dict(entry.parameters),
        tableType=entry.table_type,
    )


def partition_values(name: str) -> tuple[str, ...]:
    """The values in a partition's name: `year=2013/city=New%20York` has `2013` and `New York`."""
    return tuple(unquote(part.partition("=")[2]) for part in name.split("/"))


def _columns(fields: Any) -> tuple[EntryColumn, ...]:
    return tuple(
        EntryColumn(name=field.name, type=field.type, comment=field.comment) for field in fields or ()
    )


def _fields(columns: tuple[EntryColumn, ...]) -> list[Any]:
    return [FieldSchema(column.name, column.type, column.comment) for column in columns]
