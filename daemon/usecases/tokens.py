"""Tokens of the gateway's users: made, shown and taken back."""

from collections.abc import Sequence
from datetime import timedelta

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.policy.access import Caller
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.installation.tokens import Token, Tokens, is_user_name
from lakewarden.daemon.usecases import declared
from lakewarden.daemon.usecases.audit import run

__all__ = ["create_token", "revoke_token", "tokens_of"]


def create_token(
    services: Services, user: str, *, lifetime: timedelta | None, caller: Caller
) -> tuple[Token, str]:
    """A new token for a user, and its text: the only time that it is seen."""
    if not is_user_name(user):
        raise UsageError(
            f"{user!r} is not a user name.",
            hint="A user name is printable, neither begins nor ends with a blank, is not *, and has "
            "no colon or comma.",
        )
    with run(services, caller, declared.TOKEN, user, on=f"token of {user}"):
        now = services.clock.now()
        expires_at = None if lifetime is None else now + lifetime
        return _tokens(services).create(user, by=caller.name, now=now, expires_at=expires_at)


def revoke_token(services: Services, token_id: str, *, caller: Caller) -> Token:
    """Take a token back."""
    with run(services, caller, declared.REVOKE, token_id, on=f"token {token_id}"):
        return _tokens(services).revoke(token_id)


def tokens_of(services: Services) -> Sequence[Token]:
    """All tokens; their texts are not kept."""
    return _tokens(services).all()


def _tokens(services: Services) -> Tokens:
    return Tokens(services.settings.tokens_file)
