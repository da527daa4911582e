"""Failed logins: each is counted and, up to so many, a line; after too many of a user from an address none is tried.

A minute later it is tried again. Other addresses do not notice, nor does a token that was shown from this address
before: behind a proxy everybody has one address, and who is at work there must not be locked out by a stranger.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeVar

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.catalog.units import about_seconds, printable
from lakewarden.daemon.telemetry.gateway_metrics import GatewayMetrics
from lakewarden.daemon.telemetry.log import get_log

__all__ = ["FailedLogins", "TooManyFailedLoginsError", "Why"]

_SECONDS: Final = 60.0
_LINES: Final = 100
"""Of one address, in that time; whatever names it tries."""
_KEPT: Final = 10_000
"""What is known of so many addresses and users at once, at most; the oldest goes first."""
_NAME: Final = 100
"""Characters of a name that somebody claims."""
_HINT: Final = (
    "User name and token as password, or the token as bearer; `lakewarden tokens create USER` makes one."
)
K = TypeVar("K")
V = TypeVar("V")


class Why(StrEnum):
    """Why a login fails."""

    NOTHING = "no token"
    UNKNOWN = "unknown token"
    WRONG = "wrong token"
    EXPIRED = "expired token"
    OTHERS = "token of another user"
    TOO_MANY = "too many failed logins"


class TooManyFailedLoginsError(NotAllowedError):
    """Of this user from this address, whose tokens are not looked at for `seconds`."""

    def __init__(self, message: str, *, seconds: int) -> None:
        super().__init__(message, hint=f"Try again in {about_seconds(seconds)}.")
        self.seconds = seconds


@dataclass(slots=True)
class _Count:
    """What happened since a moment."""

    since: float
    times: int = 0


class FailedLogins:
    """The failed logins known to this process. `most`: so many of a user from an address are looked at in a minute.
    Thread-safe."""

    def __init__(
        self, *, most: int, metrics: GatewayMetrics, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._most, self._metrics, self._monotonic = most, metrics, monotonic
        self._failed: OrderedDict[tuple[str, str], _Count] = OrderedDict()
        self._lines: OrderedDict[str, _Count] = OrderedDict()
        self._accepted: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._lock = threading.Lock()
        self._log = get_log("gateway")

    def accept(self, address: str, user: str, token_id: str) -> None:
        """A right token was shown. Raises `TooManyFailedLoginsError` where it may not be looked at, which
        is counted, too."""
        with self._lock:
            key = address, token_id
            if key not in self._accepted and (seconds := self._closed(address, user)) is not None:
                self._count(address, user, Why.TOO_MANY)
                raise _too_many(address, user, seconds)
            _put(self._accepted, key, None)

    def refuse(self, address: str, user: str, why: Why) -> NotAllowedError:
        """A login failed; `user` is whoever it claims to be, "" for nobody. Returns what is to be raised."""
        with self._lock:
            seconds = self._closed(address, user)
            if seconds is not None:
                self._count(address, user, Why.TOO_MANY)
                return _too_many(address, user, seconds)
            self._count(address, user, why)
            count = _counting(self._failed, (address, user), self._monotonic())
            count.times += 1
            self._say(address, user, why, last=count.times >= self._most)
            return NotAllowedError("These credentials are not accepted.", hint=_HINT)

    def _closed(self, address: str, user: str) -> float | None:
        """For how many seconds nothing of this user is looked at from this address; None if it is."""
        count = self._failed.get((address, user))
        if count is None or count.times < self._most:
            return None
        left = count.since + _SECONDS - self._monotonic()
        return left if left > 0 else None

    def _count(self, address: str, user: str, why: Why) -> None:
        self._metrics.refused_login(user=_shown(user), address=address, reason=why)

    def _say(self, address: str, user: str, why: Why, *, last: bool) -> None:
        """A line, unless this address has had its lines. `last`: from now on none is looked at."""
        lines = _counting(self._lines, address, self._monotonic())
        lines.times += 1
        if lines.times > _LINES:
            return
        self._log.warning(
            "login refused", user=_shown(user), address=address, because=str(why), closed=last,
            silent=lines.times == _LINES,
        )  # fmt: skip


def _counting(counts: OrderedDict[K, _Count], key: K, now: float) -> _Count:
    """The count of the present minute of a key, which begins with the first that is counted."""
    known = counts.get(key)
    if known is not None and now - known.since < _SECONDS:
        return known
    fresh = _Count(now)
    _put(counts, key, fresh)
    return fresh


def _put(kept: OrderedDict[K, V], key: K, value: V) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > _KEPT:
        kept.popitem(last=False)


def _too_many(address: str, user: str, seconds: float) -> TooManyFailedLoginsError:
    whose = f" of {_shown(user)}" if user else ""
    return TooManyFailedLoginsError(
        f"There were too many failed logins{whose} from {address}.", seconds=int(seconds) + 1
    )


def _shown(user: str) -> str:
    return printable(user[:_NAME], keep="")
