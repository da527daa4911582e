"""What a worker says while it has a run in hand, kept with the run: bounded, and without secrets.

Lines are written by a thread of their own, a few times a second: what is said in the middle of a transaction must not
wait for another one. A database that does not answer costs lines, never the run.
"""

import logging
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.state.port import Run, RunLine, RunLog
from lakewarden.catalog.units import storable
from lakewarden.jobs.runs.worker_config import WorkerConfig, secrets_of

__all__ = ["LONGEST_LINE", "MOST_LINES", "RunLines"]

MOST_LINES: Final = 1_000
"""Of one attempt; what comes after them is in the worker's own log alone."""
LONGEST_LINE: Final = 8_000
"""Characters; of a longer one, the trace of an error, the middle is left out."""
_FLUSH_SECONDS: Final = 0.4
_NO_FACTS: Final = frozenset(
    {"event", "level", "timestamp", "exception", "part", "run_id", "action", "table", "worker"}
)
"""Keys that every line of a run would repeat, or that have a column of their own."""


class RunLines(logging.Handler):
    """A processor of structlog, and a handler for what libraries say; keeps both while a run is in hand."""

    def __init__(self, config: WorkerConfig) -> None:
        super().__init__()
        self._config = config
        self._secrets: frozenset[str] = frozenset()
        self._guard = threading.Lock()
        self._waiting: list[RunLine] | None = None
        self._count = 0

    def __call__(self, logger: object, method: str, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """Keep a line of ours, and pass it on."""
        facts = " ".join(f"{key}={value}" for key, value in event.items() if key not in _NO_FACTS)
        said = f"{event.get('event', '')} {facts}".strip()
        self._keep(str(event.get("level", method)), "\n".join(filter(None, (said, event.get("exception")))))
        return event

    def emit(self, record: logging.LogRecord) -> None:
        """Keep what a library says."""
        self._keep(record.levelname.lower(), f"{record.name}: {self.format(record)}")

    @contextmanager
    def kept(self, log: RunLog, run: Run) -> Iterator[None]:
        """Keep what is said in the block with the run."""
        ended = threading.Event()
        with self._guard:
            self._waiting, self._count = [], 0
        writer = threading.Thread(
            target=self._write_until, args=(ended, log, run.request.run_id), name="run lines", daemon=True
        )
        writer.start()
        try:
            yield
        finally:
            ended.set()
            writer.join()
            with self._guard:
                self._waiting = None

    def _keep(self, level: str, said: str) -> None:
        with self._guard:
            if self._waiting is None or self._count > MOST_LINES:
                return
            self._count += 1
            if self._count > MOST_LINES:
                said = f"More than {MOST_LINES:,} lines: the rest is in the worker's own log alone."
            self._waiting.append(RunLine(at=datetime.now(UTC), level=level, message=self._bounded(said)))

    def _bounded(self, said: str) -> str:
        text = storable(said).replace("\0", "")
        self._secrets |= secrets_of(self._config)  # a key may have been rotated
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        if len(text) <= LONGEST_LINE:
            return text
        half = LONGEST_LINE // 2
        return f"{text[:half]}\n...\n{text[-half:]}"

    def _write_until(self, ended: threading.Event, log: RunLog, run_id: str) -> None:
        last = False
        while not last:
            last = ended.wait(_FLUSH_SECONDS)
            with self._guard:
                lines, self._waiting = self._waiting or [], []
            try:
                log.write(run_id, lines)
            except LakewardenError as error:
                # Not by a logger: it would bring the line back here.
                print(f"Lines of run {run_id} were not kept: {error}", file=sys.stderr, flush=True)
