"""How often users' commits are aborted, with and without the daemon: five writers on one table on HDFS.

`.venv/bin/python -m bench.writers [--quick] -o json`

Three appenders and two mergers write to one table partitioned by time, a new partition every minute: appends go to the
newest one, merges change a few rows of a batch just appended. One appender and one merger write with Spark,
the others with delta-rs; each rests for 4 to 12 seconds between two commits, and nobody retries.
Rounds, each on a table of its own:

* `off`: no daemon;
* `default`: a daemon and the default policy;
* `yielding`: a policy that compacts at once, whoever is writing, and gives way to any commit;
* `cold`: one that compacts, beside writers, what nobody has written to for a minute;
* `eager`: one that compacts, beside writers, at once.

Where a user wins, the daemon rests for seconds instead of minutes, to be in the users' way as often as it can.

`*_aborted_per_1000` counts commits refused for a conflict. Of these, `*_aborted_by_us_per_1000` are those
where a commit of the daemon's was in the way: named by the error (Spark),
or made in the meantime (delta-rs names nobody, so this is at most).
`*_daemon_commits` were made to the table while users wrote, `*_daemon_yielded` runs were given up for a
user's commit, and `*_files` is what a reader of the table has to open when the round ends.
"""

import argparse
import itertools
import json
import os
import random
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

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bench.measure import Figures, Options, options, report
from bench.processes import LAKEWARDEN, environment
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.model.rows import Source
from lakewarden.catalog.policy.effective import parse_value
from lakewarden.catalog.registry.governance import set_policy
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.daemon.installation.services import Services, open_services
from lakewarden.jobs.engines.spark.jars import default_cache, resolve_jars
from support.builders.callers import actor
from support.servers.hdfs import running_hdfs
from support.servers.jars import hdfs_jars

SECONDS: Final = 180.0
WARM_UP: Final = 45.0
"""Seconds of writing before the counting begins: users' session and the worker's are warm by then."""
PARTITION: Final = 60.0
"""Seconds after which users go on to the next partition."""
REST: Final = (4.0, 12.0)
"""Seconds between two commits of a writer, from and to."""
LONGEST: Final = 30.0
"""Seconds that a writer may need to end its last commit."""
ROWS: Final = 100
CHANGES: Final = 10
OURS: Final = ("lakewarden", "OPTIMIZE", "SET TBLPROPERTIES")
"""What Spark's error may show of a conflicting commit of ours; users do none of this here."""
ACTOR: Final = actor("bench", admin=True)
SMALL: Final = {"rollback.promise": "1 hour", "compaction.min_small_files": "4"}
BESIDE: Final = {**SMALL, "compaction.beside_writers": "yes"}
ROUNDS: Final[Mapping[str, Mapping[str, str] | None]] = {
    "off": None,
    "default": {},
    "yielding": {**SMALL, "compaction.quiet": "0 seconds"},
    "cold": {**BESIDE, "compaction.quiet": "60 seconds"},
    "eager": {**BESIDE, "compaction.quiet": "0 seconds"},
}
SETTINGS: Final = ("sweep.interval=1 s", "http.port=0", "backoff.first=2 s", "backoff.longest=10 s")


def main() -> None:
    """Measure all rounds and print them; with `--users`, as a child, write to one table and count."""
    child = argparse.ArgumentParser(add_help=False)
    child.add_argument("--users")
    child.add_argument("--seconds", type=float)
    chosen, rest = child.parse_known_args()
    if chosen.users:
        json.dump(Users(chosen.users).write(chosen.seconds), sys.stdout)
        sys.stdout.flush()
        os._exit(0)  # whoever hangs must not keep it
    sys.argv[1:] = rest
    report(measure(options(__doc__ or "")))


def measure(chosen: Options) -> Figures:
    """All rounds, one after the other."""
    seconds = SECONDS / 3 if chosen.quick else SECONDS
    figures: Figures = {"writers": 5, "seconds": seconds}
    with tempfile.TemporaryDirectory() as folder, running_hdfs(Path(folder) / "hdfs", hdfs_jars()) as hdfs:
        os.environ["HADOOP_CONF_DIR"] = str(hdfs.conf)
        for name, policy in ROUNDS.items():
            print(f"round {name}: {seconds:.0f} s", file=sys.stderr, flush=True)
            found = measure_round(Path(folder) / name, f"{hdfs.uri}/lake/{name}", policy, seconds)
            print(found, file=sys.stderr, flush=True)
            figures |= {f"{name}_{key}": value for key, value in found.items()}
    return figures


def measure_round(home: Path, place: str, policy: Mapping[str, str] | None, seconds: float) -> Figures:
    """Users beside a daemon with that policy, or beside none; `home` is the daemon's."""
    command = [sys.executable, "-m", "bench.writers", "--users", place, "--seconds", str(seconds)]
    users = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    daemon = None if policy is None else _daemon(home, place, policy)
    try:
        said, _ = users.communicate()
    finally:
        if daemon is not None:
            daemon.terminate()
            daemon.wait(120)
    assert users.returncode == 0, "A writer met an error that is no conflict."
    found = json.loads(said)
    counted: Counter[str] = Counter(found["counted"])
    commits = DeltaReader().commits(place, after=-1)
    ours = [one.committed_at.timestamp() for one in commits if one.run_id is not None]
    by_us = counted["named_us"] + sum(
        any(begun <= moment <= ended for moment in ours) for begun, ended in found["unnamed"]
    )
    tried = counted["tried"]
    assert tried > 0
    return {
        "commits_tried": tried,
        "writers_hung": counted["hung"],
        "aborted_per_1000": 1000 * (counted["named"] + counted["named_us"] + len(found["unnamed"])) / tried,
        "aborted_by_us_per_1000": 1000 * by_us / tried,
        "daemon_commits": sum(found["first"] <= moment <= found["last"] for moment in ours),
        "daemon_yielded": 0 if policy is None else _yielded(home),
        "files": len(DeltaTable(place).file_uris()),
    }


