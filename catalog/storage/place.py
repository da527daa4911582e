"""Where something is, asked at this moment: the one way to compare two places, or to ask whether something is there.

Nothing is concluded from where a link or a mount led when a row was written, nor from a storage that does not answer.
"""

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from errno import ELOOP, ENOENT, ENOTDIR
from pathlib import Path
from re import compile as pattern
from typing import Final

from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.storage.credentials import StorageOptions
from lakewarden.catalog.storage.file_store import (
    is_inside,
    local_path,
    location_of,
    open_store,
)
from lakewarden.catalog.storage.same_storage import may_be_in, may_be_same, one_name
from lakewarden.catalog.storage.troubles import trouble_at

__all__ = ["Moment", "Place", "Presence", "ask_mount", "is_local_folder", "mount_points"]

_MOUNTS: Final = Path("/proc/self/mountinfo")
_ESCAPED: Final = pattern(r"\\([0-7]{3})")


class Presence(StrEnum):
    """Whether something is there. UNKNOWN permits nothing that GONE does."""

    THERE = "there"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A location as it was resolved at one moment."""

    location: str
    spelling: str
    """What all names of a folder have in common, for comparing: links are followed, of several mounts of it the
    outermost one counts, and of an Azure account's hosts none does."""

    def is_same(self, other: "Place") -> bool:
        """Whether two locations may be one place: on storages of which two names may mean one, only the path counts."""
        return may_be_same(self.spelling, other.spelling)

    def is_within(self, other: "Place") -> bool:
        """Whether this is the other place, or may lie in it."""
        return may_be_in(self.spelling, other.spelling)

    def overlaps(self, other: "Place") -> bool:
        """Whether one of the two may hold the other."""
        return self.is_within(other) or other.is_within(self)

    def presence(self, options: StorageOptions, is_there: Callable[[str], bool]) -> Presence:
        """Whether the place is there (by `is_there` of a location), surely gone, or out of sight.

        It is gone if it is absent while the folder around it answers and holds something else, or if there is something
        else in its place. An empty folder says nothing, nor does one that is absent from an empty or absent one: the
        place where a disk is mounted is empty while it is away.
        """
        try:
            if is_there(self.location):
                return Presence.THERE
            return Presence.GONE if _is_told_by_others(self.location, options) else Presence.UNKNOWN
        except (UnavailableError, OSError):
            return Presence.UNKNOWN


def is_local_folder(location: str) -> bool:
    """Whether there surely is a folder on a disk; of a storage elsewhere nobody is asked."""
    folder = local_path(location)
    return folder is not None and folder.is_dir()


def _is_told_by_others(location: str, options: StorageOptions) -> bool:
    parent, _, name = location.rstrip("/").rpartition("/")
    if not name or parent.endswith((":/", "://")):
        return False
    store = open_store(location, options)
    seen = store if store.exists("") else open_store(parent, options)
    return any(True for _ in seen.list(""))


