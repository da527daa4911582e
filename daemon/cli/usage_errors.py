"""What Typer refuses of a command line, as one of our errors: a sentence, and what to write instead."""

import re
from typing import Any, Final

import typer
from typer.exceptions import TyperException

from lakewarden.catalog.errors import ExitCode, UsageError
from lakewarden.catalog.units import did_you_mean, sentence
from lakewarden.daemon.cli.format import asks_json, tell_error

__all__ = ["as_usage_error", "tell_refusal"]

_NO_CHOICE: Final = re.compile(r"'([^']*)' is not one of (.*)")
_QUOTED: Final = re.compile(r"'([^']*)'")
_SUGGESTION: Final = " Did you mean "
_HELP: Final = "Usage: "
"""How the help begins that a group of commands is refused with, if nothing else is said than its name."""


def tell_refusal(refused: TyperException) -> ExitCode:
    """Say why on stderr. Returns the exit code."""
    said = refused.format_message()
    if not said.startswith(_HELP):
        return tell_error(as_usage_error(refused))
    if asks_json():
        return tell_error(UsageError("A command is missing.", hint="--help shows those there are."))
    typer.echo(said, err=True)
    return ExitCode.USAGE


def as_usage_error(refused: TyperException) -> UsageError:
    """A misspelt command, option or choice is told with the nearest one, all else with the usage of the command."""
    said = " ".join(refused.format_message().split()).partition(" (Possible options: ")[0]
    said = said.replace(": Value error, ", ": ", 1)
    said, _, suggested = said.partition(_SUGGESTION)
    if suggested:
        nearest = suggested.replace("'", "")
        return UsageError(sentence(said), hint=f"Did you mean {nearest}")
    return UsageError(sentence(said), hint=did_you_mean(*_misspelt(refused, said), otherwise=_usage(refused)))


def _misspelt(refused: Any, said: str) -> tuple[str, list[str]]:
    """The word that was not known, and those that are."""
    possible = getattr(refused, "possibilities", None)
    if possible:
        return refused.option_name, list(possible)
    found = _NO_CHOICE.search(said)
    return (found[1], _QUOTED.findall(found[2])) if found else ("", [])


def _usage(refused: Any) -> str:
    context = getattr(refused, "ctx", None)
    if context is None:
        return "`lakewarden --help` shows the commands."
    usage = " ".join(context.get_usage().split()).removeprefix("Usage: ")
    return f"Write {usage}; `{context.command_path} --help` explains it."
