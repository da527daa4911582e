"""`python -m bench.stranger_oracle [--quick] [--worlds N] [--seed S] -o json`:
plans against a stranger's reading of the book.

Random worlds of real tables, written by delta-rs with and without records; the product's own commands plan
about them, and each plan is held against an oracle that was written from the documentation alone
(tests/support/stranger_oracle). What differs is shrunk, told on standard error and listed in `differences`;
ends with 1 if anything is.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Final

from bench.measure import parser_of
from support.stranger_oracle.game import Table
from support.stranger_oracle.hunt import hunt

WORLDS: Final = 300
QUICK_WORLDS: Final = 20
SEED: Final = 1


def main() -> int:
    """Play the worlds; 1 if a plan differs."""
    parser = parser_of(__doc__ or "")
    parser.add_argument("--worlds", type=int, help=f"how many worlds ({WORLDS}; quick: {QUICK_WORLDS})")
    parser.add_argument("--seed", type=int, default=SEED, help="the first seed")
    chosen = parser.parse_args()
    worlds = chosen.worlds or (QUICK_WORLDS if chosen.quick else WORLDS)
    with tempfile.TemporaryDirectory(prefix="lakewarden-stranger-") as folder:
        tally = hunt(Table(Path(folder)), range(chosen.seed, chosen.seed + worlds))
    for found in tally.found:
        print(*found.told(), sep="\n", file=sys.stderr)
    figures = {
        "worlds": tally.worlds,
        "plans": tally.plans,
        "applicable": tally.applicable,
        "restored": tally.restored,
        "differences": [found.as_json() for found in tally.found],
    }
    json.dump(figures, sys.stdout, indent=2)
    sys.stdout.write("\n")
    return 1 if tally.found else 0


if __name__ == "__main__":
    raise SystemExit(main())
