"""Metadata files that head's metadata does not remember any more: each was head once. Whoever goes back to a version of
then finds the table's properties there; nothing else reads them since.

They are found along the table's own line: the oldest file that head remembers tells those before it, and so on. What
does not stand in that line stays: commits that failed, and whatever another table in the folder has. So the line tells,
too, which files are the table's at all.
"""

from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from itertools import takewhile
from typing import Final

from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.formats.files_elsewhere import folder_elsewhere
from lakewarden.catalog.formats.folder_files import OwnFiles
from lakewarden.catalog.formats.iceberg.contents import TableContents
from lakewarden.catalog.formats.iceberg.errors import BrokenMetadataError
from lakewarden.catalog.formats.iceberg.metadata import TableMetadata, TableSnapshot, parse_metadata
from lakewarden.catalog.formats.iceberg.pointer import FOLDER, HINT, number_of
from lakewarden.catalog.formats.iceberg.released import EXPIRING, Expired, Unfinished, named_by_all
from lakewarden.catalog.storage.file_store import FileEntry

__all__ = ["Shown", "first_shown", "forgotten", "interrupted", "last_shown", "own_files", "why_forgotten"]

_OWN: Final = f"{FOLDER}/"
_FORGETFUL: Final = "write.metadata.delete-after-commit.enabled"

Shown = Callable[[TableMetadata, TableContents, TableSnapshot | None], TableMetadata | None]
"""Finds metadata in which a snapshot (None: that of an empty table) was main, by head's; None where there is none any
more."""


def forgotten(
    metadata: TableMetadata,
    head: str,
    contents: TableContents,
    listed: Collection[FileEntry],
    before: datetime,
    *,
    first: int | None = None,
) -> tuple[FileEntry, ...]:
    """Those that were no head any more at a moment, oldest first: whoever deletes them in this order and is killed
    leaves a line that leads to the others. `head` is the path of head's own file, `listed` what the folder has.
    `first`: engines look for head from the file of this number on, and end where a number is missing."""
    entries = {one.path: one for one in listed}
    kept = {
        head,
        *map(contents.paths.path, metadata.log),
        *_expiring(metadata),
    }
    line, successor = list[tuple[FileEntry, bool]](), None
    for path in _line(metadata, contents):
        entry = entries.get(path)
        if entry is None:
            continue  # gone already
        left_at = entry.modified_at if successor is None else max(entry.modified_at, successor.modified_at)
        is_looked_for = first is not None and (number_of(path.rpartition("/")[2]) or 0) >= first
        line.append((entry, path not in kept and left_at < before and not is_looked_for))
        successor = entry
    return tuple(entry for entry, _ in takewhile(lambda one: one[1], reversed(line)))


def _line(metadata: TableMetadata, contents: TableContents) -> Iterator[str]:
    """The files before head's, newest first, as far as they can be read."""
    told, known = metadata, set[str]()
    while told.log:
        older = [path for path in map(contents.paths.path, reversed(told.log)) if path not in known]
        if not older:
            return
        yield from older
        known.update(older)
        try:
            told = parse_metadata(contents.read_own(older[-1], by="the table's metadata"), older[-1])
        except BrokenMetadataError:
            return
        if told.uuid != metadata.uuid:
            return


def interrupted(metadata: TableMetadata, contents: TableContents) -> Unfinished:
    """The snapshots whose files an expiry of ours has not all deleted, and those that were there after it and are not
    any more: whoever took them out, that expiry did not.

    Only where the expiry is the very next commit after the metadata that it was decided on: a catalog that does not
    compare may have put it on top of another commit, and then what else it took out (a tag that had just come) nobody
    decided on. What cannot be told so, and what cannot be read any more, a listing finds later.
    """
    ours, since = dict[int, Expired](), dict[int, Expired]()
    for path in _expiring(metadata):
        try:
            told = parse_metadata(contents.read_own(path, by=EXPIRING), path)
            after = _after(path, metadata, contents) if told.uuid == metadata.uuid else None
        except BrokenMetadataError:
            continue
        if after is not None and path in _expiring(after):
            ours |= _missing(told, contents, (metadata, after))
            since |= _missing(after, contents, (metadata,))
    later = tuple(one for key, one in since.items() if key not in ours)
    return Unfinished(expired=tuple(ours.values()), since=later)


