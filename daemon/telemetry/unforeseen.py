"""What nobody foresaw, as an error like any other: one sentence, and its trace in the log."""

from collections.abc import Callable
from typing import TypeVar

from lakewarden.catalog.errors import ExecutionError, LakewardenError
from lakewarden.daemon.fleet.isolation import isolated
from lakewarden.daemon.telemetry.log import get_log
from lakewarden.jobs.actions.answers import Unforeseen

__all__ = ["as_error", "guarded"]

T = TypeVar("T")


def guarded(do: Callable[[], T], /) -> T | LakewardenError:
    """What comes of it, any error included."""
    try:
        came = isolated(do)
    except LakewardenError as error:
        return error
    return as_error(came) if isinstance(came, Unforeseen) else came


def as_error(found: Unforeseen, **table: str) -> ExecutionError:
    """What was not foreseen of a `table`, told to the log."""
    get_log("unforeseen").error("unforeseen", problem=found.problem, trace=found.trace, **table)
    return ExecutionError(f"Nobody foresaw this: {found.problem}.", hint="The trace is in the log.")
