"""How deep a statement nests: Spark's parser takes minutes and the whole heap for thousands of levels, and cannot be
stopped. It fails on a few hundred anyway."""

from typing import Final

from lakewarden.catalog.errors import RefusedError
from lakewarden.jobs.sql.quotes import outside

__all__ = ["require_shallow"]

_DEEPEST: Final = 300
_QUOTES: Final = "'\"`"


def require_shallow(text: str) -> None:
    """Raise `RefusedError` for a statement whose parentheses nest deeper than Spark can read. Linear."""
    if text.count("(") > _DEEPEST and _depth(text) > _DEEPEST:
        raise RefusedError(
            f"The statement nests more than {_DEEPEST} parentheses; Spark's parser cannot read that.",
            hint="Take out those that change nothing, or compute a part in a view.",
        )


def _depth(text: str) -> int:
    """The most parentheses that are open at once, outside of literals and quoted names."""
    depth = deepest = 0
    for character in outside(text, _QUOTES):
        if character == "(":
            depth += 1
            deepest = max(deepest, depth)
        elif character == ")":
            depth = max(depth - 1, 0)
    return deepest
