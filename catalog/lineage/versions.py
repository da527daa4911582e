"""What each version of a table is made of: its parent's content, another version's, something new. Pure.

A commit says it by its operation and its record (`Commit.lineage`), not by how many rows came of it: an overwrite by no
rows is an overwrite, it read what it read. What is not known for sure is taken the cautious way: a foreign
write has unknown inputs, an operation of a name nobody knows may have done anything, and a record that
contradicts its commit (metadata set on a session leaks into other statements) counts as none.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Final

import orjson

from lakewarden.catalog.bounds import as_whole
from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.model.lineage_record import LineageInput, LineageRecord, Operation, RecordVerdict
from lakewarden.catalog.model.rollbacks import is_mark
from lakewarden.catalog.policy.kept_properties import keeps

__all__ = [
    "Effect",
    "Touch",
    "Version",
    "effect_of",
    "history_of",
    "is_blind_restore",
    "is_property_commit",
    "version_of",
]


class Effect(IntEnum):
    """How a version's content comes from other versions of its table.

    ALIAS: its parent's content. RESTORE: its target's. APPEND: its parent's, and rows that do not depend on it.
    CHANGE: what it made of its parent's. FRESH: nothing of its parent's.
    """

    ALIAS = 0
    RESTORE = 1
    APPEND = 2
    CHANGE = 3
    FRESH = 4


class Touch(StrEnum):
    """What a commit touched, for the list of what a rewind loses: rows, columns, or neither."""

    CONTENT = "content"
    SCHEMA = "schema"
    PROPERTIES = "properties"
    MAINTENANCE = "maintenance"


@dataclass(frozen=True, kw_only=True, slots=True)
class Version:
    """One version of a table. `operation` is one of `record.Operation` for content, else as the engine named it.

    `known`: every input of this commit is in `inputs`, but for the table itself: `reads_self`. `target` is
    what a RESTORE went back to, None if the log does not say; for removed files, the version before the first
    of them. `rows` and `files` are what the commit added, None where it did not say; `blind`: it added files
    and read nothing of the table. `format_id` is the table's UUID at this version, None where it is not
    known; `replaced` the one before it, where this version made the table anew in the same log.
    `once_managed` are the places of tables that nobody managed when it read them: once somebody does,
    everything is known (empty where more than that is missing). `idle`: it neither added nor removed a file,
    so there is nothing of it to lose. `recorded`: it carries a record of its own that was believed. `user` is
    who its record names; `committed_at`, `engine` and `writer`, as the commit itself has them,
    are for people: nothing is decided by them.
    """

    version: int
    operation: str
    effect: Effect
    touch: Touch = Touch.CONTENT
    known: bool = False
    inputs: tuple[LineageInput, ...] = ()
    reads_self: bool = False
    target: int | None = None
    blind: bool = False
    rows: int | None = None
    files: int | None = None
    run_id: str | None = None
    user: str | None = None
    format_id: str | None = None
    replaced: str | None = None
    transactions: tuple[tuple[str, int], ...] = ()
    once_managed: tuple[str, ...] = ()
    idle: bool = False
    recorded: bool = False
    committed_at: datetime | None = None
    engine: str | None = None
    writer: str | None = None


_PROPERTY_COMMITS: Final = frozenset({"SET TBLPROPERTIES", "UNSET TBLPROPERTIES"})
_SCHEMA_COMMITS: Final = frozenset(
    {
        "ADD COLUMN",
        "ADD COLUMNS",
        "CHANGE COLUMN",
        "CHANGE COLUMNS",
        "DROP COLUMNS",
        "RENAME COLUMN",
        "REPLACE COLUMNS",
        "UPDATE COLUMN METADATA",
        "UPDATE FIELD METADATA",
        "UPDATE SCHEMA",
    }
)
_MAINTENANCE: Final = frozenset(
    {
        "COMPUTE STATISTICS",
        "COMPUTE STATS",
        "DOMAIN METADATA CLEANUP",
        "Deletion Vector Tombstones",
        "OPTIMIZE",
        "OPTIMIZE CHECKPOINT",
        "REMOVE COLUMN MAPPING",
        "REORG",
        "REORG TABLE UPGRADE UNIFORM",
        "ROW TRACKING BACKFILL",
        "ROW TRACKING UNBACKFILL",
        "VACUUM END",
        "VACUUM START",
    }
)
_METADATA_COMMITS: Final = frozenset(
    {
        "ADD CONSTRAINT",
        "ADD FEATURE",
        "CLUSTER BY",
        "DROP CONSTRAINT",
        "DROP FEATURE",
        "UPDATE TABLE METADATA",
        "UPGRADE PROTOCOL",
    }
)
_KEEP_ROWS: Final = _MAINTENANCE | _PROPERTY_COMMITS | _SCHEMA_COMMITS | _METADATA_COMMITS
"""Operations after which the table holds the rows it held before, whatever they counted."""
_CREATE: Final = "CREATE TABLE"
_CREATES: Final = frozenset({_CREATE, "CREATE OR REPLACE TABLE", "REPLACE TABLE"})
_OPERATIONS: Final[Mapping[str, Operation]] = {
    "MERGE": Operation.MERGE,
    "UPDATE": Operation.UPDATE,
    "DELETE": Operation.DELETE,
    "TRUNCATE": Operation.DELETE,
    "STREAMING UPDATE": Operation.APPEND,
    "COPY INTO": Operation.APPEND,
    "CREATE TABLE AS SELECT": Operation.REPLACE,
    "CREATE OR REPLACE TABLE AS SELECT": Operation.REPLACE,
    "REPLACE TABLE AS SELECT": Operation.REPLACE,
    "CONVERT": Operation.REPLACE,
    "CLONE": Operation.REPLACE,
    **dict.fromkeys(_CREATES, Operation.REPLACE),
}
_WRITES: Final = frozenset({"WRITE", *_OPERATIONS})
_EFFECTS: Final[Mapping[str, Effect]] = {
    Operation.APPEND: Effect.APPEND,
    Operation.MERGE: Effect.CHANGE,
    Operation.UPDATE: Effect.CHANGE,
    Operation.DELETE: Effect.CHANGE,
    Operation.PARTIAL_OVERWRITE: Effect.CHANGE,
    Operation.OVERWRITE: Effect.FRESH,
    Operation.REPLACE: Effect.FRESH,
    Operation.REMOVE_FILES: Effect.RESTORE,  # and what it kept of the versions since is among its inputs
}
_REPLACING: Final = frozenset({Operation.OVERWRITE, Operation.PARTIAL_OVERWRITE, Operation.REPLACE})
_LAKE_FORMATS: Final = frozenset({"delta", "hudi", "iceberg"})
_ROWS_METRICS: Final = ("numOutputRows", "numTargetRowsInserted", "num_added_rows")


def history_of(
    commits: Iterable[Commit], *, format_id: str | None = None, head_id: str | None = None
) -> tuple[Version, ...]:
    """The versions of a table from its commits, in order;
    each carries the UUID that was last set, at first `format_id`.

    Where that is not known, it is found backwards: from the first commit that sets one and is none that changes it, or
    from `head_id`, the UUID after the last commit.
    """
    versions = []
    for commit in commits:
        before, format_id = format_id, commit.format_id or format_id
        one = version_of(commit, format_id=format_id)
        anew = before != format_id and one.effect not in (Effect.ALIAS, Effect.RESTORE)
        versions.append(replace(one, replaced=before) if anew and before is not None else one)
    return _stamped(versions, head_id)


def _stamped(versions: Sequence[Version], head_id: str | None) -> tuple[Version, ...]:
    """The versions, those before the first that has a UUID with the same one, unless that may have changed it."""
    first = next((place for place, one in enumerate(versions) if one.format_id is not None), len(versions))
    uuid = head_id
    if first < len(versions):
        uuid = versions[first].format_id if versions[first].effect is Effect.ALIAS else None
    if first == 0 or uuid is None:
        return tuple(versions)
    return (*(replace(one, format_id=uuid) for one in versions[:first]), *versions[first:])


def version_of(commit: Commit, *, format_id: str | None = None) -> Version:
    """What one commit made. `format_id` is the table's UUID at it, where the commit itself does not set one."""
    record = commit.lineage
    if commit.operation == "RESTORE":
        target = _restored(commit)
        return _version(commit, format_id, "RESTORE", Effect.RESTORE, known=target is not None, target=target)
    if _creates_nothing(commit):
        return _version(commit, format_id, Operation.REPLACE, Effect.FRESH, known=True)
    if _keeps_rows(commit):
        return _version(commit, format_id, commit.operation, Effect.ALIAS, known=True, touch=_touch(commit))
    derived = _derived(commit)
    if record is None or not (commit.version == 0 or _agrees(record.operation, derived, commit)):
        effect = Effect.CHANGE if derived is None else _EFFECTS[derived]
        operation = commit.operation if derived is None else derived.value
        return _version(commit, format_id, operation, effect, known=False)
    return _governed(commit, format_id, record, derived)


