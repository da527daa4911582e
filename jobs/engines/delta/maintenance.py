"""Vacuum, compaction, purging, properties and checkpoints of Delta tables on Spark.

Every function takes a session that is already stamped with the run (`session.stamped`), so that its settings reach
nobody else, and the table's folder as a `FileStore`. Spark's statements read head themselves: each function that
commits checks just before that head is the version the decision was made on (unless it may commit beside writers), and
finds its own commit in the log afterwards.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import PurePosixPath
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import StructField, StructType

from lakewarden.catalog.errors import ExecutionError, PreconditionError
from lakewarden.catalog.formats.delta.schema import PHYSICAL_NAME
from lakewarden.catalog.storage.file_store import FileEntry, FileStore
from lakewarden.jobs.engines.delta.bucket_compaction import compact_buckets, purge_buckets
from lakewarden.jobs.engines.delta.own_commits import commits_of, require_head
from lakewarden.jobs.engines.delta.sessions.stamped_sessions import COMMIT_ATTEMPTS
from lakewarden.jobs.engines.delta.transaction import begun, delta, sequence
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.engines.spark.names import hadoop_path, literal, quoted, table_at
from lakewarden.jobs.runs.port import FileChange, Partition

__all__ = ["agreed", "checkpoint", "compact", "purge", "set_properties", "unreferenced"]

_MOST_ATTEMPTS: Final = 100
"""How often a compaction beside writers tries to commit: each time it lost to commits that left its files alone."""
_INVENTORY: Final = "lakewarden_candidates"
_INVENTORY_SCHEMA: Final = pa.schema(
    [("path", pa.string()), ("length", pa.int64()), ("isDir", pa.bool_()), ("modificationTime", pa.int64())]
)


def unreferenced(spark: SparkSession, store: FileStore) -> tuple[str, ...]:
    """Paths, relative to the table and as on disk, of files and empty folders that Spark's full vacuum would delete:
    older than the table's own retention and named neither by head nor by a younger removal. Lists every folder."""
    base = _qualified(spark, store.root)
    rows = _run(spark, f"VACUUM {table_at(store.root)} FULL DRY RUN", f"list {store.root}")
    return tuple(row[0].removeprefix(f"{base}/") for row in rows if row[0].startswith(f"{base}/"))


def agreed(
    spark: SparkSession, store: FileStore, *, candidates: Sequence[FileEntry]
) -> tuple[FileEntry, ...]:
    """The candidates that Spark's own vacuum finds unreferenced, too; folders among them if they are empty."""
    base = _qualified(spark, store.root)
    spark.createDataFrame(_inventory(base, candidates)).createOrReplaceTempView(_INVENTORY)
    try:
        inventory = f"USING INVENTORY (SELECT * FROM {_INVENTORY})"
        statement = f"VACUUM {table_at(store.root)} {inventory} DRY RUN"
        rows = _run(spark, statement, f"ask what of {store.root} is unreferenced")
    finally:
        spark.catalog.dropTempView(_INVENTORY)
    found = {row[0].removeprefix(f"{base}/") for row in rows}
    return tuple(entry for entry in candidates if entry.path in found)


