"""The journal of rollbacks in `lakewarden.rollbacks`: read whole, changed by compare-and-set, one commit per move.

Who writes a move says in which state it believes the rollback to be. If it is not, somebody else has moved it on, and
nothing is written.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import ConflictError, NotFoundError
from lakewarden.catalog.model.identity import require_beginning
from lakewarden.catalog.model.rollbacks import Rollback, rollback_locks, rollbacks_of
from lakewarden.catalog.model.rows import RollbackRow, RollbackState
from lakewarden.catalog.policy.access import DAEMON_NAME
from lakewarden.catalog.system.port import ROLLBACKS, Rows, SystemStore

__all__ = ["HeldByWaitingError", "Journal"]


class HeldByWaitingError(ConflictError):
    """A rollback that waits for a person holds a table: trying again ends nothing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Journal:
    """Rollbacks as the system tables keep them."""

    store: SystemStore
    clock: Clock

    def all(self) -> tuple[Rollback, ...]:
        """Every rollback, oldest first."""
        found = rollbacks_of(self.store.rows(ROLLBACKS).all())
        return tuple(sorted(found, key=lambda one: (one.head.recorded_at, one.rollback_id)))

    def get(self, rollback_id: str) -> Rollback:
        """One rollback. Raises `NotFoundError`."""
        return _get(self.store.rows(ROLLBACKS), rollback_id)

    def find(self, text: str) -> Rollback:
        """The rollback whose id or plan hash begins with `text`. Raises `UsageError` if that is empty, `NotFoundError`
        unless exactly one does."""
        require_beginning(text, "rollback")
        every = self.all()
        found = [
            one for one in every if one.rollback_id.startswith(text) or one.head.plan_hash.startswith(text)
        ]
        exact = [one for one in found if text in (one.rollback_id, one.head.plan_hash)]
        if len(exact or found) == 1:
            return (exact or found)[0]
        count = len(found) or "No"
        raise NotFoundError(
            f"{count} rollback{'s begin' if found else ' or plan begins'} with {text}.",
            hint="`lakewarden rollback list` shows them. A plan that has nothing to do is not kept.",
        )

    def put(self, rows: Iterable[RollbackRow], *, because: str) -> None:
        """Write rows whatever was there."""
        kept = tuple(rows)
        self.store.edit(ROLLBACKS, lambda _: kept, because=because)

    def begin(self, rollback: Rollback, *, because: str) -> None:
        """Write one that was never written before and is under way. Raises `ConflictError` if one of its tables is held
        by another one."""

        def begun(rows: Rows[RollbackRow]) -> tuple[RollbackRow, ...]:
            _refuse_held(rows, rollback)
            return (rollback.head, *rollback.steps)

        self.store.edit(ROLLBACKS, begun, because=because, run_id=rollback.rollback_id)

    def keep_plan(self, head: RollbackRow, *, old: Iterable[Rollback], because: str) -> None:
        """Write the head row of a plan, also in place of the same one that was taken back, and remove `old`
        plans; all in one commit. What somebody has begun by now stays as it is, and the daemon's own plan its own: it
        replaces it where there is more to take back."""
        others = tuple(one for one in old if one.rollback_id != head.rollback_id)

        def kept(rows: Rows[RollbackRow]) -> tuple[RollbackRow, ...]:
            stored = rows.get(head.rollback_id, head.step)
            if stored is None or stored.state is RollbackState.COMPENSATED:
                return (head,)
            own = stored.actor == DAEMON_NAME
            again = replace(head, actor=DAEMON_NAME) if own else head
            return (again,) if stored.state is RollbackState.PLANNED else ()

        def gone(rows: Rows[RollbackRow]) -> list[RollbackRow]:
            steps = (row for row in rows.find(rollback_id=head.rollback_id) if row.step != head.step)
            return [*_still_planned(rows, others), *(steps if kept(rows) else ())]

        self.store.edit(ROLLBACKS, kept, delete=gone, because=because)

    def forget_plans(self, rollbacks: Iterable[Rollback], *, because: str) -> None:
        """Remove plans, but for those that somebody has begun by now."""
        old = tuple(rollbacks)
        if old:
            self.store.edit(
                ROLLBACKS, lambda _: (), delete=lambda rows: _still_planned(rows, old), because=because
            )

    def save(self, rollback: Rollback, *, expects: RollbackState, because: str) -> Rollback:
        """Write the head row and what differs from the stored ones, in one commit, if the rollback is still
        in state `expects` and nobody has written to it since `rollback` was read or saved.
        Returns it as it is stored now.

        Raises `ConflictError` if somebody else has moved it on, or if another rollback holds one of the tables that
        this one did not hold so far.
        """
        now = self.clock.now()

        def differing(rows: Rows[RollbackRow]) -> list[RollbackRow]:
            stored = _as_saved(rows, rollback, expects)
            if rollback.is_unsettled:
                _refuse_held(rows, rollback, but=stored)
            known = {row.step: row for row in stored.steps}
            changed = (
                replace(row, recorded_at=now)
                for row in rollback.steps
                if row.step not in known
                or replace(row, recorded_at=known[row.step].recorded_at) != known[row.step]
            )
            return [replace(rollback.head, recorded_at=now), *changed]

        self.store.edit(ROLLBACKS, differing, because=because, run_id=rollback.rollback_id)
        return replace(rollback, head=replace(rollback.head, recorded_at=now))

    def close(self, rollback: Rollback, *, expects: RollbackState, because: str) -> None:
        """Remove a rollback with all of its rows, on the same condition as `save`."""

        def gone(rows: Rows[RollbackRow]) -> list[RollbackRow]:
            stored = _as_saved(rows, rollback, expects)
            return [stored.head, *stored.steps]

        self.store.edit(ROLLBACKS, lambda _: (), delete=gone, because=because, run_id=rollback.rollback_id)


