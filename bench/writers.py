"""How often users' commits are aborted, with and without the daemon: five writers on one table on HDFS.

`.venv/bin/python -m bench.writers [--quick] -o json`

Three appenders and two mergers write to one table of eight partitions from one Spark session, as fast as they can, and do
not retry. Three rounds, each on a table of its own: `off` without a daemon, `policy` with a daemon and the default policy,
`eager` with a policy that compacts at once and never waits for a quiet gap. `*_aborted_per_1000` counts commits that Delta
refused for a conflict; `*_aborted_by_us_per_1000` those of them whose error names a commit of the daemon's.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bench.measure import Figures, Options, options, report
from bench.processes import LAKEWARDEN
from lakewarden.catalog.access import Actor
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.model import Source
from lakewarden.catalog.policies import parse_value
from lakewarden.catalog.registry.govern import set_policy
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.system.rows import system_rows
from lakewarden.daemon.wiring import Services, open_services
from lakewarden.jobs.engine.jars import default_cache, resolve_jars
from support.hdfs import running_hdfs
from support.jars import hdfs_jars

PARTITIONS: Final = 8
APPENDERS: Final = 3
MERGERS: Final = 2
SECONDS: Final = 180.0
WARM_UP: Final = 30.0
"""Seconds before the counting begins: users' session and the worker's are up by then."""
OURS: Final = ("lakewarden", "delta-rs")
"""What an error shows of a conflicting commit of ours; the users here write with Spark only."""
ACTOR: Final = Actor(name="bench", admin=True, origin="bench")
EAGER: Final = {
    "compaction.quiet": "0 seconds",
    "compaction.min_small_files": "2",
    "rollback.promise": "1 hour",
}


def main() -> None:
    """Measure all rounds and print them; with `--users`, as a child, write to one table and count."""
    child = argparse.ArgumentParser(add_help=False)
    child.add_argument("--users")
    child.add_argument("--seconds", type=float)
    chosen, rest = child.parse_known_args()
    if chosen.users:
        json.dump(Users(chosen.users).write(chosen.seconds), sys.stdout)
        return
    sys.argv[1:] = rest
    report(measure(options(__doc__ or "")))


def measure(chosen: Options) -> Figures:
    """All rounds, one after the other."""
    seconds = SECONDS / 3 if chosen.quick else SECONDS
    figures: Figures = {"writers": APPENDERS + MERGERS, "seconds": seconds}
    with tempfile.TemporaryDirectory() as folder, running_hdfs(Path(folder) / "hdfs", hdfs_jars()) as hdfs:
        os.environ["HADOOP_CONF_DIR"] = str(hdfs.conf)
        rounds: Mapping[str, Mapping[str, str] | None] = {"off": None, "policy": {}, "eager": EAGER}
        for name, policy in rounds.items():
            print(f"round {name}: {seconds:.0f} s", file=sys.stderr, flush=True)
            place = f"{hdfs.uri}/lake/{name}"
            found = _round(Path(folder), place, policy, seconds)
            print(found, file=sys.stderr, flush=True)
            figures |= {f"{name}_{key}": value for key, value in found.items()}
    return figures


def _round(folder: Path, place: str, policy: Mapping[str, str] | None, seconds: float) -> Figures:
    command = [sys.executable, "-m", "bench.writers", "--users", place, "--seconds", str(seconds)]
    users = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    daemon = None if policy is None else _daemon(folder / place.rpartition("/")[2], place, policy)
    try:
        _wait_for(lambda: DeltaReader().is_table(place))
        time.sleep(WARM_UP)
        said, _ = users.communicate(b"go\n")
    finally:
        if daemon is not None:
            daemon.terminate()
            daemon.wait(120)
    counted: Counter[str] = Counter(json.loads(said))
    ours = [one for one in DeltaReader().commits(place, after=-1) if one.run_id is not None]
    assert counted["tried"] > 0
    return {
        "commits_tried": counted["tried"],
        "aborted_per_1000": 1000 * counted["aborted"] / counted["tried"],
        "aborted_by_us_per_1000": 1000 * counted["aborted_by_us"] / counted["tried"],
        "daemon_commits": len(ours),
    }


def _daemon(home: Path, place: str, policy: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """A daemon that manages the table, once users have made it; its worker is warm before most of the writing."""
    services: Services = open_services(home=home)
    home.mkdir(parents=True)
    services.store.create(system_rows(services.store, now=services.clock.now(), actor="bench"))
    _wait_for(lambda: DeltaReader().is_table(place))
    register(services.desk, place, actor=ACTOR, name="bench.orders", source=Source.REGISTER)
    wanted = {"mode": "manage", **policy}
    set_policy(
        services.desk,
        "bench.orders",
        {key: parse_value(key, text) for key, text in wanted.items()},
        actor=ACTOR,
    )
    log = (home / "daemon.log").open("wb")
    return subprocess.Popen(
        [LAKEWARDEN, "daemon", "--set", "sweep.interval=1 s", "--set", "http.port=0"],
        env={**os.environ, "LAKEWARDEN_HOME": str(home)},
        stdout=log,
        stderr=log,
    )


def _wait_for(check: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.2)


@dataclass
class Users:
    """Writers of one table in one session, each in its own thread, counting what became of each commit."""

    place: str

    def __post_init__(self) -> None:
        self.counted: Counter[str] = Counter()
        self.lock = threading.Lock()
        jars = ",".join(map(str, resolve_jars(default_cache())))
        self.spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.jars", jars)
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
            .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
            .getOrCreate()
        )

    def write(self, seconds: float) -> Mapping[str, int]:
        """Make the table and warm up, wait for a line on standard input, write for so long; returns how many commits were tried, and how many were aborted, and by whom."""
        rows = self.spark.range(8_000).selectExpr("id", f"id % {PARTITIONS} AS part", "0L AS n")
        rows.write.format("delta").partitionBy("part").save(self.place)
        for number in range(4):
            self._try(self._append, number, 0)
            self._try(self._merge, number % MERGERS, 0)
        self.counted.clear()
        sys.stdin.readline()
        end = time.monotonic() + seconds
        deeds = [self._append] * APPENDERS + [self._merge] * MERGERS
        threads = [
            threading.Thread(target=self._work, args=(deed, number, end)) for number, deed in enumerate(deeds)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self.counted

    def _work(self, deed: Callable[[int, int], object], number: int, end: float) -> None:
        turn = 0
        while time.monotonic() < end:
            turn += 1
            self._try(deed, number, turn)

    def _try(self, deed: Callable[[int, int], object], number: int, turn: int) -> None:
        outcome = ["tried"]
        try:
            deed(number, turn)
        except (PySparkException, Py4JJavaError) as error:
            text = str(error)
            assert "DELTA_CONCURRENT" in text or "Concurrent" in text or "MetadataChanged" in text, text
            outcome += ["aborted", *(["aborted_by_us"] if any(mark in text for mark in OURS) else [])]
        with self.lock:
            self.counted.update(outcome)

    def _append(self, number: int, turn: int) -> None:
        rows = self.spark.range(100).selectExpr(
            f"id + {(turn * 10 + number) * 1_000_000} AS id", f"{turn % PARTITIONS}L AS part", "1L AS n"
        )
        rows.write.format("delta").mode("append").save(self.place)

    def _merge(self, number: int, turn: int) -> None:
        part = (turn * MERGERS + number) % PARTITIONS
        view = f"changes_{number}"
        self.spark.range(part, 8_000, PARTITIONS * 50).selectExpr(
            "id", f"{turn}L AS n"
        ).createOrReplaceTempView(view)
        self.spark.sql(
            f"MERGE INTO delta.`{self.place}` t USING {view} c ON t.part = {part} AND t.id = c.id "
            "WHEN MATCHED THEN UPDATE SET t.n = c.n"
        ).collect()


if __name__ == "__main__":
    main()
