"""Writes small Iceberg tables in Hadoop's layout, snapshot by snapshot: what a real writer would not do on demand
(deletes of every kind, odd places, files that are missing) is plain here. Real tables are in shared/golden-iceberg."""

import gzip
import json
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro

__all__ = ["START", "IcebergWriter", "Kept"]

START = datetime(2026, 3, 1, tzinfo=UTC)
Json = dict[str, Any]

_FILE = {
    "type": "record",
    "name": "r2",
    "fields": [
        {"name": "content", "type": "int", "field-id": 134},
        {"name": "file_path", "type": "string", "field-id": 100},
        {"name": "file_format", "type": "string", "field-id": 101},
        {
            "name": "partition",
            "field-id": 102,
            "type": {
                "type": "record",
                "name": "r102",
                "fields": [
                    {
                        "name": "day",
                        "type": ["null", {"type": "int", "logicalType": "date"}],
                        "field-id": 1000,
                    }
                ],
            },
        },
        {"name": "record_count", "type": "long", "field-id": 103},
        {"name": "file_size_in_bytes", "type": "long", "field-id": 104},
        {"name": "referenced_data_file", "type": ["null", "string"], "default": None, "field-id": 143},
    ],
}
_ENTRY = {
    "type": "record",
    "name": "manifest_entry",
    "fields": [
        {"name": "status", "type": "int", "field-id": 0},
        {"name": "snapshot_id", "type": ["null", "long"], "default": None, "field-id": 1},
        {"name": "sequence_number", "type": ["null", "long"], "default": None, "field-id": 3},
        {"name": "data_file", "type": _FILE, "field-id": 2},
    ],
}
_LISTED = {
    "type": "record",
    "name": "manifest_file",
    "fields": [
        {"name": "manifest_path", "type": "string", "field-id": 500},
        {"name": "manifest_length", "type": "long", "field-id": 501},
        {"name": "partition_spec_id", "type": "int", "field-id": 502},
        {"name": "content", "type": "int", "field-id": 517},
        {"name": "sequence_number", "type": "long", "field-id": 515},
        {"name": "added_snapshot_id", "type": "long", "field-id": 503},
        {"name": "added_files_count", "type": "int", "field-id": 504},
        {"name": "existing_files_count", "type": "int", "field-id": 505},
        {"name": "deleted_files_count", "type": "int", "field-id": 506},
    ],
}
SCHEMA: Json = {
    "type": "struct",
    "schema-id": 0,
    "fields": [{"id": 1, "name": "x", "required": False, "type": "int"}],
}


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A live file, as manifests have it."""

    path: str
    size: int
    snapshot: int
    sequence: int
    content: int = 0
    format: str = "PARQUET"
    rows: int = 10
    referenced: str | None = None


@dataclass(kw_only=True)
class IcebergWriter:
    """One table. `told` is where its metadata says that it lies (None: where it is)."""

    root: Path
    told: str | None = None
    format_version: int = 2
    properties: dict[str, str] = field(default_factory=dict)
    schema: Json = field(default_factory=lambda: SCHEMA)
    more: Json = field(default_factory=dict)
    packed: bool = False
    now: datetime = START
    table_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    number: int = 0
    sequence: int = 0
    current: int | None = None
    live: dict[str, Kept] = field(default_factory=dict)
    snapshots: list[Json] = field(default_factory=list)
    moves: list[Json] = field(default_factory=list)
    log: list[Json] = field(default_factory=list)

    @property
    def place(self) -> str:
        """What its files' paths begin with."""
        return self.told or f"file:{self.root}"

    @property
    def metadata(self) -> Path:
        """The folder of its metadata."""
        return self.root / "metadata"

    @property
    def head(self) -> Path:
        """The metadata file that the hint names."""
        return self.metadata / f"v{self.number}{'.gz' if self.packed else ''}.metadata.json"

    def commit(
        self,
        *,
        add: tuple[tuple[str, int], ...] = (),
        remove: tuple[str, ...] = (),
        deletes: tuple[Kept, ...] = (),
        operation: str = "append",
    ) -> int:
        """The next snapshot of main. Returns its sequence number."""
        self.now += timedelta(minutes=1)
        made = uuid.uuid4().int >> 66
        self.sequence += 1
        came = [
            Kept(path=self._whole(path), size=size, snapshot=made, sequence=self.sequence)
            for path, size in add
        ]
        came += [Kept(**{**vars(one), "snapshot": made, "sequence": self.sequence}) for one in deletes]
        gone = [self.live.pop(self._whole(path)) for path in remove]
        entries = [
            *(_entry(0, one) for one in self.live.values()),
            *(_entry(1, one) for one in came),
            *(_entry(2, one, by=made) for one in gone),
        ]
        self.live.update({one.path: one for one in came})
        data = len([one for one in self.live.values() if one.content == 0])
        summary = {
            "operation": operation,
            "added-data-files": str(len(add)),
            "deleted-data-files": str(len(remove)),
            "added-records": str(10 * len(add)),
            "total-data-files": str(data),
            "total-files-size": str(sum(one.size for one in self.live.values())),
            "engine-name": "by hand",
        }
        self.snapshots.append(
            {
                "snapshot-id": made,
                **({} if self.current is None else {"parent-snapshot-id": self.current}),
                **({} if self.format_version == 1 else {"sequence-number": self.sequence}),
                "timestamp-ms": _millis(self.now),
                "summary": summary,
                "manifest-list": self._listed(
                    made, entries, (len(came), len(self.live) - len(came), len(gone))
                ),
                "schema-id": self.schema["schema-id"],
            }
        )
        self.move_main(made)
        return 0 if self.format_version == 1 else self.sequence

    def delete(self, name: str, *, content: int, format: str = "PARQUET", of: str | None = None) -> Kept:
        """A delete file of so many rows (3), to be committed."""
        referenced = None if of is None else f"{self.place}/{of}"
        return Kept(
            path=f"{self.place}/{name}", size=50, snapshot=0, sequence=0, content=content, format=format,
            rows=3, referenced=referenced,
        )  # fmt: skip

    def move_main(self, snapshot: int | None) -> None:
        """Main is that snapshot now; publishes the metadata."""
        self.current = snapshot
        if snapshot is not None:
            self.moves.append({"timestamp-ms": _millis(self.now), "snapshot-id": snapshot})
        self.publish()

    def publish(self, *, hint: bool = True) -> None:
        """The next metadata file, and (unless its writer was killed before) the hint."""
        before = self.head if self.number else None
        if before is not None:
            named = f"{self.place}/metadata/{before.name}"
            self.log.append({"timestamp-ms": _millis(self.now), "metadata-file": named})
        self.number += 1
        self.metadata.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.body).encode()
        self.head.write_bytes(gzip.compress(text) if self.packed else text)
        if hint:
            self.point(self.number)

    def point(self, to: int | str) -> None:
        """Write the hint."""
        (self.metadata / "version-hint.text").write_text(str(to))

    @property
    def body(self) -> Json:
        """The metadata as it is now."""
        return {
            "format-version": self.format_version,
            "table-uuid": self.table_id,
            "location": self.place,
            "last-updated-ms": _millis(self.now),
            "last-sequence-number": self.sequence,
            "properties": self.properties,
            "schemas": [self.schema],
            "current-schema-id": self.schema["schema-id"],
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "default-spec-id": 0,
            "current-snapshot-id": -1 if self.current is None else self.current,
            "snapshots": self.snapshots,
            "snapshot-log": self.moves,
            "metadata-log": self.log,
            **self.more,
        }

    def _whole(self, path: str) -> str:
        return path if ":" in path else f"{self.place}/{path}"

    def _listed(self, made: int, entries: list[Json], counts: tuple[int, int, int]) -> str:
        manifests = []
        if entries:
            path = self.metadata / f"{made}-m0.avro"
            length = _avro(path, _ENTRY, entries)
            manifests.append(
                {
                    "manifest_path": f"{self.place}/metadata/{path.name}",
                    "manifest_length": length,
                    "partition_spec_id": 0,
                    "content": 0,
                    "sequence_number": self.sequence,
                    "added_snapshot_id": made,
                    "added_files_count": counts[0],
                    "existing_files_count": counts[1],
                    "deleted_files_count": counts[2],
                }
            )
        _avro(self.metadata / f"snap-{made}.avro", _LISTED, manifests)
        return f"{self.place}/metadata/snap-{made}.avro"


def _entry(status: int, kept: Kept, *, by: int | None = None) -> Json:
    inherits = status == 1
    return {
        "status": status,
        "snapshot_id": None if inherits else (by or kept.snapshot),
        "sequence_number": None if inherits else kept.sequence,
        "data_file": {
            "content": kept.content,
            "file_path": kept.path,
            "file_format": kept.format,
            "partition": {"day": None},
            "record_count": kept.rows,
            "file_size_in_bytes": kept.size,
            "referenced_data_file": kept.referenced,
        },
    }


def _avro(path: Path, schema: Json, records: list[Json]) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    written = BytesIO()
    fastavro.writer(written, schema, records, codec="deflate")
    path.write_bytes(written.getvalue())
    return len(written.getvalue())


def _millis(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
