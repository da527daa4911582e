"""What one machine needs before lakewarden is set up on it. Makes and opens nothing."""

import os
import shutil
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.doctor.diagnosis import Diagnosis, answered, fail, not_checked, ok, warn
from lakewarden.daemon.usecases.doctor.examinations import examine_only

__all__ = ["database_server", "examine_machine"]

_GIB: Final = 1 << 30
_POSTGRES_PORT: Final = 5432
_PATIENCE: Final = 5.0


def examine_machine(services: Services) -> Iterator[Diagnosis]:
    """Daemon, workers and home on the machine where this runs."""
    yield from examine_only(services, ("settings", "java", "spark", "jars", "http port", "metastore"))
    for name, look in (("home", _home), ("disk", _disk), ("memory", _memory), ("database", database_server)):
        yield answered(name, partial(look, services))


def database_server(services: Services) -> Diagnosis:
    """Whether something listens where the operational database is to be; nothing is made there yet."""
    scheme, _, rest = services.settings.database_url.partition("://")
    if scheme.startswith("sqlite"):
        folder = _standing(Path(unquote(rest)[1:]).absolute().parent)
        if not os.access(folder, os.W_OK):
            return fail(
                "database", f"{folder} cannot be written.", "Give this user the right, or set database.url."
            )
        return ok("database", "It is a file of this machine: daemon and workers have to stay here with it.")
    place = _place_of(rest)
    if place is None:
        return not_checked(
            "database", "database.url names no host and port.", "`lakewarden init` connects to it."
        )
    try:
        socket.create_connection(place, timeout=_PATIENCE).close()
    except OSError as error:
        return fail(
            "database", f"Nothing answers at {place[0]}:{place[1]}: {error.strerror or error}.",
            "Start PostgreSQL there, let this machine through, or correct database.url.",
        )  # fmt: skip
    return ok(
        "database", f"A server listens at {place[0]}:{place[1]}; `lakewarden init` finds out whom it lets in."
    )


def _place_of(rest: str) -> tuple[str, int] | None:
    """Host and port of what follows `://`. The password before the last `@` may hold anything."""
    try:
        url = urlsplit(f"//{rest.rpartition('@')[2]}")
        return None if url.hostname is None else (url.hostname, url.port or _POSTGRES_PORT)
    except ValueError:
        return None


def _home(services: Services) -> Diagnosis:
    home = services.settings.home
    standing = _standing(home)
    if not standing.is_dir() or not os.access(standing, os.W_OK | os.X_OK):
        return fail(
            "home", f"{standing} cannot be written.", "Give this user the right, or choose another --home."
        )
    return ok("home", f"{home} can be written." if standing == home else f"{home} can be made.")


def _disk(services: Services) -> Diagnosis:
    free = shutil.disk_usage(_standing(services.settings.home)).free
    if free < _GIB:
        return warn("disk", f"{free / _GIB:.1f} GiB are free for home.", "Logs and Spark's jars want 1 GiB.")
    return ok("disk", f"{free / _GIB:.0f} GiB are free for home.")


def _memory(services: Services) -> Diagnosis:
    settings = services.settings
    has = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    wanted = settings.spark_driver_memory * settings.workers_count
    said = (
        f"{settings.workers_count} workers may take {wanted / _GIB:.1f} GiB of heap, and this machine "
        f"has {has / _GIB:.1f} GiB."
    )
    if wanted > has:
        return fail("memory", said, "Lower workers.count or spark.driver_memory.")
    return ok("memory", said)


def _standing(path: Path) -> Path:
    """The innermost folder on the way there that exists."""
    return next(one for one in (path, *path.parents) if one.exists())
