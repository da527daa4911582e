"""`python -m bench.histories [--quick] [--count N] [--spark N|--iceberg N|--oracle] -o json`: random histories.

Histories of real Delta tables are rolled back, compared row by row with a rebuild, and undone; during every second
rollback somebody else writes to its tables. `--spark N` does it with N histories on HDFS that Spark and delta-rs write
by turns; `--iceberg N` with N histories of Iceberg tables and the Delta tables made from them. `--oracle` makes no
tables: it compares plans of symbolic histories with the oracle of the tests and counts what was among them. Ends with 1
if anything differed; the sentences then stand on standard error.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from bench.histories_iceberg import IcebergHistories
from bench.histories_spark import SparkHistories
from bench.measure import parser_of, report
from lakewarden.catalog.errors import LakewardenError
from lakewarden.daemon.telemetry.log import configure
from support.histories.history_runs import Case, Company, local_case
from support.histories.oracle_cases import Trait, cases, disagreements, traits_of

COUNT, QUICK_COUNT = 300, 40
PLANS, QUICK_PLANS = 20_000, 2_000
KEYS: Final = (
    "histories",
    "tables",
    "commits_by_delta_rs",
    "commits_by_spark",
    "commits_by_iceberg",
    "commits_by_set_back",
    "rollbacks",
    "undone",
    "with_collateral",
    "healed",
    "born_tainted",
    "cascaded",
    "with_writer",
    "stopped",
    "extended",
    "refused",
    "undo_stopped",
    "compared_rows",
)
Tally = tuple[Counter[str], list[str]]


def main() -> int:
    """Run what was asked for; 1 if anything differed."""
    parser = parser_of(__doc__ or "")
    parser.add_argument(
        "--count", type=int, metavar="N", help=f"so many histories ({COUNT}; quick: {QUICK_COUNT})"
    )
    parser.add_argument(
        "--spark", type=int, metavar="N", help="N histories by Spark and delta-rs on HDFS instead"
    )
    parser.add_argument(
        "--iceberg", type=int, metavar="N", help="N histories of Iceberg and Delta tables together instead"
    )
    parser.add_argument("--oracle", action="store_true", help="symbolic histories against the oracle instead")
    chosen = parser.parse_args()
    configure(level="critical", format="json")
    began = time.perf_counter()
    keys, (seen, wrong) = _chosen(chosen)
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    figures = {key: seen[key] for key in keys}
    report({**figures, "mismatches": len(wrong), "seconds": time.perf_counter() - began})
    return 1 if wrong else 0


def _chosen(chosen: argparse.Namespace) -> tuple[Iterable[str], Tally]:
    if chosen.oracle:
        count = chosen.count or (QUICK_PLANS if chosen.quick else PLANS)
        return [trait.value for trait in Trait], _planned(count)
    if chosen.iceberg:
        with IcebergHistories() as mixed:
            return KEYS, _run(chosen.iceberg, mixed.case)
    if chosen.spark:
        with SparkHistories() as distant:
            return KEYS, _run(chosen.spark, distant.case)
    return KEYS, _run(chosen.count or (QUICK_COUNT if chosen.quick else COUNT), local_case)


def _run(count: int, make: Callable[[Path, int], Case]) -> Tally:
    """Histories 0 to `count` - 1, every second one with somebody who races the rollback."""
    seen: Counter[str] = Counter()
    wrong: list[str] = []
    for seed in range(count):
        with tempfile.TemporaryDirectory(prefix="lakewarden-bench-") as folder:
            case = make(Path(folder), seed)
            try:
                case.run(Company.RACING if seed % 2 else Company.NOBODY)
            except LakewardenError as error:
                case.wrong.append(f"{type(error).__name__}: {error}")
        seen.update(case.seen)
        wrong += [f"history {seed}: {sentence}" for sentence in case.wrong]
        if seed % 20 == 19:
            print(f"{seed + 1} of {count}", file=sys.stderr)
    return seen, wrong


def _planned(count: int) -> Tally:
    """Plans against the oracle. A few of `count` histories have nothing to undo and are left out."""
    seen: Counter[str] = Counter()
    wrong: list[str] = []
    for case in cases(count, foreign=0.0):
        plan = case.plan()
        wrong += disagreements(case, plan)
        seen.update(trait.value for trait in traits_of(case, plan))
    return seen, wrong


if __name__ == "__main__":
    sys.exit(main())
