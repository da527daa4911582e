"""What the sentences of conversions have in common."""

from collections.abc import Iterable
from typing import Final

from lakewarden.jobs.actions.convert import Convert

__all__ = ["few", "shown", "with_article"]

_SHOWN: Final = 5


def shown(action: Convert) -> str:
    """The table that is converted, as whoever asked for it called it."""
    return action.name or action.location


def with_article(label: str) -> str:
    """A format's name with `a` or `an` before it."""
    return f"an {label}" if label[0] in "AEIOU" else f"a {label}"


def few(names: Iterable[str]) -> str:
    """The first few of them, and how many more there are."""
    listed = list(names)
    more = len(listed) - _SHOWN
    return ", ".join(listed[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
