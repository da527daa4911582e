"""Benchmarks one after the other: `python -m bench [--checks] [--quick] -o json`.

Those that measure speed take well under an hour on two quiet cores. With `--checks` come those that compare results
instead and take hours: random histories, kills, an adversary, writers beside the daemon. bench.deploy is not among
them: it needs root. Printed are the figures of each, and how long each took; 1 if one of them failed, which does not
keep the others from their turn.
"""

import json
import subprocess
import sys
import time
from typing import Any, Final

from bench.measure import parser_of

__all__ = ["CHECKS", "SPEED"]

SPEED: Final = (
    "system_table",
    "completion",
    "guard",
    "sweep",
    "rollback",
    "vacuum",
    "sql --parts overhead",
    "sql --parts upsert,stream,gateway --quick",
    "row_level --quick",
    "upsert_writes --quick",
    "gateway_load --quick",
    "attached",
    "onboard",
    "many_tables --quick",
    "s3_sweep --quick",
    "iceberg --quick",
)
CHECKS: Final = (
    "sql --parts tpch,random,wide,mysql,paired,placed,names",
    "histories",
    "histories --oracle",
    "histories --spark 60",
    "stranger_oracle",
    "operation_ids",
    "crashes",
    "writers",
    "adversary",
)


def main() -> int:
    """Run them; 1 if any failed."""
    parser = parser_of(__doc__ or "")
    parser.add_argument("--checks", action="store_true", help="also what compares results, for hours")
    chosen = parser.parse_args()
    figures: dict[str, Any] = {}
    seconds: dict[str, int] = {}
    failed = []
    for part in (*SPEED, *(CHECKS if chosen.checks else ())):
        begun = time.monotonic()
        done = subprocess.run(_command(part, quick=chosen.quick), check=False, stdout=subprocess.PIPE)
        seconds[part] = round(time.monotonic() - begun)
        sys.stderr.write(f"== bench.{part}: {seconds[part]} s\n")
        if done.stdout:
            figures[part] = json.loads(done.stdout)
        if done.returncode != 0:
            failed.append(part)
    json.dump({**figures, "seconds": seconds, "failed": failed}, sys.stdout, indent=2)
    sys.stdout.write("\n")
    return 1 if failed else 0


def _command(part: str, *, quick: bool) -> list[str]:
    name, *arguments = part.split()
    extra = ["--quick"] if quick and "--quick" not in arguments else []
    return [sys.executable, "-m", f"bench.{name}", *arguments, *extra, "-o", "json"]


if __name__ == "__main__":
    sys.exit(main())
