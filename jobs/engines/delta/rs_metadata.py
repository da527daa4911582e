"""Metadata commits and checkpoints on users' Delta tables by delta-rs, without Spark: the jobs' door to deltalake.

Every commit is a compare-and-set: made on the handle of the version it was decided on and never retried. What is not
for delta-rs is left to Spark, and the functions answer None or False: tables with a protocol feature outside
`FEATURES`, tables whose `_last_checkpoint` names a missing checkpoint, and folders with a `%` in their name: delta-rs
1.6 decodes the name once too often (run: not found). delta-rs does not survive a fork: nothing here may run in a
process that forks later.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction

from lakewarden.catalog.errors import ConflictError, ExecutionError, NotFoundError, UnavailableError
from lakewarden.catalog.formats.delta.hint import lost_checkpoint
from lakewarden.catalog.formats.delta.log import DeltaLog
from lakewarden.catalog.model.lineage_record import INSTALLATION, RUN_ID
from lakewarden.catalog.storage.file_store import StorageOptions, local_path, open_store
from lakewarden.catalog.storage.secret_files import current

__all__ = [
    "FEATURES",
    "NOTHING_AFTERWARDS",
    "RsTable",
    "append",
    "checkpoint",
    "fence",
    "marks",
    "open_version",
    "set_properties",
]


FEATURES: Final = frozenset(
    {
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "columnMapping",
        "deletionVectors",
        "generatedColumns",
        "invariants",
        "timestampNtz",
        "v2Checkpoint",
    }
)
"""Protocol features with which a metadata commit and a checkpoint by delta-rs 1.6 were read back right by Spark."""

NOTHING_AFTERWARDS: Final = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
"""A checkpoint or a cleanup on the way would be work nobody decided on."""
_LEGACY_WRITER: Final = 5
"""The last writer version without named features that implies none outside `FEATURES` (6 adds identity columns)."""
_NAMED_FEATURES: Final = 7


def marks(run_id: str, installation: str | None) -> dict[str, str]:
    """What a commit of ours says of itself: its run, and whose run that is where anybody knows."""
    return {RUN_ID: run_id} if installation is None else {RUN_ID: run_id, INSTALLATION: installation}


@dataclass(frozen=True, kw_only=True, slots=True)
class RsTable:
    """A table as delta-rs reaches it."""

    location: str
    storage: StorageOptions
    installation: Callable[[], str | None] = lambda: None
    """Whose runs commit to it, if anybody knows. Asked when a commit is made."""

    def once(
        self,
        run_id: str,
        transactions: list[Transaction] | None = None,
        also: Mapping[str, str] = MappingProxyType({}),
    ) -> CommitProperties:
        """How we commit: saying whose run it is, and never again on another version."""
        return CommitProperties(
            custom_metadata={**marks(run_id, self.installation()), **also},
            max_commit_retries=0,
            app_transactions=transactions,
        )

    @contextmanager
    def committing(self, requires: int, *, failed: str, hint: str = "Validate the table.") -> Iterator[None]:
        """Around a commit on version `requires`. Raises `ConflictError` if somebody committed first, `ExecutionError`
        with `failed` and `hint` if delta-rs does not do it."""
        try:
            yield
        except CommitFailedError as error:
            raise _why_refused(self, requires) from error
        except (DeltaError, OSError) as error:
            raise ExecutionError(failed, hint=hint) from error


def append(table: DeltaTable, actions: Sequence[AddAction], how: CommitProperties) -> None:
    """One commit of exactly these actions, on the version at which the table was opened."""
    table.create_write_transaction(
        [*actions],
        mode="append",
        schema=table.schema(),
        partition_by=table.metadata().partition_columns,
        commit_properties=how,
        post_commithook_properties=NOTHING_AFTERWARDS,
    )


def set_properties(
    place: RsTable, *, requires: int, properties: Sequence[tuple[str, str]], run_id: str
) -> int | None:
    """Set table properties in one commit on exactly version `requires`; other properties stay as they are.

    Returns the new version, None if the table's features are not ours to write. Raises `ConflictError` if somebody
    committed first, `ExecutionError` if the commit was refused for another reason.
    """
    table = open_version(place, requires)
    if table is None:
        return None
    failed, hint = f"The properties of {place.location} were not accepted.", "Check their names and values."
    how = place.once(run_id)
    with place.committing(requires, failed=failed, hint=hint):
        table.alter.set_table_properties(
            dict(properties),
            raise_if_not_exists=False,
            commit_properties=how,
            post_commithook_properties=NOTHING_AFTERWARDS,
        )
    version: int = table.version()
    return version


def fence(place: RsTable, *, requires: int, run_id: str, made: tuple[str, int] | None = None) -> int | None:
    """A commit that changes nothing, on exactly version `requires`, but that the transactions of an application up to a
    number count as `made`. Returns its version, None if the table's features are not ours to write. Raises
    `ConflictError` if somebody committed first."""
    table = open_version(place, requires)
    if table is None:
        return None
    how = place.once(run_id, None if made is None else [Transaction(*made)])
    with place.committing(requires, failed=f"{place.location} took no empty commit."):
        append(table, (), how)
    return requires + 1


def checkpoint(place: RsTable, *, requires: int) -> bool:
    """Write a checkpoint of version `requires`; nothing else changes. False if the table's features are not ours."""
    table = open_version(place, requires)
    if table is None or _lost_checkpoint(place):  # which stays the one that readers are sent to
        return False
    try:
        table.create_checkpoint()
    except (DeltaError, OSError) as error:
        raise ExecutionError(
            f"No checkpoint of version {requires} could be written to {place.location}.",
            hint="Check that the log is writable.",
        ) from error
    return True


def open_version(place: RsTable, version: int) -> DeltaTable | None:
    """The table at a version; None if it is one to be left to Spark."""
    if "%" in str(local_path(place.location) or place.location):
        return None
    try:
        table = DeltaTable(place.location, version=version, storage_options=current(place.storage) or None)
    except TableNotFoundError as error:
        raise NotFoundError(
            f"There is no version {version} of a Delta table at {place.location}.",
            hint="Validate the table.",
        ) from error
    except (DeltaError, OSError) as error:
        if _lost_checkpoint(place):
            return None
        raise UnavailableError(
            f"Version {version} of {place.location} cannot be opened.",
            hint="Check the storage, then retry.",
        ) from error
    return table if _can_write(table) else None


def _lost_checkpoint(place: RsTable) -> bool:
    """Whether the log sends readers to a checkpoint that is gone: delta-rs then refuses the table, Spark does not."""
    log = DeltaLog(open_store(place.location, place.storage))
    return lost_checkpoint(log, log.listing()) is not None


def _can_write(table: DeltaTable) -> bool:
    protocol = table.protocol()
    if protocol.min_writer_version < _NAMED_FEATURES:
        return protocol.min_writer_version <= _LEGACY_WRITER
    return FEATURES.issuperset([*(protocol.writer_features or ()), *(protocol.reader_features or ())])


def _why_refused(place: RsTable, requires: int) -> ConflictError | ExecutionError:
    """What a refused commit on version `requires` means: somebody was first, or the log does not take it."""
    head = DeltaTable(place.location, storage_options=current(place.storage) or None).version()
    if head != requires:
        return ConflictError(
            f"{place.location} is at version {head}; this was decided on {requires}, so it was not committed."
        )
    return ExecutionError(
        f"The commit on version {requires} of {place.location} was refused.",
        hint="Check that the log is writable.",
    )
