"""Runs the tests: the unit tests room by room, each file of the others in a process of its own.

Two of these run at once, or up to four where they mostly wait, the unit tests first; what they say is printed when they
end. A file has its own Spark session and servers, so that no file's mishap becomes another's; but for those in
SHARING, which leave both as they found them and need nothing else. The last line sums up.
What fails is tried once more on fresh servers, to tell what is broken from what is not sure. What passes only
then fails the run all the same, unless `tests/flaky.toml` names it with a reason and a date. A file whose
tests count on one another says so with the marker `together`; it is tried again as a whole.
Of the tests that are run in turns, it has the day's turn, unless `--turn` says another, or `all`.

    python tests/run_all.py [pytest arguments]
"""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path

from support.servers.class_archive import INTERPRETED, QUICK_JVM, class_archive
from support.turns import turn_of_the_day

TESTS = Path(__file__).parent
COUNTED = re.compile(r"(\d+) (passed|failed|skipped|error)")
ROOMS = ("contract", "integration", "security")
"""Folders of what is no unit test."""
TOGETHER = "pytest.mark.together"
NOTHING_COLLECTED = 5
LONGEST_SECONDS = 1_800.0
AT_ONCE = 4
"""So many files at once, at most."""
PLACES = 12
"""What runs at once has these together. What keeps a core busy takes five: two such at once, or one and two that
mostly wait. What kills daemons and waits for the next takes three: by threes, an eighth of two cores was idle."""
LONGEST = (
    "test_yarn",
    "test_tpch_refresh",
    "test_worker_crash",
    "test_sync_crash",
    "test_engine",
    "test_rollback_cli",
)
"""These begin first, and what shares a session, so that at the end one core does not wait for the other."""
SHARING = (
    (
        "test_governed_changes",
        "test_random_changes",
        "test_changes_of_several_tables",
        "test_changes_of_tables",
        "test_changes_by_type",
        "test_limits_by_row",
    ),
    (
        "test_operation_ids",
        "test_operation_ids_of_several",
        "test_upsert",
        "test_change_data",
        "test_warehouse_upserts",
        "test_governed_writes",
        "test_page_examples",
        "test_lost_races",
        "test_feature_tables",
    ),
    ("test_attacks", "test_what_is_seen"),
    ("test_vacuum", "test_log_care", "test_compaction", "test_statistics"),
    ("test_restore_exactly", "test_row_diff", "test_rollback_spark"),
    ("test_engine", "test_engine_of_any_format"),
    ("test_deletion_hdfs", "test_rollback_histories_spark", "test_servers"),
    ("test_s3", "test_s3_log_store", "test_s3_spark", "test_s3_web_identity"),
    ("test_attach_sql", "test_notebook_magic", "test_reading_rules", "test_spark_session", "test_streams"),
    (
        "test_golden",
        "test_listener",
        "test_convert",
        "test_metastore_sync",
        "test_system_spark",
        "test_onboarding_metastore",
    ),
)
"""Files that have one Spark session and one set of servers together: a session's first minute is its slowest, and the
server for S3 is compiled by who first asks for it, while the others of its kind would wait."""
BUSY = frozenset({*LONGEST, *chain(*SHARING)})
"""What keeps a core busy, besides the unit tests."""
COMPILING = ("test_tpch_refresh",)
"""Files with so many rows that Spark had better compile its queries: interpreted, this one takes three times as
long."""
BEGUN_ON = turn_of_the_day()
"""Asked once: a run that goes on past midnight has one turn."""
FLAKY = TESTS / "flaky.toml"
PROCESSORS = Path("/proc/stat")
PRINTING = threading.Lock()
FREE = threading.Semaphore(PLACES)
ENTERING = threading.Lock()
SECONDS: dict[str, float] = {}
"""What each group took, for the closing summary."""
SHOWN = 40
COMPILED = {"PYTHONDONTWRITEBYTECODE": ""}
"""Where the modules that one process has compiled wait for the next, whatever the caller's own environment says. Half
of what a command takes would go into compiling the same modules again, and the suite starts thousands."""