def is_blind_restore(commit: Commit) -> bool:
    """Whether a commit is a RESTORE that does not say where it went: by a time, not by a version."""
    return commit.operation == "RESTORE" and _restored(commit) is None


def is_property_commit(commit: Commit) -> bool:
    """Whether a commit changed table properties and nothing else."""
    return commit.operation in _PROPERTY_COMMITS


def effect_of(operation: str) -> Effect:
    """The effect of an operation by its name; CHANGE, the most cautious one, for a name nobody knows."""
    return _EFFECTS.get(operation, Effect.CHANGE)


def _governed(
    commit: Commit, format_id: str | None, record: LineageRecord, derived: Operation | None
) -> Version:
    """A write with a record. Where record and commit differ in how much was overwritten, the lesser counts."""
    partial = Operation.PARTIAL_OVERWRITE in (derived, record.operation)
    operation = Operation.PARTIAL_OVERWRITE if partial else record.operation
    lake = [one for one in record.inputs if one.table_id is not None or one.format in _LAKE_FORMATS]
    outside = tuple(dict.fromkeys(one.location for one in lake if one.table_id is None))
    nowhere = any(one.table_id is None and not one.location for one in record.inputs)  # rows of an RDD
    unpinned = any(one.version is None for one in lake)
    told = commit.lineage_verdict is RecordVerdict.COMPLETE and not (nowhere or unpinned)
    made = _version(
        commit,
        format_id,
        operation,
        Effect.FRESH if commit.version == 0 else effect_of(operation),
        known=told and not outside,
        record=record,
        target=_base_of(record, commit.version) if operation == Operation.REMOVE_FILES else None,
    )
    return replace(made, once_managed=outside) if told and outside else made


