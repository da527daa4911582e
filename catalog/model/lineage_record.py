"""The lineage record: what a governed write says, inside its own commit, about what it read. Pure.

Spark carries it in `commitInfo.userMetadata`, as JSON under the key `lakewarden`; delta-rs in a key of its own,
`lakewarden.lineage`, whose value is the record as JSON text. The record of version 1:

    {"v": 1, "run_id": "...", "operation": "append", "user": "ana",
     "inputs": [{"table_id": "...", "location": "...", "format": "delta", "version": 7,
                 "from_version": 5, "format_id": "..."}],
     "reads_self": true, "missing_inputs": 3, "user_metadata": "...", "statement": "...",
     "dialect": "postgres", "matches": "error", "query": "...",
     "rows_write": "position", "because": "..."}

Keys whose value is null, false, 0 or empty are left out. `user_metadata` is the place where the user's own
`userMetadata` stays readable, character by character; `statement` the digest of what was run under an operation id.
`dialect` is whose SQL an UPDATE, DELETE or upsert was read as, `matches` its policy for rows with several matches;
older records have neither. `query` is the id of the streaming query of which this is a batch. `rows_write` is how the
rows that changed were written where somebody asked for a way, `because` who, and with `auto` by which numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

import orjson

from lakewarden.catalog.errors import UsageError

__all__ = [
    "NO_RECORD",
    "OPERATION",
    "OPERATION_ID",
    "OPERATION_NUMBER",
    "RECORD_KEY",
    "RECORD_LIMIT_BYTES",
    "RECORD_VERSION",
    "RENUMBERED",
    "STATEMENT",
    "USER_KEY",
    "USER_METADATA_LIMIT_BYTES",
    "LineageInput",
    "LineageRecord",
    "Operation",
    "RecordReading",
    "RecordVerdict",
    "custom_metadata",
    "encode_record",
    "group_app",
    "is_like_record",
    "read_record",
    "user_metadata",
]

OPERATION: Final = "lakewarden.operation/"
"""Prefix of application ids of writes under an operation id; the name follows."""
OPERATION_ID: Final = "lakewarden.operation_id"
"""Key, in a snapshot's summary, of the application id of a write under an operation id."""
OPERATION_NUMBER: Final = "lakewarden.operation_number"
"""Key, beside it, of the number under that id."""
STATEMENT: Final = "lakewarden-sql-"
"""How the application id of a SQL statement begins that its session gave an operation id; the id follows."""
_GROUP: Final = "group/"
RENUMBERED: Final = "renumbered-"
"""How the run id of a commit begins that does nothing but take back the number of an application: what a RESTORE of
Spark's undid keeps its number, and could not be written again."""
RECORD_VERSION: Final = 1
RECORD_LIMIT_BYTES: Final = 16_384
"""What a record takes in the log at most, without the user's own metadata. About 70 inputs on HDFS."""
USER_METADATA_LIMIT_BYTES: Final = 65_536
RECORD_KEY: Final = "lakewarden.lineage"
"""Key of the record in a commitInfo that delta-rs wrote."""
RUN_ID: Final = "lakewarden.run_id"
"""Key of a run's id in a commitInfo that delta-rs wrote, and in a snapshot's summary."""
INSTALLATION: Final = "lakewarden.installation"
"""Key, beside it, of the installation whose run it is."""
USER_KEY: Final = "lakewarden"
"""Key of the record in `userMetadata`, as Spark writes it."""

Json = Mapping[str, Any]


class Operation(StrEnum):
    """What a write did to the table's content. `replace` is CREATE [OR REPLACE] TABLE, with or without rows.

    `remove files` took away exactly what some earlier versions had added. Its inputs are versions of its own table: the
    one before the first of these, and, as changes, those since that stay.
    """

    APPEND = "append"
    MERGE = "merge"
    UPDATE = "update"
    DELETE = "delete"
    OVERWRITE = "overwrite"
    PARTIAL_OVERWRITE = "partial overwrite"
    REPLACE = "replace"
    REMOVE_FILES = "remove files"


