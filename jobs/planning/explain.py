"""The words of a plan: the same for the log, `jobs plan --explain`, `why TABLE` and any page. Pure."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from lakewarden.catalog.model.rows import Action
from lakewarden.catalog.units import count_of
from lakewarden.jobs.actions.answers import WhyNot
from lakewarden.jobs.actions.registry import required_version
from lakewarden.jobs.planning.planner import Plan, PlannedRun, Waiting

__all__ = ["Explanation", "explain", "summary"]

_DUE = "due"


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """One row of `jobs plan --explain`; times UTC, sizes bytes."""

    table_id: str
    name: str
    action: Action
    verdict: str
    """`due` or a word of `answers.WhyNot`."""
    because: str
    until: datetime | None = None
    requires_version: int | None = None
    rank: float | None = None
    predicted_files: int | None = None
    predicted_bytes: int | None = None
    predicted_seconds: float | None = None


def explain(plan: Plan, *, table_id: str | None = None) -> tuple[Explanation, ...]:
    """Every answer of a plan, runs first by rank, then by table and action; only one table's if `table_id`."""
    runs = [_run(one) for one in plan.runs if table_id in (None, one.table_id)]
    waiting = [_wait(one) for one in plan.waiting if table_id in (None, one.table_id)]
    return (*runs, *sorted(waiting, key=lambda one: (one.name, one.table_id, one.action)))


def summary(plan: Plan) -> str:
    """A plan in half a sentence: `3 runs due (2 compact, 1 vacuum)`, `nothing due`, with what the budget keeps back."""
    kinds = Counter(run.due.kind.value for run in plan.runs)
    listed = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    text = f"{count_of(len(plan.runs), 'run')} due ({listed})" if plan.runs else "nothing due"
    held = sum(1 for one in plan.waiting if one.answer.why is WhyNot.BUDGET)
    return f"{text}, {held} over budget" if held else text


def _run(run: PlannedRun) -> Explanation:
    return Explanation(
        table_id=run.table_id,
        name=run.name,
        action=run.due.kind,
        verdict=_DUE,
        because=run.due.because,
        requires_version=required_version(run.due.action),
        rank=run.rank,
        predicted_files=run.estimate.files,
        predicted_bytes=run.estimate.bytes,
        predicted_seconds=run.estimate.seconds,
    )


def _wait(waiting: Waiting) -> Explanation:
    answer = waiting.answer
    return Explanation(
        table_id=waiting.table_id,
        name=waiting.name,
        action=answer.action,
        verdict=answer.why,
        because=answer.because,
        until=answer.until,
    )
