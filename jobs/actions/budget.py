"""How much may be started, and how long failures are left alone. A value of its own: settings make it, the planner
reads it."""

from dataclasses import dataclass
from datetime import timedelta

__all__ = ["Budget"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """How much one cycle may start."""

    runs_per_cycle: int = 50
    unfinished: int = 200
    """Bounds everything queued, claimed and running together."""
    backoff: timedelta = timedelta(minutes=2)
    backoff_cap: timedelta = timedelta(days=1)
