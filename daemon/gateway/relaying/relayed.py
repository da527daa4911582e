"""What a gateway and a user's own engine say to each other: what it is, once, and then whose each call is."""

import hmac
from dataclasses import dataclass
from email.message import Message
from typing import Final

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.daemon.settings.settings import Settings

__all__ = ["PATH", "SECRET_HEADER", "THRIFT", "USER_HEADER", "EngineSetup", "Relayed"]

PATH: Final = "/cliservice"
THRIFT: Final = "application/x-thrift"
USER_HEADER: Final = "X-Lakewarden-User"
SECRET_HEADER: Final = "X-Lakewarden-Secret"


@dataclass(frozen=True, kw_only=True)
class EngineSetup:
    """Said once, on a pipe that nobody else has. Holds secrets."""

    settings: Settings
    user: str
    """The only one that it answers."""
    secret: str
    """What the gateway shows with each call: others on this machine reach the engine's port, too."""


class Relayed:
    """The `Authentication` of an engine: its gateway has asked who it is."""

    def __init__(self, setup: EngineSetup) -> None:
        self._setup = setup

    def user(self, headers: Message, address: str) -> str:
        shown, user = str(headers.get(SECRET_HEADER, "")), str(headers.get(USER_HEADER, ""))
        if not hmac.compare_digest(shown.encode(), self._setup.secret.encode()) or user != self._setup.user:
            raise NotAllowedError("This is not a call of the gateway.", hint="Connect to the gateway.")
        return user
