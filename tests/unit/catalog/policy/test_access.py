"""Roles: viewer, owner, admin."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.catalog.model.rows import Source, TableRow
from lakewarden.catalog.policy.access import Permission, require
from support.builders.callers import actor

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ROW = TableRow(
    row=7,
    table_id="t",
    name="db.t",
    owner="ana",
    source=Source.CONVERT,
    registered_at=NOW,
    registered_by="ana",
    updated_at=NOW,
    updated_by="ana",
)
ANA, BO = (actor(name) for name in ("ana", "bo"))
ADMIN = actor("root", admin=True)


@pytest.mark.parametrize("permission", list(Permission))
def test_an_admin_may_do_everything(permission: Permission) -> None:
    require(ADMIN, permission, ROW)
    require(ADMIN, permission, None)
    assert ADMIN.admin


@pytest.mark.parametrize(
    "permission",
    [
        Permission.POLICY,
        Permission.DROP,
        Permission.PAUSE,
        Permission.RENAME,
        Permission.OWNER,
        Permission.RUN,
    ],
)
def test_an_owner_governs_own_tables_and_nobody_elses(permission: Permission) -> None:
    require(ANA, permission, ROW)
    with pytest.raises(NotAllowedError, match=r"bo may not .* db\.t \(owner: ana\)"):
        require(BO, permission, ROW)


@pytest.mark.parametrize("permission", [Permission.HOLD, Permission.SYSTEM, Permission.TOKEN])
def test_holds_tokens_and_system_tables_are_for_admins(permission: Permission) -> None:
    with pytest.raises(NotAllowedError, match="may not"):
        require(ANA, permission, ROW)


def test_anyone_registers_for_themselves_but_not_for_others() -> None:
    require(BO, Permission.REGISTER, replace(ROW, owner="bo"))
    with pytest.raises(NotAllowedError, match="may not register"):
        require(BO, Permission.REGISTER, ROW)


def test_a_scope_without_owner_is_for_admins() -> None:
    with pytest.raises(NotAllowedError, match="may not pause"):
        require(ANA, Permission.PAUSE, replace(ROW, owner=None, name="*"))
