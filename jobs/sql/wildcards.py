"""Names by patterns, as metadata calls and SHOW write them. Pure; each name takes a look per character of the pattern.

No regular expression: one with many wildcards in it tries every way to divide a name among them.
"""

from collections.abc import Callable, Iterable, Sequence
from enum import Enum

__all__ = ["Part", "Wildcard", "fitting"]


class Wildcard(Enum):
    """What stands for characters that are not known."""

    ONE = "one"
    MANY = "many"


Part = str | Wildcard
"""A character, or what stands for some."""


def fitting(parts: Iterable[Part]) -> Callable[[str], bool]:
    """Whether a name is like a pattern, whatever the case of both."""
    runs: list[list[Part]] = [[]]
    for part in parts:
        if part is Wildcard.MANY:
            runs.append([])
        else:
            runs[-1].append(part.lower() if isinstance(part, str) else part)
    first, *others = runs
    return lambda name: _fits(name.lower(), first, others)


def _fits(name: str, first: Sequence[Part], others: Sequence[Sequence[Part]]) -> bool:
    """`others` come after anything each: all but the last as early as they can, which leaves most for the rest."""
    if not _is_at(name, 0, first):
        return False
    at = len(first)
    if not others:
        return at == len(name)
    for run in others[:-1]:
        found = next((place for place in range(at, len(name) + 1) if _is_at(name, place, run)), None)
        if found is None:
            return False
        at = found + len(run)
    end = len(name) - len(others[-1])
    return end >= at and _is_at(name, end, others[-1])


def _is_at(name: str, place: int, run: Sequence[Part]) -> bool:
    return len(name) - place >= len(run) and all(
        part is Wildcard.ONE or part == name[place + step] for step, part in enumerate(run)
    )