def _as_saved(rows: Rows[RollbackRow], rollback: Rollback, expects: RollbackState) -> Rollback:
    """The stored rollback. Raises `ConflictError` if somebody else has moved it on."""
    stored = _get(rows, rollback.rollback_id)
    if stored.head.state is not expects:
        raise ConflictError(
            f"Rollback {rollback.rollback_id} is {stored.head.state} by now, no longer {expects}."
        )
    if stored.head.recorded_at != rollback.head.recorded_at:
        raise ConflictError(
            f"Rollback {rollback.rollback_id} was changed by somebody else meanwhile.",
            hint="`lakewarden rollback show` says what it came to.",
        )
    return stored


def _refuse_held(rows: Rows[RollbackRow], rollback: Rollback, *, but: Rollback | None = None) -> None:
    """Raise `ConflictError` if another rollback, or statement, that is not finished holds one of its tables; `but` what
    is stored of it holds already is its own. One that is done may be undone beside one that waits for a person, which
    may wait for just that."""
    own = rollback_locks([] if but is None else [but]).keys()
    wanted = [row for row in rollback.steps if row.table_id not in own]
    if not wanted:
        return
    beside_waiting = but is not None and but.head.state is RollbackState.DONE
    held = rollback_locks(one for one in rollbacks_of(rows.all()) if one.rollback_id != rollback.rollback_id)
    for row in wanted:
        lock = held.get(row.table_id)
        if lock is not None and not (lock.waits and beside_waiting):
            raise (HeldByWaitingError if lock.waits else ConflictError)(
                f"{row.name or row.table_id} is held by rollback {lock.rollback_id}, which is not finished.",
                hint="Resume or undo that one first.",
            )


def _still_planned(rows: Rows[RollbackRow], rollbacks: Iterable[Rollback]) -> list[RollbackRow]:
    stored = (rows.get(one.rollback_id, one.head.step) for one in rollbacks)
    return [row for row in stored if row is not None and row.state is RollbackState.PLANNED]


def _get(rows: Rows[RollbackRow], rollback_id: str) -> Rollback:
    found = rollbacks_of(rows.find(rollback_id=rollback_id))
    if not found:
        raise NotFoundError(
            f"There is no rollback {rollback_id}.", hint="`lakewarden rollback list` shows them."
        )
    return found[0]
