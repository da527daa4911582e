"""Where the table lies whose head a metadata file is, by what it says itself; and whether the folder tells head."""

from typing import Final

from lakewarden.catalog.errors import UnreadableError, UsageError
from lakewarden.catalog.formats.iceberg.contents import read_named
from lakewarden.catalog.formats.iceberg.metadata import parse_metadata
from lakewarden.catalog.formats.iceberg.pointer import tells_head
from lakewarden.catalog.formats.spec import StorageOf
from lakewarden.catalog.storage.file_store import from_hadoop, open_store
from lakewarden.catalog.storage.troubles import answering

__all__ = ["located", "told_by_folder"]

_BY: Final = "a catalog"


def located(storage: StorageOf, file: str) -> str:
    """The canonical location of the table that a metadata file, as catalogs name it, is about. Raises
    `BrokenMetadataError`, `UnreadableError` for a place that is none, `UnavailableError`."""
    try:
        folder, _, name = from_hadoop(file).rpartition("/")
        options = storage(folder)
        data = read_named(open_store(folder, options), options, name, by=_BY)
        return from_hadoop(parse_metadata(data, file).location)
    except UsageError as error:
        raise UnreadableError(f"{file} tells no place of a table.", hint="") from error


def told_by_folder(storage: StorageOf, location: str) -> bool:
    """Whether the folder of a table tells its head itself. Raises `UnavailableError`."""
    with answering(location):
        return tells_head(open_store(location, storage(location)))
