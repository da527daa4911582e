"""Sessions: what a connection has of its own, from its opening to its end, or until nobody has used it for long."""

import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Protocol

from lakewarden.catalog.errors import NotFoundError, UnavailableError, UsageError
from lakewarden.catalog.policy.access import Caller
from lakewarden.daemon.gateway.operations import GatewayOperation, State
from lakewarden.daemon.gateway.sharing.shares import Share, next_of

__all__ = [
    "Handle",
    "Limits",
    "NoSessionError",
    "Session",
    "SessionSpark",
    "Sessions",
    "plain_keys",
    "require_few",
]

_ID_BYTES: Final = 16
_SETTINGS_CHARACTERS: Final = 100_000
_NO_SESSION: Final = "There is no such session."
_CONNECT_AGAIN: Final = "It was closed, or idle for too long. Connect again."
_HIVE_WORDS: Final = (
    "set:hiveconf:",
    "set:hivevar:",
    "set:system:",
    "set:metaconf:",
    "hiveconf:",
    "hivevar:",
)


class NoSessionError(NotFoundError):
    """The session that a call names was closed, or never was."""


@dataclass(frozen=True, slots=True)
class Handle:
    """How a client names a session or an operation: 16 bytes to find it by, 16 that only its client knows."""

    id: bytes
    secret: bytes

    @classmethod
    def fresh(cls) -> "Handle":
        """One that nobody can guess."""
        return cls(secrets.token_bytes(_ID_BYTES), secrets.token_bytes(_ID_BYTES))


def plain_keys(settings: Mapping[str, str]) -> dict[str, str]:
    """What a client opens a session with, without the words by which Hive's drivers tell kinds of settings apart."""
    plain: dict[str, str] = {}
    for key, value in settings.items():
        for words in _HIVE_WORDS:
            key = key.removeprefix(words)
        plain[key] = value
    require_few(plain)
    return plain


def require_few(settings: Mapping[str, str]) -> None:
    """Raise `UsageError` for more than a session may hold, as it holds them for long."""
    if sum(len(key) + len(value) for key, value in settings.items()) > _SETTINGS_CHARACTERS:
        raise UsageError(
            f"The settings of a session are longer than {_SETTINGS_CHARACTERS} characters.",
            hint="Set what is needed, and no more.",
        )


class SessionSpark(Protocol):
    """A session's part of the gateway's Spark, once the session needed one."""

    def close(self) -> None:
        """Let go of it. Does not wait."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How many sessions there may be, and whose; how many operations one may have open; seconds that a session may be
    idle, and that a statement may take (None: as long as it takes)."""

    sessions: Share
    operations: int
    idle: float
    statement: float | None


@dataclass(slots=True)
class Session:
    """One connection: who it is, what it was opened with, its operations."""

    handle: Handle
    caller: Caller
    settings: dict[str, str]
    database: str
    spark: SessionSpark | None = None
    views: tuple[str, ...] = ()
    """The temporary views that it has there."""
    opening: threading.Lock = field(default_factory=threading.Lock)
    """Held while the session gets its Spark."""
    used: float = field(default_factory=time.monotonic)
    _operations: dict[Handle, GatewayOperation] = field(default_factory=dict)

    def keep(self, operation: GatewayOperation, most: int) -> Handle:
        """Give an operation a handle. Raises `UnavailableError` if the session has too many."""
        if len(self._operations) >= most:
            raise UnavailableError(
                f"This session has {most} open statements.",
                hint="Close cursors that are not needed any more.",
            )
        handle = Handle.fresh()
        self._operations[handle] = operation
        return handle

    def find(self, handle: Handle) -> GatewayOperation | None:
        """An operation of this session."""
        return self._operations.get(handle)

    def drop(self, handle: Handle) -> None:
        """End an operation and forget it."""
        operation = self._operations.pop(handle, None)
        if operation is not None:
            operation.close()

    def operations(self) -> list[GatewayOperation]:
        """The open operations."""
        return list(self._operations.values())

    def close(self) -> None:
        """End everything."""
        for handle in list(self._operations):
            self.drop(handle)
        if self.spark is not None:
            self.spark.close()


