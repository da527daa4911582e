"""A plan's steps as rows of the journal, and back. Pure.

Steps have odd numbers. Right after a restore, with the number between, come the properties that it must not
rewind; what is added again to its table has numbers of its own, later ones.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.model.rows import RollbackRow, RollbackState, RollbackStep
from lakewarden.jobs.rollback.journal.steps import TableStep, decode_step, encode_step
from lakewarden.jobs.rollback.plan.consents import NO_CONSENTS, Consent, Consents

__all__ = [
    "FOLLOWING",
    "companions_of",
    "head_row",
    "left_as_it_is",
    "next_rows",
    "properties_row",
    "step_of",
    "superseded",
    "verified_row",
]

FOLLOWING = (RollbackStep.PROPERTIES, RollbackStep.REAPPLY)
"""Steps that belong to the restore of their table."""
_PER_STEP = 2
_LEFT = {False: "rolled back", True: "changed"}


def head_row(
    *, rollback_id: str, plan_hash: str, first: TableStep, payload: str, actor: str, at: datetime
) -> RollbackRow:
    """Step 0 of a rollback that is only planned. `first` is the table that it is about."""
    return RollbackRow(
        rollback_id=rollback_id,
        plan_hash=plan_hash,
        step=0,
        table_id=first.table_id,
        from_version=first.from_version,
        to_version=first.to_version,
        state=RollbackState.PLANNED,
        recorded_at=at,
        kind=RollbackStep.PLAN,
        name=first.name,
        location=first.location,
        payload=payload,
        actor=actor,
    )


def next_rows(rollback: Rollback, steps: Iterable[TableStep]) -> tuple[RollbackRow, ...]:
    """Rows for further steps, numbered after those that are there. Their waves come after all others; steps
    on one table stay in the order given."""
    number = max((row.step for row in rollback.steps), default=-1) // _PER_STEP * _PER_STEP + _PER_STEP + 1
    first_wave = max((row.wave for row in rollback.steps), default=-1) + 1
    ordered: Sequence[TableStep] = sorted(steps, key=lambda step: (step.wave, step.name, step.table_id))
    lowest = min((step.wave for step in ordered), default=0)
    return tuple(
        RollbackRow(
            rollback_id=rollback.rollback_id,
            plan_hash=rollback.head.plan_hash,
            step=number + _PER_STEP * place,
            table_id=step.table_id,
            from_version=step.from_version,
            to_version=step.to_version,
            state=RollbackState.PLANNED,
            recorded_at=rollback.head.recorded_at,
            kind=step.kind,
            wave=first_wave + step.wave - lowest,
            name=step.name,
            location=step.location,
            payload=encode_step(step),
            actor=rollback.head.actor,
            format_id=step.format_id,
        )
        for place, step in enumerate(ordered)
    )


def left_as_it_is(rollback: Rollback) -> Rollback:
    """An undo that stopped, ended: the tables that could not be taken back stay as they are, and it says which."""
    stuck = [row for row in rollback.steps if row.state is RollbackState.CONFLICT]
    if not stuck:
        return rollback.with_head(RollbackState.COMPENSATED, message=None)
    names = ", ".join(sorted({row.name or row.table_id for row in stuck}))
    kept = rollback.with_rows(replace(row, state=RollbackState.DONE) for row in stuck)
    return kept.with_head(RollbackState.COMPENSATED, message=f"{names}: left {_LEFT[rollback.is_group]}")


def superseded(rollback: Rollback, lost: Consents = NO_CONSENTS) -> Rollback:
    """The same rollback ready for a new plan of what is left: steps that were not made are given up, with all
    that follows from them; what follows from one that was made is tried again.
    What somebody agreed to have `lost` is not added again."""
    left, agreed = (RollbackState.PLANNED, RollbackState.CONFLICT), lost
    given_up = {
        (row.table_id, row.wave)
        for row in rollback.steps
        if row.state in left and row.kind not in FOLLOWING and row.new_version is None
    }

    def state_of(row: RollbackRow) -> RollbackState:
        again = row.kind is RollbackStep.REAPPLY
        gone = (row.table_id, row.wave) in given_up or (
            again and agreed.covers(Consent.COLLATERAL, row.table_id, row.to_version)
        )
        return RollbackState.COMPENSATED if gone else RollbackState.PLANNED

    return rollback.with_rows(
        replace(row, state=state_of(row)) for row in rollback.steps if row.state in left
    )


def companions_of(row: RollbackRow, rows: Iterable[RollbackRow]) -> tuple[RollbackRow, ...]:
    """The rows that follow from a restore's, of those given."""
    same = (one for one in rows if (one.table_id, one.wave) == (row.table_id, row.wave))
    return tuple(one for one in same if one.kind in FOLLOWING)


def verified_row(row: RollbackRow, step: TableStep) -> tuple[RollbackRow, ...]:
    """A restore's row with what its verification found, and the row of its properties if it has any to keep."""
    restore = replace(row, payload=encode_step(step))
    return (restore, properties_row(restore)) if step.properties else (restore,)


def properties_row(restore: RollbackRow) -> RollbackRow:
    """The row that follows a restore's: its properties are set again."""
    return replace(restore, step=restore.step + 1, kind=RollbackStep.PROPERTIES, payload=None)


def step_of(row: RollbackRow) -> TableStep:
    """What a row is about. The properties of a table are about its restore: ask that row."""
    assert row.payload is not None, "only properties are journaled without a step"
    return decode_step(row.payload)
