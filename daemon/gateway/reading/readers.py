"""Processes that read for the gateway: few, shared by its users, one warm, and killed when an answer is not wanted."""

import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import Pipe
from typing import Any, Final

import psutil
import pyarrow as pa

from lakewarden.catalog.errors import CancelledError, RefusedError, UnavailableError
from lakewarden.catalog.units import format_bytes, format_seconds
from lakewarden.daemon.gateway.reading.messages import (
    Broken,
    Done,
    Failed,
    Parse,
    ResultHeader,
    RowBatch,
    Setup,
    SystemQuery,
)
from lakewarden.daemon.gateway.results import ResultReader, Store, gathered
from lakewarden.daemon.gateway.sharing.shares import Share, Slots
from lakewarden.daemon.telemetry.log import get_log
from lakewarden.jobs.sql.compile.values import Dialect
from lakewarden.jobs.sql.statements import Statement

__all__ = ["ReadingProcesses"]

_LOOK_SECONDS: Final = 0.1
"""Interval at which a waiting thread checks whether its answer is still wanted."""
_IDLE_SECONDS: Final = 60.0
_WARM: Final = 2
_START_SECONDS: Final = 60.0
_SHORT_SECONDS: Final = 1.0
_GIVES_WAY: Final = 10
"""The niceness of a process whose answer takes longer. It cannot be taken back: the process is not asked again."""
_ENVIRONMENT: Final = {"MALLOC_ARENA_MAX": "2"}
Wanted = Callable[[], bool]


class ReadingProcesses:
    """Reading statements and querying system tables, each with places and processes of its own: neither waits for the
    other. An answer may take `seconds`. Thread-safe."""

    def __init__(self, setup: Setup, share: Share, *, seconds: float) -> None:
        self._parsing, self._looking = (_Pool(setup, share, seconds) for _ in range(2))

    def statement(self, text: str, dialect: Dialect | None, *, user: str, wanted: Wanted) -> Statement:
        """What a text says (`jobs.sql.parser.parse`). Raises as that does, `RefusedError` for one that takes too much
        memory or time, `CancelledError` when it is not `wanted` any more."""
        with self._parsing.asking(Parse(text=text, dialect=dialect), user, wanted) as reader:
            *_, done = reader.answer()
            assert done.statement is not None
            statement: Statement = done.statement
            return statement

    def rows(self, sql: str, store: Store, *, user: str, wanted: Wanted) -> ResultReader:
        """The result of a query over system tables. Raises as `catalog.system.query` does, and as `statement`."""
        with self._looking.asking(SystemQuery(sql=sql), user, wanted) as reader:
            answer = reader.answer()
            columns: ResultHeader = next(answer)
            schema = pa.ipc.read_schema(pa.py_buffer(columns.schema))
            return gathered(columns.columns, _batches(answer, schema), store)

    def tend(self) -> None:
        """Start what is missing, end what is not needed any more."""
        self._parsing.tend()
        self._looking.tend()

    def close(self) -> None:
        """End those that wait; what is asked of others ends with its operation."""
        self._parsing.close()
        self._looking.close()


class _Pool:
    """Processes, as many at once as `share` has places. Thread-safe."""

    def __init__(self, setup: Setup, share: Share, seconds: float) -> None:
        self._setup, self._places, self._seconds = setup, Slots(share), seconds
        self._idle: list[_ReadingProcess] = []
        self._lock = threading.Lock()
        self._closed = False

    @contextmanager
    def asking(self, ask: Parse | SystemQuery, user: str, wanted: Wanted) -> Iterator["_ReadingProcess"]:
        """A process that was asked."""
        with self._places.taken(user, wanted):
            reader = self._reader()
            try:
                reader.ask(ask, wanted, self._seconds)
                yield reader
            finally:
                self._give_back(reader)

    def tend(self) -> None:
        """Keep two warm, as one user may just be taking one, and no more for long."""
        now = time.monotonic()
        with self._lock:
            left = [one for one in self._idle[:-_WARM] if now - one.used > _IDLE_SECONDS]
            self._idle = [one for one in self._idle if one not in left]
            while len(self._idle) < _WARM and not self._closed:
                self._idle.insert(0, _ReadingProcess(self._setup))
        for one in left:
            one.kill()

    def close(self) -> None:
        """End those that wait."""
        with self._lock:
            idle, self._idle, self._closed = self._idle, [], True
        for one in idle:
            one.kill()

    def _reader(self) -> "_ReadingProcess":
        with self._lock:
            while self._idle:
                reader = self._idle.pop()
                if reader.is_alive:
                    return reader
                reader.kill()
        return _ReadingProcess(self._setup)

    def _give_back(self, reader: "_ReadingProcess") -> None:
        """One that has said all can be asked again."""
        with self._lock:
            if reader.fit and not self._closed:
                self._idle.append(reader)
                return
        reader.kill()


