"""The door to Avro: manifest lists and manifests as values. Pure.

fastavro checks every length against what is there. pyiceberg 0.12, compiled, does not: a damaged manifest may end the
process that reads it. How many things a list has is not checked by either, so their types are (`_least`).
"""

import io
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from struct import error as StructError
from typing import Any, Final

import fastavro
from fastavro.schema import SchemaParseException

from lakewarden.catalog.bounds import LARGEST_FILE
from lakewarden.catalog.formats.iceberg.errors import UNREADABLE, BrokenMetadataError, not_understood

__all__ = [
    "ADDED",
    "DATA",
    "DELETED",
    "EQUALITY_DELETES",
    "ManifestEntry",
    "ManifestFile",
    "read_manifest",
    "read_manifest_list",
]

ADDED: Final = 1
DELETED: Final = 2
"""What a manifest says of a file: by its snapshot it came, or went. Otherwise (0) it was there before."""
DATA: Final = 0
POSITION_DELETES: Final = 1
EQUALITY_DELETES: Final = 2
"""What a file holds."""
_PATHS: Final = 2147483546
"""The id of the column of a file of positions in which the paths of data files are."""
_DAMAGE: Final = (
    *(ValueError, KeyError, TypeError, AttributeError, IndexError, AssertionError, EOFError),
    *(OverflowError, MemoryError, RuntimeError, StructError, zlib.error, SchemaParseException),
)
"""What parsing damaged bytes raises."""

Json = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class ManifestFile:
    """One manifest as a list names it."""

    path: str
    sequence: int
    added_by: int
    spec_id: int
    entries: int | None
    """How many files it speaks of, None where the list does not say."""
    size_bytes: int | None = None
    content: int = DATA
    """What the files hold that it speaks of: rows, or deletes (1)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ManifestEntry:
    """One file."""

    status: int
    snapshot_id: int
    """The snapshot by which it came, or went, where its status says so."""
    sequence: int | None
    """Where it stands among others: a delete file concerns data files before it."""
    content: int
    path: str
    format: str
    spec_id: int
    partition: tuple[str | None, ...]
    rows: int
    size_bytes: int
    referenced: str | None
    """The data file that a delete file concerns alone, where it names one."""


def read_manifest_list(data: bytes, path: str) -> tuple[ManifestFile, ...]:
    """The manifests of a snapshot. Raises `BrokenMetadataError`."""
    try:
        return tuple(map(_manifest, _records(data)))
    except _DAMAGE as error:
        raise not_understood(path) from error


def read_manifest(data: bytes, path: str, manifest: ManifestFile) -> Sequence[ManifestEntry]:
    """The files that the manifest at `path` speaks of. Raises `BrokenMetadataError`, also where there are more or fewer
    than its list says."""
    try:
        entries = tuple(_entry(record, manifest) for record in _records(data))
    except _DAMAGE as error:
        raise not_understood(path) from error
    if manifest.entries not in (None, len(entries)):
        raise BrokenMetadataError(
            UNREADABLE,
            f"{path} names {len(entries)} files, and the list of manifests says {manifest.entries}: "
            "it is not what was written.",
        )
    return entries


def _records(data: bytes) -> Iterable[Json]:
    found = fastavro.reader(io.BytesIO(data))
    if not _least(found.writer_schema, {}):
        raise ValueError("records without contents")
    return found  # type: ignore[return-value]  # manifests hold records alone


def _least(kind: Any, named: dict[str, int | None]) -> int:
    """The fewest bytes that a value of an Avro type takes; `named` are the types met so far, None those that are not
    whole yet. Raises ValueError for lists of what takes none, and for types within themselves: a damaged schema could
    keep its reader busy, or nested, without end."""
    if isinstance(kind, list):
        return 1 + min(_least(one, named) for one in kind)
    if isinstance(kind, str):
        least = named.get(kind, 0 if kind == "null" else 1)
        if least is None:
            raise ValueError(f"{kind} holds itself")
        return least
    match kind["type"]:
        case "record":
            named[kind["name"]] = None
            named[kind["name"]] = least = sum(_least(one["type"], named) for one in kind["fields"])
            return least
        case "array":
            if not _least(kind["items"], named):
                raise ValueError("a list of nothing")
            return 1
        case "map":
            _least(kind["values"], named)
            return 1
        case "fixed":
            return int(kind["size"])
        case other:
            return _least(other, named)


def _manifest(record: Json) -> ManifestFile:
    counts = [
        record.get(f"{kind}_files_count", record.get(f"{kind}_data_files_count"))
        for kind in ("added", "existing", "deleted")
    ]
    return ManifestFile(
        path=str(record["manifest_path"]),
        sequence=int(record.get("sequence_number") or 0),
        added_by=int(record["added_snapshot_id"]),
        spec_id=int(record["partition_spec_id"]),
        entries=None if None in counts else sum(counts),
        size_bytes=_count(record["manifest_length"]),
        content=int(record.get("content") or DATA),
    )


def _entry(record: Json, manifest: ManifestFile) -> ManifestEntry:
    file, status, sequence = record["data_file"], int(record["status"]), record.get("sequence_number")
    if sequence is None and (status == ADDED or manifest.sequence == 0):
        sequence = manifest.sequence
    by = record.get("snapshot_id")
    return ManifestEntry(
        status=status,
        snapshot_id=manifest.added_by if by is None else by,
        sequence=sequence,
        content=int(file.get("content") or DATA),
        path=str(file["file_path"]),
        format=str(file["file_format"]).lower(),
        spec_id=manifest.spec_id,
        partition=tuple(None if one is None else str(one) for one in file["partition"].values()),
        rows=_count(file["record_count"]),
        size_bytes=_count(file["file_size_in_bytes"]),
        referenced=_referenced(file),
    )


def _referenced(file: Json) -> str | None:
    """The one data file that a delete file concerns: as it says, or as the bounds of the paths in it do."""
    named = file.get("referenced_data_file")
    if named is not None or file.get("content") != POSITION_DELETES:
        return named
    lower, upper = (
        next((one["value"] for one in file.get(side) or () if one["key"] == _PATHS), None)
        for side in ("lower_bounds", "upper_bounds")
    )
    return None if lower is None or lower != upper else bytes(lower).decode()


def _count(value: int) -> int:
    """Sizes are added up: one beyond all sense would make a sum that means nothing."""
    if not 0 <= value <= LARGEST_FILE:
        raise ValueError(f"no size: {value}")
    return value
