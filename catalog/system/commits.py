"""Commits to the system tables: compare-and-set on the handle the decision was read from, fenced, told why."""

import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.transaction import AddAction, RemoveAction

from lakewarden.catalog.errors import ConflictError, FencedError, LakewardenError, PreconditionError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.delta.log_names import commit_path
from lakewarden.catalog.model.lineage_record import RUN_ID
from lakewarden.catalog.storage.file_store import FileStore
from lakewarden.catalog.system.handles import answering
from lakewarden.catalog.system.port import Fence
from lakewarden.catalog.system.schema import BUCKET, LEADER, SCHEMA_VERSION
from lakewarden.catalog.system.snapshot import Piece, Snapshot

__all__ = ["Note", "admit", "commit", "leader_token", "properties", "removal"]

_AFTERWARDS = PostCommitHookProperties(create_checkpoint=True, cleanup_expired_logs=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """What a commit says about itself (`commitInfo`): who, why, for which run, as which leader."""

    actor: str
    because: str
    run_id: str | None = None
    fence: Fence | None = None


def admit(handle: DeltaTable, snapshot: Snapshot, name: str, fence: Fence | None) -> None:
    """Refuse a leader whose token is older than the newest one in the table, and a table that waits for an upgrade or
    is in the middle of one.

    delta-rs itself does not refuse a lower token, and a lower one would lower the stored value.
    """
    if fence is not None and leader_token(handle, name) > fence.token:
        raise FencedError(f"A newer leader has taken over lakewarden.{name}.")
    if snapshot.schema_version < SCHEMA_VERSION:
        raise PreconditionError(
            f"lakewarden.{name} has schema version {snapshot.schema_version} and waits for the upgrade to "
            f"{SCHEMA_VERSION}.",
            hint="`lakewarden init` upgrades it in place; nothing is lost.",
        )
    if snapshot.upgrading:
        raise PreconditionError(
            f"An upgrade of the system tables to schema version {snapshot.schema_version} "
            "has begun and not ended.",
            hint="If nobody is at it, `lakewarden init` goes on with it; nothing is lost.",
        )


def leader_token(handle: DeltaTable, name: str) -> int:
    """The token of the newest leader that committed to `lakewarden.name`, 0 before the first. Milliseconds:
    it is asked only when needed. Raises `UnreadableError`:
    the log is read anew for it, and may have been damaged since it was opened."""
    with answering(name):
        return handle.transaction_version(LEADER) or 0


def properties(note: Note, mark: str | None = None) -> CommitProperties:
    """The properties of a commit that is never retried by the library: a conflict comes back to us."""
    metadata = {"lakewarden.actor": note.actor, "lakewarden.because": note.because}
    if mark is not None:
        metadata["lakewarden.commit"] = mark
    if note.run_id is not None:
        metadata[RUN_ID] = note.run_id
    if note.fence is not None:
        metadata["lakewarden.incarnation"] = note.fence.incarnation
    return CommitProperties(
        custom_metadata=metadata,
        max_commit_retries=0,
        app_transactions=None if note.fence is None else [Transaction(LEADER, note.fence.token)],
    )


def commit(
    handle: DeltaTable,
    snapshot: Snapshot,
    store: FileStore,
    name: str,
    actions: Sequence[AddAction | RemoveAction],
    note: Note,
) -> int:
    """Commit file changes as the version after `snapshot`. Raises `ConflictError` if somebody else has made it.

    An error that leaves the outcome open (a lost answer, a checkpoint that failed afterwards) is resolved by the log:
    if the next version carries our mark, we made it.
    """
    if handle.version() != snapshot.version:
        raise ConflictError(f"Somebody else has just changed lakewarden.{name}.")
    mark = uuid.uuid4().hex
    reach("system.commit")
    try:
        with answering(name):
            handle.create_write_transaction(
                list(actions),
                mode="append",
                schema=handle.schema(),
                partition_by=[BUCKET],
                commit_properties=properties(note, mark),
                post_commithook_properties=_AFTERWARDS,
            )
    except LakewardenError:
        if not _is_ours(store, snapshot.version + 1, mark):
            raise
    reach("system.committed")
    return snapshot.version + 1


def removal(piece: Piece, *, data_change: bool = True) -> RemoveAction:
    """The action that removes a file; `data_change` is False if its rows live on in another one."""
    return RemoveAction(
        path=piece.path,
        data_change=data_change,
        deletion_timestamp=time.time_ns() // 1_000_000,
        size=piece.size_bytes,
        partition_values={BUCKET: str(piece.bucket)},
    )


def _is_ours(store: FileStore, version: int, mark: str) -> bool:
    try:
        lines = store.read(commit_path(version)).splitlines()
    except FileNotFoundError:
        return False
    return any(
        json.loads(line).get("commitInfo", {}).get("lakewarden.commit") == mark for line in lines if line
    )
