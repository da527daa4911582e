"""Delta, as the registry of formats knows it."""

from typing import Final

from lakewarden.catalog.formats.delta.cache import Memory
from lakewarden.catalog.formats.delta.log_names import FOLDER
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.delta.retention import DELTA_RETENTION
from lakewarden.catalog.formats.spec import FormatSpec, Sign, StorageOf
from lakewarden.catalog.model.rows import DELTA

__all__ = ["DELTA_FORMAT"]

_READER_BYTES: Final = 8 * 1024 * 1024
"""What the reader may keep of tables it has read. Enough for the few that move between two sweeps."""


def _reader(storage: StorageOf) -> DeltaReader:
    return DeltaReader(storage, memory=Memory(_READER_BYTES))


DELTA_FORMAT: Final = FormatSpec(
    name=DELTA,
    label="Delta",
    reader=_reader,
    sign=Sign(folder=FOLDER),
    retention=DELTA_RETENTION,
    kept=("_change_data/", "_delta_index/", "_symlink_format_manifest/"),
)