class Sessions:
    """All sessions of the gateway. Thread-safe."""

    def __init__(self, limits: Limits, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._monotonic = limits, monotonic
        self._sessions: dict[Handle, Session] = {}
        self._owners: dict[Handle, Session] = {}
        self._lock = threading.Lock()
        self._used = monotonic()
        """When there last was a session."""

    def open(self, caller: Caller, settings: Mapping[str, str], database: str) -> Session:
        """A new one. Raises `UnavailableError` if there are too many."""
        session = Session(Handle.fresh(), caller, dict(settings), database, used=self._monotonic())
        with self._lock:
            held = Counter(one.caller.name for one in self._sessions.values())
            if next_of([caller.name], held, self._limits.sessions) is None:
                raise UnavailableError(
                    f"The gateway has {held.total()} sessions, {held[caller.name]} of them {caller.name}'s: "
                    "there may be no more (gateway.sessions, gateway.share).",
                    hint="Close connections that are not needed any more, or wait: idle ones are closed.",
                )
            self._sessions[session.handle] = session
        return session

    def find(self, handle: Handle, name: str) -> Session:
        """A session of this user. Raises `NotFoundError`: whose it is otherwise, nobody is told."""
        with self._lock:
            session = self._sessions.get(handle)
            if session is None or session.caller.name != name:
                raise NoSessionError(_NO_SESSION, hint=_CONNECT_AGAIN)
            session.used = self._monotonic()
            return session

    def begin(self, session: Session, operation: GatewayOperation) -> Handle:
        """Let an operation be found by a handle. Raises `NoSessionError` if the session was closed meanwhile."""
        with self._lock:
            if session.handle not in self._sessions:
                raise NoSessionError(_NO_SESSION, hint=_CONNECT_AGAIN)
            handle = session.keep(operation, self._limits.operations)
            self._owners[handle] = session
            return handle

    def operation(self, handle: Handle, name: str) -> GatewayOperation:
        """An operation of this user. Raises `NotFoundError`."""
        with self._lock:
            session = self._owners.get(handle)
            operation = None if session is None else session.find(handle)
            if session is None or operation is None or session.caller.name != name:
                raise NotFoundError(
                    "There is no such statement.", hint="It was closed, or its session was. Run it again."
                )
            session.used = self._monotonic()
            return operation

    def end(self, handle: Handle, name: str) -> None:
        """End an operation; quietly if it has ended."""
        with self._lock:
            session = self._owners.get(handle)
            if session is None or session.caller.name != name:
                return
            del self._owners[handle]
        session.drop(handle)

    def close(self, handle: Handle, name: str) -> None:
        """Close a session; quietly if it is closed."""
        with self._lock:
            session = self._sessions.get(handle)
            if session is None or session.caller.name != name:
                return
        self._end(session)

    def tend(self) -> None:
        """End what has taken too long: statements, and sessions that nobody uses."""
        now = self._monotonic()
        with self._lock:
            sessions = list(self._sessions.values())
        for session in sessions:
            if self._is_left(session, now):
                session.close()
                continue
            for operation in session.operations():
                if operation.deadline is not None and now > operation.deadline:
                    operation.cancel(State.TIMED_OUT)

    def none_for(self, time: timedelta | None) -> bool:
        """Whether there has been no session for so long; never, for None."""
        with self._lock:
            if self._sessions:
                self._used = self._monotonic()
            return time is not None and self._monotonic() - self._used > time.total_seconds()

    def close_all(self) -> None:
        """End everything."""
        with self._lock:
            sessions = list(self._sessions.values())
        for session in sessions:
            self._end(session)

    def _is_left(self, session: Session, now: float) -> bool:
        """Whether nobody has used it for long: then nobody finds it any more, and no statement of it can begin. What
        has been at work until now was used until now."""
        with self._lock:
            if any(not one.state.over for one in session.operations()):
                session.used = max(session.used, now)
            left = now - session.used > self._limits.idle
            if left:
                self._forget(session)
            return left

    def _end(self, session: Session) -> None:
        with self._lock:
            self._forget(session)
        session.close()

    def _forget(self, session: Session) -> None:
        self._sessions.pop(session.handle, None)
        for handle in [handle for handle, owner in self._owners.items() if owner is session]:
            del self._owners[handle]
