"""Every attack of the list, by every role: let through or refused, as is promised (docs/reference/security.md).

Whoever looks for a hole adds a line to `tests/support/security/attacks.py`.
"""

from pathlib import Path

import pytest
from pyhive.exc import OperationalError

from lakewarden.catalog.system.port import TABLES
from support.security.attacks import ATTACKS, Attack, Role
from support.security.besieged import USERS, Besieged
from support.security.iceberg_attacks import BY_CATALOG, BY_NAME, ICEBERG_ATTACKS

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
    "without a record",
    "would make snapshots look like",
    "UNSUPPORTED_SQL_UDF_USAGE",
    "Several tables are changed by one statement by those alone",
    "There is no table delta.",
    "System tables are changed with UPDATE",
)
"""How a refusal begins or what it names: a word of ours, or that what is asked for is not to be found in such a
session."""


def tries(attacks: tuple[Attack, ...]) -> list[object]:
    return [pytest.param(one, role, id=f"{one.name}, by {role}") for one in attacks for role in one.allowed]


def tries_again(attacks: tuple[Attack, ...], *, few: bool = True) -> list[object]:
    """The same of what is tried on Delta tables as well: by the roles between which the line is drawn in every run."""
    return [
        pytest.param(
            one,
            role,
            id=f"{one.name}, by {role}",
            marks=() if few and role in at_the_line(one) else pytest.mark.long,
        )
        for one in attacks
        for role in one.allowed
    ]


def at_the_line(attack: Attack) -> set[Role]:
    """The last who is refused, and the first who is not."""
    kept_out = [role for role, allowed in attack.allowed.items() if not allowed]
    let_in = [role for role, allowed in attack.allowed.items() if allowed]
    return {*kept_out[-1:], *let_in[:1]}


@pytest.mark.parametrize(("attack", "role"), tries(ATTACKS))
def test_what_is_promised_is_kept(besieged: Besieged, attack: Attack, role: Role) -> None:
    attempt(besieged, attack, role)


@pytest.mark.parametrize(("attack", "role"), tries_again(BY_NAME))
def test_what_is_promised_is_kept_of_iceberg_tables(besieged: Besieged, attack: Attack, role: Role) -> None:
    attempt(besieged, attack, role)


@pytest.mark.parametrize(("attack", "role"), tries_again(BY_CATALOG, few=False))
def test_what_is_promised_is_kept_by_the_names_of_their_catalog(
    besieged: Besieged, attack: Attack, role: Role
) -> None:
    attempt(besieged, attack, role)


@pytest.mark.parametrize(("attack", "role"), tries_again(ICEBERG_ATTACKS))
def test_what_is_promised_is_kept_of_what_only_iceberg_has(
    besieged: Besieged, attack: Attack, role: Role
) -> None:
    attempt(besieged, attack, role)


@pytest.mark.parametrize(
    ("role", "statement", "said"),
    [
        (Role.READER, "SELECT x FROM iced.closed.branch_b", "may not query"),
        (Role.READER, "SELECT x FROM iced.closed.changes", "may not query"),
    ],
)
def test_names_are_judged_as_what_they_mean_in_the_session(
    besieged: Besieged, role: Role, statement: str, said: str
) -> None:
    with besieged.connect(USERS[role], besieged.tokens[role]) as connection, connection.cursor() as cursor:
        cursor.execute("USE iceberg")
        with pytest.raises(OperationalError, match=said):
            cursor.execute(statement)


def attempt(besieged: Besieged, attack: Attack, role: Role) -> None:
    """Raises `AssertionError` where it is let through and should not be, or the other way round."""
    user, cursor = USERS[role], besieged.cursors[role]
    text = attack.text.format(
        home=besieged.services.settings.home,
        closed=besieged.warehouse / "shop.db" / "closed",
        plain=besieged.warehouse / "shop.db" / "plain",
        away=besieged.services.settings.home.parent / "away",
        user=user,
        first=0 if "shop." in attack.text else 1,
        **besieged.names,
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
    for table, row in (("open", 1), ("own", 1), ("closed", 7), ("loose", 1)):
        admin.execute(f"SELECT * FROM iced.{table}")
        assert admin.fetchall() == [(row,)], table
    assert besieged.snapshots == besieged.made
    admin.execute("SHOW TABLES IN shop")
    assert {row[1] for row in admin.fetchall()} >= {"open", "own", "closed", "plain", "behind"}
    admin.execute("SHOW DATABASES")
    assert ("spy",) not in admin.fetchall()
    assert not Path(besieged.services.settings.home.parent / "away").exists()
    owners = {row.name: row.owner for row in besieged.services.store.rows(TABLES).all()}
    assert (owners["shop.open"], owners["shop.own"], owners["shop.closed"]) == ("paul", "olga", "olga")
