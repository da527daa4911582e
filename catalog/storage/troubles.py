"""What is said of a storage that gives no answer, or denies access. Nothing is concluded from either."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from deltalake.exceptions import DeltaError

from lakewarden.catalog.errors import AccessDeniedError, UnavailableError, UsageError

__all__ = ["answering", "denied", "silent", "trouble_at"]

_KNOWN_SCHEMES: Final = "Give a path, or a URI that begins with file, hdfs, s3 (s3a), gs, abfs (abfss) or az."
_NO_SUCH_SCHEME: Final = "Unknown scheme: "
"""How delta-rs begins its error for an unknown scheme."""
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
    """The trouble behind an error of the library."""
    refused = isinstance(error, PermissionError) or _DENIED.search(str(error))
    return denied(place) if refused else silent(place)


@contextmanager
def answering(root: str) -> Iterator[None]:
    """What delta-rs raises of a storage becomes an error of ours."""
    try:
        yield
    except (OSError, DeltaError) as error:
        if str(error).startswith(_NO_SUCH_SCHEME):
            scheme = root.partition("://")[0]
            raise UsageError(
                f"{scheme}:// is no storage that lakewarden knows: {root}.", hint=_KNOWN_SCHEMES
            ) from error
        raise trouble_at(root, error) from error
