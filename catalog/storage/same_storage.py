"""Whether two locations are on one storage, by what they call it: engines call one storage by several names."""

from enum import StrEnum
from posixpath import normpath
from typing import Final

__all__ = ["Sameness", "compared", "is_one_kind", "plain", "spelled_like"]

_ONE_NAME: Final = frozenset({"file", "s3", "gs", "abfs", "az", "adl"})
"""Storages where another authority is another place. Of others (HDFS) two names may mean one."""


class Sameness(StrEnum):
    """Whether two storages are one. UNTOLD permits nothing that ANOTHER does."""

    ONE = "one"
    ANOTHER = "another"
    UNTOLD = "untold"


def compared(one: str, other: str) -> Sameness:
    """Whether two canonical locations are on one storage, wherever on it they lie."""
    (scheme, authority, _), (scheme_, authority_, _) = _parts(one), _parts(other)
    if (scheme, authority) == (scheme_, authority_):
        return Sameness.ONE
    return Sameness.UNTOLD if _ONE_NAME.isdisjoint({scheme, scheme_}) else Sameness.ANOTHER


def is_one_kind(one: str, other: str) -> bool:
    """Whether two canonical locations are on storages of one kind: if these are one, a path means the same on both."""
    return _parts(one)[0] == _parts(other)[0]


def spelled_like(location: str, other: str) -> str:
    """A canonical location with its storage called as another one calls it, unless that is surely another storage."""
    if compared(location, other) is Sameness.ANOTHER:
        return plain(location)
    scheme, authority, _ = _parts(other)
    return plain(f"{scheme}://{authority}{_parts(location)[2]}")


def plain(place: str) -> str:
    """One spelling of a path on a storage that is not a local disk: without doubled slashes, `.` and `..`."""
    scheme, authority, path = _parts(place)
    if scheme == "file" or ("//" not in path and "/." not in path):
        return place
    whole = normpath("/" + path.lstrip("/"))
    return f"{scheme}://{authority}{whole}"


def _parts(location: str) -> tuple[str, str, str]:
    """Scheme, authority, and the path with its slash."""
    scheme, _, rest = location.partition("://")
    authority, slash, path = rest.partition("/")
    return scheme, authority, slash + path
