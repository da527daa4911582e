"""Vacuum and compaction of a tiny table: a worker's warm session beside Spark's defaults, the same statements.

`.venv/bin/python -m bench.vacuum [--quick] -o json`

Three sessions, each a process of its own: `default` is Spark with Delta and nothing else set, `tuned` differs in the
listing parallelism alone, `ours` is what a worker runs. All are warmed up for the same time by tables that do not
count, twenty seconds before what comes first and three before the rest: less would be unfair to ours, whose statements
are short. Each vacuums tables of ten live and ten removed files (`VACUUM t`, which lists the folder) and compacts
tables of ten small files (`OPTIMIZE t`). Ratios are medians divided by ours; `*_low_*` and `*_high_*` are the fastest
and the slowest around them. A default VACUUM takes half a minute, so the slow sessions do everything three times, ours
five times. `run_*` are whole runs of a worker, decision included.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import Final

import pyarrow as pa
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from bench.measure import Figures, Options, options, report
from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Head, Observation
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.jobs.actions.answers import AnyAction
from lakewarden.jobs.actions.compact import Compact
from lakewarden.jobs.actions.vacuum import Vacuum
from lakewarden.jobs.engines.delta.engine import DeltaEngine
from lakewarden.jobs.engines.spark.jars import default_cache, resolve_jars
from lakewarden.jobs.engines.spark.names import table_at
from lakewarden.jobs.engines.spark.session import start_session
from lakewarden.jobs.runs.port import JobContext, Target
from lakewarden.jobs.runs.spark_settings import SparkSettings, session_conf
from lakewarden.jobs.worker.dispatch import execute

FILES: Final = 10
RETENTION: Final = timedelta(seconds=1)
WARM_SECONDS: Final = 20
WARM_AGAIN_SECONDS: Final = 3
TIMES: Final = 5
SLOW_TIMES: Final = 3
LISTING: Final = "spark.sql.sources.parallelPartitionDiscovery.parallelism"


class Session(StrEnum):
    """The sessions that are compared."""

    DEFAULT = "default"
    TUNED = "tuned"
    OURS = "ours"


def main() -> None:
    """Measure everything and print it; with `--session`, as a child, one session's medians."""
    child = argparse.ArgumentParser(add_help=False)
    child.add_argument("--session", type=Session)
    chosen, rest = child.parse_known_args()
    if chosen.session is not None:
        sys.stdout.write(json.dumps(medians(chosen.session, Options(quick="--quick" in rest))) + "\n")
        return
    report(ratios(options(__doc__ or "")))


def ratios(chosen: Options) -> Figures:
    """Median milliseconds per session and statement, and how many times ours they are."""
    measured = {session: _in_a_process(session, chosen) for session in Session}
    ours, default, tuned = (measured[one] for one in (Session.OURS, Session.DEFAULT, Session.TUNED))
    figures = {
        f"{deed}_{session}_ms": value for session in Session for deed, value in measured[session].items()
    }
    return {
        "vacuum_ratio": default["vacuum"] / ours["vacuum"],
        "vacuum_ratio_tuned": tuned["vacuum"] / ours["vacuum"],
        "compact_ratio": default["compact"] / ours["compact"],
        "compact_ratio_tuned": tuned["compact"] / ours["compact"],
        **figures,
    }


def medians(session: Session, chosen: Options) -> Figures:
    """Median milliseconds of each deed in a session of this process."""
    times = TIMES if session is Session.OURS and not chosen.quick else SLOW_TIMES
    with tempfile.TemporaryDirectory(prefix="lakewarden-bench-") as folder:
        spark = _start(session, Path(folder))
        deeds: dict[str, Callable[[str], object]] = {
            "vacuum": lambda at: _run(spark, f"VACUUM {table_at(at)}"),
            "compact": lambda at: _run(spark, f"OPTIMIZE {table_at(at)}"),
        }
        if session is Session.OURS:
            deeds |= {
                "run_vacuum": lambda at: _execute(spark, at, _vacuum),
                "run_vacuum_full": lambda at: _execute(spark, at, _vacuum_full),
                "run_compact": lambda at: _execute(spark, at, _compact),
            }
        tables, figures = _tables(Path(folder)), Figures()
        warm = WARM_SECONDS
        for name, deed in deeds.items():
            figures |= _measured(deed, tables, times, name, warm)
            warm = WARM_AGAIN_SECONDS
        spark.stop()
    return figures


