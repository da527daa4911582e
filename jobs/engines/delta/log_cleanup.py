"""Cleanup of a Delta log: which entries can go once every version from some version on has to stay readable.

Follows "Metadata Cleanup" of the Delta protocol, but by version instead of by age: everything goes that lies before a
verified checkpoint not younger than the oldest version to keep.
https://github.com/delta-io/delta/blob/master/PROTOCOL.md#metadata-cleanup
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Any, Final
from urllib.parse import unquote

import orjson

from lakewarden.catalog.errors import ConflictError, UnreadableError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.delta.hint import hinted_version
from lakewarden.catalog.formats.delta.log import DeltaLog
from lakewarden.catalog.formats.delta.log_names import FOLDER, HINT, SIDECARS, Kind, LogName, parse_name
from lakewarden.catalog.formats.delta.proof.agreement import CheckpointVerdict, judge
from lakewarden.catalog.formats.delta.segment import Checkpoint, LogListing, listing_of
from lakewarden.catalog.storage.file_store import FileEntry, FileStore
from lakewarden.catalog.storage.hadoop_crc import companion_of
from lakewarden.jobs.runs.port import FileChange

__all__ = ["BATCH", "SIDECAR_REST", "clean_log", "entries_before"]

SIDECAR_REST: Final = timedelta(hours=24)
"""Sidecars younger than this may belong to a checkpoint that is being written (protocol, Metadata Cleanup)."""

BATCH: Final = 100
"""Deletions between two questions whether they are still allowed."""

JUDGED_AT_MOST: Final = 3
"""Checkpoints that are compared with the log in one call; each costs a replay of what it would replace."""

_NEVER_NAMED: Final = 2**63 - 1
_COMMIT_LAST: Final = {Kind.COMMIT: 1}
"""Within a version its commit goes last: what is left never starts with a checkpoint whose own commit is gone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Base:
    """The checkpoint's version from which on everything stays (None: everything does), and what was found wrong."""

    version: int | None
    problems: tuple[str, ...] = ()


def clean_log(
    store: FileStore,
    *,
    keep_from: int,
    now: datetime,
    proceed: Callable[[], None],
    still_ours: Callable[[], None] = lambda: None,
) -> FileChange:
    """Delete the entries that no version from `keep_from` on needs; nothing without a checkpoint that agrees with them.

    Oldest first. Killed anywhere, the newest checkpoint and every commit since stand, so the table stays readable.
    `proceed` is called right before each hundred of deletions, `still_ours` before each; both stop them by raising.
    Raises `ConflictError` where another file lies at the place of one that was listed: then the log was made anew.
    `version` of the answer: the first version that can be rebuilt, None if nothing was to be done; `problems`: what is
    wrong with a checkpoint.
    """
    listed = tuple(store.list(FOLDER))
    base = _base(store, listed, keep_from)
    if base.version is None:
        return FileChange(version=None, problems=base.problems)
    old = entries_before(listed, base.version)
    companions = {entry.path for entry in listed}
    for entry in _allowed(old, proceed):
        _delete(store, entry, still_ours)
        if companion_of(entry.path) in companions:
            store.delete(companion_of(entry.path))
        reach("log.entry_deleted")
    loose = _loose_sidecars(store, now)
    for entry in _allowed(loose, proceed):
        _delete(store, entry, still_ours)
        reach("log.sidecar_deleted")
    gone = [*old, *loose]
    return FileChange(
        version=base.version if gone else None,
        files_removed=len(gone),
        bytes_removed=sum(entry.size_bytes for entry in gone),
        problems=base.problems,
    )


def _delete(store: FileStore, entry: FileEntry, still_ours: Callable[[], None]) -> None:
    still_ours()
    if not store.delete_listed(entry):
        raise ConflictError(
            f"{entry.path} is another file than the one that was listed: the log was made anew or replaced "
            "meanwhile; the rest was left as it is."
        )


def _allowed(entries: Iterable[FileEntry], proceed: Callable[[], None]) -> Iterator[FileEntry]:
    """The entries; before each `BATCH` of them `proceed` is asked, and stops the rest by raising."""
    for place, entry in enumerate(entries):
        if place % BATCH == 0:
            proceed()
        yield entry


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


