"""What a reader keeps of tables it has read, to go on from there: bounded, forgotten least recently used first."""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from lakewarden.catalog.formats.delta.replay import Replayed, oldest_read
from lakewarden.catalog.formats.delta.segment import Segment
from lakewarden.catalog.storage.file_store import FileEntry

__all__ = ["Remembered", "VersionCache", "remember"]

DEFAULT_BYTES: Final = 64 * 1024 * 1024
_OVERHEAD: Final = 16 * 1024
"""What a small table costs besides its columns: schema text, properties, objects."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Remembered:
    """A replayed version and the log file that was its last: if that changed, it is another log."""

    replayed: Replayed
    last: FileEntry | None
    first_commit: int | None

    def leads_to(self, segment: Segment) -> bool:
        """Whether replaying only the later commits gives what replaying everything would.

        Not if the log was replaced or cleaned since, nor if a newer checkpoint has forgotten removed files that we
        remember and no commit tells of any more.
        """
        if segment.head < self.replayed.version or self.last is None:
            return False
        commits = {**dict(segment.older), **dict(segment.commits)}
        if commits.get(self.replayed.version) != self.last or min(commits, default=None) != self.first_commit:
            return False
        base = segment.checkpoint.version if segment.checkpoint else None
        return base == self.replayed.base or self.replayed.looked_back_to == oldest_read(segment) == 0


def remember(replayed: Replayed, segment: Segment) -> Remembered:
    """What to keep of a version that was just replayed."""
    commits = {**dict(segment.older), **dict(segment.commits)}
    return Remembered(
        replayed=replayed, last=commits.get(replayed.version), first_commit=min(commits, default=None)
    )


class VersionCache:
    """Remembered versions by location. Thread-safe."""

    def __init__(self, limit_bytes: int = DEFAULT_BYTES) -> None:
        self._limit, self._used = limit_bytes, 0
        self._tables: OrderedDict[str, Remembered] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, location: str, version: int) -> Remembered | None:
        """What is kept of this version of a table; None if it is another version or nothing."""
        with self._lock:
            kept = self._tables.get(location)
            if kept is None or kept.replayed.version != version:
                return None
            self._tables.move_to_end(location)
            return kept

    def put(self, location: str, kept: Remembered) -> None:
        """Keep a version instead of the table's last one; the longest unused tables make room."""
        with self._lock:
            self._drop(location)
            if _cost(kept) > self._limit:
                return
            self._tables[location] = kept
            self._used += _cost(kept)
            while self._used > self._limit:
                self._drop(next(iter(self._tables)))

    def forget(self, location: str) -> None:
        """Keep nothing of a table."""
        with self._lock:
            self._drop(location)

    def _drop(self, location: str) -> None:
        kept = self._tables.pop(location, None)
        if kept is not None:
            self._used -= _cost(kept)


def _cost(kept: Remembered) -> int:
    return kept.replayed.files.nbytes + _OVERHEAD
