"""Where a gateway is, as it is written on a command line: `hive+http://user@host:port/database`. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

from lakewarden.catalog.errors import UsageError

__all__ = ["Address", "address_of"]

_PORT: Final = 10_001
_SCHEMES: Final = {"hive+http": False, "hive+https": True}
_HINT: Final = "Write hive+http://user@host:port/database, or hive+https."


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """The address of a gateway, and the user there."""

    host: str
    port: int = _PORT
    user: str | None = None
    token: str | None = field(default=None, repr=False)
    database: str = "default"
    tls: bool = False
    authority: str | None = None
    """A file of certificates to trust besides the system's."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """What else the address says."""


def address_of(text: str, token: str | None = None) -> Address:
    """Read one; `token` counts where the address has none. Raises `UsageError`."""
    parts = urlsplit(text)
    try:
        port = parts.port
    except ValueError as error:
        raise UsageError("The port in the address is not a number.", hint=_HINT) from error
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise UsageError("This is not a gateway address.", hint=_HINT)
    said = dict(parse_qsl(parts.query))
    return Address(
        host=parts.hostname,
        port=port or _PORT,
        user=None if parts.username is None else unquote(parts.username),
        token=token if parts.password is None else unquote(parts.password),
        database=unquote(parts.path.strip("/")) or "default",
        tls=_SCHEMES[parts.scheme],
        authority=said.pop("authority", None),
        settings=said,
    )