def _base(store: FileStore, listed: tuple[FileEntry, ...], keep_from: int) -> _Base:
    """The newest version up to `keep_from` that has its commit, every commit after it, and a checkpoint to rely on.

    A checkpoint is read in full and compared with what it replaces; where that is nothing, there is nothing to compare.
    """
    listing = listing_of(listed)
    lower = _unbroken_from(listing)
    upper = min(keep_from, _hinted(store))
    log, problems = DeltaLog(store), list[str]()
    fit = (one for one in listing.checkpoints if lower <= one.version <= upper)
    for checkpoint in islice(fit, JUDGED_AT_MOST):
        if not entries_before(listed, checkpoint.version):
            return _Base(version=checkpoint.version, problems=tuple(problems))
        verdict = _lost_sidecar(log, checkpoint, listing) or judge(log, listing, checkpoint)
        if verdict.usable:
            return _Base(version=checkpoint.version, problems=tuple(problems))
        problems += [] if verdict.problem is None else [verdict.problem]
    return _Base(version=None, problems=tuple(problems))


def _unbroken_from(listing: LogListing) -> int:
    """The first version from which on no commit is missing."""
    version = max(listing.commits, default=_NEVER_NAMED)
    while version - 1 in listing.commits:
        version -= 1
    return version


def _hinted(store: FileStore) -> int:
    """Where `_last_checkpoint` sends readers: what it names, and everything later, has to stay."""
    try:
        named = hinted_version(store.read(HINT))
    except FileNotFoundError:
        return _NEVER_NAMED  # readers list the log from its beginning
    return -1 if named is None else named


def _lost_sidecar(log: DeltaLog, checkpoint: Checkpoint, listing: LogListing) -> CheckpointVerdict | None:
    """The verdict on a checkpoint of which a sidecar is missing or of another size than it says; None otherwise."""
    try:
        actions = chain.from_iterable(_sidecars(log, file, listing) for file in checkpoint.files)
        lost = next((one["path"] for one in actions if not _is_whole(log, one)), None)
    except (UnreadableError, ValueError, KeyError, TypeError):
        return None  # whoever reads all of it says what is wrong
    if lost is None:
        return None
    problem = (
        f"The checkpoint of version {checkpoint.version} cannot be read: its sidecar {lost} is not whole."
    )
    return CheckpointVerdict(usable=False, problem=problem)


def _is_whole(log: DeltaLog, sidecar: dict[str, Any]) -> bool:
    there = log.stat(_sidecar_path(sidecar))
    return there is not None and there.size_bytes == sidecar["sizeInBytes"]


def _loose_sidecars(store: FileStore, now: datetime) -> tuple[FileEntry, ...]:
    """Sidecars that no remaining checkpoint names, old enough not to belong to one that is being written.

    None while a checkpoint cannot be read or names a sidecar that is not there: it may mean one of these.
    """
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
                named.update(_sidecar_path(sidecar) for sidecar in _sidecars(log, entry, listing))
    except (UnreadableError, ValueError, KeyError, TypeError):
        return ()
    if not named <= {entry.path for entry in listed}:
        return ()
    return tuple(one for one in listed if one.path not in named and now - one.modified_at > SIDECAR_REST)


def _sidecars(log: DeltaLog, file: FileEntry, listing: LogListing) -> Iterator[dict[str, Any]]:
    """What a checkpoint's file says of its sidecars. It holds mostly files: those never become Python objects."""
    if file.path.endswith(".json"):
        for line in log.lines(file, listing):
            action = orjson.loads(line) if line.strip() else {}
            if action.get("sidecar"):
                yield action["sidecar"]
        return
    with log.parquet(file, listing) as parquet:
        if "sidecar" in parquet.schema_arrow.names:
            column = parquet.read(columns=["sidecar"])["sidecar"]
            yield from (
                one for one in column.filter(column.is_valid()).to_pylist() if one["path"] is not None
            )


def _sidecar_path(sidecar: dict[str, Any]) -> str:
    return f"{SIDECARS}/{unquote(sidecar['path']).rsplit('/', 1)[-1]}"


def _name(entry: FileEntry) -> str:
    return entry.path.rsplit("/", 1)[-1]
