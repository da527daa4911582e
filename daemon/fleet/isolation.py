"""One table's data never stops another table's work: what nobody foresaw becomes a value."""

import traceback
from collections.abc import Callable
from typing import Final, TypeVar

from lakewarden.catalog.errors import LakewardenError, UnreadableError
from lakewarden.jobs.actions.answers import Unforeseen

__all__ = ["Stopped", "in_one_line", "isolated"]

T = TypeVar("T")
_SAID: Final = 200
"""So many characters of an error that nobody foresaw are kept."""


class Stopped(Exception):
    """The daemon is to end: the cycle stops where it is. Any point will do, as for a crash."""


def isolated(do: Callable[[], T]) -> T | Unforeseen:
    """Do what concerns one table; what nobody foresaw becomes a value, in words.

    Bytes that do not describe a table count as unforeseen: what reads them should have said so itself. Every other
    `LakewardenError` passes: whoever called knows what it means.
    """
    try:
        return do()
    except UnreadableError as error:
        return Unforeseen(problem=str(error).rstrip("."), trace=traceback.format_exc())
    except (LakewardenError, Stopped):
        raise
    except Exception as error:  # noqa: BLE001  # whatever it is: one table's data never stops another's work
        return Unforeseen(problem=in_one_line(error), trace=traceback.format_exc())


def in_one_line(error: Exception) -> str:
    """An unforeseen error in words that can be stored and shown."""
    said = " ".join(str(error).split()).encode("utf-8", "replace").decode()
    said = said if len(said) <= _SAID else f"{said[:_SAID]}..."
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
