"""Who is calling, and the audit entry that every governed call leaves, allowed or not."""

from collections.abc import Iterator
from contextlib import contextmanager

from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.policy.access import Actor, Deed, audit_row
from lakewarden.catalog.system.port import AUDIT
from lakewarden.daemon.installation.admins import admins_of
from lakewarden.daemon.installation.services import Services

__all__ = ["actor_of", "audited"]


def actor_of(services: Services, origin: str) -> Actor:
    """Who is calling, and whether admins count them among theirs."""
    name = services.caller
    return Actor(name=name, admin=name in admins_of(services.store, services.settings), origin=origin)


@contextmanager
def audited(services: Services, deed: Deed, on: str, *, origin: str = "cli") -> Iterator[Actor]:
    """Run a governed call as the calling user and record it in `lakewarden.audit`, with the reason if it failed."""
    actor = actor_of(services, origin)
    refused: str | None = None
    try:
        yield actor
    except LakewardenError as error:
        refused = str(error)
        raise
    finally:
        entry = audit_row(actor, deed, on, services.clock.now(), refused=refused)
        services.store.append(AUDIT, [entry], because=f"{deed} {on}")
