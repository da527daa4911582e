"""Which files only snapshots need that may expire, and which snapshots those are.

A file that no branch and no tag needs is a tombstone: left behind when the last of the snapshots that have it was, on
whichever branches those were, or on none. That need not be the newest of them: main may have come late to a branch that
was written long ago. Manifests and lists of them are such files as well.
"""

import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from lakewarden.catalog.bounds import as_whole
from lakewarden.catalog.formats.iceberg.contents import TableContents
from lakewarden.catalog.formats.iceberg.errors import MISSING, BrokenMetadataError
from lakewarden.catalog.formats.iceberg.manifests import ManifestFile
from lakewarden.catalog.formats.iceberg.metadata import SnapshotRef, TableMetadata, TableSnapshot
from lakewarden.catalog.formats.port import Tombstone
from lakewarden.catalog.policy.retention_properties import Duration
from lakewarden.catalog.units import DAY

__all__ = [
    "EXPIRING",
    "SNAPSHOT_AGE",
    "UNDO_TAGS",
    "Expired",
    "Unfinished",
    "WrittenAt",
    "expiring",
    "held",
    "named_by_all",
    "seconds_kept",
    "side_files",
    "tombstones_of",
]

EXPIRING: Final = "lakewarden.expiring"
"""The table property that names, one a line, the metadata files from which snapshots expired whose files are still
being deleted; relative to the table's folder."""
UNDO_TAGS: Final = "lakewarden-undo-"
"""What the names of our tags begin with: on what head was before a rollback, so that nobody's expiry takes away what an
undo needs. Each has an end."""
_AGE: Final = "history.expire.max-snapshot-age-ms"
SNAPSHOT_AGE: Final = Duration(name=_AGE, unset=5 * DAY, in_milliseconds=True, unset_binds=False)
"""The table's own engine takes 5 days for it where it is not set; we go by the policy then."""
_LEAST: Final = "history.expire.min-snapshots-to-keep"

Expired = tuple[TableSnapshot, TableContents]
"""A snapshot that the table has no more, and the way to its files."""
WrittenAt = Callable[[TableSnapshot], datetime | None]
"""When a snapshot was written by the clock of its storage; None: not asked, or it cannot be told."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unfinished:
    """Expiries of ours whose files are not all deleted."""

    expired: Sequence[Expired]
    """What they took out."""
    since: Sequence[Expired]
    """What the table had after them and has no more. Nobody decided that its files may go with theirs."""


def held(metadata: TableMetadata, now: datetime) -> Mapping[int, TableSnapshot]:
    """The snapshots that stay however old they are: those that branches and tags point to, but for tags of ours that
    have come to their end; of a branch as many as the table's owner wants at least, and all of one for which an age is
    set."""
    least = _least(metadata.properties)
    heads = [] if metadata.current is None else [(metadata.current, least)]
    for name, ref in metadata.refs.items():
        snapshot = metadata.snapshots.get(ref.snapshot_id)
        if snapshot is not None and not _is_over(name, ref, snapshot, now):
            count = sys.maxsize if ref.keeps_age else ref.least or least
            heads.append((snapshot, count if ref.is_branch else 1))
    return {one.id: one for head, count in heads for one in islice(metadata.line(head), max(count, 1))}


def _is_over(name: str, ref: SnapshotRef, snapshot: TableSnapshot, now: datetime) -> bool:
    is_ours = name.startswith(UNDO_TAGS) and not ref.is_branch
    return is_ours and ref.lasts is not None and now - snapshot.at > timedelta(milliseconds=ref.lasts)


def _least(properties: Mapping[str, str]) -> int:
    """How many snapshots of a branch stay at least; all of them where the property makes no sense."""
    told = properties.get(_LEAST)
    number = 1 if told is None else as_whole(told.strip().removeprefix("+"))
    return sys.maxsize if number is None else number


def expiring(
    metadata: TableMetadata, before: int, left_before: datetime, written: WrittenAt, now: datetime
) -> tuple[TableSnapshot, ...]:
    """The snapshots before a version that nothing holds and everybody had left at a moment, oldest first."""
    stay, left = held(metadata, now), _left_at(metadata, written)
    return tuple(
        one
        for one in metadata.in_order()
        if one.sequence < before and one.id not in stay and left[one.id] <= left_before
    )


def side_files(metadata: TableMetadata, contents: TableContents, now: datetime) -> Iterator[str]:
    """Every file that a held snapshot has or that tells of its files, head's own among them."""
    return _named_by(held(metadata, now).values(), contents)


def seconds_kept(properties: Mapping[str, str]) -> float | None:
    """For how long a table's owner wants snapshots to stay: no time where the property is not set, None where it is no
    number."""
    told = properties.get(_AGE)
    if told is None:
        return 0.0
    milliseconds = as_whole(told)
    return None if milliseconds is None else milliseconds / 1000


def named_by_all(
    head: TableMetadata, contents: TableContents, others: Iterable[TableMetadata]
) -> AbstractSet[str]:
    """Every file that a snapshot of head's metadata has, or that tells of its files or of the table, as `DataFile.path`
    has it, and those that other metadata in its folder names. Of head nothing may be missing; of snapshots that have
    expired since, what is not there any more names nothing."""
    # Metadata files repeat nearly all that those before them name: what was walked is not read again, as long as
    # paths mean the same files.
    walked = defaultdict[str, set[str]](set)
    found = set(_named_files(head, contents, walked[head.location]))
    for told in others:
        found.update(_named_files(told, contents.of(told), walked[told.location], lenient=True))
    return found


