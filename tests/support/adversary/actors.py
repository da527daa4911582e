"""Actors: each does one thing in a thread of its own, has its own words, and can be frozen or killed at a failpoint."""

import io
import json
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from support.crashes.killed import Killed

__all__ = ["Actor", "Said", "Words", "here"]

_LONGEST: Final = 120.0
"""Seconds after which an actor counts as hanging."""


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a command left. `waited`: it was still waiting when somebody pressed Ctrl-C."""

    code: int
    out: str = ""
    err: str = ""
    waited: bool = False

    @property
    def json(self) -> Any:
        return json.loads(self.out) if self.out.strip() else {}


@dataclass
class Actor:
    """Somebody who does one thing, in a thread: `stop` at that many failpoints, of those whose names begin
    with `of`. `point` is where it stands."""

    name: str
    do: Callable[[], Said]
    stop: int = 0
    of: str = ""
    then: Callable[[Said], None] = lambda said: None
    full_after: int | None = None
    point: str | None = None
    said: Said | None = None
    dead: bool = False
    interrupts: bool = False
    hangs: bool = False
    reached: list[str] = field(default_factory=list)
    since: float = 0.0
    looks: int = 0
    """How often it has looked in this turn at a run that nobody works on."""
    _turn: threading.Event = field(default_factory=threading.Event)
    _rest: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def act(self) -> None:
        """Give it the word until it ends or freezes."""
        self._rest.clear()
        self.point, self.since, self.looks = None, time.monotonic(), 0
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
            self._thread.start()
        else:
            self._turn.set()
        if not self._rest.wait(_LONGEST):
            self.point, self.hangs = "nowhere", True

    @property
    def is_here(self) -> bool:
        """Whether this is its own thread, not one of a worker that it has started."""
        return threading.current_thread() is self._thread

    def end(self) -> None:
        """It was killed where it stands; its thread goes now."""
        self.dead = True
        self._turn.set()
        if self._thread is not None:
            self._thread.join(5)

    def at(self, point: str) -> None:
        """It has come to a failpoint."""
        if point.startswith(self.of):
            self.reached.append(point)
        if point.startswith(self.of) and self.stop and len(self.reached) == self.stop:
            self.point = point
            self._turn.clear()
            self._rest.set()
            self._turn.wait()
        if self.dead:
            raise Killed

    def _run(self) -> None:
        here.actor = self
        try:
            self.said = self.do()
        except Killed:
            self.said = None
        except Exception:  # noqa: BLE001  # whatever it is: the step is judged, and the history goes on
            self.said = Said(code=70, err=traceback.format_exc())
        finally:
            self._rest.set()


class Here(threading.local):
    actor: Actor | None = None
    out: io.StringIO | None = None


here = Here()


class Words(io.TextIOBase):
    """Standard output and error of each actor apart."""

    def write(self, text: str) -> int:
        if here.out is not None:
            here.out.write(text)
        return len(text)