def compact(
    spark: SparkSession,
    store: FileStore,
    *,
    requires: int,
    partitions: Sequence[Partition] | None,
    target_bytes: int,
    run_id: str,
    beside_writers: bool = False,
) -> FileChange:
    """Rewrite files below half of `target_bytes`, partition by partition, into files of at most `target_bytes`; of a
    bucketed table those that are in no bucket, or not alone in theirs, into their buckets."""
    _require(spark, store, requires, beside_writers=beside_writers)
    with translated(f"compact {store.root}"):
        expected = None if beside_writers else requires
        in_buckets = compact_buckets(spark, store, requires=expected, small_bytes=target_bytes // 2)
    if in_buckets is not None:
        return in_buckets
    spark.conf.set("spark.databricks.delta.optimize.minFileSize", target_bytes // 2)
    spark.conf.set("spark.databricks.delta.optimize.maxFileSize", target_bytes)
    where = _where(spark, store, requires, partitions)
    _run(spark, f"OPTIMIZE {table_at(store.root)}{where}", f"compact {store.root}")
    return _rewritten(store, run_id, requires)


def purge(
    spark: SparkSession,
    store: FileStore,
    *,
    requires: int,
    partitions: Sequence[Partition] | None,
    run_id: str,
    beside_writers: bool = False,
) -> FileChange:
    """Rewrite files that carry deletion vectors without the deleted rows; of a bucketed table into their buckets."""
    _require(spark, store, requires, beside_writers=beside_writers)
    with translated(f"purge {store.root}"):
        in_buckets = purge_buckets(spark, store, requires=None if beside_writers else requires)
    if in_buckets is not None:
        return in_buckets
    where = _where(spark, store, requires, partitions)
    _run(spark, f"REORG TABLE {table_at(store.root)}{where} APPLY (PURGE)", f"purge {store.root}")
    return _rewritten(store, run_id, requires)


def set_properties(
    spark: SparkSession,
    store: FileStore,
    *,
    requires: int,
    properties: Sequence[tuple[str, str]],
    run_id: str,
) -> int:
    """Set table properties in one commit; for tables that delta-rs must not write. Returns its version."""
    require_head(store, requires)
    pairs = ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties)
    return _altered(spark, store, f"SET TBLPROPERTIES ({pairs})", requires=requires, run_id=run_id)


def unset_properties(
    spark: SparkSession, store: FileStore, *, requires: int, names: Sequence[str], run_id: str
) -> int:
    """Take table properties away in one commit. Returns its version.

    By a transaction that has read version `requires`: somebody else's change of properties in between is a
    conflict, where ALTER TABLE would go by whatever it finds. Raises `ConflictError`."""
    require_head(store, requires)
    with translated(f"take properties of {store.root} away"):
        _, transaction = begun(spark, store, requires)
        before, listed = transaction.metadata(), sequence(spark, names)
        transaction.updateMetadata(
            before.copy(
                before.id(),
                before.name(),
                before.description(),
                before.format(),
                before.schemaString(),
                before.partitionColumns(),
                before.configuration().removedAll(listed),
                before.createdTime(),
            ),
            False,
        )
        operation = delta(spark).DeltaOperations.UnsetTableProperties(listed, True)
        transaction.commit(sequence(spark, []), operation)
    return _committed(store, requires=requires, run_id=run_id)


def _altered(spark: SparkSession, store: FileStore, change: str, *, requires: int, run_id: str) -> int:
    _run(spark, f"ALTER TABLE {table_at(store.root)} {change}", f"change the properties of {store.root}")
    return _committed(store, requires=requires, run_id=run_id)


def _committed(store: FileStore, *, requires: int, run_id: str) -> int:
    commit = next(commits_of(store, run_id, after=requires), None)
    if commit is None:
        raise ExecutionError(
            f"Spark changed the properties of {store.root} without a commit.", hint="Validate the table."
        )
    return commit.version


def checkpoint(spark: SparkSession, store: FileStore, *, requires: int) -> None:
    """Write a checkpoint of version `requires`; for tables whose checkpoints delta-rs must not write.

    Spark cleans the log together with a checkpoint, by age: refused (PreconditionError) while the table allows that.
    """
    with translated(f"write a checkpoint of {store.root}"):
        log, snapshot = _java_log(spark, store), _snapshot(spark, store, requires)
        if log.enableExpiredLogCleanup(snapshot.metadata()):
            raise PreconditionError(
                f"A checkpoint of {store.root} by Spark would also clean its log by age.",
                hint="Set delta.enableExpiredLogCleanup to false first: "
                "the daemon does so where it manages a table.",
            )
        log.checkpoint(snapshot, _nothing(spark))
        written = log.checkpointExistsAtVersion(requires)
    if not written:  # Spark logs a checkpoint's failure and goes on, so that no commit fails for it
        raise ExecutionError(
            f"Spark wrote no checkpoint of version {requires} of {store.root}.",
            hint="Look into the worker's log.",
        )


def _require(spark: SparkSession, store: FileStore, version: int, *, beside_writers: bool) -> None:
    """Head has to be `version`, and our commit to come next. `beside_writers`: or others come first, as long as Delta
    finds each time (`ConflictChecker`, 4.4) that they changed neither our files nor metadata nor protocol."""
    if beside_writers:
        spark.conf.set(COMMIT_ATTEMPTS, _MOST_ATTEMPTS)
    else:
        require_head(store, version)


def _run(spark: SparkSession, statement: str, action: str) -> list[Row]:
    with translated(action):
        return spark.sql(statement).collect()


def _inventory(base: str, candidates: Sequence[FileEntry]) -> pa.Table:
    """Candidates in the form VACUUM wants.

    A folder that holds candidates is listed besides: Spark deletes what appears once, so it stays. Times are zero, as
    the decision that a file is old enough has been made; Spark's own check goes by the log.
    """
    wanted = {entry.path: (entry.size_bytes, entry.is_dir) for entry in candidates}
    parents = {str(parent) for path in wanted for parent in PurePosixPath(path).parents} - {"."}
    rows = chain(
        ((f"{base}/{path}", size, is_dir) for path, (size, is_dir) in wanted.items()),
        ((f"{base}/{parent}", 0, True) for parent in sorted(parents)),
    )
    paths, sizes, folders = zip(*rows, strict=True) if wanted else ((), (), ())
    return pa.table([paths, sizes, folders, [0] * len(paths)], schema=_INVENTORY_SCHEMA)


def _rewritten(store: FileStore, run_id: str, requires: int) -> FileChange:
    found = next(commits_of(store, run_id, after=requires), None)
    if found is None:
        return FileChange(version=None)
    return FileChange(
        version=found.version,
        files_removed=found.count("numRemovedFiles"),
        bytes_removed=found.count("numRemovedBytes"),
        files_added=found.count("numAddedFiles"),
    )


def _where(
    spark: SparkSession, store: FileStore, requires: int, partitions: Sequence[Partition] | None
) -> str:
    """A predicate that is true for exactly these partitions. Values are compared in the columns' own types."""
    if partitions is None:
        return ""
    with translated(f"read the schema of {store.root}"):
        schema = StructType.fromJson(json.loads(_snapshot(spark, store, requires).metadata().schemaString()))
    # The log names partition columns as column mapping does.
    columns = {field.metadata.get(PHYSICAL_NAME, field.name): field for field in schema.fields}
    return " WHERE " + " OR ".join(_matches(partition, columns) for partition in partitions)


def _matches(partition: Partition, columns: Mapping[str, StructField]) -> str:
    terms = []
    for logged, value in partition:
        name, type_ = quoted(columns[logged].name), columns[logged].dataType.simpleString()
        # Delta keeps no empty partition value: what was '' is NULL.
        terms.append(f"{name} <=> CAST({literal(value)} AS {type_})" if value else f"{name} IS NULL")
    return f"({' AND '.join(terms)})"


def _java_log(spark: SparkSession, store: FileStore) -> Any:
    """Spark's own view of the table's log. Neither checkpoints nor physical column names can be had by SQL."""
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, hadoop_path(store.root))


def _snapshot(spark: SparkSession, store: FileStore, version: int) -> Any:
    return _java_log(spark, store).getSnapshotAt(version, _nothing(spark), _nothing(spark), False)


def _nothing(spark: SparkSession) -> Any:
    jvm: Any = spark._jvm
    return jvm.scala.Option.empty()


def _qualified(spark: SparkSession, location: str) -> str:
    """The location as Hadoop spells it, which is how Spark spells the paths of a listing."""
    with translated(f"reach {location}"):
        jvm: Any = spark._jvm
        jsession: Any = spark._jsparkSession
        path = jvm.org.apache.hadoop.fs.Path(hadoop_path(location))
        return str(path.getFileSystem(jsession.sessionState().newHadoopConf()).makeQualified(path).toString())
