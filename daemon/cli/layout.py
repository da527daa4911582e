"""How a table is laid out: each row in one line for a pipe; which columns a terminal has room for."""

from dataclasses import dataclass
from typing import Final

import typer

__all__ = ["GAP", "Panel", "Shown", "fitting", "print_lines", "wraps"]

GAP: Final = 2
"""Blanks between columns."""
_TEXT: Final = 24
"""Columns that a cell with blanks in it needs at least, where it wraps."""
_WORD: Final = 26
"""Columns that a name or a path has before it is folded."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """Cells as texts."""

    columns: tuple[str, ...]
    """Their names."""
    rows: tuple[tuple[str, ...], ...]
    """As many cells each as there are columns."""
    numbers: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class Panel:
    """A table under a title."""

    title: str
    shown: Shown
    empty: str = "Nothing."
    """Said where it has no rows."""


def fitting(shown: Shown, width: int) -> tuple[str, ...]:
    """The columns that there is room for in so many: the first and the last always, of the others as many as fit when
    texts wrap: empty ones go first, then those named later before those named earlier. Pure."""
    least = {name: _least(name, shown) for name in shown.columns}
    kept = list(shown.columns)
    while len(kept) > 2 and sum(least[name] for name in kept) + GAP * (len(kept) - 1) > width:
        kept.remove(next((name for name in kept[1:-1] if not any(_cells(name, shown))), kept[-2]))
    return tuple(kept)


def print_lines(shown: Shown) -> None:
    """Each row in a line as long as it is."""
    lines = [tuple(name.upper() for name in shown.columns), *shown.rows]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    for line in lines:
        typer.echo((" " * GAP).join(map(str.ljust, line, widths)).rstrip())


def wraps(name: str, shown: Shown) -> bool:
    """Whether the cells of a column may go on in a second line: those of texts and of long names."""
    cells = _cells(name, shown)
    return any(" " in cell for cell in cells) or max(map(len, cells), default=0) > _WORD


def _cells(name: str, shown: Shown) -> list[str]:
    place = shown.columns.index(name)
    return [row[place] for row in shown.rows]


def _least(name: str, shown: Shown) -> int:
    cells = _cells(name, shown)
    widest = max(map(len, cells), default=0)
    return max(len(name), min(widest, _TEXT if any(" " in cell for cell in cells) else _WORD))
