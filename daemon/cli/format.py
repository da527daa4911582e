"""In which format a command was asked to answer, and errors in it. Imports little: every command pays for it."""

import json
from contextvars import ContextVar
from enum import StrEnum
from typing import Annotated

import typer

from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.units import printable

__all__ = ["Format", "Output", "for_people", "tell_error"]


class Format(StrEnum):
    """How results are printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


_wanted: ContextVar[Format] = ContextVar("wanted", default=Format.TABLE)


def _remember(format: Format) -> Format:
    _wanted.set(format)
    return format


Output = Annotated[
    Format, typer.Option("--output", "-o", callback=_remember, help="How to print the result.")
]


def for_people() -> None:
    """Until a command has read its options, errors are for people."""
    _wanted.set(Format.TABLE)


def tell_error(error: LakewardenError) -> None:
    """An error on stderr: a sentence and a hint for people, one JSON object for a program that asked for JSON."""
    if _wanted.get() is Format.JSON:
        told = {"error": str(error), "hint": error.hint or None, "exit_code": int(error.exit_code)}
        typer.echo(json.dumps(told, ensure_ascii=False), err=True)
        return
    typer.echo(printable(f"Error: {error}"), err=True)
    if error.hint:
        typer.echo(printable(f"Hint: {error.hint}"), err=True)
