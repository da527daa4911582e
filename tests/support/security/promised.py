"""One statement that somebody with a token may try at a gateway, and what is promised of it, role by role."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

__all__ = [
    "ALL_BUT_ADMINS_REFUSED",
    "CLOSED",
    "FOR_ADMINS",
    "OWN",
    "REFUSED",
    "Attack",
    "Role",
    "from_role",
    "refused",
]


class Role(StrEnum):
    """Who tries it: somebody with a token and no right; a reader; a reader who owns `shop.own`; a writer under
    `gateway.writers_may = sql`; an admin."""

    NONE = "none"
    READER = "reader"
    OWNER = "owner"
    WRITER = "writer"
    ADMIN = "admin"


@dataclass(frozen=True, kw_only=True, slots=True)
class Attack:
    """One statement. `{home}` is the home of the gateway, `{closed}` and `{plain}` are where a closed table and one
    that is not managed lie, `{away}` is a folder that is not there, `{first}` the first version of a table. By role:
    whether it is let through; who is not named is not tried.

    `answer` is what it says then: `{user}` is who asked.
    """

    name: str
    text: str
    allowed: Mapping[Role, bool]
    answer: str | None = None


def from_role(lowest: Role | None, *, but: Role | None = None) -> Mapping[Role, bool]:
    """Let through from this role on (None: for nobody that is tried); `but` is not tried."""
    roles = list(Role)
    first = len(roles) if lowest is None else roles.index(lowest)
    return MappingProxyType({role: at >= first for at, role in enumerate(roles) if role is not but})


def refused(*roles: Role) -> Mapping[Role, bool]:
    return MappingProxyType(dict.fromkeys(roles, False))


FOR_ADMINS: Final = from_role(Role.ADMIN)
REFUSED: Final = from_role(None)
ALL_BUT_ADMINS_REFUSED: Final = from_role(None, but=Role.ADMIN)
CLOSED: Final = MappingProxyType(
    {Role.NONE: False, Role.READER: False, Role.OWNER: True, Role.WRITER: True, Role.ADMIN: True}
)
"""Of a closed table of the owner's."""
OWN: Final = CLOSED
