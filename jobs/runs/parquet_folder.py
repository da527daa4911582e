"""What a Parquet folder holds, as Spark and Delta's CONVERT see it, from a listing. Pure."""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from lakewarden.catalog.clock import to_millis
from lakewarden.catalog.model.pending_conversion import SourceFiles
from lakewarden.catalog.storage.file_store import FileEntry

__all__ = [
    "NULL_PARTITION",
    "columns_of",
    "data_files",
    "folder_of",
    "has_null",
    "misnamed",
    "partition_columns",
    "registered_folders",
    "sinks_of",
    "source_of",
    "writers_at_work",
]

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""The folder name that Hive and Spark give to the partition value NULL."""

_STAGING = ("_temporary", "_spark_staging", ".spark-staging", ".hive-staging", "__magic")
"""First letters of folders in which committers keep what they have not committed yet."""
_ESCAPED: Final = re.compile("%([0-9A-Fa-f]{2})")
_SINK: Final = "_spark_metadata"
"""The folder in which the file sink of a streaming query notes what it has committed."""
_METADATA: Final = re.compile(
    r"metadata/(?:(?:snap-\d+-\d+|stage-\d+-task-\d+-manifest)-[0-9a-f-]{36}\.avro|"
    r"[^/]+\.metadata\.json|version-hint\.text)"
)
"""What a conversion to Iceberg makes. A table whose metadata was there before is not converted."""


def data_files(entries: Iterable[FileEntry]) -> Iterator[FileEntry]:
    """The files that are data: no part of their path is hidden (`_x`, `.x`), except partition folders (`_x=1`), and
    they are no metadata of Iceberg's."""
    return (
        entry
        for entry in entries
        if not entry.is_dir and not _is_hidden(entry.path) and _METADATA.fullmatch(entry.path) is None
    )


def source_of(files: Iterable[FileEntry]) -> SourceFiles:
    """What tells these data files from any others: whatever is added, taken away or written anew changes the digest."""
    found = sorted(files, key=lambda entry: entry.path)
    digest = hashlib.sha256()
    for entry in found:
        digest.update(f"{entry.path}\t{entry.size_bytes}\t{to_millis(entry.modified_at)}\n".encode())
    return SourceFiles(
        files=len(found),
        bytes=sum(entry.size_bytes for entry in found),
        newest=max((to_millis(entry.modified_at) for entry in found), default=0),
        digest=digest.hexdigest()[:16],
    )


def folder_of(path: str) -> str:
    """The folder of a file, relative to the table; "" for the table itself."""
    return path.rpartition("/")[0]


def columns_of(folder: str) -> tuple[str, ...] | None:
    """The partition columns that a folder such as `year=2013/month=1` says, in order; none for the table's own folder
    (""). None for one that is no partition: `old`, `year=2013/old`."""
    parts = [part.partition("=") for part in folder.split("/")] if folder else []
    return (
        tuple(column for column, _, _ in parts)
        if all(column and value for column, _, value in parts)
        else None
    )


def partition_columns(folders: Iterable[str]) -> tuple[str, ...] | None:
    """The partition columns that all folders of files say, in order; None if one says others, or is no partition.

    By case they do not differ: Spark, Delta's CONVERT and our import to Iceberg all take `Day=1` and `day=2` for
    partitions of one column.
    """
    told = [columns_of(folder) for folder in sorted(folders)]
    kinds = {columns and tuple(map(str.lower, columns)) for columns in told}
    return told[0] if len(kinds) == 1 else None if kinds else ()


def has_null(partitions: Iterable[str]) -> bool:
    """Whether one of these partitions, such as `p=__HIVE_DEFAULT_PARTITION__`, has the value NULL."""
    return any(f"={NULL_PARTITION}" in name for name in partitions)


def misnamed(folders: Mapping[str, str | None]) -> tuple[str, ...]:
    """The partitions whose folders (relative to the table) do not say the values that their names say, sorted."""
    return tuple(
        sorted(name for name, folder in folders.items() if folder is None or _told(name) != _told(folder))
    )


def registered_folders(partitions: Mapping[str, str], table_location: str) -> Mapping[str, str | None]:
    """Partition name -> its folder relative to the table, None if it lies elsewhere.

    Compared as the metastore spells both: unescaping `p=a%2Fb` would make another folder of it.
    """
    root = _spelled(table_location) + "/"
    found: dict[str, str | None] = {}
    for name, location in partitions.items():
        place = _spelled(location)
        found[name] = place.removeprefix(root) if place.startswith(root) else None
    return found


def sinks_of(entries: Iterable[FileEntry]) -> tuple[str, ...]:
    """Folders that a streaming query has written to, sorted: whoever reads one reads only what the query notes there,
    and not the files of its failed attempts."""
    split = (entry.path.split("/") for entry in entries)
    return tuple(sorted({"/".join(parts[: parts.index(_SINK)]) for parts in split if _SINK in parts}))


def writers_at_work(entries: Iterable[FileEntry]) -> tuple[str, ...]:
    """Folders of committers that hold files nobody has committed yet, sorted."""
    staged = {
        "/".join(parts[: position + 1])
        for entry in entries
        if not entry.is_dir
        for parts in [entry.path.split("/")[:-1]]
        for position, part in enumerate(parts)
        if part.startswith(_STAGING)
    }
    return tuple(sorted(staged))


def _told(path: str) -> list[tuple[str, ...]]:
    """What Spark and Hive read from the names of partition folders; they write columns in any case."""
    return [
        (column.lower(), equals, _ESCAPED.sub(lambda found: chr(int(found[1], 16)), value))
        for column, equals, value in (part.partition("=") for part in path.split("/"))
    ]


def _is_hidden(path: str) -> bool:
    *folders, name = path.split("/")
    return name.startswith(("_", ".")) or any(
        folder.startswith(("_", ".")) and "=" not in folder for folder in folders
    )


def _spelled(location: str) -> str:
    """Without the slashes that `file:/a`, `file:///a` and `/a/` differ in."""
    scheme, colon, rest = location.partition(":")
    if not colon or "/" in scheme:
        scheme, rest = "file", location
    return f"{scheme}:/{rest.strip('/')}" if scheme == "file" else f"{scheme}:{rest.rstrip('/')}"
