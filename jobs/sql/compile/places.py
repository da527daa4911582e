"""Errors that point at the place in the user's own text. Pure."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import update_wrapper
from typing import Concatenate, Final, ParamSpec, TypeVar

from sqlglot import exp

from lakewarden.catalog.errors import UsageError

__all__ = [
    "WRITTEN",
    "WrongPartError",
    "placed",
    "refuse_long_name",
    "told_with_places",
    "wrong_at",
    "wrong_in",
    "wrong_part",
]

WRITTEN: Final = "<written>"
"""In a message: the word that the user wrote at this node, such as the name of a function; "This" where it has none."""
_SHOWN: int = 100
"""Characters of a long line that are shown around the place."""


_P = ParamSpec("_P")
_R = TypeVar("_R")


class WrongPartError(UsageError):
    """What is wrong with a part of a statement: a node of its tree, or what begins at an offset in its text."""

    def __init__(
        self, message: str, *, hint: str, node: exp.Expr | None = None, offset: int | None = None
    ) -> None:
        super().__init__(message.replace(WRITTEN, "This"), hint=hint)
        self.message, self.node, self.offset = message, node, offset

    def of(self, text: str) -> UsageError:
        """The error as it is told: with line and column (both from 1), the line itself, and a caret below it."""
        said, offset = self.message.replace(WRITTEN, _word(self.node, text)), self.offset
        if offset is None and self.node is not None:
            offset = min(_starts(self.node, text), default=None)
        if offset is None:
            return UsageError(said, hint=self.hint)
        return UsageError(f"{said} {_shown_at(text, offset)}", hint=self.hint)


@contextmanager
def placed(text: str) -> Iterator[None]:
    """Around whatever judges a statement, its text: what is said of its parts gets the place."""
    try:
        yield
    except WrongPartError as error:
        raise error.of(text) from error.__cause__


def told_with_places(read: Callable[Concatenate[str, _P], _R]) -> Callable[Concatenate[str, _P], _R]:
    """The same for what reads a text, its first argument."""

    def reading(text: str, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        with placed(text):
            return read(text, *args, **kwargs)

    update_wrapper(reading, read)
    return reading


def wrong_in(node: exp.Expr | None, message: str, *, hint: str) -> WrongPartError:
    """An error about a part of the statement; about all of it where the part has no place."""
    return WrongPartError(message, hint=hint, node=node)


def wrong_part(node: exp.Expr, part: str, message: str, *, hint: str) -> WrongPartError:
    """`wrong_in` at a part of a node: where it stands itself, if it is more than a word."""
    value = node.args[part]
    return wrong_in(value if isinstance(value, exp.Expr) else node, message, hint=hint)


def wrong_at(offset: int | None, message: str, *, hint: str) -> WrongPartError:
    """An error at an offset in the text."""
    return WrongPartError(message, hint=hint, offset=offset)


def _shown_at(text: str, offset: int) -> str:
    before = text[:offset]
    line, column = before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
    shown = text.splitlines()[line - 1] if text.splitlines() else ""
    cut = max(column - 1 - _SHOWN // 2, 0)
    excerpt = shown[cut : cut + _SHOWN].replace("\t", " ")
    caret = " " * (column - 1 - cut) + "^"
    return f"Line {line}, column {column}:\n  {excerpt}\n  {caret}"


def _word(node: exp.Expr | None, text: str) -> str:
    """The word at a node; of what a parser has put between a function and its arguments that of the function."""
    while isinstance(node, exp.Func) and not isinstance(node, exp.Binary) and "end" not in node.meta:
        node = node.parent
    meta = {} if node is None else node.meta
    return text[meta["start"] : meta["end"] + 1].upper() if {"start", "end"} <= meta.keys() else "This"


def _starts(node: exp.Expr, text: str) -> Iterator[int]:
    for part in node.walk():
        start = part.meta.get("start")
        if isinstance(start, int) and _is_written(part, text):
            yield start


def _is_written(part: exp.Expr, text: str) -> bool:
    """Whether it stands where it says: what a column was qualified with stands where its table is named."""
    column = part.parent
    if not isinstance(column, exp.Column) or part is column.this:
        return True
    end, name = part.meta.get("end"), column.this.meta.get("start")
    return end is None or name is None or text[end + 1 : name].lstrip('"`] \t\n').startswith(".")


def refuse_long_name(item: exp.Expr) -> None:
    """Raise `UsageError` for a name of more than three parts."""
    if isinstance(item, exp.Table) and isinstance(item.this, exp.Dot):
        raise wrong_in(
            item,
            "A table's name has at most three parts here: branches and metadata tables have none of their own.",
            hint="Name the table itself (catalog.namespace.table); make a view of anything else that is read.",
        )