def _in_a_process(session: Session, chosen: Options) -> Mapping[str, float]:
    command = [
        sys.executable,
        "-m",
        "bench.vacuum",
        "--session",
        session,
        *(["--quick"] if chosen.quick else []),
    ]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    measured: Mapping[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def _start(session: Session, folder: Path) -> SparkSession:
    settings = SparkSettings(conf=(("spark.sql.warehouse.dir", folder.as_uri()),))
    if session is Session.OURS:
        return start_session(settings)
    ours = session_conf(settings, cores=os.cpu_count() or 1)
    builder = SparkSession.builder.config("spark.jars", ",".join(map(str, resolve_jars(default_cache()))))
    kept = ["spark.master", "spark.driver.memory", "spark.sql.extensions", "spark.sql.catalog.spark_catalog"]
    kept += [LISTING] if session is Session.TUNED else []
    for key in kept:
        builder = builder.config(key, ours[key])
    return builder.getOrCreate()


def _tables(folder: Path) -> Iterator[str]:
    """Locations of new tables, made when asked for: ten removed files, ten live ones."""
    for number in count():
        location = canonical(str(folder / f"t{number}"))
        configuration = {"delta.deletedFileRetentionDuration": "interval 1 seconds"}
        for number_of_file in range(2 * FILES):
            write_deltalake(
                location,
                pa.table({"id": [number_of_file]}),
                mode="append" if number_of_file % FILES else "overwrite",
                configuration=configuration,
            )
        yield location


def _measured(
    deed: Callable[[str], object], tables: Iterator[str], times: int, name: str, warm: float
) -> Figures:
    """What was removed is older than the retention when the deed begins."""
    until = time.monotonic() + warm
    while time.monotonic() < until:
        deed(_ripe(tables, 1)[0])
    spent = []
    for location in _ripe(tables, times):
        begin = time.perf_counter()
        deed(location)
        spent.append(1000 * (time.perf_counter() - begin))
    return {name: statistics.median(spent), f"{name}_low": min(spent), f"{name}_high": max(spent)}


def _ripe(tables: Iterator[str], wanted: int) -> list[str]:
    fresh = [next(tables) for _ in range(wanted)]
    time.sleep(RETENTION.total_seconds() + 0.1)
    return fresh


def _run(spark: SparkSession, statement: str) -> None:
    assert spark.sql(statement).collect()


def _execute(spark: SparkSession, location: str, decide: Callable[[int], AnyAction]) -> None:
    reader, clock = DeltaReader(), SystemClock()
    seen = reader.observe(location)
    assert isinstance(seen, Observation)
    ctx = JobContext(
        target=Target(table_id="bench", name="bench.t", location=location),
        run_id="bench",
        reader=reader,
        clock=clock,
        engine=DeltaEngine(lambda: spark, storage=lambda _: StorageOptions(), clock=clock),
        metastore=None,
        still_ours=lambda: None,
    )
    done = execute(ctx, decide(seen.version))
    assert done.files == FILES, done


def _vacuum(version: int) -> AnyAction:
    return Vacuum(requires=Head(version), retention_seconds=round(RETENTION.total_seconds()))


def _vacuum_full(version: int) -> AnyAction:
    return Vacuum(requires=Head(version), retention_seconds=round(RETENTION.total_seconds()), full=True)


def _compact(version: int) -> AnyAction:
    return Compact(requires=Head(version), target_bytes=2**27, min_small_files=2, quiet_seconds=0)


if __name__ == "__main__":
    main()