class RecordVerdict(StrEnum):
    """How far the lineage of a commit is known from the commit itself.

    `incomplete`: there is a record, but inputs did not fit. `unknown`: there is something that is no record of a
    version we read. Readers treat both, and `absent`, as unknown lineage, never as clean.
    """

    ABSENT = "absent"
    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class LineageInput:
    """One version that a write read."""

    table_id: str | None = None
    """None for what is not managed."""
    location: str
    format: str
    version: int | None = None
    """None where there are none."""
    from_version: int | None = None
    """Set where only changes were read: those of the versions after it, up to the one that was read."""
    format_id: str | None = None
    """The UUID the table had, which tells a recreated table from its predecessor at the same place."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LineageRecord:
    """What one governed write read."""

    run_id: str
    operation: Operation
    user: str
    """Who asked for it."""
    inputs: tuple[LineageInput, ...] = ()
    reads_self: bool = False
    """Its result depends on what the table held before, beyond what the operation itself keeps of it."""
    missing_inputs: int = 0
    """Counts inputs that the writer knew and that did not fit."""
    user_metadata: str | None = None
    """What the user wanted in `userMetadata`."""
    statement: str | None = None
    """The SHA-256, in hexadecimal, of the text that its operation id stands for; None for what has no such id."""
    dialect: str | None = None
    """How a statement was read; None for what is none."""
    matches: str | None = None
    """Likewise."""
    query: str | None = None
    """The id of the streaming query whose batch was written, and whose id and number are the commit's transaction;
    None for what is no such batch."""
    rows_write: str | None = None
    """How rows that changed were written: a word of `rows.write`; None where nobody asked."""
    because: str | None = None
    """Why so."""

    @property
    def complete(self) -> bool:
        """Whether `inputs` is everything that was read."""
        return self.missing_inputs == 0


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordReading:
    """What was found in a commit: a record, or None and why it counts as nothing."""

    record: LineageRecord | None
    verdict: RecordVerdict


NO_RECORD: Final = RecordReading(record=None, verdict=RecordVerdict.ABSENT)
_INT64: Final = 2**63
_UNREADABLE: Final = RecordReading(record=None, verdict=RecordVerdict.UNKNOWN)


def group_app(group_id: str) -> str:
    """The application id that every commit of a statement over several tables carries: in each table it is made once,
    or never, where something else says that it was."""
    return f"{OPERATION}{_GROUP}{group_id}"


def encode_record(record: LineageRecord) -> str:
    """The record as JSON text; inputs that would exceed `RECORD_LIMIT_BYTES` are counted instead of listed.

    Raises `UsageError` if the user's own metadata exceeds `USER_METADATA_LIMIT_BYTES`: it is never cut.
    """
    own = record.user_metadata or ""
    if len(own.encode()) > USER_METADATA_LIMIT_BYTES:
        raise UsageError(
            f"userMetadata is larger than {USER_METADATA_LIMIT_BYTES:,} bytes.",
            hint="Keep it where it belongs and write a reference to it.",
        )
    return orjson.dumps(_as_json(_fitted(record))).decode()


def user_metadata(record: LineageRecord) -> str:
    """The text for Spark's `userMetadata`. Raises like `encode_record`."""
    return f'{{"{USER_KEY}":{encode_record(record)}}}'


def custom_metadata(record: LineageRecord) -> dict[str, str]:
    """The keys for a commit by delta-rs, beside its run id. Raises like `encode_record`."""
    return {RECORD_KEY: encode_record(record)}


def is_like_record(text: str) -> bool:
    """Whether a user's metadata has the key of lineage records, in any spelling."""
    if f'"{USER_KEY}"' in text:
        return True
    try:
        outer = orjson.loads(text)
    except ValueError:
        return False
    return isinstance(outer, dict) and USER_KEY in outer


def read_record(own: object, user: object) -> RecordReading:
    """What a commit says of its lineage: `own` is the value of `RECORD_KEY`, `user` that of `userMetadata`.

    Anybody can write anything there: what is no record is `unknown`, a JSON text without one `absent`.
    """
    if own is not None:
        return _read(own)
    if not isinstance(user, str) or f'"{USER_KEY}"' not in user:
        return NO_RECORD
    try:
        outer = orjson.loads(user)
    except ValueError:
        return _UNREADABLE
    if not isinstance(outer, dict) or USER_KEY not in outer:
        return NO_RECORD
    ours = outer[USER_KEY]
    if isinstance(ours, dict) and not ours.keys() & {"v", "operation", "inputs"}:
        return NO_RECORD  # the run id of our own maintenance
    return _read(ours)


