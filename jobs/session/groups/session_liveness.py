"""Says in the journal, now and then, that a session is still at its group: until then nobody takes it back."""

import threading
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final, TypeVar

from lakewarden.catalog.errors import ConflictError, LakewardenError
from lakewarden.catalog.model.rollbacks import GROUP_PATIENCE, Rollback
from lakewarden.catalog.model.rows import RollbackState
from lakewarden.catalog.threads import Repeating
from lakewarden.jobs.rollback.journal.group_rows import given_up
from lakewarden.jobs.rollback.journal.journal import Journal
from lakewarden.jobs.rollback.journal.steps import TableStep

__all__ = ["Liveness"]

Moved = TypeVar("Moved")
_EVERY: Final = GROUP_PATIENCE.total_seconds() / 6
_TRIES: Final = 3


class _CrowdedError(ConflictError):
    """The group is still the session's own, and could not be written."""


class Liveness(Repeating):
    """A context manager around the work on a group that was just journaled. It holds the group's newest state in the
    journal and writes the next ones. Tables stay right even if a write comes too late: see `StepExecutor.resolve`."""

    def __init__(self, journal: Journal, group: Rollback, *, every: float = _EVERY) -> None:
        super().__init__("lakewarden-group", every)
        self._journal, self._group, self._lock = journal, group, threading.Lock()
        self._lost: ConflictError | None = None

    def require(self) -> None:
        """Raise `ConflictError` once somebody else has taken the group on."""
        if self._lost is not None:
            raise self._lost

    def made(self, change: TableStep, version: int | None) -> None:
        """Keep in mind that a change was made (None: there was nothing to change), for the next move."""
        with self._lock:
            rows = [
                replace(row, state=RollbackState.DONE, new_version=version)
                for row in self._group.steps
                if row.table_id == change.table_id
            ]
            self._group = self._group.with_rows(rows)

    def close(self, because: str) -> None:
        """Take the group out of the journal: it is whole. Raises `ConflictError` if somebody else has taken it on."""
        with self._lock:
            self.ended.set()
            self._move(
                lambda group: self._journal.close(group, expects=RollbackState.INTENT, because=because)
            )

    def give_up(self, never_made: Collection[str], because: str) -> None:
        """Begin to take the group back. Raises `ConflictError` if somebody else has taken it on."""
        with self._lock:
            self.ended.set()
            self._move(
                lambda group: self._journal.save(
                    given_up(group, never_made=never_made), expects=RollbackState.INTENT, because=because
                )
            )

    def _move(self, write: Callable[[Rollback], Moved]) -> Moved:
        """Write to the journal. Until somebody else takes the group on, nobody but this session writes to it: what
        seems to be a conflict then is an earlier write of ours whose answer was lost."""
        for _ in range(_TRIES):
            try:
                return write(self._group)
            except ConflictError:
                stored = self._journal.get(self._group.rollback_id).head
                if stored.state is not RollbackState.INTENT:
                    raise
                self._group = self._group.with_head(RollbackState.INTENT, recorded_at=stored.recorded_at)
        raise _CrowdedError("Others keep writing to the journal of rollbacks.")

    def beat(self) -> bool:
        """Say that the session lives, unless somebody else has taken the group on."""
        with self._lock:
            if self.ended.is_set():
                return False
            try:
                self._group = self._move(self._said_to_live)
            except _CrowdedError:
                return True  # others write to the journal all the time: said again in a while
            except ConflictError as error:
                self._lost = error
                return False
            except LakewardenError:
                return True  # the system tables do not answer: said again in a while
            return True

    def _said_to_live(self, group: Rollback) -> Rollback:
        because = f"statement {group.rollback_id} is still at it"
        return self._journal.save(group, expects=RollbackState.INTENT, because=because)
