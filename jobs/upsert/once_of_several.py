"""What is to be done under an operation id by a statement over several tables: told by what each of them holds, and by
a statement of this id that is not over yet. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto

from lakewarden.catalog.model.rollbacks import GROUP_PATIENCE, Rollback
from lakewarden.catalog.model.rows import RollbackState
from lakewarden.jobs.upsert.once import OperationVerdict

__all__ = ["AGAIN", "Decision", "Member", "Turn", "about_members", "about_unfinished"]

AGAIN = "SET lakewarden.operation = '...'"
"""How a statement gets an id."""


class Turn(Enum):
    """What comes next. WAIT: somebody is at it, look again in a while. END: somebody was, and is gone; bring theirs to
    its end first, then look again."""

    DO = auto()
    DONE = auto()
    WAIT = auto()
    END = auto()
    REFUSE = auto()


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What comes next; for REFUSE also the reason and a hint."""

    turn: Turn
    because: str = ""
    hint: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """The state of the operation in one of the tables."""

    name: str
    verdict: OperationVerdict
    is_same: bool = True
    """Nothing speaks against its being this very statement."""
    run_id: str | None = None
    """The run of its commit, None if unknown."""


def about_unfinished(operation: str, group: Rollback, *, now: datetime, until: datetime) -> Decision:
    """What comes next while a statement of this id is in the journal; `until` is when waiting for it ends."""
    head = group.head
    if head.state is RollbackState.CONFLICT:
        return Decision(
            turn=Turn.REFUSE,
            because=f"Operation {operation} was begun by statement {group.rollback_id}, "
            "which waits for a person.",
            hint=f"`lakewarden rollback show {group.rollback_id}` says how to go on; "
            "then run it again under its id.",
        )
    if head.recorded_at + GROUP_PATIENCE <= now:
        return Decision(turn=Turn.END)
    if now < until:
        return Decision(turn=Turn.WAIT)
    return Decision(
        turn=Turn.REFUSE,
        because=f"Operation {operation} is being done by another session (statement {group.rollback_id}).",
        hint=f"Run it again under the same id ({AGAIN}) once that has ended.",
    )


def about_members(operation: str, members: Sequence[Member]) -> Decision:
    """The next turn where no statement of this id is under way: all of the tables hold it, or none of them."""
    other = next((one for one in members if one.verdict is OperationVerdict.DONE and not one.is_same), None)
    if other is not None:
        return Decision(
            turn=Turn.REFUSE,
            because=f"Another statement was done on this table as operation {operation}: {other.name}.",
            hint=f"Give this one an id of its own: {AGAIN}.",
        )
    unclear = next(
        (one for one in members if one.verdict not in (OperationVerdict.DONE, OperationVerdict.NOT_DONE)),
        None,
    )
    if unclear is not None:
        return Decision(
            turn=Turn.REFUSE,
            because=f"Whether operation {operation} was done, or undone since, the log of {unclear.name} "
            "does not tell any more.",
            hint=f"Look at the tables' rows, then give the statement another id: {AGAIN}.",
        )
    held = [one for one in members if one.verdict is OperationVerdict.DONE]
    if not held:
        return Decision(turn=Turn.DO)
    missing = [one.name for one in members if one.verdict is OperationVerdict.NOT_DONE]
    if not missing:
        return Decision(turn=Turn.DONE)
    run_id = next((one.run_id for one in held if one.run_id is not None), None)
    undo = (
        "Undo it there, too"
        if run_id is None
        else f"`lakewarden rollback plan --run {run_id}` undoes the rest"
    )
    return Decision(
        turn=Turn.REFUSE,
        because=f"{held[0].name} holds operation {operation}, and {missing[0]} does not any more: "
        "it was undone in part.",
        hint=f"{undo}; then run it again under its id. Or write a statement for what is missing.",
    )
