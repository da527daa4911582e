"""Tables whose files lie in other tables' folders:
shallow clones, and whoever else names files by absolute paths. Pure.

What the source's vacuum must not take away is told by the clone's log, if lakewarden knows the clone: its row remembers
where its files lie.
"""

from collections.abc import Callable, Iterable, Mapping
from os.path import commonpath
from urllib.parse import urlsplit

from lakewarden.catalog.model.rows import RowKind, Source, TableRow, TableState
from lakewarden.catalog.storage.file_store import canonical, is_inside

__all__ = [
    "READS_ELSEWHERE",
    "Look",
    "common_folders",
    "folder_elsewhere",
    "is_reach_known",
    "may_be_one",
    "reads_from",
    "surely_reads_from",
    "with_reach",
]

_ONE_NAME = frozenset({"file", "s3", "gs", "abfs", "az"})
"""Storages where another authority is another place."""
Look = Callable[[TableRow, int | None], TableRow | None]
"""Looks at a table of which the last sweep saw this version (None: none so far): its row, with where its files lie now,
or None if it has not moved."""
READS_ELSEWHERE = "files.elsewhere"
"""Row property: folders outside the table's own that hold files of it, one per storage, one per line. Empty:
it was looked at, and nothing was found (or nothing could be read);
a row without it comes from a lakewarden that did not look."""


def common_folders(folders: Iterable[str]) -> tuple[str, ...]:
    """The innermost folder that holds them all, per storage (scheme and authority), sorted. Absolute paths or URIs."""
    by_storage: dict[str, str] = {}
    for folder in folders:
        scheme, separator, rest = folder.partition("://")
        authority, _, path = rest.partition("/")
        storage, place = (f"{scheme}://{authority}", f"/{path}") if separator else ("", folder)
        known = by_storage.get(storage)
        by_storage[storage] = place if known is None else commonpath((known, place))
    return tuple(sorted(f"{storage}{place}" for storage, place in by_storage.items()))


def folder_elsewhere(path: str) -> str | None:
    """The folder of a file that a log names by an absolute path or a URI (decoded); None for a relative one."""
    if not path.startswith("/") and "://" not in path:
        return None
    return path.rpartition("/")[0] or "/"


def reads_from(row: TableRow, location: str) -> bool:
    """Whether some of the table's files may lie in the folder at a canonical location. On storages of which
    two names may mean one (HDFS), only the path counts."""
    places = row.properties.get(READS_ELSEWHERE, "").splitlines()
    return any(_overlap(place, location) for place in places)


def surely_reads_from(row: TableRow, location: str) -> bool:
    """Whether files of the table lie in this folder and in no other of that storage, so that it is a clone of the table
    there. False also where that cannot be told without its log."""
    places = row.properties.get(READS_ELSEWHERE, "").splitlines()
    pairs = (_comparable(place, location) for place in places)
    return any(place == here or is_inside(place, here) for place, here in pairs)


def is_reach_known(row: TableRow) -> bool:
    """Whether somebody has looked where the table's files lie. System tables lie where they are, and what waits for its
    conversion has no log yet."""
    exempt = row.source is Source.SELF or row.kind is not RowKind.TABLE or row.state is TableState.CONVERTING
    return exempt or READS_ELSEWHERE in row.properties


def with_reach(properties: Mapping[str, str], location: str, elsewhere: Iterable[str]) -> dict[str, str]:
    """A row's properties with the folders outside its own that hold files of it, as somebody has just looked."""
    places = (canonical(folder) for folder in elsewhere)
    outside = sorted({place for place in places if place != location and not is_inside(place, location)})
    return {**properties, READS_ELSEWHERE: "\n".join(outside)}


def may_be_one(one: str, other: str) -> bool:
    """Whether two canonical locations may be of one place, under two names of a storage (HDFS)."""
    one, other = _comparable(one, other)
    return one == other


def _overlap(one: str, other: str) -> bool:
    one, other = _comparable(one, other)
    return one == other or is_inside(one, other) or is_inside(other, one)


def _comparable(one: str, other: str) -> tuple[str, str]:
    if {one.partition("://")[0], other.partition("://")[0]}.isdisjoint(_ONE_NAME):
        one, other = (f"any:///{urlsplit(place).path.lstrip('/')}" for place in (one, other))
    return one, other
