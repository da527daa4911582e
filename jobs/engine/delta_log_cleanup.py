"""Cleanup of a Delta log: which entries can go once every version from some version on has to stay readable.

Follows "Metadata Cleanup" of the Delta protocol, but by version instead of by age: what goes is everything before a
sound checkpoint that is not younger than the oldest version to keep.
https://github.com/delta-io/delta/blob/master/PROTOCOL.md#metadata-cleanup
"""

import json
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, Final
from urllib.parse import unquote

import orjson
import pyarrow.parquet as pq

from lakewarden.catalog.companions import companion_of
from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.delta.log import DeltaLog
from lakewarden.catalog.formats.delta.names import FOLDER, HINT, SIDECARS, Kind, LogName, parse_name
from lakewarden.catalog.formats.delta.segment import Checkpoint, Listing, listing_of
from lakewarden.catalog.storage import FileEntry, FileStore
from lakewarden.jobs.base import FileChange

__all__ = ["SIDECAR_REST", "clean_log", "entries_before"]

SIDECAR_REST: Final = timedelta(hours=24)
"""Sidecars younger than this may belong to a checkpoint that is being written (protocol, Metadata Cleanup)."""

_TABLE_ACTIONS: Final = ("protocol", "metaData", "sidecar")
_NEVER_NAMED: Final = 2**63 - 1
_COMMIT_LAST: Final = {Kind.COMMIT: 1}
"""Within a version its commit goes last: what is left never starts with a checkpoint whose own commit is gone."""


def clean_log(store: FileStore, *, keep_from: int, now: datetime) -> FileChange:
    """Delete the entries that no version from `keep_from` on needs; nothing without a sound checkpoint to start from.

    Oldest first. Killed anywhere, the newest checkpoint and every commit since stand, so the table stays readable.
    `version` of the answer: the first version that can be rebuilt, None if nothing was to be done.
    """
    listed = tuple(store.list(FOLDER))
    base = _base(store, listing_of(listed), keep_from)
    if base is None:
        return FileChange(version=None)
    old = entries_before(listed, base)
    companions = {entry.path for entry in listed}
    for entry in old:
        store.delete(entry.path)
        if companion_of(entry.path) in companions:
            store.delete(companion_of(entry.path))
        reach("log.entry_deleted")
    loose = _loose_sidecars(store, now)
    for entry in loose:
        store.delete(entry.path)
        reach("log.sidecar_deleted")
    gone = [*old, *loose]
    return FileChange(
        version=base if gone else None,
        files_removed=len(gone),
        bytes_removed=sum(entry.size_bytes for entry in gone),
    )


def entries_before(listed: Iterable[FileEntry], version: int) -> tuple[FileEntry, ...]:
    """The commits, checksums, checkpoints and compacted commits that speak of nothing from `version` on, in the order
    in which they can be deleted."""
    named = ((entry, parse_name(_name(entry))) for entry in listed if not entry.is_dir)
    old = [(entry, name) for entry, name in named if name is not None and _covers(entry, name) < version]
    old.sort(key=lambda one: (one[1].version, _COMMIT_LAST.get(one[1].kind, 0), one[0].path))
    return tuple(entry for entry, _ in old)


def _covers(entry: FileEntry, name: LogName) -> int:
    """The last version that an entry speaks of: `x.y.compacted.json` holds the commits from x to y."""
    return int(_name(entry).split(".")[1]) if name.kind is Kind.COMPACTED else name.version


def _base(store: FileStore, listing: Listing, keep_from: int) -> int | None:
    """The newest version up to `keep_from` that has its commit, every commit after it, and a sound checkpoint."""
    lower = _unbroken_from(listing)
    upper = min(keep_from, _hinted(store))
    log = DeltaLog(store)
    fit = (one for one in listing.checkpoints if lower <= one.version <= upper)
    return next((one.version for one in fit if _is_sound(log, one, listing)), None)


def _unbroken_from(listing: Listing) -> int:
    """The first version from which on no commit is missing."""
    version = max(listing.commits, default=_NEVER_NAMED)
    while version - 1 in listing.commits:
        version -= 1
    return version


def _hinted(store: FileStore) -> int:
    """Where `_last_checkpoint` sends readers: what it names, and everything later, has to stay."""
    try:
        return int(json.loads(store.read(HINT))["version"])
    except FileNotFoundError:
        return _NEVER_NAMED  # readers list the log from its beginning
    except (ValueError, KeyError, TypeError):
        return -1


def _is_sound(log: DeltaLog, checkpoint: Checkpoint, listing: Listing) -> bool:
    """Whether a checkpoint can be read, holds protocol and metadata, and every sidecar it names is there in full."""
    found: set[str] = set()
    try:
        parts = (_actions(log, file, listing, _TABLE_ACTIONS) for file in checkpoint.files)
        for action in chain.from_iterable(parts):
            found.update(kind for kind, value in action.items() if value is not None)
            sidecar = action.get("sidecar")
            if sidecar:
                there = log.stat(_sidecar_path(sidecar))
                if there is None or there.size_bytes != sidecar["sizeInBytes"]:
                    return False
    except (UnreadableError, ValueError, KeyError, TypeError):
        return False
    return {"protocol", "metaData"} <= found


def _loose_sidecars(store: FileStore, now: datetime) -> tuple[FileEntry, ...]:
    """Sidecars that no remaining checkpoint names, old enough not to belong to one that is being written."""
    listed = [entry for entry in store.list(SIDECARS) if not (entry.is_dir or _name(entry).startswith("."))]
    if not listed:
        return ()
    log, entries = DeltaLog(store), tuple(store.list(FOLDER))
    listing = listing_of(entries)
    named: set[str] = set()
    try:
        for entry in entries:
            name = parse_name(_name(entry))
            if name is not None and name.kind in (Kind.CHECKPOINT, Kind.CHECKPOINT_V2):
                actions = _actions(log, entry, listing, ("sidecar",))
                named.update(_sidecar_path(action["sidecar"]) for action in actions if action.get("sidecar"))
    except UnreadableError:
        return ()  # what a broken checkpoint names is not known
    return tuple(one for one in listed if one.path not in named and now - one.modified_at > SIDECAR_REST)


def _actions(
    log: DeltaLog, file: FileEntry, listing: Listing, kinds: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """The actions of some kinds in a checkpoint's file. It holds mostly files: those never become Python objects."""
    if file.path.endswith(".json"):
        for line in log.lines(file, listing):
            action = orjson.loads(line) if line.strip() else {}
            if any(kind in action for kind in kinds):
                yield action
        return
    with log.parquet(file, listing) as parquet:
        yield from _rows(parquet, kinds)


def _rows(parquet: pq.ParquetFile, kinds: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    there = [kind for kind in kinds if kind in parquet.schema_arrow.names]
    table = parquet.read(columns=there)
    for kind in there:
        yield from table.filter(table[kind].is_valid()).to_pylist()


def _sidecar_path(sidecar: dict[str, Any]) -> str:
    return f"{SIDECARS}/{unquote(sidecar['path']).rsplit('/', 1)[-1]}"


def _name(entry: FileEntry) -> str:
    return entry.path.rsplit("/", 1)[-1]
