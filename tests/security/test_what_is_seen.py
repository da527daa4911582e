"""What the gateway of the attacks refuses is on record: logins in its log and figures, statements in the audit."""

import re
import ssl
import urllib.error
import urllib.request

import pytest
from pyhive.exc import OperationalError

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.catalog.system.port import AUDIT
from lakewarden.daemon.usecases.tokens import create_token
from support.security.attacks import Role
from support.security.besieged import ADMIN, USERS, Besieged
from support.servers.receivers import until

pytestmark = pytest.mark.spark


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
