"""`python -m bench.operation_ids [--quick] [--count N] [--seed S] -o json`: statements under operation ids, at random.

Each life of a table is some statements under three ids, RESTOREs, rollbacks, and logs that are cleaned up, held
against a model of what docs/sql.md promises. As many lives are of two tables, which statements change together, and in
which sessions die. Where the docs name a limit, that is counted apart. Ends with 1 if
anything differed; the sentences then stand on standard error.
"""

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import lakewarden
from bench.measure import parser_of, report
from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.daemon.callers import real_user
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.telemetry.log import configure
from lakewarden.daemon.usecases.init import initialise
from lakewarden.jobs.engines.delta.engine import DeltaEngine
from support.histories.group_operation_lives import GroupOperationLife
from support.histories.operation_lives import OperationLife
from support.servers.spark import start_spark

COUNT, QUICK_COUNT = 60, 6


def main() -> int:
    """Live through them; 1 if anything differed."""
    parser = parser_of(__doc__ or "")
    parser.add_argument(
        "--count", type=int, metavar="N", help=f"so many lives ({COUNT}; quick: {QUICK_COUNT})"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="the first one's seed (0)")
    chosen = parser.parse_args()
    configure(level="critical", format="json")
    count = chosen.count or (QUICK_COUNT if chosen.quick else COUNT)
    began, seen, wrong = time.perf_counter(), Counter[str](), list[str]()
    with tempfile.TemporaryDirectory(prefix="lakewarden-bench-") as name:
        folder = Path(name)
        spark = start_spark(folder / "warehouse")
        services = open_services(home=folder / "home")
        initialise(services, real_user())
        engine = DeltaEngine(lambda: spark, storage=lambda _: StorageOptions(), clock=SystemClock())
        with lakewarden.attach(spark, home=folder / "home") as lw:
            for seed in range(chosen.seed, chosen.seed + count):
                life = OperationLife(spark=spark, lw=lw, engine=engine, folder=folder / "tables", seed=seed)
                life.play()
                seen.update(life.seen)
                wrong += life.wrong
                pair = GroupOperationLife(
                    spark=spark, lw=lw, services=services, engine=engine, folder=folder / "pairs", seed=seed
                )
                pair.play()
                seen.update({f"pairs {name}": number for name, number in pair.seen.items()})
                wrong += pair.wrong
        spark.stop()
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    figures = {key.replace(" ", "_"): number for key, number in sorted(seen.items())}
    report({"lives": count, **figures, "differ": len(wrong), "seconds": time.perf_counter() - began})
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
