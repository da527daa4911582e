"""Writes small Delta logs of any shape, action by action, with every kind of checkpoint; keeps the true state beside.

What a real writer would not do on demand (odd paths, lost parts, old clocks) is plain here. The model is a dict of live
files and one of removed ones, replayed in the most literal way: what `DeltaReader` must agree with.
"""

import json
import os
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["START", "LogWriter", "add", "remove", "vector"]

START = datetime(2026, 3, 1, tzinfo=UTC)
Action = dict[str, Any]

_VECTOR = pa.struct(
    [
        ("storageType", pa.string()),
        ("pathOrInlineDv", pa.string()),
        ("offset", pa.int32()),
        ("sizeInBytes", pa.int32()),
        ("cardinality", pa.int64()),
    ]
)
_TEXTS = pa.map_(pa.string(), pa.string())
_NAMES = pa.list_(pa.string())
_ADD = pa.struct(
    [
        ("path", pa.string()),
        ("partitionValues", _TEXTS),
        ("size", pa.int64()),
        ("modificationTime", pa.int64()),
        ("dataChange", pa.bool_()),
        ("stats", pa.string()),
        ("deletionVector", _VECTOR),
    ]
)
_REMOVE = pa.struct(
    [
        ("path", pa.string()),
        ("deletionTimestamp", pa.int64()),
        ("dataChange", pa.bool_()),
        ("size", pa.int64()),
        ("deletionVector", _VECTOR),
    ]
)
_METADATA = pa.struct(
    [
        ("id", pa.string()),
        ("name", pa.string()),
        ("schemaString", pa.string()),
        ("partitionColumns", _NAMES),
        ("configuration", _TEXTS),
    ]
)
_PROTOCOL = pa.struct(
    [
        ("minReaderVersion", pa.int32()),
        ("minWriterVersion", pa.int32()),
        ("readerFeatures", _NAMES),
        ("writerFeatures", _NAMES),
    ]
)
_SIDECAR = pa.struct([("path", pa.string()), ("sizeInBytes", pa.int64()), ("modificationTime", pa.int64())])
_TXN = pa.struct([("appId", pa.string()), ("version", pa.int64()), ("lastUpdated", pa.int64())])
_DOMAIN = pa.struct([("domain", pa.string()), ("configuration", pa.string()), ("removed", pa.bool_())])
_TYPES = {
    "add": _ADD, "remove": _REMOVE, "metaData": _METADATA, "protocol": _PROTOCOL, "sidecar": _SIDECAR,
    "txn": _TXN, "domainMetadata": _DOMAIN,
}  # fmt: skip
_MAPS = ("partitionValues", "configuration")
_WHERE_USED = ("sidecar", "txn", "domainMetadata")


def vector(name: str, deleted: int, *, offset: int | None = 1) -> Action:
    """A deletion vector by absolute path (no base 85 in tests)."""
    body = {
        "storageType": "p",
        "pathOrInlineDv": f"/vectors/{name}.bin",
        "sizeInBytes": 40,
        "cardinality": deleted,
    }
    return body if offset is None else {**body, "offset": offset}


def add(
    path: str,
    *,
    size: int = 100,
    rows: int | None = 10,
    partition: dict[str, str | None] | None = None,
    data_change: bool = True,
    deletion_vector: Action | None = None,
) -> Action:
    """An `add` action as writers make it; no statistics where `rows` is None."""
    body: Action = {
        "path": path,
        "partitionValues": partition or {},
        "size": size,
        "modificationTime": _millis(START),
        "dataChange": data_change,
    }
    if rows is not None:
        body["stats"] = json.dumps({"numRecords": rows, "minValues": {}, "maxValues": {}})
    if deletion_vector is not None:
        body["deletionVector"] = deletion_vector
    return {"add": body}


def remove(
    path: str,
    *,
    at: datetime | None = START,
    size: int | None = 100,
    data_change: bool = True,
    deletion_vector: Action | None = None,
) -> Action:
    """A `remove` action."""
    body: Action = {"path": path, "dataChange": data_change}
    if at is not None:
        body["deletionTimestamp"] = _millis(at)
    if size is not None:
        body["size"] = size
    if deletion_vector is not None:
        body["deletionVector"] = deletion_vector
    return {"remove": body}