class _ReadingProcess:
    """One process, asked by one thread at a time."""

    def __init__(self, setup: Setup) -> None:
        ours, theirs = Pipe()
        number = theirs.fileno()
        self._line: Any = ours
        self._limit = setup.memory
        self._process = subprocess.Popen(
            [sys.executable, "-m", "lakewarden.daemon.gateway.reading.process", str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # Rust writes there how its memory ended
            pass_fds=(number,),
            env={**os.environ, **_ENVIRONMENT},
        )
        theirs.close()
        self.used = time.monotonic()
        self.fit = False
        """Whether the process has started, finished its last answer, and may be asked again."""
        self._asked = math.inf
        self._gives_way = False
        self._tell(setup)

    @property
    def is_alive(self) -> bool:
        """Whether the process can be asked."""
        return self._process.poll() is None

    def ask(self, ask: Parse | SystemQuery, wanted: Wanted, seconds: float) -> None:
        """Ask it, once it has started; `answer` has what it says for so long, while that is wanted."""
        ready, self.fit = self.fit, False
        self._wanted, self._seconds, self._clock = wanted, seconds, time.monotonic
        if not ready:
            self._until = time.monotonic() + _START_SECONDS
            self._next()
        if isinstance(ask, Parse):  # computes, and nothing else: a busy machine is not the statement's fault
            self._clock = self._spent
        self._asked, self._until = time.monotonic(), self._clock() + seconds
        self._tell(ask)

    def answer(self) -> Iterator[Any]:
        """The answer's parts, up to the end."""
        while True:
            said = self._next()
            match said:
                case Failed(error=error, fit=fit):
                    self.fit = fit and not self._gives_way
                    raise error
                case Broken(problem=problem, trace=trace):
                    get_log("gateway").error("unforeseen", problem=problem, trace=trace)
                    raise UnavailableError(f"The gateway failed ({problem}).", hint="Its log says more.")
                case Done(fit=fit):
                    self.fit = fit and not self._gives_way
                    yield said
                    return
                case _:
                    yield said

    def kill(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.wait()
        self._line.close()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _spent(self) -> float:
        """Seconds that it has computed so far."""
        with suppress(psutil.NoSuchProcess):  # it has ended, which the answer tells
            spent = psutil.Process(self._process.pid).cpu_times()
            return float(spent.user + spent.system)
        return 0.0

    def _has_more(self) -> bool:
        self._give_way()
        return bool(self._line.poll(_LOOK_SECONDS))

    def _give_way(self) -> None:
        """What takes long is computed when others leave time for it: Spark, and short questions."""
        if self._gives_way or time.monotonic() - self._asked < _SHORT_SECONDS:
            return
        self._gives_way = True
        with suppress(psutil.NoSuchProcess, ProcessLookupError):  # it has ended, or one of its threads
            for thread in psutil.Process(self._process.pid).threads():
                os.setpriority(os.PRIO_PROCESS, thread.id, _GIVES_WAY)

    def _tell(self, message: object) -> None:
        with suppress(OSError):  # it has ended, which the answer tells
            self._line.send(message)

    def _next(self) -> Any:
        try:
            while not self._has_more():
                if not self._wanted():
                    raise CancelledError("The statement was cancelled.")
                if self._clock() > self._until:
                    raise RefusedError(
                        f"Reading took longer than {format_seconds(round(self._seconds))}.",
                        hint="Ask for less at once; gateway.longest_system_query is the limit.",
                    )
            self.used = time.monotonic()
            return self._line.recv()
        except (EOFError, OSError) as error:
            raise RefusedError(
                f"The statement needs more memory than {format_bytes(self._limit)}, "
                "or the process that read it was ended.",
                hint="Select or write less at once; gateway.system_memory is the limit.",
            ) from error


def _batches(answer: Iterator[Any], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for said in answer:
        if isinstance(said, RowBatch):
            yield pa.ipc.read_record_batch(pa.py_buffer(said.rows), schema)
