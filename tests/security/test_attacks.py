"""Every attack of the list, by every role: let through or refused, as is promised (docs/reference/security.md).

Whoever looks for a hole adds a line to `tests/support/security/attacks.py`.
"""

from pathlib import Path

import pytest
from pyhive.exc import OperationalError

from lakewarden.catalog.system.port import TABLES
from support.security.attacks import ATTACKS, Attack, Role
from support.security.besieged import USERS, Besieged

pytestmark = pytest.mark.spark

REFUSALS = (
    "may not",
    "is longer than",
    "is closed to readers",
    "may not have the key",
    "TABLE_OR_VIEW_NOT_FOUND",
    "UNRESOLVED_ROUTINE",
    "UNRESOLVABLE_TABLE_VALUED_FUNCTION",
    "is not a Delta table",
    "System tables are changed with UPDATE",
)
"""How a refusal begins or what it names: a word of ours, or that what is asked for is not to be found in such a
session."""


def tries(attacks: tuple[Attack, ...]) -> list[object]:
    return [pytest.param(one, role, id=f"{one.name}, by {role}") for one in attacks for role in one.allowed]


@pytest.mark.parametrize(("attack", "role"), tries(ATTACKS))
def test_what_is_promised_is_kept(besieged: Besieged, attack: Attack, role: Role) -> None:
    attempt(besieged, attack, role)


def attempt(besieged: Besieged, attack: Attack, role: Role) -> None:
    """Raises `AssertionError` where it is let through and should not be, or the other way round."""
    user, cursor = USERS[role], besieged.cursors[role]
    text = attack.text.format(
        home=besieged.services.settings.home,
        closed=besieged.warehouse / "shop.db" / "closed",
        plain=besieged.warehouse / "shop.db" / "plain",
        away=besieged.services.settings.home.parent / "away",
        user=user,
        long="x" * 2_000_000,
    )
    try:
        cursor.execute(text)
        rows = cursor.fetchall() if cursor.description else []
    except OperationalError as error:
        said = str(error.args[0].status.errorMessage)
        assert not attack.allowed[role], said
        assert any(word in said for word in REFUSALS), said
        return
    assert attack.allowed[role], rows[:3]
    if attack.answer is not None:
        assert str(rows[0][0]) == attack.answer.format(user=user)


def test_no_attack_has_left_anything(besieged: Besieged) -> None:
    """What was refused has changed nothing, wherever it would have."""
    admin = besieged.cursors[Role.ADMIN]
    for table, rows in (("open", [(1,)]), ("own", [(1,)]), ("closed", [(7,)]), ("plain", [("a",)])):
        admin.execute(f"SELECT * FROM shop.{table}")
        assert admin.fetchall() == rows, table
    admin.execute("SHOW TABLES IN shop")
    assert {row[1] for row in admin.fetchall()} >= {"open", "own", "closed", "plain", "behind"}
    admin.execute("SHOW DATABASES")
    assert ("spy",) not in admin.fetchall()
    assert not Path(besieged.services.settings.home.parent / "away").exists()
    owners = {row.name: row.owner for row in besieged.services.store.rows(TABLES).all()}
    assert (owners["shop.open"], owners["shop.own"], owners["shop.closed"]) == ("paul", "olga", "olga")