def _read(value: object) -> RecordReading:
    try:
        body = orjson.loads(value) if isinstance(value, str) else value
        record = _record(_object(body))
    except (ValueError, KeyError, TypeError):
        return _UNREADABLE
    verdict = RecordVerdict.COMPLETE if record.complete else RecordVerdict.INCOMPLETE
    return RecordReading(record=record, verdict=verdict)


def _record(body: Json) -> LineageRecord:
    if _count(body["v"]) != RECORD_VERSION:
        raise ValueError("another version")
    return LineageRecord(
        run_id=_text(body["run_id"]),
        operation=Operation(_text(body["operation"])),
        user=_text(body["user"]),
        inputs=tuple(_input(_object(one)) for one in _sequence(body.get("inputs", []))),
        reads_self=_flag(body.get("reads_self", False)),
        missing_inputs=_count(body.get("missing_inputs", 0)),
        user_metadata=_optional_text(body.get("user_metadata")),
        statement=_optional_text(body.get("statement")),
        dialect=_optional_text(body.get("dialect")),
        matches=_optional_text(body.get("matches")),
        query=_optional_text(body.get("query")),
        rows_write=_optional_text(body.get("rows_write")),
        because=_optional_text(body.get("because")),
    )


def _input(body: Json) -> LineageInput:
    return LineageInput(
        table_id=_optional_text(body.get("table_id")),
        location=_text(body["location"]),
        format=_text(body["format"]),
        version=_optional_number(body.get("version")),
        from_version=_optional_number(body.get("from_version")),
        format_id=_optional_text(body.get("format_id")),
    )


def _fitted(record: LineageRecord) -> LineageRecord:
    """As many inputs, in the order given, as fit; the rest is counted."""
    bare = replace(record, inputs=(), user_metadata=None, missing_inputs=10**9)
    room = RECORD_LIMIT_BYTES - len(orjson.dumps(_as_json(bare)))
    kept = 0
    for one in record.inputs:
        room -= len(orjson.dumps(_input_as_json(one))) + 1
        if room < 0:
            break
        kept += 1
    missing = record.missing_inputs + len(record.inputs) - kept
    return replace(record, inputs=record.inputs[:kept], missing_inputs=missing)


def _as_json(record: LineageRecord) -> dict[str, Any]:
    body = {
        "v": RECORD_VERSION,
        "run_id": record.run_id,
        "operation": record.operation.value,
        "user": record.user,
        "inputs": [_input_as_json(one) for one in record.inputs],
        "reads_self": record.reads_self,
        "missing_inputs": record.missing_inputs,
        "user_metadata": record.user_metadata,
        "statement": record.statement,
        "dialect": record.dialect,
        "matches": record.matches,
        "query": record.query,
        "rows_write": record.rows_write,
        "because": record.because,
    }
    return {key: value for key, value in body.items() if value or value == ""}


def _input_as_json(one: LineageInput) -> dict[str, Any]:
    body = {
        "table_id": one.table_id,
        "location": one.location,
        "format": one.format,
        "version": one.version,
        "from_version": one.from_version,
        "format_id": one.format_id,
    }
    return {key: value for key, value in body.items() if value is not None}


def _object(value: object) -> Json:
    if not isinstance(value, dict):
        raise TypeError("not an object")
    return value


def _sequence(value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _optional_text(value: object) -> str | None:
    return None if value is None else _text(value)


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError("not a whole number")
    if not -_INT64 <= value < _INT64:
        raise ValueError("too large for a version")
    return value


def _optional_number(value: object) -> int | None:
    return None if value is None else _number(value)


def _count(value: object) -> int:
    number = _number(value)
    if number < 0:
        raise ValueError("negative")
    return number


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError("neither true nor false")
    return value
