"""One table's data never stops another table's work: what nobody foresaw becomes a value, or an error of ours."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from lakewarden.catalog.errors import ExecutionError, LakewardenError, UnreadableError
from lakewarden.catalog.logs import get_log

__all__ = ["Stopped", "Unforeseen", "as_error", "guarded", "in_one_line", "isolated"]

T = TypeVar("T")
_SAID: Final = 200
"""So many characters of an error that nobody foresaw are kept."""


class Stopped(Exception):
    """The daemon is to end: the cycle stops where it is. Any point will do, as for a crash."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unforeseen:
    """An unforeseen error on one table. It concerns that table alone."""

    problem: str
    """In one line."""
    trace: str = ""


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


def guarded(do: Callable[[], T]) -> T | LakewardenError:
    """What comes of it, any error included; what nobody foresaw is told to the log."""
    try:
        came = isolated(do)
    except LakewardenError as error:
        return error
    return as_error(came) if isinstance(came, Unforeseen) else came


def as_error(found: Unforeseen, **table: str) -> ExecutionError:
    """What was not foreseen of a `table`, told to the log."""
    get_log("unforeseen").error("unforeseen", problem=found.problem, trace=found.trace, **table)
    return ExecutionError(f"Nobody foresaw this: {found.problem}.", hint="The trace is in the log.")


def in_one_line(error: Exception) -> str:
    """An unforeseen error in words that can be stored and shown."""
    said = " ".join(str(error).split()).encode("utf-8", "replace").decode()
    said = said if len(said) <= _SAID else f"{said[:_SAID]}..."
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