class Moment:
    """What is asked at one moment: mounts are read once, each folder is looked at once. Make a new one for the next.

    `strict`: raise `UnavailableError` for a folder of which it cannot be told where it leads; without that, it counts
    as it is spelled. So does what lies below one of `unanswered`, which is not asked: the mount points that hang.
    """

    def __init__(self, *, strict: bool = False, unanswered: Collection[str] = ()) -> None:
        self._strict, self._unanswered = strict, tuple(unanswered)
        self._real: dict[str, str] = {"": ""}
        names = _other_names()
        self._points = tuple(names)
        self._named: dict[str, str] = {"": "", **names}
        self._spelled: dict[str, str] = {}

    def place(self, location: str) -> Place:
        """A canonical location, or one that a log names, as it is resolved now."""
        return Place(location=location, spelling=self.spelling(location))

    def spelling(self, location: str) -> str:
        """`Place.spelling` of a location."""
        known = self._spelled.get(location)
        if known is None:
            path = local_path(location)
            known = one_name(location) if path is None else location_of(self.path(str(path)))
            self._spelled[location] = known
        return known

    def leads_to(self, location: str, *, but: Collection[str]) -> tuple[str, ...]:
        """The targets outside of a local folder that links and mounts in it lead to, as `Place.spelling`; folders
        called like one of `but` are not entered."""
        path = local_path(location)
        if path is None:
            return ()
        root, real = self.spelling(location), self._resolved(str(path))
        mounted = (point for point in self._points if point.startswith(f"{real}/"))
        found = {self.spelling(location_of(one)) for one in (*_links(real, but), *mounted)}
        return tuple(sorted(one for one in found if one != root and not is_inside(one, root)))

    def file(self, path: str) -> str:
        """The same of a file; only its folder is remembered."""
        folder, _, name = path.rpartition("/")
        place = f"{self.path(folder or '/').rstrip('/')}/{name}"
        return self.path(place) if os.path.islink(place) else place

    def path(self, path: str) -> str:
        """The one absolute path of a local file or folder, whichever of its names this is."""
        return self._one_name(self._resolved(path.rstrip("/"))) or "/"

    def _one_name(self, real: str) -> str:
        known = self._named.get(real)
        if known is None:
            parent, _, name = real.rpartition("/")
            known = self._named[real] = f"{self._one_name(parent)}/{name}"
        return known

    def _resolved(self, path: str) -> str:
        known = self._real.get(path)
        if known is None and any(path == one or is_inside(path, one) for one in self._unanswered):
            known = self._real[path] = path
        if known is None:
            parent, _, name = path.rpartition("/")
            joined = f"{self._resolved(parent)}/{name}"
            if self._strict:
                _require_answer(joined)
            odd = name in ("", ".", "..") or os.path.islink(joined)
            known = self._real[path] = os.path.realpath(joined).rstrip("/") if odd else joined
        return known


def _links(folder: str, but: Collection[str]) -> Iterator[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink():
                yield entry.path
            elif entry.name not in but and entry.is_dir():
                yield from _links(entry.path, but)


def _require_answer(path: str) -> None:
    """Raise `UnavailableError` unless it can be told where a path leads; a link that goes in a circle leads nowhere."""
    try:
        os.stat(path)
    except OSError as error:
        if error.errno not in (ENOENT, ENOTDIR, ELOOP):
            raise trouble_at(location_of(path), error) from error


def _other_names() -> dict[str, str]:
    """Mount points that show what another mount shows as well, each with the path there. Of several the one counts that
    shows most. Nothing where the system does not tell."""
    seen: dict[str, list[tuple[str, str]]] = {}
    for device, root, point in _mounts():
        seen.setdefault(device, []).append((root, point))
    names: dict[str, str] = {}
    for mounts in seen.values():
        for root, point in mounts if len(mounts) > 1 else ():
            around = [one for one in mounts if one[0] == root or is_inside(root, one[0])]
            widest, there = min(around, key=lambda one: (len(one[0]), len(one[1]), one[1]))
            names[point.rstrip("/")] = f"{there.rstrip('/')}/{root.removeprefix(widest).strip('/')}".rstrip(
                "/"
            )
    return names


def mount_points() -> tuple[str, ...]:
    """Where something is mounted, but for the root; the innermost first. Asks the system, and none of them."""
    points = {point.rstrip("/") for _, _, point in _mounts()} - {""}
    return tuple(sorted(points, key=len, reverse=True))


def ask_mount(point: str) -> None:
    """Return once what is mounted there answers, whatever it says: a dead network mount never does."""
    with suppress(OSError):
        os.stat(point)


def _mounts() -> Iterator[tuple[str, str, str]]:
    """Device, folder of it, and where that is mounted."""
    with suppress(OSError):
        for line in _MOUNTS.read_text("utf-8", "surrogateescape").splitlines():
            device, root, point = line.split(" ", 5)[2:5]
            yield device, _plain(root), _plain(point)


def _plain(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(int(found[1], 8)), text)
