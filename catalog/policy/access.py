"""Who may do what: a rule (docs/concepts.md, "Roles"), decided purely and written to `lakewarden.audit`.

A viewer reads; an owner changes policy within the floors, drops and plans for own tables; an admin does the rest.
"""

import uuid
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.catalog.model.rows import AuditRow, TableRow

__all__ = ["Actor", "Deed", "audit_row", "require"]


class Deed(StrEnum):
    """Governed calls, by what they change."""

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


_ADMIN_ONLY = frozenset({Deed.HOLD, Deed.SYSTEM})
_ANYONE = frozenset({Deed.REGISTER, Deed.CONVERT, Deed.ADOPT})


@dataclass(frozen=True, kw_only=True, slots=True)
class Actor:
    """The originating user, whether admins count them among theirs, and where the call came from (cli, sql, daemon)."""

    name: str
    admin: bool
    origin: str


def require(actor: Actor, deed: Deed, row: TableRow | None) -> None:
    """Raise `NotAllowedError` unless `actor` may do `deed` to the table (or scope) of `row`."""
    if actor.admin or (deed in _ANYONE and (row is None or row.owner in (None, actor.name))):
        return
    if deed not in _ADMIN_ONLY and row is not None and row.owner is not None and row.owner == actor.name:
        return
    doing = f"{deed} {row.name if row is not None else 'this'}"
    if deed is Deed.SYSTEM:
        doing = "change the system tables"
    owner = f" (owner: {row.owner})" if row is not None and row.owner else ""
    raise NotAllowedError(
        f"{actor.name} may not {doing}{owner}.",
        hint="Only an admin may do this." if deed in _ADMIN_ONLY else "Ask the table's owner or an admin.",
    )


def audit_row(actor: Actor, deed: Deed, on: str, at: datetime, *, refused: str | None = None) -> AuditRow:
    """The audit entry for one governed call; `refused` is the reason it was not allowed or not possible."""
    return AuditRow(
        audit_id=uuid.uuid4().hex,
        at=at,
        actor=actor.name,
        what=deed,
        on=on,
        origin=actor.origin,
        allowed=refused is None,
        why=refused,
    )
