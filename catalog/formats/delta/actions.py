"""One commit, or a checkpoint written as JSON, as typed actions. Pure: bytes in, values out."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from lakewarden.catalog.bounds import LARGEST_FILE, fits
from lakewarden.catalog.formats.delta.errors import LOG_READABLE, BrokenLogError
from lakewarden.catalog.formats.delta.file_paths import decoded, deletion_vector_path, spelling_of
from lakewarden.catalog.formats.port import Partition
from lakewarden.catalog.model.lineage_record import (
    INSTALLATION,
    NO_RECORD,
    RECORD_KEY,
    RUN_ID,
    RecordReading,
    read_record,
)

__all__ = [
    "AddFile",
    "CommitInfo",
    "DeletionVector",
    "DomainMetadata",
    "LogAction",
    "Metadata",
    "Protocol",
    "RemoveFile",
    "Sidecar",
    "Transaction",
    "parse_actions",
]


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """Rows of a file that are deleted."""

    key: str
    """What tells vectors apart."""
    file: str | None
    """The vector's place; None if it is in the log."""
    deleted_rows: int


@dataclass(frozen=True, slots=True)
class AddFile:
    """A live file. Times in epoch milliseconds."""

    path: str
    """Decoded."""
    partition: Partition
    size_bytes: int
    modified_ms: int
    data_change: bool
    rows: int | None
    """Before deletions; None if not recorded."""
    vector: DeletionVector | None
    stats_key: int | None = field(default=None, compare=False)
    """Hash of its statistics as a commit has them; None if it has none, or comes from a checkpoint's columns."""
    spelling: str | None = None
    """What tells it from others in the log; None for `path` itself."""

    @property
    def entry(self) -> str:
        """How the log names it: what tells it from others there."""
        return self.spelling or self.path


@dataclass(frozen=True, slots=True)
class RemoveFile:
    """A file that left the table."""

    path: str
    removed_ms: int | None
    """None if the writer did not say."""
    size_bytes: int | None
    data_change: bool
    vector: DeletionVector | None
    partition: Partition | None = field(default=None, compare=False)
    """None if the writer did not say, and always for what comes from a checkpoint's columns."""
    spelling: str | None = None
    """As in `AddFile`."""

    @property
    def entry(self) -> str:
        """How the log names it: what tells it from others there."""
        return self.spelling or self.path


@dataclass(frozen=True, slots=True)
class Metadata:
    """The table itself: UUID, names, schema as JSON text (None where there is none yet), properties."""

    id: str
    name: str | None
    description: str | None
    schema_json: str | None
    partition_columns: tuple[str, ...]
    properties: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Protocol:
    """What readers and writers of the table have to understand."""

    reader: int
    writer: int
    reader_features: tuple[str, ...] = ()
    writer_features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Transaction:
    """The last version that an application says it has written."""

    app_id: str
    version: int


@dataclass(frozen=True, slots=True)
class DomainMetadata:
    """What one feature keeps about the table."""

    domain: str
    """The feature's name for it."""
    configuration: str | None
    """None if it was taken away."""


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A file of a V2 checkpoint that holds file actions."""

    name: str
    """Within the sidecar folder."""
    size_bytes: int


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """What the writer says about its commit. Times in epoch milliseconds; values of the maps as text."""

    operation: str = "unknown"
    timestamp_ms: int | None = None
    in_commit_ms: int | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    blind_append: bool | None = None
    engine: str | None = None
    user: str | None = None
    user_metadata: str | None = None
    run_id: str | None = None
    installation: str | None = None
    lineage: RecordReading = NO_RECORD


LogAction = AddFile | RemoveFile | Metadata | Protocol | Transaction | DomainMetadata | Sidecar | CommitInfo

Json = Mapping[str, Any]

_LONGEST_ID: Final = 64


def parse_actions(lines: Iterable[bytes], name: str) -> Iterator[LogAction]:
    """The actions of a commit, line by line; kinds that say nothing about files or state are left out.

    `name` says which file this is, for the sentence of the `BrokenLogError` raised when a line cannot be understood.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            content = orjson.loads(line)
            for kind, body in content.items():
                parse = _PARSERS.get(kind)
                if parse is not None and body is not None:
                    yield parse(body)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise BrokenLogError(LOG_READABLE, f"Line {number} of {name} cannot be understood.") from error


def _add(body: Json) -> AddFile:
    path, stats = _text(body["path"]), body.get("stats")
    return AddFile(
        decoded(path),
        _partition(body.get("partitionValues") or {}),
        _number(body["size"]),
        _number(body.get("modificationTime") or 0),
        bool(body.get("dataChange")),
        rows_in(stats) if stats else None,
        _vector(body.get("deletionVector")),
        hash(stats) if stats else None,
        spelling_of(path),
    )


def _remove(body: Json) -> RemoveFile:
    path, partition = _text(body["path"]), body.get("partitionValues")
    removed, size = body.get("deletionTimestamp"), body.get("size")
    return RemoveFile(
        decoded(path),
        _number(removed) if removed else None,
        None if size is None else _number(size),
        bool(body.get("dataChange")),
        _vector(body.get("deletionVector")),
        None if partition is None else _partition(partition),
        spelling_of(path),
    )


