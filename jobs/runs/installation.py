"""Which installation a worker works for: what its commits, and the metastore's entries, say of themselves."""

from collections.abc import Callable
from functools import cache

from lakewarden.catalog.system.store import DeltaSystemStore
from lakewarden.jobs.runs.worker_config import WorkerConfig

__all__ = ["installation_of"]


def installation_of(config: WorkerConfig) -> Callable[[], str | None]:
    """Tells the installation, asked for once; None for a worker that was not told of system tables."""
    location = config.system_location

    @cache
    def installation() -> str | None:
        if location is None:
            return None
        return DeltaSystemStore(location, config.storage.at(location), actor=config.name).installation()

    return installation
