"""In which format a command was asked to answer, and errors in it. Imports little: every command pays for it."""

import json
from contextvars import ContextVar
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Final

import typer

from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.units import printable

__all__ = ["Format", "Output", "View", "for_people", "look_at", "tell_error", "view"]


class Format(StrEnum):
    """How results are printed. `wide` is a `table` with every column, in lines as long as they are."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """How a list was asked for: `columns` and their order (None: the command's own), `sort` by a column (`descending`:
    largest first), `wide` with every column, `whole` with lines as long as they are."""

    columns: tuple[str, ...] | None = None
    sort: str | None = None
    descending: bool = False
    wide: bool = False
    whole: bool = False


_wanted: ContextVar[Format] = ContextVar("wanted", default=Format.TABLE)
_PLAIN: Final = View()
_view: ContextVar[View] = ContextVar("view", default=_PLAIN)


def _remember(format: Format) -> Format:
    """Commands ask whether people read it, so `wide` is a table to them."""
    shown = Format.TABLE if format is Format.WIDE else format
    _wanted.set(shown)
    _view.set(replace(_view.get(), wide=format is Format.WIDE))
    return shown


Output = Annotated[
    Format, typer.Option("--output", "-o", callback=_remember, help="How to print the result.")
]


def view() -> View:
    """How the command that runs was asked to show its list."""
    return _view.get()


def look_at(seen: View) -> None:
    """The options of a list were read."""
    _view.set(seen)


def for_people() -> None:
    """Until a command has read its options, errors are for people."""
    _wanted.set(Format.TABLE)
    _view.set(_PLAIN)


def tell_error(error: LakewardenError) -> None:
    """An error on stderr: a sentence and a hint for people, one JSON object for a program that asked for JSON."""
    if _wanted.get() is Format.JSON:
        told = {"error": str(error), "hint": error.hint or None, "exit_code": int(error.exit_code)}
        typer.echo(json.dumps(told, ensure_ascii=False), err=True)
        return
    typer.echo(printable(f"Error: {error}"), err=True)
    if error.hint:
        typer.echo(printable(f"Hint: {error.hint}"), err=True)