def _metadata(body: Json) -> Metadata:
    schema = body.get("schemaString")
    return Metadata(
        _text(body["id"]),
        body.get("name"),
        body.get("description"),
        None if schema is None else _text(schema),
        tuple(_text(column) for column in body.get("partitionColumns") or ()),
        {key: _plain(value) for key, value in (body.get("configuration") or {}).items()},
    )


def _protocol(body: Json) -> Protocol:
    return Protocol(
        _number(body["minReaderVersion"]),
        _number(body["minWriterVersion"]),
        tuple(_text(feature) for feature in body.get("readerFeatures") or ()),
        tuple(_text(feature) for feature in body.get("writerFeatures") or ()),
    )


def _transaction(body: Json) -> Transaction:
    return Transaction(_text(body["appId"]), _number(body["version"]))


def _domain(body: Json) -> DomainMetadata:
    taken = bool(body.get("removed"))
    return DomainMetadata(_text(body["domain"]), None if taken else _text(body.get("configuration") or ""))


def _sidecar(body: Json) -> Sidecar:
    return Sidecar(decoded(_text(body["path"])), _number(body["sizeInBytes"]))


def _commit_info(body: Json) -> CommitInfo:
    user = body.get("userMetadata")
    lineage = read_record(body.get(RECORD_KEY), user)
    return CommitInfo(
        operation=_plain(body.get("operation") or "unknown"),
        timestamp_ms=_millis(body.get("timestamp")),
        in_commit_ms=_millis(body.get("inCommitTimestamp")),
        parameters=_texts(body.get("operationParameters")),
        metrics=_texts(body.get("operationMetrics")),
        blind_append=body.get("isBlindAppend"),
        engine=body.get("engineInfo"),
        user=_user(body),
        user_metadata=None if user is None else _plain(user),
        run_id=_run_id(body.get(RUN_ID), user, lineage),
        installation=_installation(body.get(INSTALLATION), user),
        lineage=lineage,
    )


def _user(body: Json) -> str | None:
    """Who wrote it, as some engines say: a name, else an id."""
    return next(
        (one for one in (body.get("userName"), body.get("userId")) if isinstance(one, str) and one), None
    )


def _run_id(own: object, user: object, lineage: RecordReading) -> str | None:
    """delta-rs carries our run id as a key of its own, Spark inside `userMetadata` (JSON, anybody's);
    a record names its run."""
    if isinstance(own, str):
        return own
    if lineage.record is not None:
        return lineage.record.run_id
    return _stamped(user, "run_id")


def _installation(own: object, user: object) -> str | None:
    """Whose maintenance it is; where it stands, as of the run id. What is no id is anybody's word."""
    told = own if isinstance(own, str) else _stamped(user, "installation")
    return told if told and len(told) <= _LONGEST_ID else None


def _stamped(user: object, key: str) -> str | None:
    if not isinstance(user, str) or '"lakewarden"' not in user or f'"{key}"' not in user:
        return None
    try:
        ours = orjson.loads(user)["lakewarden"][key]
    except (ValueError, KeyError, TypeError):
        return None
    return ours if isinstance(ours, str) else None


_PARSERS: Final[Mapping[str, Callable[[Json], LogAction]]] = {
    "add": _add,
    "remove": _remove,
    "metaData": _metadata,
    "protocol": _protocol,
    "txn": _transaction,
    "domainMetadata": _domain,
    "sidecar": _sidecar,
    "commitInfo": _commit_info,
}


def rows_in(stats: str) -> int | None:
    """The number of rows that a file's statistics (JSON text) record."""
    try:
        rows = orjson.loads(stats).get("numRecords")
    except (ValueError, AttributeError):
        return None  # statistics are a help, not the truth: without them the file is read like any other
    return rows if isinstance(rows, int) and 0 <= rows <= LARGEST_FILE else None


def _vector(body: Json | None) -> DeletionVector | None:
    if body is None:
        return None
    storage, where = _text(body["storageType"]), _text(body["pathOrInlineDv"])
    return vector_of(storage, where, body.get("offset"), _number(body["cardinality"]))


def vector_of(storage: str, where: str, offset: int | None, deleted_rows: int) -> DeletionVector:
    """A deletion vector from the fields of its descriptor. Raises ValueError for an unknown storage type."""
    key = f"{storage}{where}" if offset is None else f"{storage}{where}@{offset}"
    return DeletionVector(key, deletion_vector_path(storage, where), deleted_rows)


def _partition(values: Mapping[str, Any]) -> Partition:
    """Partition values by column name, sorted. An empty string means NULL (protocol, Partition Value Serialization)."""
    return tuple(sorted((key, value or None) for key, value in values.items())) if values else ()


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"not a text: {value!r}")
    return value


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"not a whole number: {value!r}")
    if not fits(value):
        raise ValueError(f"more than 64 bits: {value}")
    return value


def _millis(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _plain(value: object) -> str:
    """Text as it is, anything else as JSON: writers put any type into properties and parameters."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _texts(values: object) -> Mapping[str, str]:
    return {key: _plain(value) for key, value in values.items()} if isinstance(values, dict) else {}
