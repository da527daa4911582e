"""`--home`, `--profile` and `-o` may stand before a command as well as after it: what was said before."""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, TypeVar

from lakewarden.catalog.errors import UsageError

__all__ = ["agreed", "say_before"]

_T = TypeVar("_T")
_said: ContextVar[Mapping[str, Any] | None] = ContextVar("said", default=None)


def say_before(said: Mapping[str, Any]) -> None:
    """These options, by the names that people write, were read before the command; None where one was not given."""
    _said.set(said)


def agreed(option: str, after: _T | None) -> _T | None:
    """What counts of an option: where it was given. Raises `UsageError` for two that do not agree."""
    before: _T | None = (_said.get() or {}).get(option)
    if before is not None and after is not None and before != after:
        raise UsageError(
            f"{option} says {before} before the command and {after} after it.", hint="Give it once."
        )
    return before if after is None else after
