"""Who is let in, and where the gateway may listen."""

import base64
from datetime import UTC, datetime, timedelta
from email.message import Message
from pathlib import Path

import pytest

from lakewarden.catalog.errors import LakewardenError, NotAllowedError
from lakewarden.daemon.gateway.access.authentication import LocalUser, TokenUsers
from lakewarden.daemon.gateway.access.binding import require_safe_binding, tls_context
from lakewarden.daemon.gateway.access.failed_logins import FailedLogins
from lakewarden.daemon.installation.tokens import Tokens
from lakewarden.daemon.settings.settings import load_settings
from lakewarden.daemon.telemetry.gateway_metrics import GatewayMetrics

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HERE = "127.0.0.1"


def shown(authorization: str | None) -> Message:
    headers = Message()
    if authorization is not None:
        headers["Authorization"] = authorization
    return headers


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def test_a_name_that_a_client_claims_is_no_identity() -> None:
    assert LocalUser("owner of the process").user(shown(basic("root", "x")), HERE) == "owner of the process"


def test_a_token_is_a_password_and_a_bearer_token(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    _, text = tokens.create("ana", by="root", now=NOW, expires_at=None)
    users = TokenUsers(tokens, lambda: NOW, FailedLogins(most=10, metrics=GatewayMetrics()))
    assert users.user(shown(basic("ana", text)), HERE) == "ana"
    assert users.user(shown(f"Bearer {text}"), HERE) == "ana"
    for wrong in (None, basic("bo", text), basic("ana", "x"), "Bearer x", "Basic ###", "Basic /w==", "x", ""):
        with pytest.raises(NotAllowedError, match="not accepted"):
            users.user(shown(wrong), HERE)


def test_a_token_ends_when_it_expires(tmp_path: Path) -> None:
    tokens, now = Tokens(tmp_path / "tokens.json"), [NOW + timedelta(hours=23)]
    _, text = tokens.create("ana", by="root", now=NOW, expires_at=NOW + timedelta(days=1))
    users = TokenUsers(tokens, lambda: now[0], FailedLogins(most=10, metrics=GatewayMetrics()))
    assert users.user(shown(f"Bearer {text}"), HERE) == "ana"
    now[0] = NOW + timedelta(days=1)
    with pytest.raises(NotAllowedError, match="not accepted"):
        users.user(shown(f"Bearer {text}"), HERE)


@pytest.mark.parametrize(
    ("flags", "refusal"),
    [
        ({}, None),
        ({"gateway.host": "::1"}, None),
        ({"gateway.host": "0.0.0.0"}, "without authentication"),
        ({"gateway.host": "lake.example.org"}, "without authentication"),
        ({"gateway.host": "0.0.0.0", "gateway.authentication": "token"}, "without TLS"),
        (
            {"gateway.host": "0.0.0.0", "gateway.authentication": "token", "gateway.tls_elsewhere": "yes"},
            None,
        ),
        ({"gateway.host": "0.0.0.0", "gateway.tls_elsewhere": "yes"}, "without authentication"),
    ],
)
def test_what_others_reach_wants_authentication_and_tls(
    tmp_path: Path, flags: dict[str, str], refusal: str | None
) -> None:
    settings = load_settings(home=tmp_path, flags=flags, environment={})
    if refusal is None:
        require_safe_binding(settings)
    else:
        with pytest.raises(LakewardenError, match=refusal):
            require_safe_binding(settings)


def test_a_certificate_that_is_none_is_said_to_be(tmp_path: Path) -> None:
    assert tls_context(None, None) is None
    (tmp_path / "cert.pem").write_text("no certificate")
    with pytest.raises(LakewardenError, match="cannot be used"):
        tls_context(tmp_path / "cert.pem", None)
