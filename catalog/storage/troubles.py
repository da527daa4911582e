"""What is said of a storage that gives no answer, or denies access. Nothing is concluded from either."""

import re
from typing import Final

from lakewarden.catalog.errors import AccessDeniedError, UnavailableError

__all__ = ["denied", "silent", "trouble_at"]

_DENIED: Final = re.compile(
    r"\b40[13] (?:Forbidden|Unauthorized)|lacked (?:the necessary privileges|valid authentication)"
    r"|ExpiredToken|InvalidToken|GSSAPI error|SASL|AccessControlException"
)
"""What object stores and HDFS say, in delta-rs' words, of who is unknown, out of date, or not allowed to."""


def silent(place: str) -> UnavailableError:
    """What is said of a place (a canonical location, a system table) whose storage does not answer."""
    return UnavailableError(f"The storage of {place} does not answer.", hint="Check it, then retry.")


def denied(place: str) -> AccessDeniedError:
    """What is said of a place whose storage denies access."""
    return AccessDeniedError(f"The storage of {place} denies access.")


def trouble_at(place: str, error: Exception) -> UnavailableError:
    """Which of the two it is, by what the library raised."""
    return denied(place) if _DENIED.search(str(error)) else silent(place)
