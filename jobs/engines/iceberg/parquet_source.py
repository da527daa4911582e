"""A Parquet table as it is before Iceberg has it: its columns as Spark tells them, how its files spell them, and where
the files of each partition lie.

Iceberg finds the columns of files that it has not written by their names, letter by letter, where Spark and Hive take
`Id` for `id`. So every spelling is looked up in the files, and what they hold is compared with what is expected.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote

from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from lakewarden.catalog.errors import ConflictError, RefusedError
from lakewarden.catalog.storage.file_store import FileStore
from lakewarden.jobs.engines.spark.entries import (
    catalog_table,
    identifier_of,
    partition_columns_of,
    schema_of,
)
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.engines.spark.names import hadoop_path
from lakewarden.jobs.runs.parquet_folder import NULL_PARTITION, data_files, folder_of, partition_columns

__all__ = ["ParquetPartition", "ParquetSource", "all_spellings", "source_in_folder", "source_named"]

_PLAIN: Final = (
    BooleanType, ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType, DecimalType, StringType,
    BinaryType, DateType, TimestampType, TimestampNTZType,
)  # fmt: skip
_FOLDERS: Final = (
    BooleanType, ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType, DecimalType, StringType, DateType,
)  # fmt: skip
"""Types of partition columns whose values Iceberg reads from the names of folders."""
_WHOLE: Final = (ByteType, ShortType, IntegerType, LongType)
_DEFAULTS: Final = frozenset({"CURRENT_DEFAULT", "EXISTS_DEFAULT"})
"""What Spark notes at a column that has a default: of new rows, and of files that lack the column."""
_ELSE: Final = "Write its rows to a new table with such columns changed."


@dataclass(frozen=True, kw_only=True, slots=True)
class ParquetPartition:
    """Files in one folder that have the same values of the partition columns."""

    values: Mapping[str, str]
    """Partition column -> value, as the name of a folder has it once it is decoded."""
    uri: str
    """The folder, as Hadoop has it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ParquetSource:
    """A Parquet table that is to become an Iceberg table."""

    schema: StructType
    """Its columns, those of its partitions last."""
    spelled: StructType
    """The columns of its files, in each spelling that there is."""
    partitioned_by: tuple[str, ...]
    partitions: tuple[ParquetPartition, ...]
    """One without values, where the table is not partitioned; none where it has no files."""

    def tells_values(self, one: ParquetPartition) -> bool:
        """Whether the name of a partition's folder says its values, as far as its form goes."""
        wanted = [column.lower() for column in self.partitioned_by]
        parts = one.uri.rstrip("/").split("/")[-len(wanted) :] if wanted else []
        return [part.partition("=")[0].lower() for part in parts] == wanted


def source_named(spark: SparkSession, store: FileStore, name: str) -> ParquetSource:
    """The table that the metastore calls so. Raises `RefusedError` for what Iceberg would not read as Spark does."""
    entry = catalog_table(spark, name)
    schema, partitioned_by = schema_of(entry), partition_columns_of(entry)
    if partitioned_by:
        partitions = tuple(_registered(spark, name, partitioned_by))
    elif next(data_files(store.list("", recursive=True)), None) is None:
        partitions = ()
    else:
        partitions = (ParquetPartition(values={}, uri=hadoop_path(store.root)),)
    return _checked(spark, schema, partitioned_by, partitions, shown=name)


def source_in_folder(
    spark: SparkSession, store: FileStore, partitioned_by: Sequence[tuple[str, str]]
) -> ParquetSource:
    """The table in a folder, whose columns its files tell. Raises `RefusedError` as above, and `ConflictError` where
    folders came that do not say its partition columns."""
    names = tuple(column for column, _ in partitioned_by)
    folders = sorted({folder_of(file.path) for file in data_files(store.list("", recursive=True))})
    found = partition_columns(folders)
    if folders and (found is None or _lower(found) != _lower(names)):
        raise ConflictError(
            f"Somebody wrote to {store.root} while it was converted: there are files in folders that are no partitions "
            "of it by now. Nothing was changed.",
            hint="Convert it when the writer is done.",
        )
    partitions = tuple(_in_folder(store, folder, names) for folder in folders)
    told: dict[str, StructField] = {}
    for one in _spellings(spark, partitions).fields:  # no file has two of one name
        told.setdefault(one.name.lower(), one)
    columns = [one for name, one in told.items() if name not in _lower(names)]
    given = [StructField(name, DataType.fromDDL(type_)) for name, type_ in partitioned_by]
    return _checked(spark, StructType([*columns, *given]), names, partitions, shown=store.root)


def all_spellings(mapping: list[dict[str, Any]], spelled: DataType) -> None:
    """Have Iceberg's mapping of names (its JSON) know each spelling of a column by which a file has it."""
    match spelled:
        case StructType():
            for field in spelled.fields:
                found = next((one for one in mapping if one["names"][0].lower() == field.name.lower()), None)
                if found is not None:
                    found["names"] = [*dict.fromkeys([*found["names"], field.name])]
                    all_spellings(found.get("fields", []), field.dataType)
        case ArrayType():
            _inside(mapping, "element", spelled.elementType)
        case MapType():
            _inside(mapping, "key", spelled.keyType)
            _inside(mapping, "value", spelled.valueType)


def _inside(mapping: list[dict[str, Any]], name: str, spelled: DataType) -> None:
    for one in mapping:
        if name in one["names"]:
            all_spellings(one.get("fields", []), spelled)


