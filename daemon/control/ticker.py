"""APScheduler as a clock, and nothing else: it says that a beat is due; the main loop does the work.

Its known failures, and how this module lives with each:
* two schedulers on one job store run nearly everything twice -> a memory store per process; only the leader acts;
* one failing store update ends its thread for ever while `running` stays True -> the thread's life and the age of the
  last beat are watched by a clock of our own, and the scheduler is replaced;
* a job that is late by more than a second is skipped silently -> no grace limit, and late beats become one;
* a numeric weekday in a crontab means the next day -> there are no crontabs, only intervals.
"""

import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, timedelta
from typing import Final

from apscheduler.executors.debug import DebugExecutor
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.interval import IntervalTrigger

__all__ = ["Ticker", "fresh_scheduler"]

_LATE: Final = 3.0
"""A beat that is overdue by this many of its intervals has been lost."""
_SLACK: Final = 1.0
"""Seconds that any beat may be late: a busy machine is no reason to replace anything."""


def fresh_scheduler() -> BackgroundScheduler:
    """A scheduler with a memory store that runs its jobs on its own thread, in UTC."""
    return BackgroundScheduler(
        timezone=UTC,
        jobstores={"default": MemoryJobStore()},
        executors={"default": DebugExecutor()},
        job_defaults={"coalesce": True, "misfire_grace_time": None, "max_instances": 1},
    )


class Ticker:
    """Says which beats are due. Beats that were not collected in time are one beat, never several.

    `every` maps the name of a beat to its interval. A scheduler that died or stalls (a clock set back stalls it) is
    replaced; `rebuilds` counts how often.
    """

    def __init__(
        self,
        every: Mapping[str, timedelta],
        *,
        make: Callable[[], BackgroundScheduler] = fresh_scheduler,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._every = {name: interval.total_seconds() for name, interval in every.items()}
        self._make, self._monotonic = make, monotonic
        self._condition = threading.Condition()
        self._due: set[str] = set()
        self._last: dict[str, float] = {}
        self._scheduler: BackgroundScheduler | None = None
        self._generation = 0
        self.rebuilds = 0

    def start(self) -> None:
        """Begin. Every beat is due at once, then after each interval."""
        with self._condition:
            self._due.update(self._every)
        self._launch()

    def stop(self) -> None:
        """End; nothing is due afterwards."""
        self._retire()
        with self._condition:
            self._due.clear()

    def wait(self, timeout: timedelta) -> frozenset[str]:
        """The beats that are due, as soon as one is; none after `timeout`. Replaces a broken scheduler on the way."""
        if self._broken():
            self.rebuilds += 1
            self._retire()
            with self._condition:
                self._due.update(self._every)
            self._launch()
        with self._condition:
            self._condition.wait_for(lambda: bool(self._due), timeout.total_seconds())
            due = frozenset(self._due)
            self._due.clear()
            return due

    def poke(self, beat: str) -> None:
        """Make a beat due now."""
        with self._condition:
            self._due.add(beat)
            self._condition.notify_all()

    def _launch(self) -> None:
        self._generation += 1
        now = self._monotonic()
        self._last = dict.fromkeys(self._every, now)
        scheduler = self._make()
        for name, seconds in self._every.items():
            trigger = IntervalTrigger(seconds=seconds, timezone=UTC)
            scheduler.add_job(self._tick, trigger, args=(name, self._generation), id=name)
        scheduler.start()
        self._scheduler = scheduler

    def _retire(self) -> None:
        """Let go of the scheduler. A dead one cannot be shut down in an orderly way; its beats are ignored instead."""
        scheduler, self._scheduler = self._scheduler, None
        self._generation += 1
        if scheduler is not None and _thread_alive(scheduler):
            scheduler.shutdown(wait=False)

    def _tick(self, name: str, generation: int) -> None:
        with self._condition:
            if generation != self._generation:
                return
            self._last[name] = self._monotonic()
            self._due.add(name)
            self._condition.notify_all()

    def _broken(self) -> bool:
        scheduler = self._scheduler
        if scheduler is None:
            return False
        now = self._monotonic()
        late = any(now - self._last[name] > _LATE * seconds + _SLACK for name, seconds in self._every.items())
        return late or not _thread_alive(scheduler)


def _thread_alive(scheduler: BackgroundScheduler) -> bool:
    # `scheduler.running` is only a flag; the thread itself is what beats.
    thread = getattr(scheduler, "_thread", None)
    return isinstance(thread, threading.Thread) and thread.is_alive()
