"""The classes that every Spark of the suite loads, read once and kept in a file that a JVM maps into its memory.

A session's first minute is mostly its JVM reading and verifying some 20,000 classes; the suite starts far more than
a hundred. A JVM that cannot use the file (another Java, other jars) says nothing and reads the classes itself.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from support.servers.jars import notification_jars
from support.servers.spark import start_spark

__all__ = ["COMPILED", "INTERPRETED", "QUICK_JVM", "write_archive"]

QUICK_JVM: Final = (
    "-XX:+UseSerialGC -Xmn256m -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=400m"
    " -Xlog:cds=off -Xlog:cds+dynamic=off"
)
"""For sessions that live minutes: half of their first minute would go into compiling well what soon ends. One core
collects garbage as well as two. Without room for its code, a JVM of this kind would stop compiling at 48 MB and
crawl. An archive is good for JVMs with the same collector only."""
INTERPRETED: Final = (
    "--conf spark.sql.codegen.wholeStage=false --conf spark.sql.codegen.factoryMode=NO_CODEGEN"
    " --conf spark.sql.adaptive.enabled=false pyspark-shell"
)
"""Tables of some rows: a third of a statement's time would go into writing Java for them, and compiling it, a tenth
into planning each of its stages anew. The contract suite, the demo and the benchmarks run with both."""
COMPILED: Final = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
}
"""Spark's defaults, which `INTERPRETED` changes."""
_OPTIONS: Final = "SPARK_SUBMIT_OPTS"
_WRITTEN_WITHIN_SECONDS: Final = 60.0
_WORK: Final = (
    "CREATE DATABASE archive",
    "CREATE TABLE archive.plain (id INT, day DATE, name STRING) USING parquet",
    "CREATE TABLE archive.delta (id INT, day DATE, name STRING) USING delta PARTITIONED BY (day)",
    "INSERT INTO archive.delta VALUES (1, DATE'2024-01-01', 'a'), (2, DATE'2024-01-02', 'b')",
    "INSERT INTO archive.plain SELECT id, day, name FROM archive.delta",
    """MERGE INTO archive.delta t USING archive.plain s ON t.id = s.id AND t.day = s.day
       WHEN MATCHED THEN UPDATE SET name = concat(s.name, 'x') WHEN NOT MATCHED THEN INSERT *""",
    "UPDATE archive.delta SET name = 'c' WHERE id = 2",
    "DELETE FROM archive.delta WHERE id = 1",
    "CONVERT TO DELTA archive.plain",
    "OPTIMIZE archive.delta",
    "VACUUM archive.delta DRY RUN",
    "RESTORE TABLE archive.delta TO VERSION AS OF 1",
    "DESCRIBE HISTORY archive.delta",
    "SELECT day, count(*), max(name) FROM archive.delta VERSION AS OF 1 GROUP BY day ORDER BY day",
)
"""A little of what the suites do with a session."""


def write_archive(archive: Path) -> None:
    """Write `archive` by doing a session's usual work once, some 30 s; no file where that does not work."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    unfinished = archive.with_suffix(f".{os.getpid()}")
    options = f"{QUICK_JVM} -XX:ArchiveClassesAtExit={unfinished}"
    ended = subprocess.run(
        [sys.executable, "-m", "support.servers.class_archive"],
        env={**os.environ, _OPTIONS: options},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode == 0 and _is_whole(unfinished):
        unfinished.rename(archive)
    else:
        unfinished.unlink(missing_ok=True)
        print(f"No class archive: {ended.stderr.strip()[-2000:]}", file=sys.stderr, flush=True)


def _is_whole(archive: Path) -> bool:
    """Whether the JVM, which outlives its Python by some seconds, has written all of it."""
    until = time.monotonic() + _WRITTEN_WITHIN_SECONDS
    size = -1
    while time.monotonic() < until:
        now = archive.stat().st_size if archive.exists() else -1
        if now > 0 and now == size:
            return True
        size = now
        time.sleep(1)
    return False


def _work() -> None:
    """Start a session with a metastore, as the suites do, and do a little of everything."""
    with tempfile.TemporaryDirectory() as folder:
        extra = notification_jars()
        with EmbeddedMetastore(Path(folder) / "metastore", extra_jars=extra) as metastore:
            session = start_spark(metastore.warehouse, metastore.uri)
            for statement in _WORK:
                session.sql(statement).collect()
            session.stop()


if __name__ == "__main__":
    write_archive(Path(sys.argv[1])) if len(sys.argv) > 1 else _work()
