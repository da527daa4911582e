"""Delta logs read in the most literal way, with json and pyarrow alone: what each version holds, from what is on disk.

Nothing here is shared with the product: if both read a log alike, they agree for two reasons.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq

__all__ = [
    "AGE",
    "CLEANUP",
    "FILES_FOR",
    "LOG",
    "LOG_FOR",
    "Commit",
    "Snapshot",
    "commits_of",
    "is_table",
    "place_of",
    "rebuilt",
    "seconds_of",
    "seconds_set",
    "versions_of",
]

LOG = "_delta_log"
FILES_FOR = "delta.deletedFileRetentionDuration"
LOG_FOR = "delta.logRetentionDuration"
CLEANUP = "delta.enableExpiredLogCleanup"
AGE = "history.expire.max-snapshot-age-ms"
"""Iceberg's, in milliseconds."""
_UNITS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}


@dataclass(frozen=True, kw_only=True)
class Commit:
    """One commit file: paths as the log has them (decoded), the metadata if it has any."""

    version: int
    adds: tuple[str, ...] = ()
    removes: tuple[str, ...] = ()
    uuid: str | None = None
    properties: Mapping[str, str] | None = None
    operation: str = ""
    run_id: str | None = None
    restored: int | None = None
    """The version that a RESTORE went back to."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """What a version holds: its files (decoded log paths), the table's UUID and properties."""

    files: frozenset[str] = frozenset()
    uuid: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    def after(self, commit: Commit) -> "Snapshot":
        """The version that a commit makes of this one."""
        return Snapshot(
            files=(self.files - frozenset(commit.removes)) | frozenset(commit.adds),
            uuid=commit.uuid or self.uuid,
            properties=self.properties if commit.properties is None else commit.properties,
        )


def is_table(folder: Path) -> bool:
    """Whether a folder has a log with anything in it."""
    return bool(versions_of(folder))


def versions_of(folder: Path) -> list[int]:
    """The versions whose commit files are there."""
    try:
        names = os.listdir(folder / LOG)
    except OSError:
        return []
    return sorted(
        int(name[:20]) for name in names if len(name) == 25 and name.endswith(".json") and name[:20].isdigit()
    )


def commits_of(folder: Path, after: int = -1) -> Iterator[Commit]:
    """The commits after a version that are on disk, in order."""
    for version in versions_of(folder):
        if version > after:
            yield _commit(folder, version)


def rebuilt(folder: Path, version: int) -> Snapshot | None:
    """What a version holds, from what the log on disk still has; None if it cannot be told."""
    there = set(versions_of(folder))
    if all(one in there for one in range(version + 1)):
        return _replayed(folder, Snapshot(), 0, version)
    for base in sorted(_checkpoints(folder), reverse=True):  # the newest one, as every reader takes it
        if base > version or not all(one in there for one in range(base + 1, version + 1)):
            continue
        found = _checkpoint(folder, base)
        if found is not None:
            return _replayed(folder, found, base + 1, version)
    return None


def place_of(folder: Path, path: str) -> Path:
    """Where a file of a log is."""
    if path.startswith("file:"):
        return Path("/" + path.removeprefix("file:").lstrip("/"))
    return Path(path) if path.startswith("/") else folder / path


def seconds_of(text: str | None) -> float | None:
    """`interval 30 days` in seconds; None for what is absent or odd."""
    words = (text or "").lower().replace("interval", " ").split()
    try:
        pairs = [float(n) * _UNITS[unit.rstrip("s")] for n, unit in zip(words[::2], words[1::2], strict=True)]
    except (ValueError, KeyError):
        return None
    return sum(pairs) if pairs else None


def seconds_set(properties: Mapping[str, str], name: str) -> float | None:
    """A retention that a table's properties ask for; None for what is absent or odd."""
    text = properties.get(name)
    if name != AGE:
        return seconds_of(text)
    return int(text) / 1000 if text is not None and text.isdigit() else None


def _replayed(folder: Path, start: Snapshot, first: int, last: int) -> Snapshot:
    for version in range(first, last + 1):
        start = start.after(_commit(folder, version))
    return start


def _commit(folder: Path, version: int) -> Commit:
    values: dict[str, Any] = {"adds": [], "removes": []}
    for line in (folder / LOG / f"{version:020d}.json").read_text().splitlines():
        action = json.loads(line) if line.strip() else {}
        if "add" in action:
            values["adds"].append(unquote(action["add"]["path"]))
        elif "remove" in action:
            values["removes"].append(unquote(action["remove"]["path"]))
        elif "metaData" in action:
            values["uuid"] = action["metaData"]["id"]
            values["properties"] = action["metaData"].get("configuration") or {}
        elif "commitInfo" in action:
            info = action["commitInfo"]
            values["operation"] = str(info.get("operation", ""))
            values["run_id"] = info.get("lakewarden.run_id")
            back = (info.get("operationParameters") or {}).get("version")
            values["restored"] = int(back) if back is not None and values["operation"] == "RESTORE" else None
    values["adds"], values["removes"] = tuple(values["adds"]), tuple(values["removes"])
    return Commit(version=version, **values)


def _checkpoints(folder: Path) -> list[int]:
    names = os.listdir(folder / LOG)
    return [int(name[:20]) for name in names if name.endswith(".checkpoint.parquet") and name[:20].isdigit()]


def _checkpoint(folder: Path, version: int) -> Snapshot | None:
    try:
        rows = pq.read_table(folder / LOG / f"{version:020d}.checkpoint.parquet").to_pylist()
    except (OSError, ValueError, UnicodeDecodeError):
        return None
    found, files = Snapshot(), set()
    for row in rows:
        if row.get("add"):
            files.add(unquote(row["add"]["path"]))
        if row.get("metaData"):
            meta = row["metaData"]
            found = Snapshot(uuid=meta["id"], properties=dict(meta.get("configuration") or ()))
    return Snapshot(files=frozenset(files), uuid=found.uuid, properties=found.properties)
