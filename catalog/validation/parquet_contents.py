"""Is a data file what was written? Both ends of it, or all of it. Looks at one file at a time."""

from enum import Enum
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from lakewarden.catalog.formats.port import DataFile
from lakewarden.catalog.storage.file_store import FileStore
from lakewarden.catalog.storage.hadoop_crc import agrees_with_companion, companion_of

__all__ = ["Content", "ends_of", "whole_of"]

_MAGIC: Final = b"PAR1"
_ENCRYPTED: Final = b"PARE"
"""How a Parquet file ends, and begins where the footer is encrypted."""


class Content(Enum):
    """What a look into a file says."""

    SOUND = "sound"
    NOT_PARQUET = "not parquet"
    OTHER_ROWS = "other rows"


def ends_of(store: FileStore, path: str, file: DataFile) -> Content:
    """Whether both ends are Parquet's. Two small reads."""
    length = len(_MAGIC)
    if file.size_bytes < 3 * length:
        return Content.NOT_PARQUET
    with store.open(path) as source:
        first = source.read(length)
        source.seek(file.size_bytes - length)
        same = first in (_MAGIC, _ENCRYPTED) and source.read(length) == first
    return Content.SOUND if same else Content.NOT_PARQUET


def whole_of(store: FileStore, path: str, file: DataFile) -> Content:
    """Whether the whole file decodes, page checksums included, agrees with its companion on a local disk, and holds
    the rows that the log recorded."""
    data = store.read(path)
    companion = companion_of(path)
    if store.exists(companion) and not agrees_with_companion(data, store.read(companion)):
        return Content.NOT_PARQUET
    if data.startswith(_ENCRYPTED):
        return Content.SOUND
    try:
        parquet = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
        for _ in parquet.iter_batches():
            pass  # decoding is the check
    except pa.ArrowNotImplementedError:
        return Content.SOUND  # a type that Spark knows and this reader does not
    except (pa.ArrowException, OSError):
        return Content.NOT_PARQUET
    counted = file.rows is None or parquet.metadata.num_rows == file.rows
    return Content.SOUND if counted else Content.OTHER_ROWS
