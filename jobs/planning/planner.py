"""World to Plan: what runs now, in which order, and for everything else why not. Pure.

A plan is a value: the dry run prints it, the cycle queues it, the page shows it. Every table gets an answer for every
action that its format has.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from lakewarden.catalog.isolation import Unforeseen, isolated
from lakewarden.catalog.model.rows import Action
from lakewarden.catalog.state.port import DELTA_RUNTIME, RunRequest, runtime_of
from lakewarden.jobs.actions.answers import Answer, Due, NotDue, WhyNot
from lakewarden.jobs.actions.costs import Estimate
from lakewarden.jobs.actions.registry import SPECS, encode, estimate, required_version
from lakewarden.jobs.actions.world import TableView, World
from lakewarden.jobs.planning.gates import closed, held_back
from lakewarden.jobs.planning.resting import Resting

__all__ = ["Plan", "PlannedRun", "Waiting", "due_for", "judge", "plan", "request_for"]

_CLASS_WIDTH: Final = 1_000_000.0
"""Ranks of one urgency stay below those of the next: benefit per cost is cut off here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedRun:
    """One action that is due and within the budget."""

    table_id: str
    name: str
    location: str
    due: Due
    estimate: Estimate
    rank: float
    """Higher first: urgency, then benefit per cost."""
    runtime: str = DELTA_RUNTIME


@dataclass(frozen=True, kw_only=True, slots=True)
class Waiting:
    """One action on one table that is not run now, and why."""

    table_id: str
    name: str
    answer: NotDue


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What to run at a time, and the answer for everything else, by table."""

    at: datetime
    runs: tuple[PlannedRun, ...] = ()
    """Highest rank first."""
    waiting: tuple[Waiting, ...] = ()

    def of(self, table_id: str) -> tuple[PlannedRun | Waiting, ...]:
        """All answers about one table."""
        both: tuple[PlannedRun | Waiting, ...] = (*self.runs, *self.waiting)
        return tuple(one for one in both if one.table_id == table_id)


Answers = tuple[Sequence[PlannedRun], Sequence[Waiting]]
"""The answers for one table: the one action that may run, and everything else."""


def plan(world: World, now: datetime, *, resting: Resting | None = None) -> Plan:
    """Ask every rule about every table, take one action per table, rank them, keep to the budget.

    A table that cannot be judged waits, the others are planned.
    With `resting`, tables for which nothing can have become due are not asked about, and the plan is silent about them.
    """
    candidates: list[PlannedRun] = []
    waiting: list[Waiting] = []
    for view in world.tables:
        if resting is not None and resting.rests(view, now):
            continue
        found = isolated(partial(_answers, view, world, now))
        if resting is not None:
            resting.note(view, _awake(found), now)
        if isinstance(found, Unforeseen):
            waiting.extend(_not_judged(view, action, found) for action in SPECS)
        else:
            candidates.extend(found[0])
            waiting.extend(found[1])
    if resting is not None:
        resting.keep(world.tables)
    candidates.sort(key=_order)
    room = max(0, min(world.budget.runs_per_cycle, world.budget.unfinished - world.unfinished))
    waiting.extend(_over_budget(one) for one in candidates[room:])
    return Plan(at=now, runs=tuple(candidates[:room]), waiting=tuple(waiting))


def judge(view: TableView, action: Action, world: World, now: datetime) -> Answer:
    """One action on one table: the gates, the rule, then what its last run came to."""
    shut = closed(view, action)
    if shut is not None:
        return shut
    answer = SPECS[action].rule(view, world, now)
    if isinstance(answer, NotDue):
        return answer
    return held_back(view, action, world.budget, now) or answer


def due_for(world: World, action: Action, now: datetime) -> tuple[PlannedRun, ...]:
    """The tables that one action is due for, highest rank first: whatever else is due for them, and without a budget.
    A table that cannot be judged is none of them."""

    def answers(view: TableView) -> Answers:
        answer = judge(view, action, world, now)
        return ([_ranked(view, answer)], []) if isinstance(answer, Due) else ([], [_waiting(view, answer)])

    judged = (isolated(partial(answers, view)) for view in world.tables)
    due = (one for found in judged if not isinstance(found, Unforeseen) for one in found[0])
    return tuple(sorted(due, key=_order))


def request_for(run: PlannedRun, *, new_id: Callable[[], str]) -> RunRequest:
    """The queue's form of a planned run."""
    return RunRequest(
        run_id=new_id(),
        table_id=run.table_id,
        name=run.name,
        location=run.location,
        action=run.due.kind,
        payload=encode(run.due.action),
        because=run.due.because,
        requires_version=required_version(run.due.action),
        rank=run.rank,
        predicted_files=run.estimate.files,
        predicted_bytes=run.estimate.bytes,
        predicted_seconds=run.estimate.seconds,
        runtime=run.runtime,
    )


def _answers(view: TableView, world: World, now: datetime) -> Answers:
    answers = [judge(view, action, world, now) for action in SPECS if action not in view.lacking]
    ranked = sorted((_ranked(view, one) for one in answers if isinstance(one, Due)), key=_order)
    waiting = [_waiting(view, one) for one in answers if isinstance(one, NotDue)]
    return ranked[:1], [*waiting, *(_after(view, later, ranked[0]) for later in ranked[1:])]


def _awake(found: Answers | Unforeseen) -> Sequence[NotDue] | None:
    """The answers of a table that may rest until one of them changes; None if it may not."""
    if isinstance(found, Unforeseen) or found[0]:
        return None
    return [one.answer for one in found[1]]


def _not_judged(view: TableView, action: Action, found: Unforeseen) -> Waiting:
    because = f"what is due on it cannot be judged ({found.problem})"
    return _waiting(view, NotDue(action=action, why=WhyNot.NOT_JUDGED, because=because))


def _ranked(view: TableView, due: Due) -> PlannedRun:
    cost = estimate(due.action, view.health)
    rank = SPECS[due.kind].urgency * _CLASS_WIDTH + min(cost.ratio, _CLASS_WIDTH - 1)
    return PlannedRun(
        table_id=view.table_id,
        name=view.name,
        location=view.location,
        due=due,
        estimate=cost,
        rank=rank,
        runtime=runtime_of(view.governed.row),
    )


def _order(run: PlannedRun) -> tuple[float, str, str]:
    return (-run.rank, run.name, run.table_id)


def _waiting(view: TableView, answer: NotDue) -> Waiting:
    return Waiting(table_id=view.table_id, name=view.name, answer=answer)


def _after(view: TableView, later: PlannedRun, first: PlannedRun) -> Waiting:
    because = f"{later.due.because}; {first.due.kind} of this table comes first"
    return _waiting(view, NotDue(action=later.due.kind, why=WhyNot.AFTER_OTHER, because=because))


def _over_budget(run: PlannedRun) -> Waiting:
    because = f"{run.due.because}; other tables gain more and this cycle's budget is spent"
    answer = NotDue(action=run.due.kind, why=WhyNot.BUDGET, because=because)
    return Waiting(table_id=run.table_id, name=run.name, answer=answer)
