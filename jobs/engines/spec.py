"""What an engine says of itself: how it is made, for a worker and for a user's session."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.formats.spec import HeadOf
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.jobs.runs.port import Engine
from lakewarden.jobs.runs.worker_config import WorkerConfig

__all__ = ["EngineSpec", "SessionParts"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionParts:
    """What an engine works with in a session that is somebody else's."""

    spark: SparkSession
    storage: Callable[[str], StorageOptions]
    """Opens a table's folder."""
    heads: HeadOf
    """Asks catalogs for heads, each time anew."""
    clock: Clock


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineSpec:
    """The engine of one table format."""

    engine: Callable[[WorkerConfig], Engine]
    """Makes it for a worker process; what is costly (Spark) waits for the first call that needs it."""
    in_session: Callable[[SessionParts], Engine] | None = None
    """Makes it for a user's session, which takes its own changes back with it; None: sessions change no tables of the
    format."""
