"""`--watch`: what a command prints, on the whole terminal, looked at anew each time, until Ctrl-C."""

import io
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from typing import TYPE_CHECKING

import typer

from lakewarden.catalog.errors import UsageError
from lakewarden.daemon.cli.format import asks_table, view
from lakewarden.daemon.installation.lazily import later
from lakewarden.daemon.process.spared_libraries import have_rich

if TYPE_CHECKING:
    from lakewarden.daemon.cli import terminal
else:
    terminal = later("lakewarden.daemon.cli.terminal")

__all__ = ["watch_command"]


def watch_command(name: str, command: Callable[[], object]) -> None:
    """Call a command that changes nothing again and again. What the first look refuses is refused; later errors are
    shown where the list was, and it is looked again. Raises `UsageError` where nobody looks on."""
    if not asks_table():
        raise UsageError("--watch shows a table to people.", hint="Leave -o out, or --watch.")
    if not sys.stdout.isatty():
        raise UsageError("--watch needs a terminal.", hint="Without it the list is printed once.")
    have_rich()
    with suppress(KeyboardInterrupt):
        terminal.watch_text(name, lambda: _printed(command), view().interval)


def _printed(command: Callable[[], object]) -> str:
    """All that it says to this terminal."""
    screen = _Screen(io.BytesIO(), encoding="utf-8", newline="\n")
    with redirect_stdout(screen), redirect_stderr(screen), suppress(typer.Exit):
        command()
    screen.seek(0)
    return screen.read()


class _Screen(io.TextIOWrapper):
    """Keeps what is printed; to who prints it is the terminal."""

    def isatty(self) -> bool:
        return True
