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

from lakewarden.catalog.bounds import as_whole
from lakewarden.catalog.formats.port import Commit, CommitKind
from lakewarden.catalog.formats.registry import has_versions, is_kept
from lakewarden.catalog.model.lineage_record import (
    RENUMBERED,
    LineageInput,
    LineageRecord,
    Operation,
    RecordVerdict,
)
from lakewarden.catalog.model.rollbacks import is_mark

__all__ = [
    "Effect",
    "Touch",
    "Version",
    "effect_of",
    "history_of",
    "is_blind_restore",
    "only_kept",
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
    """One version of a table."""

    version: int
    parent: int | None
    """The version that it was made from, None for the table's first."""
    operation: str
    """One of `lineage_record.Operation` for content, else as the engine named it."""
    effect: Effect
    touch: Touch = Touch.CONTENT
    known: bool = False
    """Every input of this commit is on record, but for the table itself."""
    inputs: tuple[LineageInput, ...] = ()
    reads_self: bool = False
    """The table itself is an input."""
    target: int | None = None
    """What a RESTORE went back to, None if the log does not say; for removed files, the version before the first of
    them."""
    blind: bool = False
    """A blind append: the commit added files and read nothing of the table."""
    may_look: bool = False
    """As in `Commit`."""
    rows: int | None = None
    """Rows that the commit added, None if unknown."""
    files: int | None = None
    """Likewise."""
    run_id: str | None = None
    query: str | None = None
    """The streaming query whose batch a record says this is."""
    user: str | None = None
    """Who its record names."""
    format_id: str | None = None
    """The table's UUID at this version, None where it is not known."""
    replaced: str | None = None
    """The UUID before, where this version made the table anew in the same log."""
    transactions: tuple[tuple[str, int], ...] = ()
    once_managed: tuple[str, ...] = ()
    """The places of tables that nobody managed when it read them: once somebody does, everything is known (empty
    where more than that is missing)."""
    idle: bool = False
    """The commit neither added nor removed a file, not one of deletes either: there is nothing to lose."""
    changes_columns: bool = False
    """As in `Commit`."""
    beside: bool = False
    """As in `Commit`, as is what it copied."""
    copied: int | None = None
    recorded: bool = False
    """The commit carries a credible record of its own."""
    committed_at: datetime | None = None
    """As the commit itself has it, as are engine and writer. They are for people, but for logs that were put back
    (rewritten_logs.py)."""
    engine: str | None = None
    writer: str | None = None


_CONTENT: Final[Mapping[CommitKind, Operation]] = {
    CommitKind.CREATE: Operation.REPLACE,
    CommitKind.REPLACE: Operation.REPLACE,
    CommitKind.APPEND: Operation.APPEND,
    CommitKind.MERGE: Operation.MERGE,
    CommitKind.UPDATE: Operation.UPDATE,
    CommitKind.DELETE: Operation.DELETE,
    CommitKind.PARTIAL_OVERWRITE: Operation.PARTIAL_OVERWRITE,
    CommitKind.OVERWRITE: Operation.OVERWRITE,
}
_KEEP_ROWS: Final = frozenset(
    {CommitKind.MAINTENANCE, CommitKind.SCHEMA, CommitKind.PROPERTIES, CommitKind.METADATA}
)
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
_RESTORE: Final = "RESTORE"
"""A RESTORE with an unknown target in `lakewarden.lineage`."""
_ROWS_METRICS: Final = ("numOutputRows", "numTargetRowsInserted", "num_added_rows")
_COPIED_METRICS: Final = ("numCopiedRows", "numTargetRowsCopied")
"""Rows of before that were written once more, and are among the first of these."""


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
    if commit.kind is CommitKind.RESTORE:
        target = _restored(commit)
        return _version(commit, format_id, _RESTORE, Effect.RESTORE, known=target is not None, target=target)
    if commit.kind is CommitKind.CREATE:
        return _version(commit, format_id, Operation.REPLACE, Effect.FRESH, known=True)
    if _keeps_rows(commit):
        return _version(commit, format_id, commit.operation, Effect.ALIAS, known=True, touch=_touch(commit))
    derived = _CONTENT.get(commit.kind)
    if record is None or not (commit.parent is None or _agrees(record.operation, derived, commit)):
        effect = Effect.CHANGE if derived is None else _EFFECTS[derived]
        operation = commit.operation if derived is None else derived.value
        return _version(commit, format_id, operation, effect, known=False)
    return _governed(commit, format_id, record, derived)


def is_blind_restore(commit: Commit) -> bool:
    """Whether a commit is a RESTORE without its target: by a time, not by a version."""
    return commit.kind is CommitKind.RESTORE and _restored(commit) is None


def only_kept(commit: Commit) -> bool:
    """Whether a commit sets properties, and only such as outlive a rollback."""
    changed = commit.changed_properties
    return commit.kind is CommitKind.PROPERTIES and changed is not None and all(map(is_kept, changed))


def effect_of(operation: str) -> Effect:
    """The effect of an operation by its name; CHANGE, the most cautious one, for a name nobody knows."""
    return _EFFECTS.get(operation, Effect.CHANGE)


def _governed(
    commit: Commit, format_id: str | None, record: LineageRecord, derived: Operation | None
) -> Version:
    """A write with a record. Where record and commit differ in how much was overwritten, the lesser counts."""
    partial = Operation.PARTIAL_OVERWRITE in (derived, record.operation)
    operation = Operation.PARTIAL_OVERWRITE if partial else record.operation
    lake = [
        one
        for one in record.inputs
        if one.table_id is not None or one.version is not None or has_versions(one.format)
    ]
    outside = tuple(dict.fromkeys(one.location for one in lake if one.table_id is None))
    nowhere = any(one.table_id is None and not one.location for one in record.inputs)  # rows of an RDD
    unpinned = any(one.version is None for one in lake)
    told = commit.lineage_verdict is RecordVerdict.COMPLETE and not (nowhere or unpinned)
    made = _version(
        commit,
        format_id,
        operation,
        Effect.FRESH if commit.parent is None else effect_of(operation),
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
        parent=commit.parent,
        operation=operation,
        effect=effect,
        touch=touch,
        known=known,
        inputs=() if record is None else record.inputs,
        reads_self=record is not None and record.reads_self,
        target=target,
        blind=effect is Effect.APPEND and adds_only and commit.blind_append is not False,
        may_look=commit.may_look,
        rows=_rows(commit),
        files=commit.added_files if commit.data_change else None,
        run_id=commit.run_id,
        query=None if record is None else record.query,
        user=None if record is None else record.user,
        format_id=commit.format_id or format_id,
        transactions=commit.transactions,
        idle=_is_idle(commit),
        changes_columns=commit.changes_columns,
        beside=commit.beside,
        copied=commit.copied,
        recorded=record is not None,
        committed_at=commit.committed_at,
        engine=commit.engine,
        writer=commit.user,
    )


def _is_idle(commit: Commit) -> bool:
    return commit.added_files + commit.removed_files == 0 if commit.idle is None else commit.idle


def _agrees(recorded: Operation, derived: Operation | None, commit: Commit) -> bool:
    if derived is None:
        return False
    if recorded is Operation.REMOVE_FILES:
        return derived is Operation.DELETE and commit.added_files == 0
    return recorded is derived or (recorded in _REPLACING and derived in _REPLACING)


def _keeps_rows(commit: Commit) -> bool:
    """Whether the table holds the rows it held before. A commit without files that is ours, and takes back
    numbers of streams, is believed, too."""
    if commit.kind in _KEEP_ROWS:
        return True
    is_idle = not commit.data_change and _is_idle(commit)
    return is_idle and commit.parent is not None and _only_renumbers(commit)


def _only_renumbers(commit: Commit) -> bool:
    return is_mark(commit.run_id) or (commit.run_id or "").startswith(RENUMBERED)


def _restored(commit: Commit) -> int | None:
    target = commit.restored
    return target if target is not None and target < commit.version else None


def _touch(commit: Commit) -> Touch:
    if commit.kind is CommitKind.SCHEMA or commit.changes_columns:
        return Touch.SCHEMA
    redefines = commit.kind is not CommitKind.MAINTENANCE and commit.format_id is not None
    return Touch.PROPERTIES if redefines and not only_kept(commit) else Touch.MAINTENANCE


def _rows(commit: Commit) -> int | None:
    for name in _ROWS_METRICS:
        rows = as_whole(commit.metrics.get(name, ""))
        if rows is not None and name == "numOutputRows":
            copied = next((commit.metrics[one] for one in _COPIED_METRICS if one in commit.metrics), "0")
            known = as_whole(copied)
            return None if known is None else rows - known
        if rows is not None:
            return rows
    return None
