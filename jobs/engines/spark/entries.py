"""The metastore's tables as Spark's own session catalog knows them."""

import json
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

__all__ = ["catalog_table", "partition_columns_of", "schema_of"]


def catalog_table(spark: SparkSession, name: str) -> Any:
    """The `CatalogTable` of `db.t`. Raises what Spark raises."""
    database, table = name.split(".", 1)
    jvm: Any = spark._jvm
    jsession: Any = spark._jsparkSession
    identifier = jvm.org.apache.spark.sql.catalyst.TableIdentifier(table, jvm.scala.Option.apply(database))
    return jsession.sessionState().catalog().getTableMetadata(identifier)


def schema_of(entry: Any) -> StructType:
    """The columns of a `CatalogTable`, spelled as whoever made it did."""
    return StructType.fromJson(json.loads(entry.schema().json()))


def partition_columns_of(entry: Any) -> tuple[str, ...]:
    """The names of a `CatalogTable`'s partition columns."""
    names = entry.partitionColumnNames()
    return tuple(str(names.apply(position)) for position in range(names.size()))
