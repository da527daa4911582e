"""Tables whose files lie in other tables' folders:
shallow clones, and whoever else names files by absolute paths, or by ways out of its folder.

What the source's vacuum must not take away is told by the clone's log, if lakewarden knows the clone: its row remembers
where its files lie.
"""

from collections.abc import Callable, Iterable, Mapping
from os.path import commonpath
from typing import Final

from lakewarden.catalog.model.rows import RowKind, Source, TableRow, TableState
from lakewarden.catalog.storage.file_store import canonical, is_inside, local_path, location_of
from lakewarden.catalog.storage.place import Moment

__all__ = [
    "LEADS_ELSEWHERE",
    "READS_ELSEWHERE",
    "Look",
    "common_folders",
    "folder_elsewhere",
    "folders_elsewhere",
    "is_reach_known",
    "reads_from",
    "surely_reads_from",
    "with_links",
    "with_reach",
]

LEADS_ELSEWHERE: Final = "files.linked"
"""Row property: folders that links or mounts in the table's folder lead to, one per line. They were looked for when the
table came under management, and by the daily checks."""
_MOST: Final = 8
"""Folders of one storage that are told apart: a table that reads from more tables than that reads from them all."""
Look = Callable[[TableRow, int | None, str | None], TableRow | None]
"""Looks at a table of which the last sweep saw this version and this state of head (None: none so far): its row, with
where its files lie now, or None if it has not moved."""
READS_ELSEWHERE = "files.elsewhere"
"""Row property: folders outside the table's own that hold files of it, as its log spells them, one per line. Empty:
it was looked at, and nothing was found (or nothing could be read);
a row without it comes from a lakewarden that did not look."""


def common_folders(folders: Iterable[str]) -> tuple[str, ...]:
    """The outermost folders that hold them all, without those of partitions, sorted: absolute paths, URIs, or ways out
    of a table's folder (`../src`). Where they are many, the one that holds all of a storage."""
    by_storage: dict[tuple[str, int], set[str]] = {}
    for folder in folders:
        scheme, separator, rest = folder.partition("://")
        authority, _, path = rest.partition("/")
        storage, place = (f"{scheme}://{authority}", f"/{path}") if separator else ("", folder)
        upwards = place.split("/").count("..")
        by_storage.setdefault((storage, upwards), set()).add(_without_partitions(place) or "/")
    return tuple(
        sorted(f"{storage}{place}" for (storage, _), all_ in by_storage.items() for place in _outermost(all_))
    )


def _without_partitions(folder: str) -> str:
    parts = folder.split("/")
    while len(parts) > 1 and "=" in parts[-1]:
        parts.pop()
    return "/".join(parts)


def _outermost(folders: set[str]) -> Iterable[str]:
    outer = {one for one in folders if not any(is_inside(one, other) for other in folders)}
    return outer if len(outer) <= _MOST else (commonpath(outer),)


def folder_elsewhere(path: str) -> str | None:
    """The folder of a file that a log names by an absolute path, a URI (decoded), or a way out of the table's folder;
    None for one inside."""
    if path.startswith("/") or "://" in path:
        return path.rpartition("/")[0].rstrip("/") or "/"
    folder = path.rpartition("/")[0].rstrip("/")
    return folder if ".." in folder.split("/") else None  # as spelled: what is before it may be a link


def reads_from(row: TableRow, location: str, now: Moment) -> bool:
    """Whether some of the table's files may lie in the folder at a location, as both are resolved `now`. On storages of
    which two names may mean one (HDFS), only the path counts."""
    here = now.place(location)
    return any(now.place(one).overlaps(here) for one in folders_elsewhere(row))


def surely_reads_from(row: TableRow, location: str, now: Moment) -> bool:
    """Whether files of the table surely lie in this folder and in no other of that storage: then it is a clone of the
    table there. False also where that cannot be told without its log."""
    here = now.place(location)
    return any(now.place(one).is_within(here) for one in folders_elsewhere(row))


def folders_elsewhere(row: TableRow) -> list[str]:
    """The folders outside a table's own that may hold files of it."""
    named = (row.properties.get(name, "") for name in (READS_ELSEWHERE, LEADS_ELSEWHERE))
    return [folder for one in named for folder in one.splitlines()]


def is_reach_known(row: TableRow) -> bool:
    """Whether somebody has looked where the table's files lie. System tables lie where they are, and what waits for its
    conversion has no log yet."""
    exempt = row.source is Source.SELF or row.kind is not RowKind.TABLE or row.state is TableState.CONVERTING
    return exempt or READS_ELSEWHERE in row.properties


def with_reach(properties: Mapping[str, str], location: str, elsewhere: Iterable[str]) -> dict[str, str]:
    """A row's properties with the folders outside its own that hold files of it, as somebody has just looked. They are
    kept as the log spells them: where that leads is asked when it matters."""
    places = (_as_spelled(location, folder) for folder in elsewhere)
    outside = sorted(
        {one for one in places if one != location and ("/../" in f"{one}/" or not is_inside(one, location))}
    )
    return {**properties, READS_ELSEWHERE: "\n".join(outside)}


def with_links(properties: Mapping[str, str], linked: Iterable[str]) -> dict[str, str]:
    """A row's properties with the folders that its own leads to, as somebody has just looked."""
    rest = {key: value for key, value in properties.items() if key != LEADS_ELSEWHERE}
    lines = "\n".join(sorted(linked))
    return {**rest, LEADS_ELSEWHERE: lines} if lines else rest


def _as_spelled(location: str, folder: str) -> str:
    own = local_path(location)
    if folder.startswith("/"):
        return location_of(folder)
    if "://" in folder:
        return canonical(folder)
    return canonical(f"{location}/{folder}") if own is None else location_of(f"{own}/{folder}")
