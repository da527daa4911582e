"""Folders elsewhere that a table's own folder leads to, by links or mounts in it. No log tells of them."""

from lakewarden.catalog.formats.files_elsewhere import common_folders
from lakewarden.catalog.formats.inner_tables import signs
from lakewarden.catalog.storage.file_store import local_path, location_of
from lakewarden.catalog.storage.place import Moment

__all__ = ["linked_folders"]


def linked_folders(location: str) -> tuple[str, ...]:
    """The folders that links lead to now, as few as cover all of them; none on a storage without links."""
    metadata = {sign.folder for sign in signs().values()}
    found = Moment().leads_to(location, but=metadata)
    return tuple(location_of(one) for one in common_folders(str(local_path(one)) for one in found))
