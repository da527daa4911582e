"""The result of a cycle as a value, and as the sentence of its log line."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from lakewarden.catalog.model.rows import Action, Outcome, RunRow
from lakewarden.catalog.units import count_of
from lakewarden.jobs.actions.answers import NotDue, WhyNot
from lakewarden.jobs.planning.planner import Plan

__all__ = ["CycleReport", "has_work", "in_a_sentence"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CycleReport:
    """Counts of one cycle."""

    looked: int = 0
    changed: int = 0
    skipped: int = 0
    adopted: int = 0
    reaped: int = 0
    recorded: tuple[RunRow, ...] = ()
    planned: str = "nothing planned"
    """The plan in half a sentence."""
    queued: int = 0
    unfinished: int = 0
    searching: bool = False
    """Discovery has not come to its end yet."""
    idle: bool = False
    """There was nothing to do and nothing is under way."""
    seconds: float = 0.0
    trouble: str | None = None
    """A sentence if it did not get through."""
    left_out: str | None = None
    """A sentence if it got through, but left something out."""
    stopped: bool = False
    """The daemon was asked to end meanwhile."""

    @property
    def failed_runs(self) -> int:
        """Runs recorded in this cycle that did not work out."""
        return sum(row.outcome in (Outcome.FAILED, Outcome.ABANDONED) for row in self.recorded)

    @property
    def eventful(self) -> bool:
        """Whether the cycle changed anything."""
        return bool(
            self.changed or self.skipped or self.adopted or self.reaped or self.recorded or self.queued
        )

    def sentence(self) -> str:
        """The cycle in one sentence, naming only what there was."""
        if self.stopped:
            return "The cycle ended half-way: the daemon is stopping."
        if self.trouble is not None:
            return f"The cycle stopped: {self.trouble}"
        parts = [f"Looked at {count_of(self.looked, 'table')}, {self.changed or 'none'} changed"]
        for count, what in (
            (self.skipped, "skipped"),
            (self.adopted, "adopted"),
            (self.reaped, "lost runs finished"),
        ):
            if count:
                parts.append(f"{count} {what}")
        if self.searching:
            parts.append("discovery goes on")
        if self.recorded:
            outcomes = Counter(row.outcome.value for row in self.recorded)
            parts.append(", ".join(f"{count} {name}" for name, count in sorted(outcomes.items())))
        parts.append(self.planned)
        if self.queued or self.unfinished:
            parts.append(f"{self.queued} queued, {self.unfinished} under way before")
        return f"{'; '.join(parts)}; took {self.seconds * 1000:.0f} ms."


def in_a_sentence(skipped: Mapping[str, str]) -> str | None:
    """What was left out, with the reason of the first by name."""
    if not skipped:
        return None
    name = min(skipped)
    return f"{name}: {skipped[name]}" + (f" And {len(skipped) - 1} more." if len(skipped) > 1 else "")


def has_work(made: Plan) -> bool:
    """Whether another cycle would find something to do: runs are due, the budget keeps some back, or somebody has asked
    for a conversion and is about to queue it."""
    return bool(made.runs) or any(
        one.answer.why in (WhyNot.BUDGET, WhyNot.AFTER_OTHER) or _is_asked_for(one.answer)
        for one in made.waiting
    )


def _is_asked_for(answer: NotDue) -> bool:
    return answer.action is Action.CONVERT and answer.why is WhyNot.QUEUED