def main() -> int:
    """Run all groups; 1 if anything failed."""
    totals: Counter[str] = Counter()
    begun, busy_before = time.monotonic(), busy_seconds()
    rooms = sorted(TESTS.glob("unit/[a-z]*/"))
    files = [path for room in ROOMS for path in TESTS.glob(f"{room}/test_*.py")]
    with (
        tempfile.TemporaryDirectory(prefix="lakewarden-classes-") as folder,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        COMPILED["PYTHONPYCACHEPREFIX"] = str(Path(folder) / "compiled")
        archive = pool.submit(class_archive, Path(folder) / "classes.jsa")
        units = [pool.submit(run_in_place, totals, f"unit {room.name}", [str(room)]) for room in rooms]
        others = [pool.submit(run_in_place, totals, name, group, archive) for name, group in groups(files)]
        broken = any(one.result() for one in (*units, *others))
    failed = totals["failed"] + totals["error"]
    print(f"== of what is run in turns: turn {turn()}", flush=True)
    print(time_taken(time.monotonic() - begun, busy_seconds() - busy_before), flush=True)
    print(f"{totals['passed']} passed, {failed} failed, {totals['skipped']} skipped", flush=True)
    return 1 if broken or failed else 0


def turn() -> str:
    """The turn that this run has, of what is run in turns."""
    said = [one.partition("=")[2] for one in sys.argv if one.startswith("--turn=")]
    return said[-1] if said else BEGUN_ON


def busy_seconds() -> float:
    """What the processors of this machine have worked since it began; the children of this process where the machine
    does not say (there, a Spark that outlives its caller is missing)."""
    if PROCESSORS.exists():
        ticks = PROCESSORS.read_text(encoding="utf-8").splitlines()[0].split()[1:8]
        user, nice, system, _, _, *interrupts = map(int, ticks)
        return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def time_taken(seconds: float, busy: float) -> str:
    """How long a run took, how much of it the processors were busy, and its longest groups."""
    share = busy / (seconds * (os.cpu_count() or 1))
    longest = sorted(SECONDS.items(), key=lambda one: -one[1])[:SHOWN]
    return "\n".join(
        [
            f"== {seconds:.0f} s, the processors {share:.0%} busy; the longest:",
            *(f"== {took:6.0f} s  {name}" for name, took in longest),
        ]
    )


def groups(files: Iterable[Path]) -> list[tuple[str, list[str]]]:
    """The files of each process, by the names they are told under; the longest first."""
    found: dict[tuple[str, ...], list[str]] = {}
    for path in sorted(files):
        group = next((each for each in SHARING if path.stem in each), (path.stem,))
        found.setdefault(group, []).append(str(path))
    turns = sorted(found.items(), key=lambda one: (not BUSY & set(one[0]), one[0]))
    return [(", ".join(names), paths) for names, paths in turns]


def run_in_place(
    totals: Counter[str], name: str, arguments: list[str], archive: Future[Path | None] | None = None
) -> bool:
    """`run_twice` once there is room, which is given in the order of asking."""
    needed = places(name)
    with ENTERING:
        for _ in range(needed):
            FREE.acquire()
    try:
        return run_twice(totals, name, arguments, archive)
    finally:
        FREE.release(needed)


def places(name: str) -> int:
    """How many of the `PLACES` a group takes, by the name it is told under."""
    return 5 if re.split("[, ]", name)[0] in {"unit", *BUSY} else 3


def run_twice(
    totals: Counter[str], name: str, arguments: list[str], archive: Future[Path | None] | None = None
) -> bool:
    """Some files, or a room of them; whether any is broken. What fails is tried once more on fresh servers."""
    begun = time.monotonic()
    environment = sparks(arguments, archive)
    cache = TESTS.parent / ".pytest_cache" / name  # several groups run at once
    own_cache = ["-o", f"cache_dir={cache}"]
    shutil.rmtree(cache, ignore_errors=True)
    counts, broken, said = run([*own_cache, *arguments], environment)
    if broken:
        first = failed_in(cache)
        whole = any(
            TOGETHER in Path(one).read_text(encoding="utf-8") for one in arguments if Path(one).is_file()
        )
        said += f"== {name}: {'all of it' if whole else 'what failed'}, once more, on servers of its own\n"
        again, broken, more = run(
            [*([] if whole else ["--last-failed"]), *own_cache, *arguments], environment
        )
        said += more
        counts["failed"], counts["error"] = again["failed"], again["error"]
        counts["passed"] = again["passed"] + (0 if whole else counts["passed"])
        unsure = first - failed_in(cache)
        said += "".join(f"== {test} {judgement(test)}\n" for test in sorted(unsure))
        unnamed = [test for test in unsure if test not in known_flakes()]
        counts["failed"] += len(unnamed)
        counts["passed"] -= len(unnamed)
        if not first:
            said += f"== {name}: its process ended without a word of what failed: too slow, or killed\n"
        broken = broken or bool(unnamed) or not first
    with PRINTING:
        totals.update(counts)
        SECONDS[name] = time.monotonic() - begun
        sys.stdout.write(f"== {name}: {SECONDS[name]:.0f} s\n{said}")
        sys.stdout.flush()
    return broken


def failed_in(cache: Path) -> frozenset[str]:
    """The tests that the last run with this cache left failing."""
    kept = cache / "v" / "cache" / "lastfailed"
    return frozenset(json.loads(kept.read_text(encoding="utf-8"))) if kept.exists() else frozenset()


def known_flakes() -> Mapping[str, str]:
    """The tests that may need their second try, each with its date and reason."""
    named = tomllib.loads(FLAKY.read_text(encoding="utf-8")).get("flaky", [])
    return {one["test"]: f"{one['since']}: {one['reason']}" for one in named}


def judgement(test: str) -> str:
    """What is said of a test that passed the second time only."""
    known = known_flakes().get(test)
    if known is not None:
        return f"passed the second time, as is known ({known})"
    return f"passed the second time: mend it, or name it in {FLAKY.name} with a reason"


def sparks(arguments: Iterable[str], archive: Future[Path | None] | None) -> Mapping[str, str]:
    """What the Sparks of a process start with, unless the caller's own environment says so: the archive of their
    classes, where there is one; and no compiled queries, but for the contract suite and what has many rows."""
    written = archive.result() if archive else None
    options = f"{QUICK_JVM} -XX:SharedArchiveFile={written}" if written else QUICK_JVM
    compiled = any(Path(one).parent.name == "contract" or Path(one).stem in COMPILING for one in arguments)
    return {"SPARK_SUBMIT_OPTS": options} | ({} if compiled else {"PYSPARK_SUBMIT_ARGS": INTERPRETED})


def run(arguments: list[str], environment: Mapping[str, str]) -> tuple[Counter[str], bool, str]:
    """One process: what its closing line counts, whether it did not end well, all it said."""
    command = [sys.executable, "-m", "pytest", "-q", f"--turn={turn()}", *arguments, *sys.argv[1:]]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=TESTS.parent,
        env={**environment, **os.environ, **COMPILED},
    )
    watchdog = threading.Timer(LONGEST_SECONDS, process.kill)
    watchdog.start()
    said, _ = process.communicate()
    watchdog.cancel()
    closing = [line for line in said.splitlines() if re.search(r" in \d+(\.\d+)?s", line)]
    counts: Counter[str] = Counter()
    for count, kind in COUNTED.findall(closing[-1] if closing else ""):
        counts[kind] += int(count)
    return counts, process.returncode not in (0, NOTHING_COLLECTED), said


if __name__ == "__main__":
    sys.exit(main())
