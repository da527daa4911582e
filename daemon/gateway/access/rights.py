"""What a caller may have Spark do: it runs everything as the gateway's own user, so the gateway has to ask. Pure."""

from enum import IntEnum
from typing import Final

from lakewarden.catalog.errors import NotAllowedError
from lakewarden.catalog.policy.access import Caller
from lakewarden.daemon.settings.settings import Settings

__all__ = ["AccessLevel", "reach_of", "require_conversion", "require_reach", "require_vacuum"]

_EVERYBODY: Final = "*"
_WRITERS: Final = "The gateway's gateway.writers says who may, besides admins."


_PROGRAMS: Final = "programs"


class AccessLevel(IntEnum):
    """Nothing; reading tables of the catalog; changing them, too, by SQL; anything that the gateway's own user may."""

    NOTHING = 0
    TABLES = 1
    SQL = 2
    EVERYTHING = 3


def reach_of(caller: Caller, settings: Settings, own: str) -> AccessLevel:
    """By role and settings; `own` is the gateway's own user, who may do as much without it."""
    if caller.admin or caller.name == own:
        return AccessLevel.EVERYTHING
    if caller.name in settings.gateway_writers:
        return AccessLevel.EVERYTHING if settings.gateway_writers_may == _PROGRAMS else AccessLevel.SQL
    if {caller.name, _EVERYBODY} & set(settings.gateway_readers):
        return AccessLevel.TABLES
    return AccessLevel.NOTHING


def require_reach(caller: Caller, reach: AccessLevel) -> None:
    """Raise `NotAllowedError` for who may send Spark nothing. Rights on rows are checked when Spark has named the table
    (owned_tables.py)."""
    if reach is AccessLevel.NOTHING:
        raise NotAllowedError(
            f"{caller.name} may not send statements to Spark.",
            hint="The gateway's gateway.readers and gateway.writers say who may, besides admins. "
            "System tables are for everybody.",
        )


def require_vacuum(caller: Caller, reach: AccessLevel, where: str) -> None:
    """Raise `NotAllowedError` for who may not have Spark vacuum this table, which is not managed."""
    require_reach(caller, reach)
    if reach is AccessLevel.TABLES:
        raise NotAllowedError(f"{caller.name} may not vacuum tables through Spark.", hint=_WRITERS)
    _require_name(caller, reach, where)


def require_conversion(caller: Caller, reach: AccessLevel, where: str) -> None:
    """Raise `NotAllowedError` for who may not have a folder converted: whoever has the files may do it on a command
    line, where the file system asks; here they are the gateway's own user's, and the caller would own the table."""
    if reach < AccessLevel.SQL:
        raise NotAllowedError(f"{caller.name} may not convert tables through the gateway.", hint=_WRITERS)
    _require_name(caller, reach, where)


def _require_name(caller: Caller, reach: AccessLevel, where: str) -> None:
    if reach is AccessLevel.SQL and "/" in where:
        raise NotAllowedError(
            f"{caller.name} may not name a path here.",
            hint="Name a table of the catalog. Admins may name paths, and writers with "
            "gateway.writers_may = programs.",
        )
