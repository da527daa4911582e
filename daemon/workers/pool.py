"""Worker processes: started when there is work, watched, restarted with back-off, drained.

A worker that ends by itself with exit code 0 was idle or drained. Any other end is a failure: the next start waits,
twice as long after each further failure. What its run came to is decided by the run's lease and the table's
log, not here.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO, Final

from lakewarden.catalog.model.rows import RunRow
from lakewarden.catalog.private_files import private_folder, private_opener
from lakewarden.catalog.state.port import Queue, Run, RunState
from lakewarden.catalog.state.run_record import run_row
from lakewarden.daemon.settings.settings import Settings
from lakewarden.daemon.telemetry.log import get_log
from lakewarden.daemon.workers.ended_runs import ended_without
from lakewarden.jobs.runs.catalog_conf import catalog_conf
from lakewarden.jobs.runs.log_stores import has_one_for_all
from lakewarden.jobs.runs.s3a import s3_conf, without_log_store
from lakewarden.jobs.runs.spark_settings import JarSource, SparkSettings
from lakewarden.jobs.runs.worker_config import WorkerConfig, write_config

__all__ = ["Launch", "WorkerPool", "pool_name", "spark_settings", "worker_config", "worker_launcher"]

_FIRST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 300.0
_PROVEN: Final = 60.0
"""Seconds after which a worker that fails starts anew without the back-off of earlier failures."""
_LOG_BYTES: Final = 10 * 1024 * 1024
_DEATH: Final = 5.0
"""Seconds that a killed process gets to end. One that waits for a dead disk does so when the disk answers, and nothing
else before."""

Launch = Callable[[str], "subprocess.Popen[bytes]"]
"""Starts the worker process of that name."""


def pool_name() -> str:
    """What the names of one process's workers begin with. Unlike any other's, on whatever machine: the queue knows
    whose a run is by the worker's name, and process ids are the same in every container."""
    return f"worker-{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


def spark_settings(settings: Settings) -> SparkSettings:
    """What an installation's own Spark sessions are made of. Those that fetch their jars themselves know no S3: their
    LogStore could not be made safe. An operator's own LogStore for all storages stands alone: they stay out of S3."""
    source = JarSource(settings.spark_jars)
    buckets = () if source is JarSource.PACKAGES else s3_conf(settings.storage)
    if has_one_for_all(dict(settings.spark_conf)):
        buckets = without_log_store(buckets)
    return SparkSettings(
        master=settings.spark_master,
        driver_memory_bytes=settings.spark_driver_memory,
        metastore_uri=settings.metastore_uri,
        jar_source=source,
        jars_cache=settings.jars_cache,
        catalogs=catalog_conf(settings.catalogs),
        conf=(*buckets, *settings.spark_conf),
    )


def worker_config(settings: Settings, name: str) -> str:
    """The message to a worker of this installation on its standard input. Holds secrets."""
    return write_config(
        WorkerConfig(
            name=name,
            database_url=settings.database_url,
            parent=os.getpid(),
            spark=spark_settings(settings),
            storage=settings.storage,
            catalogs=settings.catalogs,
            lease=settings.run_lease,
            heartbeat=settings.run_heartbeat,
            longest_run=settings.run_longest,
            system_location=settings.system_location,
            system_database=settings.system_database,
            undo_for=settings.rollback_undo,
            idle=settings.workers_idle,
            log_level=settings.log_level,
        )
    )


def worker_launcher(
    *,
    config: Callable[[str], str],
    logs: Path | None,
    environment: Mapping[str, str],
    command: Sequence[str] = (sys.executable, "-P", "-m", "lakewarden.jobs.worker.process"),
) -> Launch:
    """Start workers as `python -P -m lakewarden.jobs.worker.process` in sessions of their own (Ctrl-C is for the
    daemon, which drains them), with their configuration on stdin and their output in `logs` (None: where ours goes)."""

    def launch(name: str) -> "subprocess.Popen[bytes]":
        with nullcontext(sys.stderr.fileno()) if logs is None else _log_file(logs, name) as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env={**os.environ, **environment},
                start_new_session=True,
            )
        assert process.stdin is not None, "it was asked for"
        with contextlib.suppress(BrokenPipeError), process.stdin:  # it died at once: tend() will see that
            process.stdin.write(config(name).encode())
        return process

    return launch