def _yielded(home: Path) -> int:
    """Runs that a user's commit beat."""
    command = [LAKEWARDEN, "jobs", "list", "bench.orders", "-o", "json", "--limit", "1000"]
    listed = subprocess.run(command, env=environment(home), check=True, stdout=subprocess.PIPE)
    return sum(run["error_class"] == "ConflictError" for run in json.loads(listed.stdout))


def _daemon(home: Path, place: str, policy: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """A daemon that manages the table, once users have made it; its worker is warm before most of the writing."""
    services: Services = open_services(home=home)
    home.mkdir(parents=True)
    services.store.create(system_rows(services.store, now=services.clock.now(), actor="bench"))
    deadline = time.monotonic() + 120
    while not DeltaReader().is_table(place):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    register(services.registry, place, actor=ACTOR, name="bench.orders", source=Source.REGISTER)
    wanted = {"mode": "manage", **policy}
    values = {key: parse_value(key, text) for key, text in wanted.items()}
    set_policy(services.registry, "bench.orders", values, actor=ACTOR)
    log = (home / "daemon.log").open("wb")
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    return subprocess.Popen([LAKEWARDEN, "daemon", *settings], env=environment(home), stdout=log, stderr=log)


@dataclass
class Users:
    """Writers of one table, each in its own thread, counting what became of each commit."""

    place: str

    def __post_init__(self) -> None:
        self.counted: Counter[str] = Counter()
        self.unnamed: list[tuple[float, float]] = []
        self.lock = threading.Lock()
        self.batches = itertools.count()
        self.last_batch = 0
        self.counting = threading.Event()
        self.done = threading.Event()
        threading.excepthook = lambda _: os._exit(1)
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

    def write(self, seconds: float) -> Mapping[str, object]:
        """Make the table and write: first to warm up, then so many seconds counted.

        Returns what was counted, when the counting began and ended, and when each aborted commit did whose error names
        nobody; in seconds since 1970. A writer whose storage client does not answer any more is left behind (`hung`).
        """
        self._append_by_spark(0)
        deeds = (
            self._append_by_spark,
            self._append_by_delta_rs,
            self._append_by_delta_rs,
            self._merge_by_spark,
            self._merge_by_delta_rs,
        )
        threads = [threading.Thread(target=self._work, args=job, daemon=True) for job in enumerate(deeds)]
        for thread in threads:
            thread.start()
        time.sleep(WARM_UP)
        first = time.time()
        self.counting.set()
        time.sleep(seconds)
        self.done.set()
        last = time.time()
        for thread in threads:
            thread.join(LONGEST)
        self.counted["hung"] = sum(thread.is_alive() for thread in threads)
        return {"counted": self.counted, "unnamed": self.unnamed, "first": first, "last": last}

    def _work(self, number: int, deed: Callable[[int], None]) -> None:
        rests = random.Random(number)
        while not self.done.wait(rests.uniform(*REST)):
            counts = self.counting.is_set()
            begun = time.time()
            outcome = None
            try:
                deed(int(time.monotonic() / PARTITION))
            except (PySparkException, Py4JJavaError) as error:
                text = str(error)
                assert "DELTA_CONCURRENT" in text or "Concurrent" in text or "MetadataChanged" in text, text
                outcome = "named_us" if any(mark in text for mark in OURS) else "named"
            except CommitFailedError:
                outcome = "unnamed"
            if counts:
                with self.lock:
                    self.counted.update(["tried"] if outcome is None else ["tried", outcome])
                    if outcome == "unnamed":
                        self.unnamed.append((begun, time.time()))

    def _append_by_spark(self, part: int) -> None:
        first = next(self.batches) * ROWS
        rows = self.spark.range(first, first + ROWS).selectExpr("id", f"{part}L AS part", "0L AS n")
        rows.coalesce(1).write.format("delta").mode("append").partitionBy("part").save(self.place)
        self.last_batch = first

    def _append_by_delta_rs(self, part: int) -> None:
        first = next(self.batches) * ROWS
        rows = {"id": list(range(first, first + ROWS)), "part": [part] * ROWS, "n": [0] * ROWS}
        write_deltalake(self.place, pa.table(rows), mode="append")
        self.last_batch = first

    def _merge_by_spark(self, part: int) -> None:
        first = self.last_batch
        self.spark.range(first, first + CHANGES).createOrReplaceTempView("changes")
        self.spark.sql(
            f"MERGE INTO delta.`{self.place}` t USING changes c ON t.part IN ({part - 1}, {part}) "
            "AND t.id = c.id WHEN MATCHED THEN UPDATE SET t.n = t.n + 1"
        ).collect()

    def _merge_by_delta_rs(self, part: int) -> None:
        first = self.last_batch
        merge = DeltaTable(self.place).merge(
            pa.table({"id": list(range(first, first + CHANGES))}),
            f"t.part IN ({part - 1}, {part}) AND t.id = c.id",
            source_alias="c",
            target_alias="t",
        )
        merge.when_matched_update({"n": "t.n + 1"}).execute()


if __name__ == "__main__":
    main()
