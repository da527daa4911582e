"""Who is calling, as the surfaces of this process know it: the one place that asks the operating system.

A surface with a login of its own makes a `Caller` of the name; below the surfaces nobody asks who calls.
"""

import os

from lakewarden.catalog.policy.access import Caller
from lakewarden.daemon.installation.admins import name_of, roles_of
from lakewarden.daemon.installation.services import Services

__all__ = ["caller_named", "caller_of", "real_user"]


def real_user() -> str:
    """The name of the user whose process this is; `uid-1000` where the machine has no name for it,
    as in a container."""
    return name_of(os.getuid())


def caller_of(services: Services, origin: str) -> Caller:
    """The user of this process, with the roles that the installation gives them."""
    return caller_named(services, real_user(), origin)


def caller_named(services: Services, name: str, origin: str) -> Caller:
    """An authenticated user, with the roles of that name in this installation."""
    return Caller(name=name, roles=roles_of(name, services.store, services.settings), origin=origin)
