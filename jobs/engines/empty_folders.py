"""Deleting empty folders, and never more than that:
an engine's answer to what a storage without folders has none of."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from pyspark.sql import SparkSession

from lakewarden.catalog.storage.file_store import local_path
from lakewarden.jobs.engines.spark.errors import translated
from lakewarden.jobs.engines.spark.names import hadoop_path
from lakewarden.jobs.runs.table_files import delete_empty_local

__all__ = ["delete_empty_folders"]

_WITHOUT_FOLDERS: Final = ("s3://", "gs://")


def delete_empty_folders(start: Callable[[], SparkSession], location: str, folders: Sequence[str]) -> int:
    """Delete those of `folders` (relative to `location`, inner ones first) that are empty. Returns how many were.

    On local disks without Spark, elsewhere by Hadoop's file systems, where a deletion that is not recursive refuses a
    folder with anything in it. Stores whose folders are only beginnings of names have none to delete.
    """
    if location.startswith(_WITHOUT_FOLDERS):
        return 0
    if local_path(location) is not None:
        return delete_empty_local(location, folders)
    spark = start()
    jvm: Any = spark._jvm
    jsession: Any = spark._jsparkSession
    deleted = 0
    with translated(f"delete empty folders of {location}"):
        root = jvm.org.apache.hadoop.fs.Path(hadoop_path(location))
        system = root.getFileSystem(jsession.sessionState().newHadoopConf())
        for folder in folders:
            place = jvm.org.apache.hadoop.fs.Path(root, folder) if folder else root
            if system.exists(place) and len(system.listStatus(place)) == 0:
                deleted += bool(system.delete(place, False))
    return deleted
