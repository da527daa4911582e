"""Deleting a whole table folder through Hadoop's file systems."""

from typing import Any

from pyspark.sql import SparkSession

from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.delta.names import FOLDER
from lakewarden.catalog.storage import FileStore
from lakewarden.jobs.base import FileChange
from lakewarden.jobs.engine.errors import translated
from lakewarden.jobs.engine.names import hadoop_path
from lakewarden.jobs.purge import deletion_order

__all__ = ["delete_folder"]


def delete_folder(spark: SparkSession, store: FileStore) -> FileChange:
    """Delete everything at the store's root, in `deletion_order`. Counts files and bytes; nothing there is zero of both."""
    files = [entry for entry in store.list("", recursive=True) if not entry.is_dir]
    children = deletion_order(entry.path for entry in store.list(""))
    jvm: Any = spark._jvm
    jsession: Any = spark._jsparkSession
    with translated(f"delete {store.root}"):
        root = jvm.org.apache.hadoop.fs.Path(hadoop_path(store.root))
        system = root.getFileSystem(jsession.sessionState().newHadoopConf())
        for child in children:
            if child == FOLDER:
                reach("purge.data_deleted")
            system.delete(jvm.org.apache.hadoop.fs.Path(root, child), True)
        system.delete(root, True)
    return FileChange(version=None, files_removed=len(files), bytes_removed=sum(f.size_bytes for f in files))
