"""Metadata files that head's metadata does not remember any more: each was head once, and nothing reads it since.

They are found along the table's own line: the oldest file that head remembers tells those before it, and so on. What
does not stand in that line stays: commits that failed, and whatever another table in the folder has.
"""

from collections.abc import Collection, Iterator
from datetime import datetime

from lakewarden.catalog.formats.iceberg.contents import TableContents
from lakewarden.catalog.formats.iceberg.errors import BrokenMetadataError
from lakewarden.catalog.formats.iceberg.metadata import TableMetadata, parse_metadata
from lakewarden.catalog.formats.iceberg.released import EXPIRING
from lakewarden.catalog.storage.file_store import FileEntry

__all__ = ["forgotten"]


def forgotten(
    metadata: TableMetadata,
    head: str,
    contents: TableContents,
    listed: Collection[FileEntry],
    before: datetime,
) -> tuple[FileEntry, ...]:
    """Those that were no head any more at a moment, oldest first: whoever deletes them in this order and is killed
    leaves a line that leads to the others. `head` is the path of head's own file, `listed` what the folder has."""
    entries = {one.path: one for one in listed}
    kept = {
        head,
        *map(contents.paths.path, metadata.log),
        *metadata.properties.get(EXPIRING, "").splitlines(),
    }
    found, successor = list[FileEntry](), None
    for path in _line(metadata, contents):
        entry = entries.get(path)
        if entry is None:
            continue  # gone already
        left_at = entry.modified_at if successor is None else max(entry.modified_at, successor.modified_at)
        if path not in kept and left_at < before:
            found.append(entry)
        successor = entry
    return tuple(reversed(found))


def _line(metadata: TableMetadata, contents: TableContents) -> Iterator[str]:
    """The files before head's, newest first, as far as they can be read."""
    told, known = metadata, set[str]()
    while told.log:
        older = [path for path in map(contents.paths.path, reversed(told.log)) if path not in known]
        if not older:
            return
        yield from older
        known.update(older)
        try:
            told = parse_metadata(contents.read_own(older[-1], by="the table's metadata"), older[-1])
        except BrokenMetadataError:
            return
        if told.uuid != metadata.uuid:
            return
