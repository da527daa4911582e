"""The log of one system table, file by file: gaps, unreadable entries, checkpoints that contradict the commits, and,
with a backup at hand, entries that have changed since the backup."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakewarden.catalog.formats.delta.log_names import FOLDER, commit_path, commit_version, whole_version
from lakewarden.catalog.storage.file_store import FileStore
from lakewarden.catalog.system.port import SystemTable
from lakewarden.catalog.system.recovery.backup import BackupSource
from lakewarden.catalog.system.recovery.damage import Damage, Problem
from lakewarden.catalog.system.recovery.set_aside import went_back_since

__all__ = ["damaged_since", "is_other_history", "log_problems"]

_ACTIONS: Final = frozenset(
    {"add", "remove", "metaData", "protocol", "txn", "commitInfo", "cdc", "domainMetadata"}
)
_FILES: Final = {"add": ("path", "size", "partitionValues"), "remove": ("path",)}
_MARK: Final = "lakewarden.commit"

Action = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class _ReadLog:
    """What was read of a log, by version."""

    commits: Mapping[int, Sequence[Action] | None]
    """Actions; None if unreadable."""
    checkpoints: Mapping[int, frozenset[str] | None]
    """Live paths; None if unreadable."""
    names: Mapping[int, str]
    """File names of checkpoints."""


def log_problems(table: SystemTable[Any], files: FileStore) -> list[Problem]:
    """Everything that is wrong with the log; `TABLE_MISSING` alone where there is none. Reads all of it."""
    log = _read(files)
    if not log.commits and not log.checkpoints:
        return [Problem(table=table, damage=Damage.TABLE_MISSING, message="It is not there.")]
    first = 0 if 0 in log.commits else min(log.checkpoints, default=0)
    last = max((*log.commits, *log.checkpoints))
    problems = []
    anchor = _anchor(log, last)
    for version in range(first, last + 1):
        if version not in log.commits:
            if version == first and log.checkpoints.get(version) is not None:
                continue  # the log begins with a checkpoint: what came before it was cleaned up
            sentence = f"Its log has a gap: version {version} is missing."
        elif log.commits[version] is None:
            sentence = f"The log entry of version {version} cannot be read."
        else:
            continue
        path = commit_path(version)
        covered = anchor if anchor is not None and version <= anchor else None
        problems.append(
            Problem(table=table, damage=Damage.LOG_BROKEN, message=sentence, path=path, covered_by=covered)
        )
    whole = not problems and log.commits.get(0) is not None
    return [*problems, *_checkpoint_problems(table, log, whole=whole)]


def _anchor(log: _ReadLog, last: int) -> int | None:
    """The newest sound checkpoint after which every commit is sound: head can be read from it."""
    for version in sorted(log.checkpoints, reverse=True):
        if log.checkpoints[version] is not None:
            sound = all(log.commits.get(one) is not None for one in range(version + 1, last + 1))
            return version if sound else None
    return None


def _checkpoint_problems(table: SystemTable[Any], log: _ReadLog, *, whole: bool) -> Iterator[Problem]:
    """`whole`: the commits from version 0 on are all there, so that no checkpoint is needed."""
    live: set[str] | None = None
    for version in sorted({*log.commits, *log.checkpoints}):
        actions = log.commits.get(version)
        if version == 0:
            live = set()
        if actions is None or (version > 0 and version - 1 not in log.commits):
            live = None  # something is missing in between: only the checkpoint itself can tell
        elif live is not None:
            _apply(live, actions)
        if version not in log.checkpoints:
            continue
        told, name = log.checkpoints[version], log.names[version]
        if told is not None and (live is None or told == live):
            live = set(told)
            continue
        sentence = "cannot be read" if told is None else "does not say what the commits say"
        damage = Damage.CHECKPOINT_BROKEN if whole or live is not None else Damage.LOG_BROKEN
        yield Problem(
            table=table,
            damage=damage,
            message=f"The checkpoint {name} {sentence}.",
            path=f"{FOLDER}/{name}",
        )


def damaged_since(table: SystemTable[Any], files: FileStore, source: BackupSource) -> Iterator[Problem]:
    """Readable log entries that are the very commits a backup has, yet not the same bytes."""
    for path, ours, theirs in _differing(table, files, source):
        if _mark_of(ours) is not None and _mark_of(ours) == _mark_of(theirs):
            message = f"The log entry {path.rpartition('/')[2]} is not what it was when the backup was made."
            yield Problem(table=table, damage=Damage.LOG_BROKEN, message=message, path=path)


def is_other_history(table: SystemTable[Any], files: FileStore, source: BackupSource) -> bool:
    """Whether a backup has other commits than this log under the same versions: one of the two went back in time since.

    Where no entry that can be read on both sides tells, a repair has left a note; it is no matter where the
    newest entry of the backup is still here."""
    if any(_mark_of(ours) != _mark_of(theirs) for _, ours, theirs in _differing(table, files, source)):
        return True
    return went_back_since(files, source.backup.made_at) and not _has_newest(table, files, source)


def _has_newest(table: SystemTable[Any], files: FileStore, source: BackupSource) -> bool:
    """Commits follow each other: where the newest one of the backup is the same, so is what came before it."""
    commits = {file.in_table: file.digest for file in source.backup.files_of(table)}
    newest = max((path for path in commits if commit_version(path) is not None), default=None)
    if newest is None or not files.exists(newest):
        return False
    return sha256(files.read(newest)).hexdigest() == commits[newest]


def _differing(
    table: SystemTable[Any], files: FileStore, source: BackupSource
) -> Iterator[tuple[str, Sequence[Action], Sequence[Action]]]:
    """Commits that can be read on both sides and are not the same bytes: path, ours, the backup's."""
    kept = source.store()
    for file in source.backup.files_of(table):
        path = file.in_table
        if commit_version(path) is None or not files.exists(path):
            continue
        content = files.read(path)
        if sha256(content).hexdigest() == file.digest:
            continue
        ours, theirs = _actions(content), _actions(kept.read(file.path))
        if ours is not None and theirs is not None:
            yield path, ours, theirs


