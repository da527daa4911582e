"""The files of a Parquet table taken into the manifests of an Iceberg table that nobody sees yet. None is rewritten.

Iceberg's own import lists the folders and reads the footers, in Spark's tasks. What it came to is then held against
what lies there, and some of the files are read by both: by Spark as Parquet, and as rows of the new table.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from lakewarden.catalog.errors import ConflictError, RefusedError
from lakewarden.catalog.storage.file_store import FileStore, below, from_hadoop
from lakewarden.catalog.units import count_of
from lakewarden.jobs.engines.iceberg.java_tables import frame_of
from lakewarden.jobs.engines.iceberg.parquet_source import ParquetSource, all_spellings
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.engines.spark.names import hadoop_path, quoted
from lakewarden.jobs.runs.parquet_folder import data_files

__all__ = ["ImportedTable", "imported", "require_all"]

_MAPPING: Final = "schema.name-mapping.default"
_VERSION: Final = "2"
_READ: Final = 8
"""So many files, spread over the table, are read by Spark and by Iceberg."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportedTable:
    """A transaction that would make the table."""

    transaction: Any
    files: Collection[str]
    """The locations of its data files, as Hadoop has them."""

    @property
    def metadata(self) -> Any:
        """The `TableMetadata` that it would commit."""
        return self.transaction.currentMetadata()

    @property
    def io(self) -> Any:
        """Where its files are written."""
        return self.transaction.table().io()


def imported(
    spark: SparkSession,
    store: FileStore,
    source: ParquetSource,
    *,
    properties: Mapping[str, str],
    marks: Mapping[str, str],
) -> ImportedTable:
    """A new table in the folder that has the files of `source` and `properties`, whose first snapshot says `marks`.

    Raises `ConflictError` if its files are others by now, `RefusedError` where Iceberg reads other rows from them than
    Spark. What was written then stays in the folder: manifests that no metadata names.
    """
    with translated(f"take the files of {store.root} into an Iceberg table"):
        transaction = _begun(spark, store, source, properties)
        table = transaction.table()
        _add(spark, table, source, marks)
        files = _files_of(table)
        require_all(store, files)
        _require_same_rows(spark, store, source, files)
    return ImportedTable(transaction=transaction, files=tuple(files))


def _begun(
    spark: SparkSession, store: FileStore, source: ParquetSource, properties: Mapping[str, str]
) -> Any:
    jvm: Any = spark._jvm
    jsession: Any = spark._jsparkSession
    iceberg = jvm.org.apache.iceberg
    schema = iceberg.spark.SparkSchemaUtil.convert(
        jvm.org.apache.spark.sql.types.DataType.fromJson(source.schema.json())
    )
    names = {field.name.lower(): field.name for field in source.schema.fields}
    spec = iceberg.PartitionSpec.builderFor(schema)
    for column in source.partitioned_by:
        spec = spec.identity(names[column.lower()])
    conf = jsession.sessionState().newHadoopConf()
    transaction = (
        iceberg.hadoop.HadoopTables(conf)
        .buildTable(hadoop_path(store.root), schema)
        .withPartitionSpec(spec.build())
        .withProperties({"format-version": _VERSION, **properties})
        .createTransaction()
    )
    mapping = json.loads(
        iceberg.mapping.NameMappingParser.toJson(
            iceberg.mapping.MappingUtil.create(transaction.table().schema())
        )
    )
    # A file may hold a partition column as well, of another type and with other values: nobody reads it there, and its
    # bounds would be taken for those of the partitions.
    folders = {column.lower() for column in source.partitioned_by}
    mapping = [one for one in mapping if one["names"][0].lower() not in folders]
    all_spellings(mapping, source.spelled)
    change = transaction.table().updateProperties()
    change.set(_MAPPING, json.dumps(mapping)).commit()
    return transaction


