"""Partition folders that no commit knows: left out of a conversion, or written around the log."""

from typing import Final

from lakewarden.catalog.formats.port import Observation, TableReader
from lakewarden.catalog.model.rows import Finding
from lakewarden.catalog.storage.file_store import FileEntry, StorageOptions, open_store
from lakewarden.catalog.validation.context import Subject

__all__ = ["partition_findings", "unknown_partitions"]

_DEPTH: Final = 8
_HIDDEN: Final = ("_", ".")


def unknown_partitions(reader: TableReader, seen: Observation, options: StorageOptions) -> tuple[str, ...]:
    """Folders named like partitions (`day=1/hour=2`) that hold Parquet files but none that the log names, sorted.

    Folders of removed files count as known. Raises `UnavailableError`, `UnreadableError`.
    """
    store = open_store(seen.location, options)
    waiting = [entry.path for entry in store.list("") if _is_partition(entry)]
    if not waiting:
        return ()
    known = {_folder(file.path) for file in reader.files(seen.location)}
    known |= {_folder(stone.path) for stone in reader.tombstones(seen.location)}
    found: list[str] = []
    while waiting:
        path = waiting.pop()
        if path in known:
            continue
        entries = list(store.list(path))
        if any(_is_data(entry) for entry in entries):
            found.append(path)
        if path.count("/") < _DEPTH:
            waiting += [entry.path for entry in entries if _is_partition(entry)]
    return tuple(sorted(found))


def partition_findings(subject: Subject, unknown: tuple[str, ...]) -> tuple[Finding, ...]:
    """At most one finding. Pure."""
    if not unknown:
        return ()
    return (subject.say("partitions_registered", "unknown", count=len(unknown), path=unknown[0]),)


def _is_partition(entry: FileEntry) -> bool:
    name = entry.path.rsplit("/", 1)[-1]
    return entry.is_dir and "=" in name and not name.startswith(_HIDDEN)


def _is_data(entry: FileEntry) -> bool:
    name = entry.path.rsplit("/", 1)[-1]
    return not entry.is_dir and name.endswith(".parquet") and not name.startswith(_HIDDEN)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
