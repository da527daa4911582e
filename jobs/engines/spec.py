"""What an engine says of itself: how it is made for a worker, and what else its format can do."""

from collections.abc import Callable
from dataclasses import dataclass

from lakewarden.jobs.runs.port import Engine
from lakewarden.jobs.runs.worker_config import WorkerConfig

__all__ = ["EngineSpec"]


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineSpec:
    """The engine of one table format."""

    engine: Callable[[WorkerConfig], Engine]
    """Makes it for a worker process; what is costly (Spark) waits for the first call that needs it."""
