"""`python -m bench.adversary [--quick] [--minutes N] [--seed S] [--replay SEED] [--themes A,B] -o json`: an adversary at work.

Random histories of commands, cycles, workers, strangers and accidents on real tables, judged after every step
(docs/development.md, "The adversary"). Then each known hole is opened again by taking its fix out, and the adversary has to
find it: `holes` are opened, `detected` found, `detection` says after how many steps. What is wrong is shrunk, told on
standard error, and listed in `findings`; ends with 1 if anything is. `--replay` plays one seed and tells every step.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.measure import parser_of
from support.adversary.game import played, shrunk, told
from support.adversary.holes import HOLES, Hole, opened
from support.adversary.rollback_holes import ROLLBACK_HOLES
from support.adversary.stage import Stage
from support.adversary.themes import THEMES, chosen

__all__ = ["Tally", "detect", "hunt"]

MINUTES: Final = 60.0
QUICK_MINUTES: Final = 3.0
SEED: Final = 20_261_122
TRIES, QUICK_TRIES = 3, 1
"""How often each hole is looked for, from different seeds."""
PATIENCE: Final = 120
"""Histories after which a hole counts as not found."""


@dataclass
class Tally:
    """What was played, and what was found, each as seed, sentence and the shortest steps to it."""

    histories: int = 0
    steps: int = 0
    faults: int = 0
    findings: list[dict[str, Any]] = field(default_factory=list)


def hunt(
    stage: Stage, seeds: Iterator[int], themes: Sequence[str] = tuple(THEMES), *, seconds: float
) -> Tally:
    """Play seeds for so long. What is found is shrunk."""
    tally, until = Tally(), time.monotonic() + seconds
    for seed in seeds:
        if time.monotonic() > until:
            break
        history = played(stage, chosen(seed, themes))
        tally.histories += 1
        tally.steps += len(history.steps)
        tally.faults += history.faults
        if history.findings:
            short = shrunk(stage, history.steps, history.findings[0])
            lines = told(short)
            tally.findings.append({"seed": seed, "finding": str(history.findings[0]), "steps": lines})
            print(f"seed {seed}: {history.findings[0]}", *lines, sep="\n", file=sys.stderr)
    return tally


def detect(stage: Stage, hole: Hole, *, seed: int, patience: int = PATIENCE) -> int | None:
    """Open a hole and look for it. Returns the steps that it took, None if it was not found."""
    steps = 0
    with opened(hole):
        for number in range(seed, seed + patience):
            history = played(stage, chosen(number, hole.themes))
            steps += len(history.steps)
            if any(hole.shows in str(found) for found in history.findings):
                return steps
    return None


def main() -> int:
    """Hunt, then open the holes; 1 if anything is wrong or a hole is not found."""
    parser = parser_of(__doc__ or "")
    parser.add_argument(
        "--minutes", type=float, help=f"how long to hunt ({MINUTES:g}; quick: {QUICK_MINUTES:g})"
    )
    parser.add_argument("--seed", type=int, default=SEED, help="the first seed")
    parser.add_argument(
        "--replay", type=int, metavar="SEED", help="play one seed, shrink what is found, tell it"
    )
    parser.add_argument(
        "--themes", default=",".join(THEMES), help="what histories are about, separated by commas"
    )
    chosen_ = parser.parse_args()
    themes = tuple(chosen_.themes.split(","))
    with tempfile.TemporaryDirectory(prefix="lakewarden-adversary-") as folder:
        stage = Stage(Path(folder))
        if chosen_.replay is not None:
            return _replay(stage, chosen_.replay, themes)
        minutes = chosen_.minutes or (QUICK_MINUTES if chosen_.quick else MINUTES)
        tally = hunt(stage, count(chosen_.seed), themes, seconds=60 * minutes)
        tries = QUICK_TRIES if chosen_.quick else TRIES
        every = (*HOLES, *ROLLBACK_HOLES)
        table = [_detection(stage, hole, tries) for hole in every]
    figures = {
        "histories": tally.histories,
        "steps": tally.steps,
        "faults": tally.faults,
        "findings": tally.findings,
        "holes": len(every),
        "detected": sum(one["steps"] is not None for one in table),
        "detection": table,
    }
    json.dump(figures, sys.stdout, indent=2)
    sys.stdout.write("\n")
    return 1 if tally.findings or figures["detected"] != figures["holes"] else 0


def _replay(stage: Stage, seed: int, themes: Sequence[str]) -> int:
    history = played(stage, chosen(seed, themes))
    print(*told(history), sep="\n", file=sys.stderr)
    if history.findings:
        print(
            "The fewest steps to it:",
            *told(shrunk(stage, history.steps, history.findings[0])),
            sep="\n",
            file=sys.stderr,
        )
    figures = {"histories": 1, "steps": len(history.steps), "faults": history.faults, "seed": seed}
    json.dump({**figures, "findings": [str(one) for one in history.findings]}, sys.stdout, indent=2)
    sys.stdout.write("\n")
    return 1 if history.findings else 0


def _detection(stage: Stage, hole: Hole, tries: int) -> dict[str, Any]:
    found = [detect(stage, hole, seed=1000 * number) for number in range(tries)]
    steps = [one for one in found if one is not None]
    print(f"hole {hole.name}: {found}", file=sys.stderr)
    return {"hole": hole.name, "words": hole.words, "steps": int(median(steps)) if steps else None}


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # threads that stood still may be in a library that does not like an interpreter to end
