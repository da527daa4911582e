"""What a cycle asks users' disks besides its looks: each question in a thread, for so long and no longer.

A dead network mount answers nobody. Whoever asks about a place on one is told so, and the cycle goes on.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from lakewarden.catalog.errors import UnavailableError
from lakewarden.catalog.storage.troubles import silent
from lakewarden.catalog.threads import Late, in_time
from lakewarden.daemon.fleet.disks import Disks

__all__ = ["Questions"]

T = TypeVar("T")
_LONGEST: Final = 30.0
"""Seconds: longer than a disk takes that answers."""


@dataclass(slots=True)
class Questions:
    """Asks. A place of which an answer is still awaited is not asked again."""

    disks: Disks = field(default_factory=Disks)
    tick: Callable[[], None] = lambda: None
    """Called while answers are waited for; may raise."""
    longest: float = _LONGEST
    threads: int = 4
    _late: dict[str, Late[str, Any]] = field(default_factory=dict)

    def each(self, places: Iterable[str], ask: Callable[[str], T]) -> dict[str, T]:
        """The answers by place (canonical locations), without those that do not answer. What `ask` raises is raised."""
        wanted = dict.fromkeys(places)
        if not wanted:
            return {}
        hanging = self.disks.ask(wanted)
        self._late = {place: late for place, late in self._late.items() if late.result is None}
        able = [one for one in wanted if one not in self._late and not self.disks.holds(one, hanging)]

        def answer(place: str) -> tuple[str, T]:
            return place, ask(place)

        done, late = in_time(answer, able, threads=self.threads, limit=self.longest, tick=self.tick)
        self._late |= {one.thing: one for one in late}
        return dict(done)

    def of_server(self, name: str, ask: Callable[[], T]) -> T:
        """The answer of a server, which is called so where a sentence begins. Raises `UnavailableError` where it does
        not come, and, without asking again, until it has come."""
        late = self._late.get(name)
        if late is None or late.result is not None:
            done, left = in_time(lambda _: ask(), [name], threads=1, limit=self.longest, tick=self.tick)
            if done:
                return done[0]
            self._late |= {one.thing: one for one in left}
        raise UnavailableError(f"{name} does not answer.")

    def require(self, places: Iterable[str]) -> None:
        """Raise `UnavailableError` if one of these places is on a disk that hangs."""
        held = self.disks.held(tuple(places))
        if held is not None:
            raise silent(held)

    def one(self, place: str, ask: Callable[[], T]) -> T:
        """The answer about one place. Raises `UnavailableError` where it does not answer."""
        answers = self.each([place], lambda _: ask())
        if place not in answers:
            raise silent(place)
        return answers[place]
