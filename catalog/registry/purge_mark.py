"""The mark in the folder of a table whose deletion has begun: whose it is, and how far it came."""

import json
from dataclasses import dataclass

from lakewarden.catalog.model.pending_purge import MARKER
from lakewarden.catalog.storage.file_store import FileStore

__all__ = ["Begun"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Begun:
    """The mark in a folder: the table under deletion, the signature of its log at that time, and whether only the log
    is left to delete."""

    table_id: str
    log: frozenset[str]
    data_deleted: bool = False
    started: bool = False
    """Whether the first file may have gone."""
    unknown: frozenset[str] = frozenset()
    """The signatures of the unknown files that somebody agreed to delete."""

    @classmethod
    def at(cls, store: FileStore, table_id: str) -> "Begun | None":
        """The mark of this table's deletion; None if there is none, or only that of another one."""
        begun = cls._told(store) if store.exists(MARKER) else None
        return begun if begun is not None and begun.table_id == table_id else None

    @classmethod
    def may_be_at(cls, store: FileStore, table_id: str) -> bool:
        """Whether this table's deletion may have begun: there is a mark, and it does not name another table."""
        if not store.exists(MARKER):
            return False
        begun = cls._told(store)
        return begun is None or begun.table_id == table_id

    @classmethod
    def _told(cls, store: FileStore) -> "Begun | None":
        try:
            told = json.loads(store.read(MARKER))
            return cls(
                table_id=told["table_id"],
                log=frozenset(told["log"]),
                data_deleted=told.get("data_deleted") is True,
                started=told.get("started") is not False,
                unknown=frozenset(told.get("unknown", ())),
            )
        except (ValueError, KeyError, TypeError, AttributeError, FileNotFoundError):
            return None

    def put(self, store: FileStore) -> None:
        """Put the mark up."""
        told = {
            "table_id": self.table_id,
            "log": sorted(self.log),
            "data_deleted": self.data_deleted,
            "started": self.started,
            "unknown": sorted(self.unknown),
        }
        store.write(MARKER, json.dumps(told).encode())
