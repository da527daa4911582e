"""Counting rows exactly, also where the log does not carry the counts: from Parquet footers, on demand."""

from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import DataFile
from lakewarden.catalog.storage.file_store import FileStore, StorageOptions, open_store, root_and_path

__all__ = ["count_rows"]


def count_rows(location: str, storage: Callable[[str], StorageOptions], *, version: int | None = None) -> int:
    """The rows a scan of the version (head when None) would return.

    Reads one footer per file without a recorded count. Raises `UnreadableError` if the log or a footer cannot be read.
    """
    stores: dict[str, FileStore] = {}
    total = 0
    for file in DeltaReader(storage).files(location, version=version):
        rows = file.rows
        if rows is None:
            root, path = root_and_path(location, file.path)
            if root not in stores:
                stores[root] = open_store(root, storage(location))
            rows = _rows_in_footer(stores[root], path, file)
        total += rows - file.deleted_rows
    return total


def _rows_in_footer(store: FileStore, path: str, file: DataFile) -> int:
    try:
        with store.open(path) as source:
            return int(pq.read_metadata(source).num_rows)
    except FileNotFoundError as error:
        raise UnreadableError(
            f"{file.path} is missing.", hint="The check head_files lists all that are."
        ) from error
    except (OSError, pa.ArrowException) as error:
        raise UnreadableError(
            f"{file.path} is not a readable Parquet file.",
            hint="The check head_files lists all that are not.",
        ) from error
