"""The real worker process: starts lazily, stays warm, drains, follows its daemon, and takes its JVM with it."""

import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.model.rows import Outcome
from lakewarden.catalog.state.port import Result
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.jobs.actions.compact import Compact
from lakewarden.jobs.actions.convert import Convert
from lakewarden.jobs.actions.log_care import LogCare
from lakewarden.jobs.actions.properties import SetProperties
from lakewarden.jobs.runs.spark_settings import SparkSettings
from support.builders.runs import delta_table, parquet_file, request_of
from support.processes.workers import SPARK, Hall, is_gone

KEEP = (("delta.deletedFileRetentionDuration", "interval 30 days"),)

DAEMON = """
import os, subprocess, sys
from datetime import timedelta
from lakewarden.jobs.runs.worker_config import WorkerConfig, write_config

config = WorkerConfig(name="w", database_url=sys.argv[1], parent=os.getpid(), idle=timedelta(hours=1))
worker = subprocess.Popen([sys.executable, "-m", "lakewarden.jobs.worker.process"], stdin=subprocess.PIPE)
worker.stdin.write(write_config(config).encode())
worker.stdin.close()
print(worker.pid, flush=True)
sys.stdin.readline()
"""
"""A daemon that starts one worker and waits to be killed."""


def spark_hall(folder: Path) -> Hall:
    return Hall(folder, program=SPARK, spark=SparkSettings(master="local[2]"))


def wait_for(hall: Hall, run_id: str, seconds: float = 240) -> Result:
    until = time.monotonic() + seconds
    while run_id not in hall.results():
        assert time.monotonic() < until, hall.log()
        time.sleep(0.02)
    return hall.results()[run_id]


@pytest.mark.spark
def test_one_worker_does_everything_and_starts_spark_only_when_it_must(tmp_path: Path) -> None:
    hall = spark_hall(tmp_path)
    with hall.worker(idle=timedelta(minutes=5)) as process:
        location = delta_table(tmp_path / "metadata only", commits=2)
        for run_id, action in (
            ("properties", SetProperties(requires=Head(1), properties=KEEP)),
            ("checkpoint", LogCare(requires=Head(2), retention_seconds=3_600)),
        ):
            hall.enqueue(request_of(location, action, run_id=run_id))
            assert wait_for(hall, run_id).outcome is Outcome.SUCCEEDED
        assert psutil.Process(process.pid).children(recursive=True) == [], "metadata needs no JVM"

        for number in range(2):
            parquet_file(tmp_path / f"raw-{number}" / "a.parquet")
            raw = canonical(str(tmp_path / f"raw-{number}"))
            conversion = Convert(name=None, location=raw, properties=KEEP)
            hall.enqueue(request_of(raw, conversion, run_id=f"convert-{number}"))
        small = delta_table(tmp_path / "small files", commits=6)
        compact = Compact(requires=Head(5), target_bytes=1_000_000, min_small_files=2, quiet_seconds=0)
        hall.enqueue(request_of(small, compact, run_id="compact"))
        seconds = {}
        for run_id in ("convert-0", "convert-1", "compact"):
            result = wait_for(hall, run_id)
            assert result.outcome is Outcome.SUCCEEDED, hall.log()
            seconds[run_id] = result.actual_seconds or 0.0
        assert seconds["convert-1"] < seconds["convert-0"], "the session is warm"
        children = psutil.Process(process.pid).children(recursive=True)
        assert any("java" in child.name() for child in children)

        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, hall.log()
    assert all(is_gone(child) for child in children)
    said = {run_id: hall.said(run_id) for run_id in ("properties", "convert-0", "convert-1")}
    assert all(lines[0].startswith("run started") for lines in said.values())
    assert all(lines[-1].startswith("run finished outcome=succeeded") for lines in said.values())
    starts = [
        run_id for run_id, lines in said.items() for line in lines if line.startswith("Spark has started")
    ]
    assert starts == ["convert-0"]
    print("seconds of runs:", {run_id: round(value, 2) for run_id, value in seconds.items()})


def test_an_idle_worker_ends(tmp_path: Path) -> None:
    with spark_hall(tmp_path).worker(idle=timedelta(milliseconds=200)) as process:
        assert process.wait(120) == 0


def test_a_worker_whose_daemon_is_gone_ends(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", DAEMON, f"sqlite:///{tmp_path / 'state.db'}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as daemon:
        assert daemon.stdout is not None
        worker = psutil.Process(int(daemon.stdout.readline()))
        assert worker.is_running()
        daemon.kill()
    assert is_gone(worker, seconds=120)


def test_a_worker_without_a_configuration_says_so_in_one_sentence() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lakewarden.jobs.worker.process"],
        input="{}",
        capture_output=True,
        text=True,
        env=dict(os.environ),
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("The worker got no configuration")
    assert "Traceback" not in done.stderr
