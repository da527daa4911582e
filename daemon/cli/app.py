"""The command tree, and the one place where an error becomes a sentence on stderr and an exit code."""

import sys
from typing import Annotated

import typer

from lakewarden import __version__
from lakewarden.catalog.errors import ExitCode, LakewardenError
from lakewarden.daemon.cli.lazy import Lazily, LazyGroup

__all__ = ["COMMANDS", "app", "run"]

COMMANDS = {
    "init": Lazily(module="setup", help="Create the system tables of a new lakewarden home."),
    "status": Lazily(module="look", help="Who leads, what is managed, what needs attention."),
    "doctor": Lazily(module="doctor", help="Check everything a newcomer gets wrong, with the fix."),
    "daemon": Lazily(module="run", help="Look after the managed tables until told to stop."),
    "sql": Lazily(module="sql", help="Ask the system tables, set policies, convert, by SQL."),
    "why": Lazily(module="look", help="Why a table is, or is not, being worked on."),
    "pause": Lazily(module="switch", help="Stop all work on a table, a namespace (db.*) or everything (*)."),
    "resume": Lazily(module="switch", help="Let work go on again."),
    "tables": Lazily(module="tables", help="Register, convert, look at and govern tables."),
    "rollback": Lazily(module="rollback", help="Undo a bad write and everything derived from it."),
    "jobs": Lazily(module="jobs", help="Plan, run, list and cancel maintenance."),
    "lineage": Lazily(module="lineage", help="What tables come from, version by version."),
    "metastore": Lazily(module="metastore", help="Compare tables with the Hive metastore and sync them."),
    "system": Lazily(module="system", help="Back up, verify and repair the system tables."),
    "config": Lazily(module="config", help="Every setting with its value, unit and origin."),
}


class _Root(LazyGroup):
    lazily = COMMANDS


app = typer.Typer(
    name="lakewarden",
    cls=_Root,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="A self-managing catalog daemon for lakehouse tables on Spark.",
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lakewarden {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """A self-managing catalog daemon for lakehouse tables on Spark."""


def run() -> None:
    """Run the command line; every `LakewardenError` becomes one sentence, a hint and its exit code."""
    try:
        app()
    except LakewardenError as error:
        typer.echo(f"Error: {error}", err=True)
        if error.hint:
            typer.echo(f"Hint: {error.hint}", err=True)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        typer.echo("Interrupted.", err=True)
        sys.exit(ExitCode.FAILED)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away: nobody is left to tell
        sys.exit(ExitCode.OK)
