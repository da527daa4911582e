"""Whether two locations are on one storage, by what they call it: engines call one storage by several names."""

from enum import StrEnum
from posixpath import normpath
from typing import Final

__all__ = [
    "Sameness",
    "compared",
    "is_one_kind",
    "may_be_in",
    "may_be_same",
    "one_name",
    "plain",
    "spelled_like",
]

_ONE_NAME: Final = frozenset({"file", "s3", "gs", "abfs", "wasb", "az", "azure", "adl"})
"""Storages where another authority is another place. Of others (HDFS) two names may mean one."""
_AZURE: Final = frozenset({"abfs", "wasb", "az", "azure", "adl"})
"""Schemes of Azure's storage: container and account are what counts, by whichever host of the account it is reached."""
_SURE: Final = _ONE_NAME - _AZURE
"""Storages that have one name, which is the same for everybody."""
_OF_AZURE: Final = frozenset({"blob", "dfs"})
"""What a name of Azure's own for an account's host has, after the account. Any other host may be any account's."""


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
    if {scheme, scheme_} <= _AZURE:
        return _compared_in_azure(authority, authority_)
    return Sameness.UNTOLD if _ONE_NAME.isdisjoint({scheme, scheme_}) else Sameness.ANOTHER


def is_one_kind(one: str, other: str) -> bool:
    """Whether two canonical locations are on storages of one kind: if these are one, a path means the same on both."""
    first, second = _parts(one)[0], _parts(other)[0]
    return first == second or {first, second} <= _AZURE


def spelled_like(location: str, other: str) -> str:
    """A canonical location with its storage called as another one calls it, unless that is surely another storage."""
    if compared(location, other) is Sameness.ANOTHER:
        return plain(location)
    scheme, authority, _ = _parts(other)
    return plain(f"{scheme}://{authority}{_parts(location)[2]}")


def may_be_in(inner: str, outer: str) -> bool:
    """Whether a canonical location may be another one or lie in it, as both are spelled: on storages that may be one,
    only the path counts."""
    one, other = _alike(inner, outer)
    return one == other or one.startswith(other.rstrip("/") + "/")


def may_be_same(one: str, other: str) -> bool:
    """Whether two canonical locations may be one place, likewise."""
    first, second = _alike(one, other)
    return first == second


def _alike(one: str, other: str) -> tuple[str, str]:
    """Both as the other one spells its storage, unless they are surely on two."""
    is_sure = one.partition("://")[0] in _SURE
    return plain(one) if is_sure else spelled_like(one, other), plain(other)


def one_name(location: str) -> str:
    """What all names of a canonical location on a remote storage have in common. For comparing: nothing opens it."""
    scheme, authority, path = _parts(location)
    container, account = _in_azure(authority) if scheme in _AZURE else ("", "")
    return f"abfs://{container}@{account}.dfs{path}" if account else location


def plain(place: str) -> str:
    """One spelling of a path on a storage that is not a local disk: without doubled slashes, `.` and `..`."""
    scheme, authority, path = _parts(place)
    if scheme == "file" or ("//" not in path and "/." not in path):
        return place
    whole = normpath("/" + path.lstrip("/"))
    return f"{scheme}://{authority}{whole}"


def _compared_in_azure(one: str, other: str) -> Sameness:
    (container, account), (container_, account_) = _in_azure(one), _in_azure(other)
    if container != container_ or (account and account_ and account != account_):
        return Sameness.ANOTHER
    return Sameness.ONE if account and account_ else Sameness.UNTOLD


def _in_azure(authority: str) -> tuple[str, str]:
    """Container and account (`box@account.dfs.core.windows.net`). Without an account, options that the location does
    not show say which it is."""
    container, _, host = authority.lower().partition("@")
    account, *rest = host.split(".")
    return container, "" if _OF_AZURE.isdisjoint(rest) else account.removesuffix("-secondary")


def _parts(location: str) -> tuple[str, str, str]:
    """Scheme, authority, and the path with its slash."""
    scheme, _, rest = location.partition("://")
    authority, slash, path = rest.partition("/")
    return scheme, authority, slash + path
