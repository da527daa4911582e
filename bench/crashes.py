"""`python -m bench.crashes [--quick] -o json`: random kills of daemons and workers; what was doubled or lost (nothing).

Ends with 1 if anything was; the sentences then stand on standard error. `LAKEWARDEN_KILLS` sets the number of kills.
"""

import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from bench.measure import options, report
from support.crashes.soak import Soak

KILLS, QUICK_KILLS = 220, 24
SEED = 20_261_121


def main() -> int:
    """Run one soak; 1 if anything was doubled or lost."""
    chosen = options(__doc__ or "")
    kills = int(os.environ.get("LAKEWARDEN_KILLS", QUICK_KILLS if chosen.quick else KILLS))
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(folder=Path(folder) / "soak", kills=kills, seed=SEED)
        toll = asdict(soak.run())
        wrong = toll.pop("wrong")
        if wrong:
            kept = Path(tempfile.gettempdir()) / "lakewarden-crashes.log"
            kept.write_text(soak.house.log())
            print(*wrong, f"The log of every process: {kept}", sep="\n", file=sys.stderr)
    report(toll)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
