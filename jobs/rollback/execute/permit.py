"""Asked right before each commit of a rollback: is this commit still ours to make?

A worker may sleep between its decision and its commit. Another session that takes the rollback over writes to the
journal first and then moves the table (jobs/rollback/execute/table_steps.py): so a sleeper is refused either here or by
the log.
"""

from collections.abc import Callable, Mapping

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.model.rollbacks import rollbacks_of
from lakewarden.catalog.model.rows import RollbackRow, RollbackState
from lakewarden.catalog.system.port import ROLLBACKS, At
from lakewarden.jobs.rollback.journal.journal import Journal

__all__ = ["Permit"]


class Permit:
    """Reads the journal anew whenever it has changed. `still_ours` raises once the run was cancelled or lost."""

    def __init__(self, journal: Journal, still_ours: Callable[[], None]) -> None:
        self._journal, self._still_ours = journal, still_ours
        self._as_of: tuple[At, str] | None = None
        self._states: Mapping[int, RollbackState] = {}

    def require(self, row: RollbackRow) -> None:
        """Raise `ConflictError` unless the journal has this step, and the whole, in the state that `row` believes."""
        self._still_ours()
        self._look(row.rollback_id)
        whole = RollbackState.UNDOING if row.state is RollbackState.UNDOING else RollbackState.INTENT
        if (self._states.get(0), self._states.get(row.step)) != (whole, row.state):
            raise ConflictError(
                f"Rollback {row.rollback_id} was taken on by somebody else; this attempt leaves it to them.",
                hint="`lakewarden rollback show` says how far it is.",
            )

    def _look(self, rollback_id: str) -> None:
        rows = self._journal.store.rows(ROLLBACKS)
        if (rows.at, rollback_id) == self._as_of:
            return
        found = rollbacks_of(rows.find(rollback_id=rollback_id))
        self._states = {row.step: row.state for one in found for row in (one.head, *one.steps)}
        self._as_of = rows.at, rollback_id
