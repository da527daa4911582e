"""`python -m bench.histories [--quick] [--count N] [--spark N] [--oracle] -o json`: rollbacks of random histories.

Histories of real Delta tables are rolled back, compared row by row with a rebuild, and undone; during every second
rollback somebody else writes. `--spark N`: N more on HDFS, where Spark and delta-rs write by turns. `--oracle`: no tables,
but how the random plans of the oracle tests are distributed. Ends with 1 if anything differed.
"""

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final

from bench.measure import parser_of, report
from lakewarden.daemon.log import configure
from support.history_runs import Company, local_case

COUNT, QUICK_COUNT = 300, 40
KEYS: Final = (
    "histories", "tables", "rollbacks", "undone", "with_collateral", "healed", "born_tainted", "cascaded",
    "with_writer", "stopped", "extended", "refused", "undo_stopped", "compared_rows",
)  # fmt: skip


def main() -> int:
    """Run them; 1 if anything differed."""
    parser = parser_of(__doc__ or "")
    parser.add_argument("--count", type=int, help="how many histories")
    chosen = parser.parse_args()
    configure(level="critical", format="json")
    began = time.perf_counter()
    seen, wrong = _run(chosen.count or (QUICK_COUNT if chosen.quick else COUNT))
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    figures = {key: seen[key] for key in KEYS}
    report({**figures, "mismatches": len(wrong), "seconds": time.perf_counter() - began})
    return 1 if wrong else 0


def _run(count: int) -> tuple[Counter[str], list[str]]:
    seen: Counter[str] = Counter()
    wrong: list[str] = []
    for seed in range(count):
        with tempfile.TemporaryDirectory(prefix="lakewarden-bench-") as folder:
            case = local_case(Path(folder), seed)
            case.run(Company.RACING if seed % 2 else Company.NOBODY)
        seen.update(case.seen)
        wrong += [f"history {seed}: {sentence}" for sentence in case.wrong]
        if seed % 20 == 19:
            print(f"{seed + 1} of {count}", file=sys.stderr)
    return seen, wrong


if __name__ == "__main__":
    sys.exit(main())