def _read(files: FileStore) -> _ReadLog:
    commits: dict[int, Sequence[Action] | None] = {}
    checkpoints: dict[int, frozenset[str] | None] = {}
    names: dict[int, str] = {}
    for entry in files.list(FOLDER):
        if (version := commit_version(entry.path)) is not None:
            commits[version] = _actions(files.read(entry.path))
        elif (version := whole_version(entry.path)) is not None:
            checkpoints[version] = _live_paths(files.read(entry.path))
            names[version] = entry.path.rpartition("/")[2]
    return _ReadLog(commits=commits, checkpoints=checkpoints, names=names)


def _actions(content: bytes) -> Sequence[Action] | None:
    """The actions of a commit; None where it is not one, whole and understood."""
    try:
        lines = [orjson.loads(line) for line in content.splitlines() if line.strip()]
    except ValueError:
        return None
    return lines if lines and all(_is_action(line) for line in lines) else None


def _is_action(line: object) -> bool:
    if not isinstance(line, dict) or len(line) != 1:
        return False
    [(kind, value)] = line.items()
    return kind in _ACTIONS and isinstance(value, dict) and all(key in value for key in _FILES.get(kind, ()))


def _apply(live: set[str], actions: Sequence[Action]) -> None:
    live.difference_update(action["remove"]["path"] for action in actions if "remove" in action)
    live.update(action["add"]["path"] for action in actions if "add" in action)


def _live_paths(content: bytes) -> frozenset[str] | None:
    """The files that a checkpoint says are live; None where it cannot be read to its end."""
    try:
        rows = pq.ParquetFile(pa.BufferReader(content)).read()
        paths = pc.struct_field(rows.column("add"), "path")
        told = [path for path in paths.to_pylist() if path is not None]
    except (pa.ArrowException, OSError, KeyError, UnicodeDecodeError):
        return None
    return frozenset(told)


def _mark_of(actions: Sequence[Action] | None) -> str | None:
    infos = (action["commitInfo"] for action in actions or () if "commitInfo" in action)
    return next((info[_MARK] for info in infos if _MARK in info), None)