def _missing(
    told: TableMetadata, contents: TableContents, later: Collection[TableMetadata]
) -> Iterator[tuple[int, Expired]]:
    """The snapshots of one metadata that none of the later ones has, by their ids."""
    theirs = contents.of(told)
    for snapshot in told.snapshots.values():
        if not any(snapshot.id in one.snapshots for one in later):
            yield snapshot.id, (snapshot, theirs)


def _expiring(metadata: TableMetadata | None) -> list[str]:
    return [] if metadata is None else metadata.properties.get(EXPIRING, "").splitlines()


def _after(path: str, metadata: TableMetadata, contents: TableContents) -> TableMetadata | None:
    """The metadata that was committed right after that of a file; None where the table's line does not tell."""
    later: str | None = None
    for one in _line(metadata, contents):
        if one == path:
            if later is None:
                return metadata
            told = parse_metadata(contents.read_own(later, by="the table's metadata"), later)
            return told if told.uuid == metadata.uuid else None
        later = one
    return None


def last_shown(
    metadata: TableMetadata, contents: TableContents, wanted: TableSnapshot | None
) -> TableMetadata | None:
    """The last metadata in which a snapshot was main. Raises `BrokenMetadataError` for a file that may be it."""
    return next((told for told in _over_time(metadata, contents) if _is_main(told, wanted)), None)


def first_shown(
    metadata: TableMetadata, contents: TableContents, wanted: TableSnapshot | None
) -> TableMetadata | None:
    """The first metadata in which a snapshot was main, whatever was main in between, if there is metadata from before
    the snapshot was made. Raises as `last_shown`."""
    first = None
    for told in _over_time(metadata, contents):
        if wanted is not None and wanted.id not in told.snapshots:
            return first  # it was not made yet
        if _is_main(told, wanted):
            first = told
    return None


def why_forgotten(metadata: TableMetadata) -> str:
    """What the table says of the metadata files that it does not remember, as the beginning of a hint."""
    if metadata.properties.get(_FORGETFUL, "false").lower() != "true":
        return ""
    return f"The table's property {_FORGETFUL} has each commit delete such files. "


def _is_main(told: TableMetadata, wanted: TableSnapshot | None) -> bool:
    return (told.current and told.current.id) == (wanted and wanted.id)


def _over_time(metadata: TableMetadata, contents: TableContents) -> Iterator[TableMetadata]:
    """Head's metadata, then that of all files before it."""
    yield metadata
    for path in _line(metadata, contents):
        told = parse_metadata(contents.read_own(path, by="the table's metadata"), path)
        if told.uuid != metadata.uuid:
            return
        yield told


def own_files(
    metadata: TableMetadata, head: str, contents: TableContents, listed: Collection[str]
) -> OwnFiles:
    """By head's metadata, which was read from `head`; `listed` are the metadata files in the folder. Raises
    `RefusedError` where one of them is another table's, or tells nobody whose it is, and where the table has files
    elsewhere; `BrokenMetadataError` where head's own manifests cannot be read."""
    older = [path for path in reversed(list(_line(metadata, contents))) if path in listed]
    told = {path: _metadata_at(path, contents) for path in listed if path != head}
    _refuse_others(metadata, told)
    found = named_by_all(metadata, contents, (told[path] for path in reversed(older)))
    elsewhere = sorted(path for path in found if folder_elsewhere(path) is not None)
    if elsewhere:
        raise RefusedError(
            f"Metadata of the table names {elsewhere[0]}, which is not in its folder.",
            hint="Rewrite such files (`rewrite_data_files`), or delete the table by its own engine.",
        )
    line = [*dict.fromkeys(older), HINT, head]
    inner = sorted(path for path in found if path.startswith(_OWN) and path not in line)
    return OwnFiles(data=frozenset(path for path in found if not path.startswith(_OWN)), log=(*inner, *line))


def _metadata_at(path: str, contents: TableContents) -> TableMetadata:
    try:
        return parse_metadata(contents.read_own(path, by="the folder"), path)
    except BrokenMetadataError as broken:
        raise RefusedError(
            f"Nobody can tell whose metadata {path} is: {broken}",
            hint="If no table needs it, move it away.",
        ) from broken


def _refuse_others(metadata: TableMetadata, told: dict[str, TableMetadata]) -> None:
    other = next((path for path, one in sorted(told.items()) if one.uuid != metadata.uuid), None)
    if other is not None:
        raise RefusedError(
            f"{other} is the metadata of another table ({told[other].uuid}), which shares the folder.",
            hint="Nothing of a folder that two tables share is deleted: move that table, or delete by its own engine.",
        )
