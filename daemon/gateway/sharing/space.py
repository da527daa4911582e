"""What all results together take: memory, beyond which they lie in files, and files, of which each user has a share."""

import threading
from collections import Counter
from typing import Final

from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.units import format_bytes
from lakewarden.daemon.gateway.sharing.shares import part_of

__all__ = ["Account", "Space"]

_ALL: Final = 100


class Space:
    """So many bytes of `memory` and on `disk` there are, at most `percent` of the latter for one user. Thread-safe."""

    def __init__(self, *, memory: int, disk: int, percent: int = _ALL) -> None:
        self._memory, self._disk, self._each = memory, disk, part_of(disk, percent)
        self._in_memory = 0
        self._on_disk = Counter[str]()
        self._lock = threading.Lock()

    def account(self, user: str) -> "Account":
        """The account of one result."""
        return Account(self, user)

    def keep(self, size: int) -> bool:
        """Whether so much more may lie in memory; if so, it does."""
        with self._lock:
            fits = self._in_memory + size <= self._memory
            self._in_memory += size if fits else 0
            return fits

    def store(self, user: str, size: int) -> None:
        """So much more lies on disk. Raises `UnavailableError` if it may not."""
        with self._lock:
            whole = self._on_disk.total() + size > self._disk
            if whole or self._on_disk[user] + size > self._each:
                raise UnavailableError(
                    f"Results already take {format_bytes(self._on_disk.total())} on the gateway's disk, "
                    f"{user}'s {format_bytes(self._on_disk[user])} of it: there is no room for more.",
                    hint="Close cursors that are not needed any more; gateway.results_bytes is the limit, "
                    "of which gateway.share is one user's.",
                )
            self._on_disk[user] += size

    def free(self, user: str, *, memory: int, disk: int) -> None:
        """So much is gone."""
        with self._lock:
            self._in_memory -= memory
            self._on_disk[user] -= disk
            self._on_disk = +self._on_disk


class Account:
    """The space of one result."""

    def __init__(self, space: Space, user: str) -> None:
        self._space, self._user = space, user
        self._memory = self._disk = 0

    def keep(self, size: int) -> bool:
        """Whether so many more bytes of the result may lie in memory."""
        fits = self._space.keep(size)
        self._memory += size if fits else 0
        return fits

    def store(self, size: int) -> None:
        """So much more of it lies on disk, and nothing in memory. Raises as `Space.store`."""
        self._space.store(self._user, size)
        self._disk += size
        self._space.free(self._user, memory=self._memory, disk=0)
        self._memory = 0

    def close(self) -> None:
        """Nothing of it is left."""
        self._space.free(self._user, memory=self._memory, disk=self._disk)
        self._memory = self._disk = 0
