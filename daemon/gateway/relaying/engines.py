"""Each user's own engine: a process with a Spark of its own, started by its user's first call, gone when left."""

import secrets
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from http.client import HTTPConnection
from multiprocessing import Pipe
from select import POLLIN, poll
from typing import Any, Final

from lakewarden.catalog.errors import PreconditionError, UnavailableError, UsageError
from lakewarden.daemon.gateway.relaying.relayed import PATH, SECRET_HEADER, THRIFT, USER_HEADER, EngineSetup
from lakewarden.daemon.settings.settings import Settings
from lakewarden.daemon.telemetry.log import get_log

__all__ = ["Engines"]

_HOST: Final = "127.0.0.1"
_START_SECONDS: Final = 60.0
_LOOK_MILLISECONDS: Final = 500
"""Interval at which a waiting call checks whether its client still waits."""
_BYTES: Final = 16
_SECONDS_TO_END: Final = 10.0


class Engines:
    """Thread-safe. Raises `PreconditionError` for settings by which every Spark would have tables of its own."""

    def __init__(self, settings: Settings) -> None:
        if settings.metastore_uri is None:
            raise PreconditionError(
                "gateway.engines = user needs a metastore: without one each Spark has a catalog of its own.",
                hint="Set metastore.uri, or gateway.engines = shared.",
            )
        self._settings, self._most = _of_an_engine(settings), settings.gateway_most_engines
        self._engines: dict[str, _Engine] = {}
        self._lock = threading.Lock()
        self._closed = False

    def call(self, user: str, body: bytes, has_left: Callable[[], bool]) -> bytes:
        """The answer of the user's engine to a whole Thrift call. Raises `UnavailableError` when there may be no more
        engines, or this one has ended; `UsageError` for bytes that are no call."""
        try:
            return self._engine(user).call(body, has_left)
        except ConnectionRefusedError:  # it has just ended, as nobody used it: nothing was sent yet
            self.tend()
            return self._engine(user).call(body, has_left)

    def tend(self) -> None:
        """Forget those that have ended."""
        with self._lock:
            for user, engine in list(self._engines.items()):
                if not engine.is_alive:
                    del self._engines[user]
                    engine.end()
                    get_log("gateway").info("a user's engine has ended", user=user)

    def close(self) -> None:
        """End them all."""
        with self._lock:
            ended, self._engines, self._closed = self._engines, {}, True
        for engine in ended.values():
            engine.ask_to_end()
        for engine in ended.values():
            engine.end()

    def _engine(self, user: str) -> "_Engine":
        with self._lock:
            engine = self._engines.get(user)
            if engine is not None and engine.is_alive:
                return engine
            if self._closed or (engine is None and len(self._engines) >= self._most):
                raise UnavailableError(
                    f"The gateway has {len(self._engines)} engines: there may be no more "
                    "(gateway.most_engines).",
                    hint="Wait until one has ended, as nobody uses it (gateway.engine_idle).",
                )
            get_log("gateway").info("an engine is started", user=user)
            self._engines[user] = _Engine(
                EngineSetup(settings=self._settings, user=user, secret=secrets.token_hex(_BYTES))
            )
            return self._engines[user]


class _Engine:
    """One process, from its making on. It ends with the gateway, whose end closes its standard input."""

    def __init__(self, setup: EngineSetup) -> None:
        ours, theirs = Pipe()
        self._setup, self._line, self._port = setup, ours, 0
        self._starting = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "lakewarden.daemon.gateway.engine", str(theirs.fileno())],
            stdin=subprocess.PIPE,
            pass_fds=(theirs.fileno(),),
        )
        theirs.close()
        with suppress(OSError):  # it has ended, which the first call tells
            ours.send(setup)

    @property
    def is_alive(self) -> bool:
        """Whether the engine can be asked."""
        return self._process.poll() is None

    def call(self, body: bytes, has_left: Callable[[], bool]) -> bytes:
        """See `Engines.call`; raises `ConnectionRefusedError` when it listens no more."""
        port = self._listening()
        with closing(HTTPConnection(_HOST, port)) as connection:
            connection.connect()
            try:
                return self._answer(connection, body, has_left)
            except OSError as error:
                raise _ended() from error

    def ask_to_end(self) -> None:
        """The engine closes its sessions and its Spark."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    def end(self) -> None:
        """Wait until it is gone; kill it if it does not go."""
        self.ask_to_end()
        try:
            self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._line.close()

    def _listening(self) -> int:
        with self._starting:
            if not self._port:
                try:
                    if not self._line.poll(_START_SECONDS):
                        raise UnavailableError("Your engine did not start in time.", hint="Try again.")
                    self._port = self._line.recv()
                except (EOFError, OSError) as error:
                    raise UnavailableError(
                        "Your engine did not start.", hint="The gateway's log says why."
                    ) from error
            return self._port

    def _answer(self, connection: HTTPConnection, body: bytes, has_left: Callable[[], bool]) -> bytes:
        headers = {"Content-Type": THRIFT, USER_HEADER: self._setup.user, SECRET_HEADER: self._setup.secret}
        connection.request("POST", PATH, body, headers)
        waiting: Any = poll()
        waiting.register(connection.sock, POLLIN)
        while not waiting.poll(_LOOK_MILLISECONDS):
            if has_left():
                raise ConnectionAbortedError
        answered = connection.getresponse()
        said = answered.read()
        if answered.status != 200:
            raise UsageError(said.decode(errors="replace").strip())
        return said


def _of_an_engine(settings: Settings) -> Settings:
    """What of the gateway's settings is another's for each engine: it listens to the gateway alone, and all of it is
    its user's. What they may put on the disk together stays."""
    return replace(
        settings,
        gateway_engines="shared",
        gateway_host=_HOST,
        gateway_port=0,
        gateway_tls_certificate=None,
        gateway_tls_key=None,
        gateway_metrics_port=None,
        gateway_share=100,
        gateway_results_bytes=max(settings.gateway_results_bytes // settings.gateway_most_engines, 1),
    )


def _ended() -> UnavailableError:
    return UnavailableError(
        "Your engine has ended, and your sessions with it.",
        hint="Connect again: another one is started. What a statement of yours came to, DESCRIBE HISTORY says.",
    )
