"""Reading checkpoints of every kind into columns, in batches, without a Python object per file.

Classic (one file or parts) and V2 (Parquet or JSON, with or without sidecars) give the same answers.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakewarden.catalog.formats.delta.actions import (
    AddFile,
    DomainMetadata,
    LogAction,
    Metadata,
    Protocol,
    RemoveFile,
    Sidecar,
    Transaction,
    parse_actions,
)
from lakewarden.catalog.formats.delta.errors import LOG_READABLE, BrokenLogError
from lakewarden.catalog.formats.delta.log import DeltaLog
from lakewarden.catalog.formats.delta.log_names import SIDECARS
from lakewarden.catalog.formats.delta.segment import Checkpoint, LogListing
from lakewarden.catalog.storage.file_store import FileEntry

__all__ = ["CheckpointHead", "FileBatch", "file_batches", "read_head", "read_notes"]

_Action = TypeVar("_Action", Metadata, Protocol)

_BATCH: Final = 65_536
_WHOLE_BATCH: Final = 16_384
_HEAD: Final = ("metaData", "protocol", "sidecar")
_NOTES: Final = ("txn", "domainMetadata")
_FILES: Final = (
    "add.path",
    "add.partitionValues",
    "add.size",
    "add.modificationTime",
    "add.stats",
    "add.stats_parsed.numRecords",
    "add.deletionVector",
    "remove.path",
    "remove.deletionTimestamp",
    "remove.size",
    "remove.deletionVector",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointHead:
    """What a checkpoint says besides files: metadata and protocol, and where its file actions are."""

    checkpoint: Checkpoint
    metadata: Metadata
    protocol: Protocol
    parquet: tuple[FileEntry, ...]
    actions: tuple[AddFile | RemoveFile, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class FileBatch:
    """Some files of a checkpoint: columns of `add` and of `remove` (struct arrays, only rows that are there)."""

    adds: pa.StructArray
    removes: pa.StructArray


def read_head(log: DeltaLog, listing: LogListing, checkpoint: Checkpoint) -> CheckpointHead:
    """Metadata, protocol and file list of a checkpoint. Raises `BrokenLogError` where one is missing or unreadable."""
    found: list[LogAction] = []
    parquet: list[FileEntry] = []
    for entry in checkpoint.files:
        if entry.path.endswith(".json"):
            found += parse_actions(log.lines(entry, listing), entry.path)
        else:
            parquet.append(entry)
            with log.parquet(entry, listing) as file:
                found += _small_actions(file, _HEAD)
    where = f"the checkpoint of version {checkpoint.version}"
    parquet += [_sidecar(log, one, where) for one in found if isinstance(one, Sidecar)]
    return CheckpointHead(
        checkpoint=checkpoint,
        metadata=_only(found, Metadata, where, "metadata"),
        protocol=_only(found, Protocol, where, "protocol"),
        parquet=tuple(parquet),
        actions=tuple(one for one in found if isinstance(one, AddFile | RemoveFile)),
    )


def read_notes(
    log: DeltaLog, listing: LogListing, checkpoint: Checkpoint
) -> tuple[Transaction | DomainMetadata, ...]:
    """What a checkpoint says of applications and of features. Raises `BrokenLogError` where it cannot be read."""
    found: list[LogAction] = []
    for entry in checkpoint.files:
        if entry.path.endswith(".json"):
            found += parse_actions(log.lines(entry, listing), entry.path)
        else:
            with log.parquet(entry, listing) as file:
                found += _small_actions(file, _NOTES)
    return tuple(one for one in found if isinstance(one, Transaction | DomainMetadata))


def file_batches(
    log: DeltaLog, listing: LogListing, head: CheckpointHead, *, whole: bool = False
) -> Iterator[FileBatch]:
    """The checkpoint's files, at most 65,536 at a time (those kept as JSON are in `head.actions`).

    `whole` reads every column of every file, also those that nobody asks for: what cannot be read shows.
    """
    for entry in head.parquet:
        with log.parquet(entry, listing) as file:
            columns = _present(file, _FILES)
            if not whole and not any(column.endswith(".path") for column in columns):
                continue
            size = _WHOLE_BATCH if whole else _BATCH
            for batch in file.iter_batches(batch_size=size, columns=None if whole else columns):
                yield FileBatch(adds=_rows(batch, "add"), removes=_rows(batch, "remove"))


def _only(found: list[LogAction], kind: type[_Action], where: str, name: str) -> _Action:
    for one in reversed(found):
        if isinstance(one, kind):
            return one
    raise BrokenLogError(LOG_READABLE, f"There is no {name} in {where}.")


def _sidecar(log: DeltaLog, sidecar: Sidecar, where: str) -> FileEntry:
    path = sidecar.name if sidecar.name.startswith("/") else f"{SIDECARS}/{sidecar.name}"
    entry = log.stat(path)
    if entry is None:
        raise BrokenLogError(LOG_READABLE, f"{path}, a part of {where}, is missing.")
    return entry


def _present(file: pq.ParquetFile, wanted: tuple[str, ...]) -> list[str]:
    """The dotted columns that this file has; writers leave out what they do not use."""
    schema = file.schema_arrow

    def has(dotted: str) -> bool:
        first, *rest = dotted.split(".")
        kind: Any = schema.field(first).type if first in schema.names else None
        for name in rest:
            if kind is None or not pa.types.is_struct(kind) or kind.get_field_index(name) < 0:
                return False
            kind = kind.field(name).type
        return kind is not None

    return [dotted for dotted in wanted if has(dotted)]


def _rows(batch: pa.RecordBatch, name: str) -> pa.StructArray:
    """The rows in which a struct column and its path are there."""
    if name not in batch.schema.names:
        return pa.array([], pa.struct([("path", pa.string())]))
    column = batch.column(name)
    return column.filter(pc.is_valid(pc.struct_field(column, "path")))


def _small_actions(file: pq.ParquetFile, kinds: tuple[str, ...]) -> Iterator[LogAction]:
    columns = [name for name in kinds if name in file.schema_arrow.names]
    if not columns:
        return
    for batch in file.iter_batches(batch_size=_BATCH, columns=columns):
        for name in columns:
            column = batch.column(name)
            for body in column.filter(column.is_valid()).to_pylist():
                action = _PARSERS[name](body)
                if action is not None:
                    yield action


def _metadata(body: dict[str, Any]) -> Metadata | None:
    if body["id"] is None:
        return None
    return Metadata(
        body["id"],
        body.get("name"),
        body.get("description"),
        body.get("schemaString"),
        tuple(body.get("partitionColumns") or ()),
        dict(body.get("configuration") or ()),
    )


def _protocol(body: dict[str, Any]) -> Protocol | None:
    if body["minReaderVersion"] is None:
        return None
    return Protocol(
        body["minReaderVersion"],
        body["minWriterVersion"],
        tuple(body.get("readerFeatures") or ()),
        tuple(body.get("writerFeatures") or ()),
    )


def _sidecar_action(body: dict[str, Any]) -> Sidecar | None:
    return None if body["path"] is None else Sidecar(body["path"], body["sizeInBytes"])


def _transaction(body: dict[str, Any]) -> Transaction | None:
    return None if body["appId"] is None else Transaction(body["appId"], body["version"])


def _domain(body: dict[str, Any]) -> DomainMetadata | None:
    if body["domain"] is None:
        return None
    return DomainMetadata(body["domain"], None if body.get("removed") else body.get("configuration") or "")


_PARSERS: Final = {
    "metaData": _metadata,
    "protocol": _protocol,
    "sidecar": _sidecar_action,
    "txn": _transaction,
    "domainMetadata": _domain,
}
