"""Two versions of a Delta table, for a comparison of their rows.

Only files that one of the versions has and the other has not are read: the rows of a file, less those that its deletion
vector takes away, are the same in every version that has both.
"""

from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.engines.spark.names import hadoop_path
from lakewarden.jobs.engines.spark.row_comparison import ComparedVersion, compared, own_session
from lakewarden.jobs.runs.row_diff import DiffRequest, RowDiff

__all__ = ["row_diff"]

_OF_THE_OTHER: Final = "__lakewarden_files_of_the_other"
_FILE: Final = (
    "concat_ws('|', path, deletionVector.storageType, deletionVector.pathOrInlineDv, deletionVector.offset)"
)
"""What tells a file with its deletion vector from another."""


@dataclass(frozen=True, slots=True)
class _Version:
    """One version: Spark's own view of it, and its files as a `Dataset[AddFile]`."""

    whole: DataFrame
    log: Any
    snapshot: Any

    def files(self) -> Any:
        return self.snapshot.allFiles()

    def beside(self, spark: SparkSession, other: "_Version") -> ComparedVersion:
        return ComparedVersion(whole=self.whole, apart=_rows(spark, self, _without(spark, self, other)))


def row_diff(spark: SparkSession, request: DiffRequest) -> RowDiff:
    """Compare the two versions as `compared`. Raises `ExecutionError`, too, if a version is gone."""
    with translated(f"compare two versions of {request.name}"), own_session(spark) as session:
        head, target = (_version(session, request.location, one) for one in (request.head, request.target))
        return compared(head.beside(session, target), target.beside(session, head), request)


def _version(spark: SparkSession, location: str, version: int) -> _Version:
    log = _java(spark).org.apache.spark.sql.delta.DeltaLog.forTable(
        spark._jsparkSession, hadoop_path(location)
    )
    nothing = _java(spark).scala.Option.empty()
    snapshot = log.getSnapshotAt(version, nothing, nothing, False)
    whole = spark.read.format("delta").option("versionAsOf", str(version)).load(hadoop_path(location))
    return _Version(whole, log, snapshot)


def _without(spark: SparkSession, one: _Version, other: _Version) -> Any:
    """The files of `one` that `other` has not, or not with the same deletion vector."""
    known = DataFrame(other.files().toDF(), spark).selectExpr(f"{_FILE} AS file")
    known.createOrReplaceTempView(_OF_THE_OTHER)
    return one.files().filter(f"{_FILE} NOT IN (SELECT file FROM {_OF_THE_OTHER})").collectAsList()


def _rows(spark: SparkSession, version: _Version, files: Any) -> DataFrame:
    nothing = _java(spark).scala.Option.empty()
    frame = version.log.createDataFrame(version.snapshot, _sequence(spark, files), False, nothing)
    return DataFrame(frame, spark)


def _java(spark: SparkSession) -> Any:
    return spark._jvm


def _sequence(spark: SparkSession, items: Any) -> Any:
    """A Java list as a Scala `Seq`."""
    return _java(spark).scala.jdk.javaapi.CollectionConverters.asScala(items).toSeq()
