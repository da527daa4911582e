"""This process' last look at each table. Safe with many threads: of each table one value is kept."""

import threading
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from lakewarden.catalog.formats.port import Observation, ProbeResult

__all__ = ["LastLook", "LastLooks"]

_REMEMBERED: Final = 200
"""Observations kept for reading only what came after; the least recently used goes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LastLook:
    """When a table was looked at, and what that came to."""

    at: datetime
    version: int | None
    """The version of the resulting health row."""
    failed: ProbeResult | None = None
    """What a table with a broken log looked like from afar, None where the log could be read."""


class LastLooks:
    """The last look at each table, and the last observations themselves of a few."""

    def __init__(self) -> None:
        self._looks: dict[str, LastLook] = {}
        self._observations: OrderedDict[str, Observation] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, table_id: str) -> LastLook | None:
        """The last look at a table; None if this process has not looked yet."""
        return self._looks.get(table_id)

    def keep(self, table_id: str, look: LastLook) -> None:
        """Keep a look instead of the one before."""
        self._looks[table_id] = look

    def observation(self, table_id: str) -> Observation | None:
        """What was read of a table, if it is still kept."""
        return self._observations.get(table_id)

    def keep_observation(self, table_id: str, seen: Observation) -> None:
        """Keep what was read of a table; the one that was read longest ago makes room."""
        with self._lock:
            self._observations[table_id] = seen
            self._observations.move_to_end(table_id)
            if len(self._observations) > _REMEMBERED:
                self._observations.popitem(last=False)

    def forget_observation(self, table_id: str) -> None:
        """Keep nothing that was read of a table."""
        with self._lock:
            self._observations.pop(table_id, None)
