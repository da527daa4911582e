"""A transaction of Delta's own, by py4j: begun on exactly the version that is expected. Not in `pyspark`'s API."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.storage.file_store import FileStore
from lakewarden.jobs.engines.spark.names import hadoop_path

__all__ = ["actions_of", "begun", "delta", "items", "java", "measured", "object_of", "sequence"]


def begun(spark: SparkSession, store: FileStore, requires: int | None) -> tuple[Any, Any]:
    """The table's log and a transaction that has read version `requires`, or for None whatever is head.
    Raises `ConflictError` if that is not head."""
    log = delta(spark).DeltaLog.forTable(spark._jsparkSession, hadoop_path(store.root))
    transaction = log.startTransaction()
    if requires is not None and transaction.readVersion() != requires:
        raise ConflictError(f"The table moved past version {requires}, on which this was decided.")
    return log, transaction


def sequence(spark: SparkSession, items: Sequence[Any]) -> Any:
    """A Scala sequence."""
    jvm = java(spark)
    collected = jvm.java.util.ArrayList()
    for item in items:
        collected.add(item)
    return jvm.scala.jdk.javaapi.CollectionConverters.asScala(collected).toSeq()


def items(spark: SparkSession, found: Any) -> list[Any]:
    """A Scala sequence as a list. By its Java form: iterating over it would end in an exception, which py4j minds."""
    told = java(spark).scala.jdk.javaapi.CollectionConverters.asJava(found)
    return [told.get(place) for place in range(told.size())]


def measured(spark: SparkSession, transaction: Any, numbers: dict[str, int]) -> None:
    """Have the commit of a transaction say these numbers of what it did."""
    jvm = java(spark)
    metrics = jvm.java.util.HashMap()
    for name, number in numbers.items():
        metric = jvm.org.apache.spark.sql.execution.metric.SQLMetrics.createMetric(
            spark._jsparkSession.sparkContext(), name
        )
        metric.set(number)
        metrics.put(name, metric)
    mutable = jvm.scala.jdk.javaapi.CollectionConverters.asScala(metrics)
    maps = object_of(jvm.scala.collection.immutable, "Map")
    transaction.registerSQLMetrics(spark._jsparkSession, getattr(maps, "from")(mutable))


def actions_of(spark: SparkSession, *parts: Any) -> Any:
    """One Scala iterator over datasets and Scala sequences of actions, read piece by piece: there may be millions."""
    jvm = java(spark)
    converters = jvm.scala.jdk.javaapi.CollectionConverters
    joined = jvm.java.util.stream.Stream.empty()
    for part in parts:
        is_dataset = hasattr(part, "toLocalIterator") and part.getClass().getName().endswith("Dataset")
        elements = part.toLocalIterator() if is_dataset else converters.asJava(part).iterator()
        spliterator = jvm.java.util.Spliterators.spliteratorUnknownSize(elements, 0)
        stream = jvm.java.util.stream.StreamSupport.stream(spliterator, False)
        joined = jvm.java.util.stream.Stream.concat(joined, stream)
    return converters.asScala(joined.iterator())


def object_of(package: Any, name: str) -> Any:
    """The instance of a Scala object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")


def delta(spark: SparkSession) -> Any:
    """Delta's package."""
    return java(spark).org.apache.spark.sql.delta


def java(spark: SparkSession) -> Any:
    """The driver's JVM."""
    return spark._jvm
