"""`python -m bench.adversary [--quick] [--iceberg] [--minutes N] [--seed S] [--replay SEED] [--themes A,B] -o json`:
an adversary at work.

Random histories of commands, cycles, workers, strangers and accidents on real tables, judged after every step
(docs/development.md, "The adversary"). Then each known hole is opened again by taking its fix out, and the
adversary has to find it: `holes` are opened, `detected` found. `detection` says for each how many `picked`
steps of its witness show it and, but for `--quick`, after how many steps `random` histories did, one stream
of seeds from 0 for `--search` minutes at most (null: not within `searched` steps). What is wrong is shrunk,
told on standard error, and listed in `findings`; ends with 1 if anything is,
or if a hole is found by neither. `--replay` plays one seed and tells every step. `--iceberg` plays with Iceberg tables
beside Delta tables, on one session of Spark and a PostgreSQL for their catalog, and opens the holes of that side;
pyiceberg writes, too, where it is installed.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final

from bench.measure import parser_of
from support.adversary.game import played, shrunk, told
from support.adversary.holes import Hole, opened
from support.adversary.iceberg.ice_stage import ice_stage
from support.adversary.stage import Stage
from support.adversary.themes import ICEBERG, OF_DELTA, chosen
from support.adversary.witnesses import EVERY_HOLE, ICE_HOLES, is_seen
from support.servers.postgres import running_postgres
from support.servers.spark import start_spark

__all__ = ["Search", "Tally", "detect", "hunt"]

MINUTES: Final = 60.0
QUICK_MINUTES: Final = 3.0
SEED: Final = 20_261_122
SEARCH_MINUTES: Final = 3.0
"""How long random histories look for each hole."""


@dataclass
class Tally:
    """What was played, and what was found, each as seed, sentence and the shortest steps to it."""

    histories: int = 0
    steps: int = 0
    faults: int = 0
    findings: list[dict[str, Any]] = field(default_factory=list)


def hunt(stage: Stage, seeds: Iterator[int], themes: Sequence[str] = OF_DELTA, *, seconds: float) -> Tally:
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


@dataclass(frozen=True, kw_only=True)
class Search:
    """Random histories that looked for a hole: the steps played, and whether the last one showed it."""

    steps: int = 0
    found: bool = False


def detect(stage: Stage, hole: Hole, *, seconds: float, seed: int = 0) -> Search:
    """Open a hole and look for it by random histories, for so long at most."""
    steps, until = 0, time.monotonic() + seconds
    with opened(hole):
        for number in count(seed):
            if time.monotonic() > until:
                break
            history = played(stage, chosen(number, hole.themes))
            steps += len(history.steps)
            if any(hole.shows in str(found) for found in history.findings):
                return Search(steps=steps, found=True)
    return Search(steps=steps)


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
        "--themes", help="what histories are about, separated by commas (all of Delta's, or all of Iceberg's)"
    )
    parser.add_argument("--iceberg", action="store_true", help="play with Iceberg tables, too")
    parser.add_argument(
        "--search", type=float, help=f"minutes to look for each hole at random ({SEARCH_MINUTES:g}; quick: 0)"
    )
    chosen_ = parser.parse_args()
    known = ICEBERG if chosen_.iceberg else OF_DELTA
    themes = known if chosen_.themes is None else tuple(chosen_.themes.split(","))
    every = ICE_HOLES if chosen_.iceberg else EVERY_HOLE
    with _stage(iceberg=chosen_.iceberg) as stage:
        if chosen_.replay is not None:
            return _replay(stage, chosen_.replay, themes)
        minutes = chosen_.minutes or (QUICK_MINUTES if chosen_.quick else MINUTES)
        tally = hunt(stage, count(chosen_.seed), themes, seconds=60 * minutes)
        search = SEARCH_MINUTES if chosen_.search is None else chosen_.search
        search = 0.0 if chosen_.quick and chosen_.search is None else search
        table = [_detection(stage, hole, 60 * search) for hole in every]
    figures = {
        "histories": tally.histories,
        "steps": tally.steps,
        "faults": tally.faults,
        "findings": tally.findings,
        "holes": len(every),
        "detected": sum(_is_found(one) for one in table),
        "detection": table,
    }
    json.dump(figures, sys.stdout, indent=2)
    sys.stdout.write("\n")
    return 1 if tally.findings or figures["detected"] != figures["holes"] else 0


@contextmanager
def _stage(*, iceberg: bool) -> Iterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="lakewarden-adversary-") as folder:
        if not iceberg:
            yield Stage(Path(folder))
            return
        with running_postgres() as server:
            spark = start_spark(Path(folder) / "warehouse")
            yield ice_stage(Path(folder) / "stage", spark, server.fresh_url())
            spark.stop()


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


def _detection(stage: Stage, hole: Hole, seconds: float) -> dict[str, Any]:
    shown = is_seen(stage, hole)
    picked = None if shown is None else len(shown.steps)
    search = detect(stage, hole, seconds=seconds) if seconds else Search()
    found = search.steps if search.found else None
    print(f"hole {hole.name}: picked {picked}, random {found} of {search.steps}", file=sys.stderr)
    return {
        "hole": hole.name,
        "words": hole.words,
        "picked": picked,
        "random": found,
        "searched": search.steps,
    }


def _is_found(row: dict[str, Any]) -> bool:
    return row["picked"] is not None or row["random"] is not None


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # threads that stood still may be in a library that does not like an interpreter to end
