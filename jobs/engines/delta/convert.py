"""CONVERT TO DELTA on Spark, with what it gets wrong put right.

Takes a session that is stamped with the run (`session.stamped`) and the table's folder as a `FileStore`. Whoever calls
has proved that all of the folder's files belong to the table (`jobs/executors/convert.py`).
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lakewarden.catalog.errors import LakewardenError, RefusedError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.delta.log_names import FOLDER, parse_name
from lakewarden.catalog.model.bucket_layout import LAYOUT_PROPERTIES, MOST_BUCKETS, BucketLayout, key_types
from lakewarden.catalog.storage.file_store import FileStore
from lakewarden.jobs.engines.spark.entries import catalog_table, partition_columns_of, schema_of, texts_of
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.engines.spark.names import hadoop_path, literal, quoted, table_at, table_named
from lakewarden.jobs.runs.parquet_folder import NULL_PARTITION, data_files

__all__ = ["convert"]

_CONF: Final = "spark.databricks.delta.convert"
_LEFT_BEHIND: Final = (f"{FOLDER}/_staged_commits", f"{FOLDER}/_sidecars", FOLDER)


def convert(
    spark: SparkSession,
    store: FileStore,
    *,
    name: str | None,
    partitioned_by: Sequence[tuple[str, str]],
    statistics: bool,
) -> int:
    """Parquet to Delta in place; by `name` the metastore entry becomes Delta's too. Returns the head version.

    Done again it finishes what was interrupted and changes nothing else. What cannot be converted raises
    `RefusedError` and leaves nothing behind, not even the empty log folder that Spark makes.
    """
    action = f"convert {name or store.root}"
    layout: BucketLayout | None = None
    try:
        with translated(action):
            # An entry that changed since an interrupted conversion must not block its repair.
            spark.conf.set(f"{_CONF}.metadataCheck.enabled", "false")
            if not _has_log(store):
                layout = _prepare(spark, store, name)
            target = table_named(name) if name is not None else table_at(store.root, "parquet")
            spark.sql(f"CONVERT TO DELTA {target}{_clauses(spark, partitioned_by, statistics)}")
            history = spark.sql(f"DESCRIBE HISTORY {table_at(store.root)} LIMIT 1").collect()
    except LakewardenError:
        _sweep_up(spark, store)
        if name is not None and layout is not None and not _has_log(store):
            _take_back(spark, name)
        raise
    return int(history[0]["version"])


def _prepare(spark: SparkSession, store: FileStore, name: str | None) -> BucketLayout | None:
    """Before the first commit: refuse what Delta would silently spoil, choose how folders are read, fill an empty one,
    and put its buckets on record in its entry. Returns those."""
    is_empty = next(data_files(store.list("", recursive=True)), None) is None
    if name is None:
        if is_empty:
            raise RefusedError(
                f"{store.root} holds no Parquet file, so nothing tells its columns.",
                hint="Create it as a Delta table, or convert it by its metastore name.",
            )
        return None
    entry = catalog_table(spark, name)
    layout = _layout(name, entry)
    if is_empty:
        _create_empty(spark, store, entry, layout)
        reach("convert.entry")  # the table has its log, the metastore does not know yet
        return None
    if _has_null_partition(spark, name, entry):
        _read_partitions_from_folders(spark, store, name, entry)
    if layout is not None:  # CONVERT takes the entry's properties over, and drops its buckets without a word
        told = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in layout.properties.items())
        spark.sql(f"ALTER TABLE {table_named(name)} SET TBLPROPERTIES ({told})")
    return layout


def _take_back(spark: SparkSession, name: str) -> None:
    """Take the layout off the entry of a table that was not converted."""
    keys = ", ".join(f"'{key}'" for key in LAYOUT_PROPERTIES)
    with suppress(LakewardenError), translated("take the buckets off the entry"):
        spark.sql(f"ALTER TABLE {table_named(name)} UNSET TBLPROPERTIES IF EXISTS ({keys})")


def _layout(name: str, entry: Any) -> BucketLayout | None:
    """How the entry says that Spark has spread the rows. Raises `RefusedError` for buckets that a Delta table does not
    have: by another hash, by columns that are not hashed here, and beside partitions."""
    told = entry.bucketSpec()
    if told.isEmpty():
        return None
    buckets, provider = told.get(), entry.provider()
    layout = BucketLayout(
        columns=texts_of(buckets.bucketColumnNames()),
        count=int(buckets.numBuckets()),
        sort=texts_of(buckets.sortColumnNames()),
        is_converted=True,
    )
    because = None
    if provider.isEmpty() or str(provider.get()).lower() != "parquet":
        because = "by Hive's hash, which is another than ours"
    elif entry.partitionColumnNames().size():
        because = "beside its partitions, and a Delta table has buckets or partitions"
    elif layout.count > MOST_BUCKETS or key_types(str(entry.schema().json()), layout) is None:
        because = "in a way that a Delta table has none"
    if because is not None:
        raise RefusedError(
            f"{name} is bucketed {because}: its buckets would be dropped.",
            hint="Write it anew without CLUSTERED BY, then convert that.",
        )
    return layout


def _create_empty(spark: SparkSession, store: FileStore, entry: Any, layout: BucketLayout | None) -> None:
    """CONVERT refuses a folder without files: an empty Delta table with the entry's columns goes there instead."""
    if layout is not None:
        jvm: Any = spark._jvm
        made = jvm.io.delta.tables.DeltaTable.create(spark._jsparkSession).addColumns(entry.schema())
        for key, value in layout.properties.items():
            made = made.property(key, value)
        made.location(hadoop_path(store.root)).execute()
        return
    schema = schema_of(entry)
    spark.createDataFrame([], schema).write.format("delta").partitionBy(*partition_columns_of(entry)).save(
        hadoop_path(store.root)
    )


