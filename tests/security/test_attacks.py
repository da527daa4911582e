"""Every attack of the list, by every role: let through or refused, as is promised (docs/reference/security.md). And
what the gateway refuses is on record: logins in its log and figures, statements in the audit.

Whoever looks for a hole adds a line to `tests/support/security/attacks.py`.
"""

import re
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from pyhive.exc import OperationalError

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.catalog.system.port import AUDIT, TABLES
from lakewarden.daemon.usecases.tokens import create_token
from support.security.attacks import ATTACKS, Attack, Role
from support.security.besieged import ADMIN, USERS, Besieged
from support.security.iceberg_attacks import BY_CATALOG, BY_NAME, ICEBERG_ATTACKS
from support.servers.receivers import until

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
    "takes no query: what it reads would be on no record",
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


def test_a_refused_login_is_a_line_and_a_figure_without_the_secret(besieged: Besieged) -> None:
    secret = besieged.tokens[Role.READER]
    with pytest.raises(NotAllowedError, match="not accepted"):
        besieged.connect("mallory", secret)
    assert (
        '"user": "mallory", "address": "127.0.0.1", "because": "token of another user"'
        in besieged.gateway.log()
    )
    labels = 'address="127.0.0.1",reason="token of another user",user="mallory"'
    assert f"lakewarden_gateway_refused_logins_total{{{labels}}} 1.0" in figures(besieged)
    for told in (besieged.gateway.log(), figures(besieged)):
        assert not any(token.split("_", 2)[2] in told for token in besieged.tokens.values())


def test_after_too_many_failed_logins_no_more_of_theirs_are_looked_at(besieged: Besieged) -> None:
    for _ in range(3):
        with pytest.raises(NotAllowedError, match="not accepted"):
            besieged.connect("eve", "lw_guess")
    with pytest.raises(
        NotAllowedError, match=r"too many failed logins of eve from 127\.0\.0\.1\. Try again in"
    ):
        besieged.connect("eve", "lw_guess")
    request = urllib.request.Request(
        f"https://127.0.0.1:{besieged.gateway.port}/cliservice",
        data=b"",
        headers={"Content-Type": "application/x-thrift", "Authorization": "Basic ZXZlOnM="},
    )
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, context=ssl.create_default_context(cafile=str(besieged.certificate)))
    assert refused.value.code == 429 and 0 < int(refused.value.headers["Retry-After"]) <= 61
    for role in Role:  # nobody else notices
        besieged.connect(USERS[role], besieged.tokens[role]).close()


def test_refused_statements_are_in_the_audit(besieged: Besieged) -> None:
    """Of somebody who has not tried all attacks of the list before, of which most are counted together."""
    _, token = create_token(besieged.services, "rosa", lifetime=None, caller=ADMIN)
    cursor = besieged.connect("rosa", token).cursor()
    for statement in (
        "SELECT x FROM shop.closed WHERE x = 4711",
        "SELECT x FROM shop.closed VERSION AS OF 4711",
        "SELECT x FROM shop.closed WITH (`versionAsOf` = 4711)",
        "DELETE FROM shop.open WHERE x = 4711 AND 'hunter2' = ''",
    ):
        with pytest.raises(OperationalError, match="rosa may not"):
            cursor.execute(statement)

    def recorded() -> bool:
        rows = besieged.services.store.rows(AUDIT).find(actor="rosa")
        told = {(row.what, row.on, row.allowed) for row in rows}
        return {
            ("query", "shop.closed", False),
            ("statement", "DELETE FROM shop.open WHERE x = 0 AND '...' = '...'", False),
        } <= told

    until(recorded, 120)  # they are written twice a minute
    assert "hunter2" not in str(besieged.services.store.rows(AUDIT).all())


def figures(besieged: Besieged) -> str:
    (port,) = re.findall(r'"port": (\d+).*"event": "metrics"', besieged.gateway.log())
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as page:
        return str(page.read().decode())
