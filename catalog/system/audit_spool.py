"""Entries of `lakewarden.audit` that could not be written when their call was carried out: files in the system folder.

Whoever writes an entry next, or the leader's next cycle, takes them up. A crash in between finds an entry on record:
each is written once, by its id.
"""

from typing import Final

from pydantic import TypeAdapter, ValidationError

from lakewarden.catalog.model.rows import AuditRow
from lakewarden.catalog.storage.drop_folder import DropFolder
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.catalog.system.port import AUDIT, Fence, SystemStore

__all__ = ["AuditSpool"]

_FOLDER: Final = "unrecorded"
_FILES_AT_ONCE: Final = 500
_ENTRIES: Final = TypeAdapter(tuple[AuditRow, ...])


class AuditSpool:
    """The folder `unrecorded` of a system location (canonical)."""

    def __init__(self, system_location: str, options: StorageOptions) -> None:
        self._files = DropFolder(system_location, _FOLDER, options)

    def put(self, entries: tuple[AuditRow, ...]) -> None:
        """Keep entries, as one file. Raises `UnavailableError`."""
        self._files.put(_ENTRIES.dump_json(entries))

    def drain(self, store: SystemStore, *, fence: Fence | None = None) -> int:
        """Write what is kept, oldest first; how many entries. Raises what `append` raises, and `UnavailableError`; what
        is not written then stays. Files that cannot be read are put aside."""
        kept: list[AuditRow] = []
        names: list[str] = []
        for name in self._files.names(_FILES_AT_ONCE):
            try:
                kept += _ENTRIES.validate_json(self._files.read(name))
                names.append(name)
            except ValidationError:
                self._files.put_aside(name)
        if kept:
            store.append(AUDIT, kept, fence=fence, because=f"record {len(kept)} earlier calls")
        for name in names:
            self._files.delete(name)
        return len(kept)
