"""Histories: played step by step, judged after each, shrunk to what is needed to go wrong."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from support.adversary.invariants import Finding
from support.adversary.moves import Step, play
from support.adversary.stage import Stage
from support.adversary.world import World

__all__ = ["History", "played", "shrunk", "told"]


@dataclass(kw_only=True)
class History:
    """What was played: the steps up to the first finding, what each said, and what was found."""

    steps: list[Step] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    faults: int = 0
    seconds: float = 0.0


def played(stage: Stage, steps: Sequence[Step]) -> History:
    """Play until something is wrong, or all is done and everything has come to its end."""
    began = time.monotonic()
    history = History()
    stage.begin()
    world = World(stage)
    try:
        for step in (*steps, *_end()):
            if not play(world, step) and step[0] != "wait":
                continue
            history.steps.append(step)
            history.told.append(world.said)
            if world.findings:
                break
        else:
            world.findings += list(_unfinished(world))
    finally:
        world.close()
    history.findings, history.faults = list(world.findings), world.faults
    history.seconds = time.monotonic() - began
    return history


def _end() -> Iterator[Step]:
    """Whoever stands goes on; then daemon and workers have all the time they need."""
    yield from [("wake", 0, 0, 0)] * 4
    for _ in range(3):
        yield ("wait", 0, 0, 0)
        yield ("cycle", 0, 0, 0)
        yield from [("work", 0, 0, 0)] * 3


def _unfinished(world: World) -> Iterator[Finding]:
    """Runs that are still somebody's although nobody is left."""
    for run in world.stage.services().queue.unfinished():
        if run.state != "queued":
            yield Finding("ends", run.request.name, f"its {run.request.action} is {run.state} for ever")
    yield from world.rewinds.unfinished()


def shrunk(stage: Stage, steps: Sequence[Step], finding: Finding, *, seconds: float = 60.0) -> History:
    """The fewest steps that still break the same invariant: halves, quarters, ..., single steps are left out."""
    best, until = played(stage, steps), time.monotonic() + seconds
    if not _same(best, finding):
        return best  # it depends on more than its steps
    size = max(len(best.steps) // 2, 1)
    while size and time.monotonic() < until:
        at, smaller = 0, False
        while at < len(best.steps) and time.monotonic() < until:
            rest = [*best.steps[:at], *best.steps[at + size :]]
            tried = played(stage, rest)
            if _same(tried, finding):
                best, smaller = tried, True
            else:
                at += size
        size = size if smaller and size == 1 else size // 2
    return best


def _same(history: History, finding: Finding) -> bool:
    return any(one.invariant == finding.invariant for one in history.findings)


def told(history: History) -> list[str]:
    """A history as lines that people read."""
    lines = [
        f"{number:3} {_words(step)}  {said}"
        for number, (step, said) in enumerate(zip(history.steps, history.told, strict=True))
    ]
    return [*lines, *(f"    ! {one}" for one in history.findings)]


def _words(step: Step) -> str:
    name, x, y, fault = step
    return f"{name}({x}, {y}){_struck(fault)}"


def _struck(fault: int) -> str:
    if not fault:
        return ""
    if 100 < fault <= 200:
        return f" [full disk at write {fault - 100}]"
    of = " of its rollback" if abs(fault) > 200 else ""
    return f" [{'stands still' if fault > 0 else 'killed'} at point {abs(fault) % 200}{of}]"
