"""What lies in a table's folder: files that its log names or its format keeps there, the log itself, and unknown ones.

Unknown files may be anybody's: a purge deletes them only with a consent that names them (by `unknown_token`).
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from lakewarden.catalog.clock import to_millis
from lakewarden.catalog.errors import RefusedError
from lakewarden.catalog.formats.inner_tables import inner_tables
from lakewarden.catalog.formats.port import OwnFiles, TableReader
from lakewarden.catalog.formats.registry import spec_of
from lakewarden.catalog.model.pending_purge import MARKER
from lakewarden.catalog.model.rows import TableFormat
from lakewarden.catalog.storage.file_store import FileEntry, FileStore
from lakewarden.catalog.storage.hadoop_crc import companion_of
from lakewarden.jobs.deletion.file_places import FilePlaces
from lakewarden.jobs.deletion.folder_readers import named_paths

__all__ = ["TableFolder", "inner_table", "look_into", "signature", "unknown_token"]

_MARK_OF_A_WRITER: Final = re.compile(r"_SUCCESS|_metadata|_common_metadata|_(started|committed)_\d+")
"""The whole name of a file that Spark, Hadoop or Databricks leaves beside data."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TableFolder:
    """Files of one folder (paths relative to it): data that is the table's, its log, unknown ones; tables of their own
    inside it, and all folders, inner ones first. A symbolic link, also one that leads nowhere, is an unknown file
    itself, and nothing behind it counts: that lies elsewhere, whatever it is."""

    data: tuple[FileEntry, ...]
    log: tuple[FileEntry, ...]
    unknown: tuple[FileEntry, ...]
    inner: tuple[str, ...]
    folders: tuple[str, ...]


def look_into(store: FileStore, format_: TableFormat | None, reader: TableReader | None) -> TableFolder:
    """List the whole folder of a table of this format.

    Without a `reader` (the log is gone in parts) every file outside the log is unknown.
    """
    places = FilePlaces(store.root)
    entries = tuple(store.tree())
    files = tuple(entry for entry in entries if not entry.is_dir and entry.path != MARKER)
    spec = spec_of(format_)
    own = None if reader is None else reader.own_files(store.root)
    log = _log(files, f"{spec.sign.folder}/", own)
    of_log = {entry.path for entry in log}
    rest = tuple(entry for entry in files if entry.path not in of_log)
    named = set[str]() if reader is None else _named(store, reader, own)
    data = {
        entry.path
        for entry in rest
        if places.is_own(entry.path) and (_is_kept(entry.path, spec.kept) or places.of(entry.path) in named)
    }
    data |= {companion_of(path) for path in data}
    return TableFolder(
        data=tuple(entry for entry in rest if entry.path in data),
        log=log,
        unknown=tuple(entry for entry in rest if entry.path not in data),
        inner=inner_tables(entry.path for entry in entries),
        folders=tuple(sorted((one.path for one in entries if one.is_dir), key=lambda path: -path.count("/"))),
    )


def inner_table(name: str, place: str) -> RefusedError:
    """The answer of a purge if another table lies in its table's folder; its dry run answers the same."""
    return RefusedError(f"Another table lies inside {name}: {place}.", hint="Move it away, then purge again.")


def unknown_token(files: Iterable[FileEntry]) -> str | None:
    """What a consent names them by: a short hash of their paths, sizes and times. None for no files."""
    signatures = sorted(signature(entry) for entry in files)
    return hashlib.sha256("\n".join(signatures).encode()).hexdigest()[:12] if signatures else None


def signature(entry: FileEntry) -> str:
    """The identity of a file: another one in its place differs."""
    return f"{entry.path}\t{entry.size_bytes}\t{to_millis(entry.modified_at)}"


def _log(files: Sequence[FileEntry], folder: str, own: OwnFiles | None) -> tuple[FileEntry, ...]:
    """What lies in the log's folder; of that, what is the table's own where its format tells, in the order in which it
    goes, each with its checksums."""
    there = {entry.path: entry for entry in files if entry.path.startswith(folder)}
    if own is None:
        return tuple(there.values())
    order = chain.from_iterable((companion_of(path), path) for path in own.log)
    return tuple(there[path] for path in order if path in there)


def _named(store: FileStore, reader: TableReader, own: OwnFiles | None) -> set[str]:
    places = FilePlaces(store.root)
    if own is not None:
        return {places.of(path) for path in own.data}
    found = {places.of(path) for path in named_paths(reader.files(store.root))}
    for stone in reader.tombstones(store.root):
        found.update(places.of(path) for path in (stone.path, stone.deletion_vector) if path is not None)
    return found


def _is_kept(path: str, kept: tuple[str, ...]) -> bool:
    """Whether the format or its writers own a file of this name."""
    *folders, name = path.split("/")
    in_partition = all("=" in folder for folder in folders)
    return path.startswith(kept) or (in_partition and _MARK_OF_A_WRITER.fullmatch(name) is not None)
