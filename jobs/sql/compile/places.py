"""Errors that point at the place in the user's own text. Pure."""

from collections.abc import Iterator

from sqlglot import exp

from lakewarden.catalog.errors import UsageError

__all__ = ["wrong_at", "wrong_in", "wrong_part"]

_SHOWN: int = 100
"""Characters of a long line that are shown around the place."""


def wrong_in(text: str, node: exp.Expr | None, message: str, *, hint: str) -> UsageError:
    """An error about a part of the statement; about all of it where the part has no place."""
    start = min(_starts(node, text), default=None) if node is not None else None
    return wrong_at(text, start, message, hint=hint)


def wrong_part(text: str, node: exp.Expr, part: str, message: str, *, hint: str) -> UsageError:
    """`wrong_in` at a part of a node: where it stands itself, if it is more than a word."""
    value = node.args[part]
    return wrong_in(text, value if isinstance(value, exp.Expr) else node, message, hint=hint)


def wrong_at(text: str, offset: int | None, message: str, *, hint: str) -> UsageError:
    """An error at an offset in the text: its line and column (both from 1), the line itself, a caret below it."""
    if offset is None:
        return UsageError(message, hint=hint)
    before = text[:offset]
    line, column = before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
    shown = text.splitlines()[line - 1] if text.splitlines() else ""
    cut = max(column - 1 - _SHOWN // 2, 0)
    excerpt = shown[cut : cut + _SHOWN].replace("\t", " ")
    caret = " " * (column - 1 - cut) + "^"
    return UsageError(f"{message} Line {line}, column {column}:\n  {excerpt}\n  {caret}", hint=hint)


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