def _log_file(logs: Path, name: str) -> BinaryIO:
    private_folder(logs)
    path = logs / f"{name}.log"
    if path.exists() and path.stat().st_size > _LOG_BYTES:
        path.replace(path.with_suffix(".log.1"))
    return open(path, "ab", opener=private_opener)


@dataclass(slots=True)
class _Slot:
    name: str
    process: "subprocess.Popen[bytes] | None" = None
    started_at: float = 0.0
    start: int = 0
    """Which process it is of those that had this name."""
    held: dict[str, int] = field(default_factory=dict)
    """Run id -> the start whose run it was when the queue was first seen to have it."""
    asked: bool = False
    failures: int = 0
    not_before: float = 0.0


class WorkerPool:
    """Up to `count` workers. `tend` is called often and never blocks; `drain` may take as long as a run does."""

    def __init__(
        self,
        launch: Launch,
        *,
        count: int,
        prefix: str,
        on_failure: Callable[[], None] = lambda: None,
        recorded: Callable[[str], RunRow | None] = lambda run_id: None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """`recorded` gives the row of a run that the queue was told to forget; raises `UnavailableError`."""
        self._launch, self._monotonic, self._on_failure = launch, monotonic, on_failure
        self._recorded = recorded
        self._slots = [_Slot(name=f"{prefix}-{number}") for number in range(count)]
        self._dying: list[subprocess.Popen[bytes]] = []
        self._log = get_log("workers")
        self.unstarted: str | None = None
        """Why the last start came to nothing, None once one has succeeded."""
        self.refused_starts = 0
        """So many starts in a row came to nothing."""

    @property
    def alive(self) -> int:
        """Processes that live now."""
        return sum(map(_lives, self._slots))

    @property
    def held(self) -> int:
        """Runs that its workers had when the queue was last looked at."""
        return sum(len(slot.held) for slot in self._slots)

    def look(self, queue: Queue) -> tuple[Run, ...]:
        """The unfinished runs of a queue, once workers whose run is theirs no more are ended. Raises
        `UnavailableError`."""
        runs = queue.unfinished()
        expired = {run.request.run_id for run in queue.expired()}
        self.follow(runs, expired, self._taken(queue, {run.request.run_id for run in runs}))
        return runs

    def _taken(self, queue: Queue, unfinished: Container[str]) -> set[tuple[str, str]]:
        """Workers with the runs of theirs that are over because somebody else ended them."""
        held = [(slot.name, run_id) for slot in self._slots for run_id in slot.held]
        gone = [(worker, run_id) for worker, run_id in held if run_id not in unfinished]
        return {(worker, run_id) for worker, run_id in gone if self._is_taken(queue, worker, run_id)}

    def _is_taken(self, queue: Queue, worker: str, run_id: str) -> bool:
        run = queue.get(run_id)
        if run is None:
            row = self._recorded(run_id)
            return row is not None and ended_without(worker, row)
        return run.state is RunState.FINISHED and ended_without(worker, run_row(run, now=run.queued_at))

    def follow(
        self, runs: Iterable[Run], expired: Container[str], taken: Container[tuple[str, str]] = ()
    ) -> None:
        """End workers whose run is theirs no more: its lease is over, or somebody else settled it and it waits, or is
        done, anew, or is over. A run that is gone or finished otherwise was theirs to end. `runs` are the unfinished
        ones, `expired` the ids of those whose lease is over, `taken` workers with the ids of runs that somebody else
        ended. To be called before `tend`: a worker that `tend` starts has the name of the one before."""
        now = {run.request.run_id: run for run in runs}
        for slot in self._slots:
            for run_id, run in now.items():
                if run.worker == slot.name:
                    slot.held.setdefault(run_id, slot.start)
            for run_id, start in list(slot.held.items()):
                known = now.get(run_id)
                over = known is None or known.worker != slot.name
                lost = over if known is not None else (slot.name, run_id) in taken
                if over:
                    del slot.held[run_id]
                if lost or run_id in expired:
                    self._end(slot, start)

    def tend(self, wanted: int) -> None:
        """Bury the dead and start workers until `wanted` live (or all slots are taken, or have to wait)."""
        self._dying = [process for process in self._dying if process.poll() is None]
        for slot in self._slots:
            self._bury(slot)
        missing = wanted - self.alive
        for slot in self._slots:
            if missing <= 0:
                break
            if slot.process is None and self._monotonic() >= slot.not_before:
                missing -= self._start(slot)

    def _start(self, slot: _Slot) -> bool:
        """Whether the machine let a worker start. Where it did not (no room, no memory, a folder of somebody else),
        it is tried again after a pause, as after any failure."""
        slot.start += 1
        slot.started_at, slot.asked = self._monotonic(), False
        try:
            slot.process = self._launch(slot.name)
        except OSError as error:
            self.unstarted, self.refused_starts = str(error), self.refused_starts + 1
            pause = self._pause(slot)
            self._log.warning(
                "worker not started", worker=slot.name, because=self.unstarted, restart_in=f"{pause:g} s"
            )
            return False
        self.unstarted, self.refused_starts = None, 0
        self._log.info("worker started", worker=slot.name, pid=slot.process.pid)
        return True

    def ask_to_end(self) -> None:
        """Tell every worker, once, to finish its run and end."""
        for slot in self._slots:
            if slot.process is not None and not slot.asked:
                slot.asked = True
                _signal(slot.process, signal.SIGTERM)

    def drain(self, patience: timedelta) -> bool:
        """End all workers: ask, wait, then kill. True if every one ended by itself."""
        self.ask_to_end()
        deadline = self._monotonic() + patience.total_seconds()
        orderly = True
        for slot in self._slots:
            if slot.process is None:
                continue
            try:
                slot.process.wait(max(0.0, deadline - self._monotonic()))
            except subprocess.TimeoutExpired:
                orderly = False
                self._log.warning("worker killed", worker=slot.name, because="it did not end in time")
                self._kill(slot.process)
            slot.process = None
        return orderly

    def kill(self) -> None:
        """Kill every worker at once, from any thread: their runs are finished by the next leader."""
        for slot in self._slots:
            process = slot.process
            if process is not None and process.poll() is None:
                _signal_group(process, signal.SIGKILL)

    def silence(self, run: Run) -> bool:
        """End the worker that has a run, if it is one of ours and lives. Returns whether it did: then nothing can wake
        and go on."""
        slot = next((one for one in self._slots if one.name == run.worker), None)
        return slot is not None and self._end(slot, slot.held.get(run.request.run_id, slot.start))

    def _end(self, slot: _Slot, start: int) -> bool:
        if slot.start != start or slot.process is None or not _lives(slot):
            return False
        self._log.warning("worker killed", worker=slot.name, because="its run was no longer its own")
        if not self._kill(slot.process):
            slot.process = None
            self._failed(slot, code=None)
        self._bury(slot)
        return True

    def _kill(self, process: "subprocess.Popen[bytes]") -> bool:
        """Whether it has ended; one that has not, because a disk hangs, is buried later."""
        _signal_group(process, signal.SIGKILL)
        try:
            process.wait(_DEATH)
        except subprocess.TimeoutExpired:
            self._dying.append(process)
            return False
        return True

    def _bury(self, slot: _Slot) -> None:
        code = None if slot.process is None else slot.process.poll()
        if code is None:
            return
        slot.process = None
        if code == 0:
            slot.failures = 0
            return
        self._failed(slot, code)

    def _failed(self, slot: _Slot, code: int | None) -> None:
        pause = self._pause(slot)
        self._log.warning("worker ended", worker=slot.name, code=code, restart_in=f"{pause:g} s")

    def _pause(self, slot: _Slot) -> float:
        """Count a failure; the seconds until the next start."""
        now = self._monotonic()
        slot.failures = 1 if now - slot.started_at >= _PROVEN else slot.failures + 1
        pause: float = min(_FIRST_PAUSE * 2 ** min(slot.failures - 1, 20), _LONGEST_PAUSE)
        slot.not_before = now + pause
        self._on_failure()
        return pause


def _lives(slot: _Slot) -> bool:
    return slot.process is not None and slot.process.poll() is None


def _signal(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        process.send_signal(number)


def _signal_group(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # the worker leads a session: its JVM goes with it
        os.killpg(process.pid, number)
