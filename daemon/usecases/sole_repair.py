"""One repair at a time: a lease in the operational database, renewed before each step.

A repair that is killed blocks the next one until its lease runs out. One that stood still for longer
finds that out before its next step, and stops.
"""

import os
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from lakewarden.catalog.errors import ConflictError, PreconditionError
from lakewarden.daemon.installation.services import Services

__all__ = ["LEASE", "sole_repair"]

LEASE: Final = timedelta(minutes=5)
"""More than any step takes: system tables are small."""


@contextmanager
def sole_repair(services: Services, who: str) -> Iterator[Callable[[], None]]:
    """While this lasts no other repair begins. What it yields is to be called before each step: it raises
    `ConflictError` if another repair has begun all the same, because this one stood still for too long.
    Raises `PreconditionError` while another one is under way."""
    name = f"{services.settings.lease_name} repair"
    holder = f"{who} on {socket.gethostname()}, pid {os.getpid()}, {uuid.uuid4().hex[:8]}"
    if services.leases.acquire(name, holder, LEASE) is None:
        raise _under_way(services, name)

    def still() -> None:
        if services.leases.acquire(name, holder, LEASE) is None:
            raise ConflictError(
                "Another repair has begun while this one stood still, which stops here.",
                hint="Let it end, then `lakewarden system verify`.",
            )

    try:
        yield still
    finally:
        services.leases.release(name, holder)


def _under_way(services: Services, name: str) -> PreconditionError:
    lease = services.leases.current(name)
    by, until = (
        ("", "soon") if lease is None else (f" ({lease.holder})", f"at {lease.expires_at:%H:%M:%S} UTC")
    )
    return PreconditionError(
        f"Another repair is under way{by}; nothing was changed.",
        hint=f"Let it end. If it is dead, its lease runs out by itself {until}: repeat the command then.",
    )
