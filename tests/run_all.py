"""Runs every test: the fast ones in one process, then each file that needs Spark or a server in a process of its own.

A file has its own Spark session and servers, so that no file's mishap becomes another's. The last line sums up.
What fails gets one second try on fresh servers and is named for it: a busy machine must not look like a mistake.

    python tests/run_all.py [pytest arguments]
"""

import re
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parent
SLOW = "spark or metastore or postgres or hdfs or heavy or crash"
COUNTED = re.compile(r"(\d+) (passed|failed|skipped|error)")
NOTHING_COLLECTED = 5
LONGEST_SECONDS = 1_200.0


def main() -> int:
    """Run all groups; 1 if anything failed."""
    totals: Counter[str] = Counter()
    broken = run_twice(totals, "the fast tests", ["-m", f"not ({SLOW})"])
    for path in sorted([*TESTS.glob("contract/test_*.py"), *TESTS.glob("integration/test_*.py")]):
        broken |= run_twice(totals, path.name, ["-m", SLOW, str(path)])
    failed = totals["failed"] + totals["error"]
    print(f"{totals['passed']} passed, {failed} failed, {totals['skipped']} skipped", flush=True)
    return 1 if broken or failed else 0


def run_twice(totals: Counter[str], name: str, arguments: list[str]) -> bool:
    """A group. What fails in it gets a second chance on fresh servers, and is named for having needed it."""
    first: Counter[str] = Counter()
    broken = run(first, arguments)
    if broken:
        print(f"== {name}: what failed, once more, on servers of its own", flush=True)
        second: Counter[str] = Counter()
        broken = run(second, ["--last-failed", *arguments])
        print(f"== {name} {'failed again' if broken else 'passed the second time: look into it'}", flush=True)
        first["failed"], first["error"] = second["failed"], second["error"]
        first["passed"] += second["passed"]
    totals.update(first)
    return broken


def run(totals: Counter[str], arguments: list[str]) -> bool:
    """One group: its output goes on as it comes, its closing line is added up. True if it did not end well."""
    print(f"== pytest {' '.join(arguments)}", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", *arguments, *sys.argv[1:]]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=TESTS.parent)
    assert process.stdout is not None
    watchdog = threading.Timer(LONGEST_SECONDS, process.kill)
    watchdog.start()
    closing = ""
    for line in process.stdout:
        sys.stdout.write(line)
        sys.stdout.flush()
        if re.search(r" in \d+(\.\d+)?s", line):
            closing = line
    watchdog.cancel()
    for count, kind in COUNTED.findall(closing):
        totals[kind] += int(count)
    return process.wait() not in (0, NOTHING_COLLECTED)


if __name__ == "__main__":
    sys.exit(main())