def _add(spark: SparkSession, table: Any, source: ParquetSource, marks: Mapping[str, str]) -> None:
    """One snapshot with all files, also where there is none."""
    jvm: Any = spark._jvm
    iceberg = jvm.org.apache.iceberg
    if not source.partitions:
        append = table.newAppend()
        for key, value in marks.items():
            append = append.set(key, value)
        append.commit()
        return
    names = {field.name.lower(): field.name for field in source.schema.fields}
    partitions = jvm.java.util.ArrayList()
    for one in source.partitions:
        values = {names[column.lower()]: value for column, value in one.values.items()}
        partitions.add(iceberg.spark.SparkTableUtil.SparkPartition(values, one.uri, "parquet"))
    staging = f"{str(table.location()).rstrip('/')}/metadata"
    for key, value in marks.items():
        iceberg.EnvironmentContext.put(key, value)
    try:
        iceberg.spark.SparkTableUtil.importSparkPartitions(
            spark._jsparkSession, partitions, table, table.spec(), staging, False, 1
        )
    finally:
        for key in marks:
            iceberg.EnvironmentContext.remove(key)


def _files_of(table: Any) -> Mapping[str, Any]:
    """The data files of the new table by their locations."""
    files = table.currentSnapshot().addedDataFiles(table.io()).iterator()
    found = dict[str, Any]()
    while files.hasNext():
        one = files.next().copy()
        found[str(one.location())] = one
    return found


def require_all(store: FileStore, files: Iterable[str]) -> None:
    """Raise `ConflictError` unless these are all data files that lie there."""
    mine = {from_hadoop(location) for location in files}
    there = {below(store.root, file.path) for file in data_files(store.list("", recursive=True))}
    if mine != there:
        odd = sorted(mine ^ there)
        raise ConflictError(
            f"Somebody wrote to {store.root} while it was converted: {count_of(len(odd), 'file')} came or went, "
            f"such as {odd[0]}. Nothing was changed.",
            hint="Convert it when the writer is done.",
        )


def _require_same_rows(
    spark: SparkSession, store: FileStore, source: ParquetSource, files: Mapping[str, Any]
) -> None:
    """Raise `RefusedError` unless Iceberg reads the rows from some of the files that Spark reads."""
    chosen = sorted(files)[:: max(1, -(-len(files) // _READ))]
    if not chosen:
        return
    session = spark.newSession()
    session.conf.set("spark.sql.legacy.allowHashOnMapType", "true")
    by_folder = all(source.tells_values(one) for one in source.partitions)
    hidden = () if by_folder else {column.lower() for column in source.partitioned_by}
    columns = [one.name for one in source.schema.fields if one.name.lower() not in hidden]
    trial = _begun(session, store, source, {})
    append = trial.table().newAppend()
    for location in chosen:
        append = append.appendFile(files[location])
    append.commit()
    table = trial.table()
    try:
        ours = _rows_of(session, table).select(*map(quoted, columns))
        schema = StructType([one for one in source.schema.fields if one.name in columns])
        read = session.read.schema(schema).option("basePath", hadoop_path(store.root)).parquet(*chosen)
        theirs = read.select(*(F.col(quoted(one.name)).cast(one.dataType) for one in ours.schema.fields))
        is_same = _checksum(ours) == _checksum(theirs)
    finally:
        snapshot = table.currentSnapshot()
        for manifest in snapshot.allManifests(table.io()):
            table.io().deleteFile(manifest.path())
        table.io().deleteFile(snapshot.manifestListLocation())
    if not is_same:
        raise RefusedError(
            f"Iceberg does not read the same rows from the files of {store.root} as Spark does.",
            hint="Write its rows to a new table: CREATE TABLE ... USING iceberg AS SELECT ....",
        )


def _rows_of(spark: SparkSession, table: Any) -> DataFrame:
    """All rows of a table that only a transaction has: what it calls its table cannot be read."""
    jvm: Any = spark._jvm
    readable = jvm.org.apache.iceberg.BaseTable(table.operations(), table.location())
    return frame_of(spark, jvm.org.apache.iceberg.spark.source.SparkTable(readable))


def _checksum(rows: DataFrame) -> Row | None:
    """The number of rows, and two sums over all of their values, in whichever order they come."""
    hashed = F.xxhash64(*(F.col(quoted(one)) for one in rows.columns))
    return rows.select(F.count("*"), F.bit_xor(hashed), F.sum(F.pmod(hashed, F.lit(1_000_003)))).first()
