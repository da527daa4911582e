"""Who may do what: a rule (docs/concepts.md, "Roles"), decided purely and written to `lakewarden.audit`.

A viewer reads; an owner changes policy within the floors, drops and plans for own tables; an admin does the rest.
"""

import uuid
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final, NewType

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.catalog.model.rows import AuditRow, TableRow
from lakewarden.catalog.units import storable

__all__ = ["DAEMON_NAME", "Actor", "Caller", "Permission", "Role", "audit_row", "require"]

DAEMON_NAME: Final = "lakewarden"
"""In whose name the daemon acts where nobody asked for it."""


class Permission(StrEnum):
    """Governed calls, by what they change. Of the last three nobody asks the rule: what follows from looking at a table
    that is broken, and what the gateway refuses: reading a closed table, and any other statement."""

    REGISTER = "register"
    CONVERT = "convert"
    ADOPT = "adopt"
    DROP = "drop"
    UNDROP = "undrop"
    RENAME = "rename"
    POLICY = "policy"
    OWNER = "owner"
    PAUSE = "pause"
    RESUME = "resume"
    HOLD = "hold"
    RUN = "run"
    ROLLBACK = "rollback"
    SYNC = "sync"
    SYSTEM = "system"
    TOKEN = "token"
    QUARANTINE = "quarantine"
    QUERY = "query"
    STATEMENT = "statement"


_ADMIN_ONLY = frozenset({Permission.HOLD, Permission.SYSTEM, Permission.TOKEN})
_WORDS = {
    Permission.OWNER: "change the owner of",
    Permission.POLICY: "change the policy of",
    Permission.ROLLBACK: "roll back",
    Permission.RUN: "order work on",
}
_WITHOUT_TABLE = {Permission.SYSTEM: "change the system tables", Permission.TOKEN: "make or revoke tokens"}
_ANYONE = frozenset({Permission.REGISTER, Permission.CONVERT, Permission.ADOPT})


class Role(StrEnum):
    """What an installation gives to somebody. Whose a table is, its row says; looking is for everyone."""

    ADMIN = "admin"


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """The person behind a call, with roles and surface (cli, sql, session, daemon).

    Made by the surface, which alone can know it, and handed down.
    """

    name: str
    roles: frozenset[Role] = frozenset()
    origin: str

    @property
    def admin(self) -> bool:
        """Whether admins count them among theirs."""
        return Role.ADMIN in self.roles


Actor = NewType("Actor", Caller)
"""A caller in the act: somebody whose use case is being run,
so that the rule was asked and what comes of it goes on record.
What changes a table for somebody takes an actor, and `run` (daemon/usecases/audit.py) makes one of a caller."""


def require(caller: Caller, permission: Permission, row: TableRow | None) -> None:
    """Raise `NotAllowedError` unless `caller` may do `permission` to the table (or scope) of `row`."""
    if caller.admin or (permission in _ANYONE and (row is None or row.owner in (None, caller.name))):
        return
    if (
        permission not in _ADMIN_ONLY
        and row is not None
        and row.owner is not None
        and row.owner == caller.name
    ):
        return
    doing = f"{_WORDS.get(permission, permission)} {row.name if row is not None else 'this'}"
    doing = _WITHOUT_TABLE.get(permission, doing)
    owner = f" (owner: {row.owner})" if row is not None and row.owner else ""
    raise NotAllowedError(
        f"{caller.name} may not {doing}{owner}.",
        hint="Only an admin may do this."
        if permission in _ADMIN_ONLY
        else "Ask the table's owner or an admin.",
    )


def audit_row(
    caller: Caller,
    permission: Permission,
    on: str,
    at: datetime,
    *,
    allowed: bool = True,
    why: str | None = None,
    audit_id: str | None = None,
) -> AuditRow:
    """The audit entry for one governed call; `why` is the reason it was not allowed, not possible or not finished."""
    return AuditRow(
        audit_id=audit_id or uuid.uuid4().hex,
        at=at,
        actor=caller.name,
        what=permission,
        on=storable(on),
        origin=caller.origin,
        allowed=allowed,
        why=None if why is None else storable(why),
    )