def _named_files(
    metadata: TableMetadata, contents: TableContents, walked: set[str], *, lenient: bool = False
) -> Iterator[str]:
    """What one metadata file names but for what was `walked`, lists and manifests by their paths; what is walked now is
    added."""
    yield from map(contents.paths.path, metadata.statistics)
    yield from _named_by(metadata.snapshots.values(), contents, lenient=lenient, walked=walked)


def _named_by(
    snapshots: Iterable[TableSnapshot],
    contents: TableContents,
    *,
    lenient: bool = False,
    walked: set[str] | None = None,
) -> Iterator[str]:
    """The lists, manifests and files of these snapshots."""
    known = set[str]() if walked is None else walked
    manifests: dict[str, ManifestFile] = {}
    for snapshot in snapshots:
        lists = set(_lists((snapshot,), contents))
        if lists and lists <= known:
            continue
        known |= lists
        yield from lists
        with _lenient(lenient):
            manifests |= _manifests((snapshot,), contents)
    for path, manifest in manifests.items():
        if path in known:
            continue
        known.add(path)
        yield path
        with _lenient(lenient):
            yield from (file for file, _ in _files(manifest, contents))


@contextmanager
def _lenient(lenient: bool) -> Iterator[None]:
    try:
        yield
    except BrokenMetadataError as broken:
        if not lenient or broken.check != MISSING:
            raise


def tombstones_of(
    metadata: TableMetadata,
    contents: TableContents,
    live: Collection[str],
    now: datetime,
    unfinished: Unfinished | None = None,
    written: WrittenAt = lambda _: None,
) -> tuple[Tombstone, ...]:
    """The files that no held snapshot has (`live` are `side_files`). Of expiries that are `unfinished`, those that are
    not deleted yet: what cannot be read of them any more was."""
    stay, left = held(metadata, now), _left_at(metadata, written)
    found = {} if unfinished is None else _left_over(unfinished)
    loose = [one for one in metadata.snapshots.values() if one.id not in stay]
    moments = [
        (one, _Left(version=one.sequence + 1 if one.sequence else None, at=left[one.id])) for one in loose
    ]
    found |= _stones(moments, contents)
    return tuple(one for path, one in found.items() if path not in live)


def _left_over(unfinished: Unfinished) -> dict[str, Tombstone]:
    """What expiries have left of the files that they released, by path; none of them where nobody can tell what else
    was needed then."""
    try:
        needed = {path for one, theirs in unfinished.since for path in _named_by((one,), theirs)}
    except BrokenMetadataError:
        return {}
    found: dict[str, Tombstone] = {}
    for snapshot, theirs in unfinished.expired:
        with suppress(BrokenMetadataError):
            found |= _stones([(snapshot, _Left(version=None, at=snapshot.at))], theirs, lenient=True)
    return {path: one for path, one in found.items() if path not in needed}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Left:
    """When something was left behind."""

    version: int | None
    """The one that did not have it any more; None if no version that is left does tell."""
    at: datetime

    def later(self, other: "_Left") -> "_Left":
        """The moment when both were left."""
        numbers = [one for one in (self.version, other.version) if one is not None]
        return _Left(version=max(numbers, default=None), at=max(self.at, other.at))


def _stones(
    moments: Sequence[tuple[TableSnapshot, _Left]], contents: TableContents, *, lenient: bool = False
) -> dict[str, Tombstone]:
    """What snapshots have, by path; `moments` says when each was left behind. `lenient`: manifests may be missing."""
    left: dict[str, _Left] = {}
    sizes: dict[str, int | None] = {}
    manifests: dict[ManifestFile, _Left] = {}
    files = set[str]()

    def add(path: str, size: int | None, moment: _Left) -> None:
        left[path] = moment.later(left.get(path, moment))
        sizes[path] = size

    for snapshot, moment in moments:
        for manifest in _manifests((snapshot,), contents).values():
            manifests[manifest] = moment.later(manifests.get(manifest, moment))
    for manifest, moment in manifests.items():
        with suppress(*([BrokenMetadataError] if lenient else [])):
            for path, size in _files(manifest, contents):
                add(path, size, moment)
                files.add(path)
        add(contents.paths.path(manifest.path), manifest.size_bytes, moment)
    for snapshot, moment in moments:
        for path in _lists((snapshot,), contents):
            add(path, None, moment)
    return {
        path: Tombstone(
            path=path,
            removed_at=moment.at,
            removed_in=moment.version,
            size_bytes=sizes[path],
            is_metadata=path not in files,
        )
        for path, moment in left.items()
    }


def _manifests(snapshots: Iterable[TableSnapshot], contents: TableContents) -> dict[str, ManifestFile]:
    """By path."""
    return {
        contents.paths.path(one.path): one for snapshot in snapshots for one in contents.manifests(snapshot)
    }


def _lists(snapshots: Iterable[TableSnapshot], contents: TableContents) -> Iterator[str]:
    for one in snapshots:
        if one.manifest_list is not None:
            yield contents.paths.path(one.manifest_list)


def _files(manifest: ManifestFile, contents: TableContents) -> Iterator[tuple[str, int]]:
    """Paths and sizes of the files that are live where this manifest is."""
    return ((contents.paths.path(one.path), one.size_bytes) for one in contents.held_by(manifest))


def _left_at(metadata: TableMetadata, written: WrittenAt) -> Mapping[int, datetime]:
    """When each snapshot was left behind at last: by one made from it, or by main. A writer's clock may be slow, so the
    storage's counts where it is later."""
    made = {one.id: max(one.at, written(one) or one.at) for one in metadata.snapshots.values()}
    found = {key: max(at, metadata.left_at.get(key, at)) for key, at in made.items()}
    for one in metadata.snapshots.values():
        if one.parent_id in found:
            found[one.parent_id] = max(found[one.parent_id], made[one.id])
    return found
