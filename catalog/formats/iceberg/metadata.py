"""One metadata file as values: what the table is called, what it consists of, which snapshots it has. Pure."""

import gzip
import uuid
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

import orjson

from lakewarden.catalog.bounds import fits
from lakewarden.catalog.clock import from_millis
from lakewarden.catalog.formats.iceberg.errors import PROTOCOL, BrokenMetadataError, not_understood

__all__ = ["MAIN", "PartitionField", "SnapshotRef", "TableMetadata", "TableSnapshot", "parse_metadata"]

MAIN: Final = "main"

_NEWEST: Final = 3
"""The newest version of the format that is read here."""
_GZIP: Final = b"\x1f\x8b"
_NO_SNAPSHOT: Final = -1
"""What Java writes as the current snapshot of a table that has none."""
_KEY_PROPERTIES: Final = ("encryption.key-id", "encryption.table.key-id")

Json = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class TableSnapshot:
    """One state of the table's rows."""

    id: int
    parent_id: int | None
    sequence: int
    """Rises with every snapshot, on whichever branch; tables of format version 1 have none (0)."""
    at: datetime
    operation: str | None
    summary: Mapping[str, str]
    manifest_list: str | None
    """Where the files are listed."""
    manifests: tuple[str, ...]
    """Likewise, in format version 1."""
    schema_id: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class SnapshotRef:
    """A branch or a tag."""

    snapshot_id: int
    is_branch: bool
    least: int | None
    """So many of a branch's snapshots have to stay; None: as the table's properties say."""
    keeps_age: bool = False
    """The branch says itself for how long its snapshots stay."""
    lasts: int | None = None
    """How old its snapshot is at its end, in milliseconds; None: it has no end of its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PartitionField:
    """One field that the table is partitioned by: a column's id, and what is made of its values."""

    source_id: int
    name: str
    transform: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TableMetadata:
    """What a metadata file says."""

    format_version: int
    uuid: str
    location: str
    updated_at: datetime
    properties: Mapping[str, str]
    schema: Json
    partition_fields: tuple[PartitionField, ...]
    spec_names: Mapping[int, tuple[str, ...]]
    snapshots: Mapping[int, TableSnapshot]
    current: TableSnapshot | None
    refs: Mapping[str, SnapshotRef]
    moved_at: int
    """When main was set last."""
    left_at: Mapping[int, datetime]
    """When main was set to another snapshot than these, last."""
    log: tuple[str, ...]
    """The metadata files before this one, oldest first, as far as they are remembered."""
    encrypted: bool
    statistics: tuple[str, ...] = ()
    """Files of statistics, of whichever snapshot."""
    described: frozenset[int] = frozenset()
    """The snapshots that have statistics of their columns."""
    newest: int = 0
    """The number that was given to a snapshot last, whatever branch it is on and whether it is still there."""

    def line(self, snapshot: TableSnapshot | None) -> Iterator[TableSnapshot]:
        """A snapshot and those it was made from, newest first, as far as they are still there."""
        while snapshot is not None:
            yield snapshot
            snapshot = None if snapshot.parent_id is None else self.snapshots.get(snapshot.parent_id)

    def in_order(self) -> list[TableSnapshot]:
        """The snapshots that have a number, by it."""
        return sorted((one for one in self.snapshots.values() if one.sequence), key=lambda one: one.sequence)


def parse_metadata(data: bytes, path: str) -> TableMetadata:
    """A metadata file, packed or not. Raises `BrokenMetadataError` for one that is none, or of a version that nobody
    here can read."""
    try:
        body = orjson.loads(gzip.decompress(data) if data.startswith(_GZIP) else data)
        version = _whole(body["format-version"])
        if not 1 <= version <= _NEWEST:
            raise BrokenMetadataError(
                PROTOCOL, f"The table has format version {version}; this lakewarden reads 1 to {_NEWEST}."
            )
        if body.get("table-uuid") is None and version == 1:
            raise BrokenMetadataError(
                PROTOCOL, "The table has no UUID, so nothing tells it from another one at its place."
            )
        return _metadata(body, version)
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, OSError, zlib.error) as error:
        raise not_understood(path) from error


