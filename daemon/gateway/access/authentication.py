"""Who is asking? What a request's headers prove, never what its client says of itself."""

import base64
import binascii
from collections.abc import Callable
from datetime import datetime
from email.message import Message
from typing import Protocol

from lakewarden.daemon.gateway.access.failed_logins import FailedLogins, Why
from lakewarden.daemon.installation.tokens import Token, Tokens

__all__ = ["Authentication", "LocalUser", "TokenUsers"]


class Authentication(Protocol):
    """How users show who they are."""

    def user(self, headers: Message, address: str) -> str:
        """The user's name; `address` is the client's. Raises `NotAllowedError`."""


class LocalUser:
    """Everybody who can reach the loopback address is the user whose process this is. Names that clients send (drivers
    always send one) prove nothing, and are not looked at."""

    def __init__(self, name: str) -> None:
        self._name = name

    def user(self, headers: Message, address: str) -> str:
        return self._name


class TokenUsers:
    """Users with tokens, as the password of Basic authentication or as a bearer token."""

    def __init__(self, tokens: Tokens, now: Callable[[], datetime], failed: FailedLogins) -> None:
        self._tokens, self._now, self._failed = tokens, now, failed

    def user(self, headers: Message, address: str) -> str:
        scheme, _, given = str(headers.get("Authorization", "")).partition(" ")
        name, text = _basic(given) if scheme.lower() == "basic" else (None, given.strip())
        token = self._tokens.named_by(text)
        why = self._why_not(name, text, token)
        if token is not None and why is None:
            self._failed.accept(address, token.user, token.token_id)
            return token.user
        claimed = name if name is not None else token.user if token is not None else ""
        raise self._failed.refuse(address, claimed, why or Why.UNKNOWN)

    def _why_not(self, name: str | None, text: str, token: Token | None) -> Why | None:
        if not text:
            return Why.NOTHING
        if token is None:
            return Why.UNKNOWN
        if not token.is_shown_by(text):
            return Why.WRONG
        if token.expires_at is not None and self._now() >= token.expires_at:
            return Why.EXPIRED
        return None if name in (None, token.user) else Why.OTHERS


def _basic(given: str) -> tuple[str | None, str]:
    """User and password; nobody's, where it is neither."""
    try:
        user, _, password = base64.b64decode(given.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return None, ""
    return user, password
