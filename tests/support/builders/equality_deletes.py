"""Deletes by equality, as Flink and others write them: Spark's statements make none."""

import uuid
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.jobs.engines.iceberg.java_tables import opened
from support.builders.spark_iceberg import SparkIceberg

__all__ = ["delete_by_equality"]


def delete_by_equality(table: SparkIceberg, *ids: int, partition: str | None = None) -> None:
    """One commit with one file that deletes rows by their `id`; `partition` as in paths (`part=a`)."""
    java = opened(table.spark, table.heads, table.location).table
    jvm: Any = table.spark._jvm
    field_id = java.schema().findField("id").fieldId()
    path = table.folder / "data" / f"{uuid.uuid4()}-deletes.parquet"
    field = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": str(field_id)})
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64())}, schema=pa.schema([field])), path)
    gateway: Any = table.spark.sparkContext._gateway
    keys = gateway.new_array(jvm.int, 1)
    keys[0] = field_id
    builder = jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(java.spec()).ofEqualityDeletes(keys)
    builder = builder.withPath(f"{java.location()}/data/{path.name}").withFormat("PARQUET")
    builder = builder.withFileSizeInBytes(path.stat().st_size).withRecordCount(len(ids))
    if partition is not None:
        builder = builder.withPartitionPath(partition)
    java.newRowDelta().addDeletes(builder.build()).commit()