def _base_of(record: LineageRecord, version: int) -> int | None:
    """The version that was there before the first of the removed files."""
    whole = [one.version for one in record.inputs if one.from_version is None and one.version is not None]
    return next((base for base in whole if base < version), None)


def _version(
    commit: Commit,
    format_id: str | None,
    operation: str,
    effect: Effect,
    *,
    known: bool,
    touch: Touch = Touch.CONTENT,
    target: int | None = None,
    record: LineageRecord | None = None,
) -> Version:
    adds_only = commit.added_files > 0 and commit.removed_files == 0
    return Version(
        version=commit.version,
        operation=operation,
        effect=effect,
        touch=touch,
        known=known,
        inputs=() if record is None else record.inputs,
        reads_self=record is not None and record.reads_self,
        target=target,
        blind=effect is Effect.APPEND and adds_only and commit.blind_append is not False,
        rows=_rows(commit),
        files=commit.added_files if commit.data_change else None,
        run_id=commit.run_id,
        user=None if record is None else record.user,
        format_id=commit.format_id or format_id,
        transactions=commit.transactions,
        idle=commit.added_files == 0 and commit.removed_files == 0,
        recorded=record is not None,
        committed_at=commit.committed_at,
        engine=commit.engine,
        writer=commit.user,
    )


def _derived(commit: Commit) -> Operation | None:
    """What the commit itself says it did; None for an operation we do not know."""
    if commit.operation == "STREAMING UPDATE" and commit.parameters.get("outputMode") == "Complete":
        return Operation.OVERWRITE
    if commit.operation != "WRITE":
        return _OPERATIONS.get(commit.operation)
    mode = commit.parameters.get("mode", "").lower()
    if mode == "append":
        return Operation.APPEND if commit.removed_files == 0 else None
    if mode in ("errorifexists", "ignore"):
        return Operation.REPLACE
    if mode == "overwrite":
        predicate = commit.parameters.get("predicate", "").strip('"[] ')
        return Operation.PARTIAL_OVERWRITE if predicate else Operation.OVERWRITE
    return None


def _agrees(recorded: Operation, derived: Operation | None, commit: Commit) -> bool:
    if derived is None:
        return False
    if recorded is Operation.REMOVE_FILES:
        return derived is Operation.DELETE and commit.added_files == 0
    return recorded is derived or (recorded in _REPLACING and derived in _REPLACING)


def _keeps_rows(commit: Commit) -> bool:
    """Whether the operation leaves the rows as they were. Files that are said to bring no change (statistics
    filled in, a rearrangement) are believed, and so is a commit without files that a rollback of ours marked."""
    files = commit.added_files + commit.removed_files
    if commit.version == 0 or commit.data_change:
        return False
    known = commit.operation in _KEEP_ROWS or commit.operation == _CREATE  # on what is there already
    return known or (files > 0 and commit.operation in _WRITES) or (files == 0 and is_mark(commit.run_id))


def _creates_nothing(commit: Commit) -> bool:
    """A table made or replaced without rows: its content is empty, wherever it came from."""
    anew = commit.version == 0 or commit.data_change or commit.operation != _CREATE
    return anew and commit.operation in _CREATES and commit.added_files == 0


def _restored(commit: Commit) -> int | None:
    text = commit.parameters.get("version", "").strip('" ')
    told = as_whole(text)
    target = commit.restored if told is None else told
    return target if target is not None and target < commit.version else None


def _touch(commit: Commit) -> Touch:
    if commit.format_id is None or _only_kept(commit):
        return Touch.MAINTENANCE
    return Touch.SCHEMA if commit.operation in _SCHEMA_COMMITS else Touch.PROPERTIES


def _only_kept(commit: Commit) -> bool:
    """Whether a commit sets properties, and only such as outlive a rollback."""
    try:
        told = orjson.loads(commit.parameters.get("properties", "")) if is_property_commit(commit) else None
    except ValueError:
        return False
    return isinstance(told, (dict, list)) and all(isinstance(key, str) and keeps(key) for key in told)


def _rows(commit: Commit) -> int | None:
    for name in _ROWS_METRICS:
        rows = as_whole(commit.metrics.get(name, ""))
        if rows is not None:
            return rows
    return None