@dataclass(kw_only=True)
class LogWriter:
    """A table being written at `root`. `live` and `removed` are the true state of head, by key (path, vector)."""

    root: Path
    partition_columns: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    features: tuple[str, ...] = ("deletionVectors",)
    head: int = -1
    now: datetime = START
    live: dict[tuple[str, str | None], Action] = field(default_factory=dict)
    removed: dict[tuple[str, str | None], Action] = field(default_factory=dict)
    notes: dict[tuple[str, str], Action] = field(default_factory=dict)
    table_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def log(self) -> Path:
        """The log folder."""
        return self.root / "_delta_log"

    def metadata(self) -> Action:
        """The table's `metaData` action."""
        columns = [("id", "long"), *((name, "string") for name in self.partition_columns)]
        fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns]
        return {
            "metaData": {
                "id": self.table_id,
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": list(self.partition_columns),
                "configuration": self.properties,
            }
        }

    def protocol(self) -> Action:
        """The table's `protocol` action."""
        names = list(self.features)
        return {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": names,
                "writerFeatures": names,
            }
        }

    def create(self) -> "LogWriter":
        """Version 0: protocol and metadata."""
        self.commit(self.protocol(), self.metadata(), operation="CREATE TABLE")
        return self

    def commit(self, *actions: Action, operation: str = "WRITE", **info: Any) -> int:
        """The next version, one minute later."""
        self.head += 1
        self.now += timedelta(minutes=1)
        commit = {"commitInfo": {"timestamp": _millis(self.now), "operation": operation, **info}}
        path = self.log / f"{self.head:020d}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(json.dumps(action) for action in (commit, *actions)) + "\n")
        self._touch(path)
        for action in actions:
            for kind, name in (("txn", "appId"), ("domainMetadata", "domain")):
                if kind in action:
                    self.notes[(kind, action[kind][name])] = action
            if "remove" in action:
                key = _key(action["remove"])
                self.live.pop(key, None)
                self.removed[key] = action["remove"]
        for action in actions:
            if "add" in action:
                key = _key(action["add"])
                self.removed.pop(key, None)
                self.live[key] = action["add"]
        return self.head

    def checkpoint(self, kind: str = "classic", *, forget_before: datetime | None = None) -> None:
        """A checkpoint of head: `classic`, `parts`, `v2-parquet`, `v2-json`. Removals before `forget_before` are left
        out, as writers do with those past the table's retention."""
        limit = _millis(forget_before) if forget_before else 0
        head: list[Action] = [self.protocol(), self.metadata(), *self.notes.values()]
        files = [{"add": one} for one in self.live.values()]
        files += [
            {"remove": one} for one in self.removed.values() if (one.get("deletionTimestamp") or 0) >= limit
        ]
        stem = f"{self.head:020d}.checkpoint"
        if kind == "classic":
            self._parquet(self.log / f"{stem}.parquet", head + files)
        elif kind == "parts":
            middle = len(files) // 2
            self._parquet(self.log / f"{stem}.0000000001.0000000002.parquet", files[:middle])
            self._parquet(self.log / f"{stem}.0000000002.0000000002.parquet", files[middle:] + head)
        else:
            (self.log / "_sidecars").mkdir(exist_ok=True)
            sidecars = []
            for part in (files[::2], files[1::2]):
                path = self.log / "_sidecars" / f"{uuid.uuid4()}.parquet"
                self._parquet(path, part)
                size = path.stat().st_size
                sidecars.append({"sidecar": {"path": path.name, "sizeInBytes": size, "modificationTime": 0}})
            name = self.log / f"{stem}.{uuid.uuid4()}.{kind.removeprefix('v2-')}"
            marker = {"checkpointMetadata": {"version": self.head}}
            if kind == "v2-json":
                name.write_text("\n".join(json.dumps(one) for one in (marker, *head, *sidecars)))
                self._touch(name)
            else:
                self._parquet(name, head + sidecars)
        (self.log / "_last_checkpoint").write_text(json.dumps({"version": self.head, "size": len(files)}))

    def clean(self, before: int) -> None:
        """Delete commits older than version `before`, as log cleanup does."""
        for version in range(before):
            (self.log / f"{version:020d}.json").unlink(missing_ok=True)

    def _parquet(self, path: Path, actions: list[Action]) -> None:
        columns = {
            name: pa.array([_row(action.get(name)) for action in actions], kind)
            for name, kind in _TYPES.items()
            if name not in _WHERE_USED or any(name in action for action in actions)
        }
        pq.write_table(pa.table(columns), path, compression="none")
        self._touch(path)

    def _touch(self, path: Path) -> None:
        os.utime(path, (self.now.timestamp(), self.now.timestamp()))


def _row(body: Action | None) -> Action | None:
    """Maps as Arrow takes them: lists of pairs."""
    if body is None:
        return None
    return {
        name: list(value.items()) if isinstance(value, dict) and name in _MAPS else value
        for name, value in body.items()
    }


def _key(body: Action) -> tuple[str, str | None]:
    vector = body.get("deletionVector")
    return (body["path"], f"{vector['pathOrInlineDv']}@{vector.get('offset')}" if vector else None)


def _millis(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
