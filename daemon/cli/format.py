"""In which format a command was asked to answer, and errors in it. Imports little: every command pays for it."""

import itertools
import json
from collections.abc import Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Final

import typer

from lakewarden.catalog.errors import ExitCode, LakewardenError
from lakewarden.catalog.units import printable
from lakewarden.daemon.cli.leading_options import agreed

__all__ = [
    "Format",
    "ListView",
    "Output",
    "asks_json",
    "asks_table",
    "echo_to_stderr",
    "for_caller",
    "for_people",
    "look_at",
    "tell",
    "tell_error",
    "view",
]


class Format(StrEnum):
    """How results are printed. `wide` is a `table` with every column, in lines as long as they are."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


@dataclass(frozen=True, kw_only=True, slots=True)
class ListView:
    """How a list was asked for."""

    columns: tuple[str, ...] | None = None
    """In their order; None: the command's own."""
    sort: str | None = None
    """By this column."""
    descending: bool = False
    """Largest first."""
    limit: int | None = None
    """At most so many rows; None: as many as the command shows."""
    offset: int = 0
    """After the first so many."""
    wide: bool = False
    """With every column."""
    whole: bool = False
    """With lines as long as they are."""
    watch: bool = False
    """The output is refreshed."""
    interval: float = 2.0
    """Seconds between two looks."""


_wanted: ContextVar[Format] = ContextVar("wanted", default=Format.TABLE)
_PLAIN: Final = ListView()
_JSON: Final = frozenset({"-ojson", "--output=json"})
_view: ContextVar[ListView] = ContextVar("view", default=_PLAIN)


def _remember(context: typer.Context, format: Format) -> Format:
    """Commands ask whether people read it, so `wide` is a table to them."""
    source = context.get_parameter_source("output")
    given = format if source is not None and source.name == "COMMANDLINE" else None
    format = agreed("-o", given) or format
    shown = Format.TABLE if format is Format.WIDE else format
    _wanted.set(shown)
    _view.set(replace(_view.get(), wide=format is Format.WIDE))
    return shown


Output = Annotated[
    Format, typer.Option("--output", "-o", callback=_remember, help="How to print the result.")
]


def view() -> ListView:
    """How the command that runs was asked to show its list."""
    return _view.get()


def look_at(seen: ListView) -> None:
    """The options of a list were read."""
    _view.set(seen)


def for_people() -> None:
    """Until a command has read its options, errors are for people."""
    _wanted.set(Format.TABLE)
    _view.set(_PLAIN)


def for_caller(arguments: Sequence[str]) -> None:
    """Errors are for whom the command line asks to answer, also those about the command line itself."""
    for_people()
    words = list(itertools.takewhile(lambda word: word != "--", arguments))
    pairs = zip(words, [*words[1:], ""], strict=True)
    if _JSON.intersection(words) or any(one in ("-o", "--output") and next == "json" for one, next in pairs):
        _wanted.set(Format.JSON)


def asks_json() -> bool:
    """Whether a program reads what is said."""
    return _wanted.get() is Format.JSON


def asks_table() -> bool:
    """Whether a person reads what is said."""
    return _wanted.get() is Format.TABLE


def tell_error(error: LakewardenError) -> ExitCode:
    """An error on stderr: a sentence and a hint for people, one JSON object for a program that asked for JSON. Returns
    its exit code."""
    if asks_json():
        tell(str(error), hint=error.hint, exit_code=error.exit_code)
    else:
        tell(f"Error: {error}", hint=error.hint, exit_code=error.exit_code)
    return error.exit_code


def tell(said: str, *, hint: str = "", exit_code: int) -> None:
    """The last words of a command, on stderr."""
    if asks_json():
        told = {"error": said, "hint": hint or None, "exit_code": int(exit_code)}
        echo_to_stderr(json.dumps(told, ensure_ascii=False))
        return
    echo_to_stderr(printable(said))
    if hint:
        echo_to_stderr(printable(f"Hint: {hint}"))


def echo_to_stderr(text: str) -> None:
    """Where nobody reads it any more the command goes on: what it does matters more than that it is told."""
    with suppress(BrokenPipeError):
        typer.echo(text, err=True)
