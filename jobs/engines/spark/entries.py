"""The metastore's tables as Spark's own session catalog knows them."""

import json
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

__all__ = ["catalog_table", "identifier_of", "partition_columns_of", "schema_of", "texts_of"]


def identifier_of(spark: SparkSession, name: str) -> Any:
    """The `TableIdentifier` of `db.t`."""
    database, table = name.split(".", 1)
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.catalyst.TableIdentifier(table, jvm.scala.Option.apply(database))


def catalog_table(spark: SparkSession, name: str) -> Any:
    """The `CatalogTable` of `db.t`. Raises what Spark raises."""
    jsession: Any = spark._jsparkSession
    return jsession.sessionState().catalog().getTableMetadata(identifier_of(spark, name))


def schema_of(entry: Any) -> StructType:
    """The columns of a `CatalogTable`, spelled as whoever made it did."""
    return StructType.fromJson(json.loads(entry.schema().json()))


def partition_columns_of(entry: Any) -> tuple[str, ...]:
    """The names of a `CatalogTable`'s partition columns."""
    return texts_of(entry.partitionColumnNames())


def texts_of(found: Any) -> tuple[str, ...]:
    """The texts in a Scala sequence."""
    return tuple(str(found.apply(position)) for position in range(found.size()))