def _metadata(body: Json, version: int) -> TableMetadata:
    snapshots = {one.id: one for one in map(_snapshot, body.get("snapshots") or ())}
    wanted = body.get("current-snapshot-id")
    current = None if wanted in (None, _NO_SNAPSHOT) else snapshots[wanted]
    properties = _texts(body.get("properties") or {})
    specs = _specs(body)
    moves = [
        (_whole(one["snapshot-id"]), _whole(one["timestamp-ms"])) for one in body.get("snapshot-log") or ()
    ]
    return TableMetadata(
        format_version=version,
        uuid=str(uuid.UUID(body["table-uuid"])),
        location=_text(body["location"]).rstrip("/"),
        updated_at=from_millis(_whole(body["last-updated-ms"])),
        properties=properties,
        schema=_schema(body),
        partition_fields=specs[body.get("default-spec-id", 0)],
        spec_names={key: tuple(one.name for one in fields) for key, fields in specs.items()},
        snapshots=snapshots,
        current=current,
        refs={_text(name): _ref(one) for name, one in (body.get("refs") or {}).items()},
        moved_at=moves[-1][1] if moves else 0,
        left_at={left: from_millis(at) for (left, _), (_, at) in pairwise(moves)},
        log=tuple(_text(one["metadata-file"]) for one in body.get("metadata-log") or ()),
        encrypted=bool(body.get("encryption-keys")) or any(one in properties for one in _KEY_PROPERTIES),
        statistics=tuple(
            _text(one["statistics-path"])
            for kind in ("statistics", "partition-statistics")
            for one in body.get(kind) or ()
        ),
        described=frozenset(_whole(one["snapshot-id"]) for one in body.get("statistics") or ()),
        newest=max(
            _whole(body.get("last-sequence-number") or 0), *(one.sequence for one in snapshots.values()), 0
        ),
    )


def _ref(body: Json) -> SnapshotRef:
    least, lasts = body.get("min-snapshots-to-keep"), body.get("max-ref-age-ms")
    return SnapshotRef(
        snapshot_id=_whole(body["snapshot-id"]),
        is_branch=_text(body["type"]) == "branch",
        least=None if least is None else _whole(least),
        keeps_age=body.get("max-snapshot-age-ms") is not None,
        lasts=None if lasts is None else _whole(lasts),
    )


def _snapshot(body: Json) -> TableSnapshot:
    summary = {key: str(value) for key, value in (body.get("summary") or {}).items()}
    parent, listed, schema_id = (
        body.get(key) for key in ("parent-snapshot-id", "manifest-list", "schema-id")
    )
    return TableSnapshot(
        id=_whole(body["snapshot-id"]),
        parent_id=None if parent is None else _whole(parent),
        sequence=_whole(body.get("sequence-number") or 0),
        at=from_millis(_whole(body["timestamp-ms"])),
        operation=summary.get("operation"),
        summary=summary,
        manifest_list=None if listed is None else _text(listed),
        manifests=tuple(map(_text, body.get("manifests") or ())),
        schema_id=None if schema_id is None else _whole(schema_id),
    )


def _schema(body: Json) -> Json:
    if "schemas" not in body:
        return dict(body["schema"])
    return dict({one["schema-id"]: one for one in body["schemas"]}[body["current-schema-id"]])


def _specs(body: Json) -> Mapping[int, tuple[PartitionField, ...]]:
    listed = body.get("partition-specs") or [{"spec-id": 0, "fields": body["partition-spec"]}]
    return {_whole(one["spec-id"]): tuple(map(_partition_field, one["fields"])) for one in listed}


def _partition_field(body: Json) -> PartitionField:
    sources = body.get("source-ids") or [body["source-id"]]
    return PartitionField(
        source_id=_whole(sources[0]), name=_text(body["name"]), transform=_text(body["transform"])
    )


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not fits(value):
        raise TypeError(f"no whole number: {value!r}")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"no text: {value!r}")
    return value


def _texts(values: Json) -> Mapping[str, str]:
    return {_text(key): _text(value) for key, value in values.items()}
