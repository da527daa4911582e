"""The table that a misspelt name may have meant, looked for only where an error is told."""

from collections.abc import Callable
from contextvars import ContextVar

from lakewarden.catalog.errors import LakewardenError, NotFoundError

__all__ = ["look_among", "with_nearest"]

_nearest: ContextVar[Callable[[str], str | None] | None] = ContextVar("nearest", default=None)


def look_among(nearest: Callable[[str], str | None] | None) -> None:
    """A home was opened: the search for the known name nearest to an unknown one."""
    _nearest.set(nearest)


def with_nearest(error: LakewardenError) -> LakewardenError:
    """An error about a table that nobody knows, with the nearest name as its hint; any other as it is."""
    look = _nearest.get()
    if look is None or not isinstance(error, NotFoundError) or error.unknown is None:
        return error
    try:
        near = look(error.unknown)
    except LakewardenError:
        return error  # what was wrong in the first place is told all the same
    return error if near is None else NotFoundError(str(error), hint=f"Did you mean {near}?")
