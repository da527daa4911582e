"""A plan's steps as rows of the journal, and back. Pure.

Each table has two rows: its restore (odd numbers) and, right after it, the properties that the restore must not rewind.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from lakewarden.catalog.model import RollbackRow, RollbackState, RollbackStep
from lakewarden.catalog.rollbacks import Rollback
from lakewarden.jobs.rollback.step import RestoreStep, decode_step, encode_step

__all__ = [
    "head_row",
    "left_as_it_is",
    "next_rows",
    "properties_row",
    "step_of",
    "superseded",
    "verified_row",
]

_PER_TABLE = 2


def head_row(
    *, rollback_id: str, plan_hash: str, first: RestoreStep, payload: str, actor: str, at: datetime
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


def next_rows(rollback: Rollback, steps: Iterable[RestoreStep]) -> tuple[RollbackRow, ...]:
    """Rows for further tables, numbered after those that are there. Their waves come after all others."""
    number = max((row.step for row in rollback.steps), default=-1) // _PER_TABLE * _PER_TABLE + _PER_TABLE + 1
    first_wave = max((row.wave for row in rollback.steps), default=-1) + 1
    ordered: Sequence[RestoreStep] = sorted(steps, key=lambda step: (step.wave, step.name, step.table_id))
    lowest = min((step.wave for step in ordered), default=0)
    return tuple(
        RollbackRow(
            rollback_id=rollback.rollback_id,
            plan_hash=rollback.head.plan_hash,
            step=number + _PER_TABLE * place,
            table_id=step.table_id,
            from_version=step.from_version,
            to_version=step.to_version,
            state=RollbackState.PLANNED,
            recorded_at=rollback.head.recorded_at,
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
    """An undo that stopped, ended: the tables that could not be taken back stay rolled back, and it says which."""
    stuck = [row for row in rollback.steps if row.state is RollbackState.CONFLICT]
    names = ", ".join(sorted({row.name or row.table_id for row in stuck}))
    kept = rollback.with_rows(replace(row, state=RollbackState.DONE) for row in stuck)
    return kept.with_head(RollbackState.COMPENSATED, message=f"{names}: left rolled back")


def superseded(rollback: Rollback) -> Rollback:
    """The same rollback ready for a new plan of what is left: restores that were not made are given up, properties that
    could not be set are tried again."""
    left = (RollbackState.PLANNED, RollbackState.CONFLICT)
    given_up = {
        row.step
        for row in rollback.steps
        if row.state in left and row.kind is RollbackStep.RESTORE and row.new_version is None
    }
    return rollback.with_rows(
        replace(
            row,
            state=RollbackState.COMPENSATED
            if row.step in given_up or row.step - 1 in given_up
            else RollbackState.PLANNED,
        )
        for row in rollback.steps
        if row.state in left
    )


def verified_row(row: RollbackRow, step: RestoreStep) -> tuple[RollbackRow, ...]:
    """A restore's row with what its verification found, and the row of its properties if it has any to keep."""
    restore = replace(row, payload=encode_step(step))
    return (restore, properties_row(restore)) if step.properties else (restore,)


def properties_row(restore: RollbackRow) -> RollbackRow:
    """The row that follows a restore's: its properties are set again."""
    return replace(restore, step=restore.step + 1, kind=RollbackStep.PROPERTIES, payload=None)


def step_of(row: RollbackRow) -> RestoreStep:
    """What a restore's row is about."""
    assert row.payload is not None, "a restore is never journaled without its step"
    return decode_step(row.payload)