def _has_null_partition(spark: SparkSession, name: str, entry: Any) -> bool:
    if not partition_columns_of(entry):
        return False
    partitions = spark.sql(f"SHOW PARTITIONS {table_named(name)}")
    return not partitions.where(F.col("partition").contains(f"={NULL_PARTITION}")).isEmpty()


def _read_partitions_from_folders(spark: SparkSession, store: FileStore, name: str, entry: Any) -> None:
    """Make CONVERT list folders instead of asking the metastore.

    The metastore calls the partition value NULL `__HIVE_DEFAULT_PARTITION__`, and CONVERT would take that for a
    string. Listing folders gets it right, but takes the columns from the files: they have to be the entry's.
    """
    folders = set(partition_columns_of(entry))
    wanted = [field for field in schema_of(entry) if field.name not in folders]
    found = [
        field
        for field in spark.read.option("mergeSchema", "true").parquet(hadoop_path(store.root)).schema
        if field.name not in folders
    ]
    if [(f.name, f.dataType) for f in found] != [(f.name, f.dataType) for f in wanted]:
        raise RefusedError(
            f"{name} has partitions whose value is NULL, and its files have other columns "
            "than its metastore entry.",
            hint="Write it anew with INSERT OVERWRITE, then convert it.",
        )
    spark.conf.set(f"{_CONF}.useCatalogPartitions", "false")


def _clauses(spark: SparkSession, partitioned_by: Sequence[tuple[str, str]], statistics: bool) -> str:
    """The rest of the statement. Types are parsed by Spark and written back in its own words."""
    parser: Any = spark._jvm
    parser = parser.org.apache.spark.sql.types.DataType
    columns = ", ".join(f"{quoted(column)} {parser.fromDDL(type_).sql()}" for column, type_ in partitioned_by)
    return ("" if statistics else " NO STATISTICS") + (f" PARTITIONED BY ({columns})" if columns else "")


def _has_log(store: FileStore) -> bool:
    return any(parse_name(entry.path.rpartition("/")[2]) for entry in store.list(FOLDER))


def _sweep_up(spark: SparkSession, store: FileStore) -> None:
    """Remove the log folders of a conversion that failed, if they are empty: a folder with a log in it stays."""
    jvm: Any = spark._jvm
    jsession: Any = spark._jsparkSession
    for folder in _LEFT_BEHIND:
        # Hadoop itself refuses to delete a folder that is not empty, so nothing can slip in between.
        with suppress(Py4JError, ConnectionError):
            path = jvm.org.apache.hadoop.fs.Path(f"{hadoop_path(store.root)}/{folder}")
            path.getFileSystem(jsession.sessionState().newHadoopConf()).delete(path, False)
