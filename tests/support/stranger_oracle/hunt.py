"""Play seed after seed, and shrink what differs to the fewest steps."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from support.stranger_oracle.game import Ask, Difference, Table, asks_of, played
from support.stranger_oracle.steps import Step, steps_of

__all__ = ["Found", "Tally", "hunt"]

ASKS = 4
"""Questions for each world; each is asked until its plan can be applied."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """A difference, with the fewest steps that lead to it."""

    seed: int
    difference: Difference
    steps: tuple[Step, ...]

    def told(self) -> list[str]:
        return [
            f"seed {self.seed}: {self.difference.says}",
            *(f"    {step}" for step in self.steps),
            f"    {self.difference.asked}",
        ]

    def as_json(self) -> dict[str, Any]:
        steps = [str(step) for step in self.steps]
        return {
            "seed": self.seed,
            "asked": self.difference.asked,
            "says": self.difference.says,
            "steps": steps,
        }


@dataclass
class Tally:
    """What was played. `applicable`: plans that could be applied; `restored`: tables that these take back."""

    worlds: int = 0
    plans: int = 0
    applicable: int = 0
    restored: int = 0
    found: list[Found] = field(default_factory=list)


def hunt(table: Table, seeds: Iterable[int]) -> Tally:
    """Play the worlds of these seeds. Of each the first difference is shrunk."""
    tally = Tally()
    for seed in seeds:
        random = Random(seed)
        steps = steps_of(random)
        asks = asks_of(random, sorted({step.table for step in steps}), ASKS)
        came = played(table, steps, asks, daemon=seed % 5 == 0)
        tally.worlds += 1
        tally.plans += came.plans
        tally.applicable += len(came.applicable)
        tally.restored += sum(len(to) for _, to in came.applicable)
        if came.differences:
            tally.found.append(_shrunk(table, seed, steps, asks))
    return tally


def _shrunk(table: Table, seed: int, steps: Sequence[Step], asks: Sequence[Ask]) -> Found:
    """Leave out questions, then steps, as long as something of the same kind still differs."""
    asks = next(([ask] for ask in asks if played(table, steps, [ask]).differences), list(asks))
    kind = _kind(played(table, steps, asks).differences)
    kept = list(steps)
    for step in reversed(steps):
        fewer = [one for one in kept if one is not step]
        if kind and _kind(played(table, fewer, asks).differences) == kind:
            kept = fewer
    return Found(seed=seed, difference=played(table, kept, asks).differences[0], steps=tuple(kept))


def _kind(differences: Sequence[Difference]) -> str:
    """What the first difference is about, without names and numbers."""
    return differences[0].says.split(":")[0].lstrip("abcde ") if differences else ""
