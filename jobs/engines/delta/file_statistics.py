"""Fill missing per-file statistics of a Delta table from Parquet footers: no Spark, and no data read.

One commit on exactly the version it was decided on adds the same files again, with statistics and `dataChange` false;
readers, streams and users' writers see no change of data. Adding a file again after somebody removed it would
bring dead rows back, hence no retries, ever.
"""

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.transaction import AddAction

from lakewarden.catalog.clock import to_millis
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import DataFile
from lakewarden.catalog.storage.file_store import FileStore, open_store
from lakewarden.jobs.engines.delta.parquet_footers import Leaf, file_statistics, indexed_leaves
from lakewarden.jobs.engines.delta.rs_metadata import RsTable, append, open_version
from lakewarden.jobs.runs.port import FileChange

__all__ = ["SAFE_PATH", "fill_file_statistics"]

SAFE_PATH: Final = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_\-./=]*$")
"""Entries that every writer spells the same. Of others the log could come to hold two spellings, as two files."""
_READERS: Final = 8


def fill_file_statistics(place: RsTable, *, requires: int, run_id: str) -> FileChange:
    """Give statistics to files of version `requires` that have none. `files_added` of the answer counts them.

    Left alone are files with deletion vectors (delta-rs would lose those), with paths that may be spelt in
    several ways, outside the table's folder, or without a readable footer; and tables whose features delta-rs
    does not know. Without any to fill there is no commit (`version` None).
    Raises `ConflictError` if somebody committed first.
    """
    table = open_version(place, requires)
    if table is None:
        return FileChange(version=None)
    bare = list(_fillable(DeltaReader(lambda _: place.storage).files(place.location, version=requires)))
    actions = _actions(table, open_store(place.location, place.storage), bare)
    if not actions:
        return FileChange(version=None)
    with place.committing(requires, failed=f"The statistics of {place.location} could not be committed."):
        append(table, actions, place.once(run_id))
    return FileChange(version=requires + 1, files_added=len(actions))


def _fillable(files: Iterator[DataFile]) -> Iterator[DataFile]:
    for file in files:
        if not file.has_statistics and not file.has_deletion_vector and SAFE_PATH.match(file.entry):
            yield file


def _actions(table: DeltaTable, store: FileStore, files: Sequence[DataFile]) -> list[AddAction]:
    metadata = table.metadata()
    leaves = indexed_leaves(table.schema().to_json(), metadata.configuration, metadata.partition_columns)
    with ThreadPoolExecutor(_READERS, thread_name_prefix="footers") as readers:
        statistics = readers.map(lambda file: _read(store, file, leaves), files)
        return [
            AddAction(
                path=file.path,
                size=file.size_bytes,
                partition_values=dict(file.partition),
                modification_time=to_millis(file.modified_at),
                data_change=False,
                stats=said,
            )
            for file, said in zip(files, statistics, strict=True)
            if said is not None
        ]


def _read(store: FileStore, file: DataFile, leaves: Sequence[Leaf]) -> str | None:
    """One file's statistics; None where its footer cannot be read, which validation reports."""
    try:
        with store.open(file.path) as source:
            return file_statistics(pq.read_metadata(source), leaves)
    except (OSError, pa.ArrowException):
        return None