def _registered(spark: SparkSession, name: str, columns: Sequence[str]) -> Iterator[ParquetPartition]:
    jvm: Any = spark._jvm
    found = jvm.org.apache.iceberg.spark.SparkTableUtil.getPartitions(
        spark._jsparkSession, identifier_of(spark, name), {}
    )
    for one in found:
        told = {str(key).lower(): str(value) for key, value in dict(one.getValues()).items()}
        yield ParquetPartition(values={column: told[column.lower()] for column in columns}, uri=one.getUri())


def _in_folder(store: FileStore, folder: str, columns: Sequence[str]) -> ParquetPartition:
    told = dict(part.split("=", 1) for part in folder.split("/")) if columns else {}
    values = {key.lower(): unquote(value) for key, value in told.items()}
    return ParquetPartition(
        values={column: values[column.lower()] for column in columns},
        uri=f"{hadoop_path(store.root)}/{folder}".rstrip("/"),
    )


def _checked(
    spark: SparkSession,
    schema: StructType,
    partitioned_by: tuple[str, ...],
    partitions: tuple[ParquetPartition, ...],
    *,
    shown: str,
) -> ParquetSource:
    spelled = _spellings(spark, partitions)
    folders = _lower(partitioned_by)
    _require_types(schema, folders, shown)
    _require_values(schema, partitions, shown)
    for field in spelled.fields:
        wanted = [
            one
            for one in schema.fields
            if one.name.lower() == field.name.lower() and one.name.lower() not in folders
        ]
        for one in wanted:
            if not _reads(one.dataType, field.dataType):
                raise RefusedError(
                    f"{shown} has the column {one.name} of type {_said(one.dataType)}, and files in which it is "
                    f"{_said(field.dataType)}: Iceberg would not read that.",
                    hint=_ELSE,
                )
    return ParquetSource(schema=schema, spelled=spelled, partitioned_by=partitioned_by, partitions=partitions)


def _spellings(spark: SparkSession, partitions: Sequence[ParquetPartition]) -> StructType:
    """The columns of all files, each in every spelling that there is."""
    if not partitions:
        return StructType([])
    session = spark.newSession()
    session.conf.set("spark.sql.caseSensitive", "true")
    with translated("convert it to Iceberg"):
        # Each folder is one for itself: what its name says of partitions is no column.
        return session.read.option("mergeSchema", "true").parquet(*(one.uri for one in partitions)).schema


def _require_types(schema: StructType, folders: frozenset[str], shown: str) -> None:
    names = list[str]()
    for field in schema.fields:
        odd = next(_odd(field.dataType), None)
        if odd is None and field.name.lower() in folders and not isinstance(field.dataType, _FOLDERS):
            odd = field.dataType
        if odd is not None:
            what = "the partition column" if field.name.lower() in folders else "the column"
            raise RefusedError(
                f"{shown} cannot be converted: Iceberg has no {_said(odd)} for {what} {field.name}.",
                hint=_ELSE,
            )
        if not _DEFAULTS.isdisjoint(field.metadata):
            raise RefusedError(
                f"{shown} cannot be converted: the column {field.name} has a default, which files of format version 2 "
                "do not know.",
                hint=_ELSE,
            )
        if field.name.lower() in names:
            raise RefusedError(
                f"{shown} cannot be converted: {field.name} is the name of two columns but for the case.",
                hint=_ELSE,
            )
        names.append(field.name.lower())


def _require_values(schema: StructType, partitions: Sequence[ParquetPartition], shown: str) -> None:
    """Whatever is no `true`, Iceberg takes for false."""
    switches = {one.name for one in schema.fields if isinstance(one.dataType, BooleanType)}
    for one in partitions:
        for column, value in one.values.items():
            if column in switches and value.lower() not in ("true", "false", NULL_PARTITION.lower()):
                raise RefusedError(
                    f"{shown} has the partition {column}={value}, which is neither true nor false.",
                    hint="Give the column another type, such as STRING, or write its rows to a new table.",
                )


def _odd(kind: DataType) -> Iterator[DataType]:
    """What Iceberg has no type for."""
    match kind:
        case StructType():
            for field in kind.fields:
                yield from _odd(field.dataType)
        case ArrayType():
            yield from _odd(kind.elementType)
        case MapType():
            yield from _odd(kind.keyType)
            yield from _odd(kind.valueType)
        case StringType():
            if kind != StringType():  # one with a collation
                yield kind
        case _ if not isinstance(kind, _PLAIN):
            yield kind


def _reads(wanted: DataType, found: DataType) -> bool:
    """Whether Iceberg reads a column of one type from files that have it as another, and as Spark does."""
    match wanted, found:
        case StructType(), StructType():
            by_name = {one.name.lower(): one.dataType for one in found.fields}
            return all(
                _reads(one.dataType, by_name[one.name.lower()])
                for one in wanted.fields
                if one.name.lower() in by_name
            )
        case ArrayType(), ArrayType():
            return _reads(wanted.elementType, found.elementType)
        case MapType(), MapType():
            return _reads(wanted.keyType, found.keyType) and _reads(wanted.valueType, found.valueType)
        case DecimalType(), DecimalType():
            return bool(wanted.scale == found.scale and wanted.precision >= found.precision)
        case DoubleType(), FloatType():
            return True
        case _ if isinstance(wanted, _WHOLE) and isinstance(found, _WHOLE):
            return _WHOLE.index(type(wanted)) >= _WHOLE.index(type(found))
        case _:
            return type(wanted) is type(found)


def _said(kind: DataType) -> str:
    return kind.simpleString().upper()


def _lower(names: Sequence[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)
