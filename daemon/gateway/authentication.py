"""Who is asking? What a request's headers prove, never what its client says of itself."""

import base64
import binascii
from collections.abc import Callable
from datetime import datetime
from email.message import Message
from typing import Final, Protocol

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.daemon.installation.tokens import Tokens

__all__ = ["Authentication", "LocalUser", "TokenUsers"]

_HINT: Final = (
    "User name and token as password, or the token as bearer; `lakewarden tokens create USER` makes one."
)


class Authentication(Protocol):
    """How users show who they are."""

    def user(self, headers: Message) -> str:
        """The user's name. Raises `NotAllowedError`."""


class LocalUser:
    """Everybody who can reach the loopback address is the user whose process this is. Names that clients send (drivers
    always send one) prove nothing, and are not looked at."""

    def __init__(self, name: str) -> None:
        self._name = name

    def user(self, headers: Message) -> str:
        return self._name


class TokenUsers:
    """Users with tokens, as the password of Basic authentication or as a bearer token."""

    def __init__(self, tokens: Tokens, now: Callable[[], datetime]) -> None:
        self._tokens, self._now = tokens, now

    def user(self, headers: Message) -> str:
        scheme, _, given = str(headers.get("Authorization", "")).partition(" ")
        name, token = _basic(given) if scheme.lower() == "basic" else (None, given.strip())
        found = self._tokens.user_of(token, self._now()) if token else None
        if found is None or name not in (None, found):
            raise NotAllowedError("These credentials are not accepted.", hint=_HINT)
        return found


def _basic(given: str) -> tuple[str | None, str]:
    """User and password; nobody's, where it is neither."""
    try:
        user, _, password = base64.b64decode(given.strip(), validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return None, ""
    return user, password
