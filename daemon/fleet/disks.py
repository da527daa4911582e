"""Which disks do not answer? Each mount point is asked in a thread of its own: one that hangs keeps nobody else.

A dead network mount answers no question about anything on it, and interrupts nobody who asks: whoever looks at a table
there waits for as long as the mount is dead.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from threading import Thread
from time import monotonic
from typing import Final

from lakewarden.catalog.storage.file_store import is_inside, local_path
from lakewarden.catalog.storage.place import ask_mount, mount_points

__all__ = ["Disks"]

_PATIENCE_SECONDS: Final = 5.0
"""So long all of them together may take to answer that did not hang before."""


class Disks:
    """The mount points that hang, as far as they have been asked. One that was asked in vain is not asked again before
    it answers."""

    def __init__(
        self,
        *,
        patience: float = _PATIENCE_SECONDS,
        ask: Callable[[str], None] = ask_mount,
        points: Callable[[], Sequence[str]] = mount_points,
    ) -> None:
        self._patience, self._ask, self._told = patience, ask, points
        self._asked: dict[str, Thread] = {}
        self._points: Sequence[str] = ()
        self._found: dict[str, str | None] = {}

    def ask(self, locations: Iterable[str]) -> frozenset[str]:
        """Ask the mount points on which these locations are. Returns those that hang."""
        points = self._told()
        if points != self._points:
            self._points, self._found = points, {}
        wanted = {point for one in locations if (point := self._point_of(one)) is not None}
        self._asked = {point: thread for point, thread in self._asked.items() if thread.is_alive()}
        hanging = frozenset(self._asked)
        for point in wanted - hanging:
            self._asked[point] = Thread(target=self._ask, args=(point,), name="disks", daemon=True)
            self._asked[point].start()
        until = monotonic() + self._patience
        for point in wanted - hanging:
            self._asked[point].join(max(until - monotonic(), 0))
        return self.hanging()

    def hanging(self) -> frozenset[str]:
        """The mount points that have not answered."""
        return frozenset(point for point, thread in self._asked.items() if thread.is_alive())

    def holds(self, location: str, points: Collection[str]) -> bool:
        """Whether a location is on one of these mount points."""
        return bool(points) and self._point_of(location) in points

    def held(self, locations: Collection[str]) -> str | None:
        """The first of these locations that is on a mount point which hangs: they are asked now."""
        hanging = self.ask(locations)
        return next((one for one in locations if self.holds(one, hanging)), None)

    def _point_of(self, location: str) -> str | None:
        if location not in self._found:
            path = local_path(location)
            around = (one for one in self._points if path and (str(path) == one or is_inside(str(path), one)))
            self._found[location] = next(around, None)
        return self._found[location]
