"""Which installation a worker works for: what its commits, and the metastore's entries, say of themselves; and whether
it is of the worker's version."""

from collections.abc import Callable
from contextlib import suppress
from functools import cache

from lakewarden.catalog.errors import NotFoundError, UnavailableError, UnreadableError
from lakewarden.catalog.system.store import DeltaSystemStore
from lakewarden.jobs.runs.worker_config import WorkerConfig

__all__ = ["fit_for", "installation_of"]


def installation_of(config: WorkerConfig) -> Callable[[], str | None]:
    """Tells the installation, asked for once; None for a worker that was not told of system tables."""
    location = config.system_location

    @cache
    def installation() -> str | None:
        if location is None:
            return None
        return DeltaSystemStore(location, config.storage.at(location), actor=config.name).installation()

    return installation


def fit_for(config: WorkerConfig) -> Callable[[], None]:
    """Raises `OutdatedError` or `PreconditionError` while the system tables that the worker was told of are not of its
    version. What else may be wrong with them is not asked here."""
    location = config.system_location
    if location is None:
        return lambda: None
    store = DeltaSystemStore(location, config.storage.at(location), actor=config.name)

    def require() -> None:
        with suppress(NotFoundError, UnavailableError, UnreadableError):
            store.require_current()

    return require
