"""The command tree, and the one place where an error becomes a sentence on stderr and an exit code."""

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer
from typer.exceptions import TyperException

from lakewarden import __version__
from lakewarden.catalog.errors import ConsentError, ExitCode, LakewardenError, UnavailableError, UsageError
from lakewarden.daemon.cli.format import Format, echo_to_stderr, for_caller, tell, tell_error
from lakewarden.daemon.cli.lazy import Lazily, LazyGroup
from lakewarden.daemon.cli.leading_options import say_before
from lakewarden.daemon.cli.nearest import look_among, with_nearest
from lakewarden.daemon.cli.profile import Profiled, choose
from lakewarden.daemon.cli.standard_streams import open_closed_streams, reader_is_gone, say_nothing_more
from lakewarden.daemon.cli.usage_errors import tell_refusal

__all__ = ["COMMANDS", "INTERRUPTED", "app", "run"]

INTERRUPTED: Final = 130
"""The exit code after Ctrl-C, as shells have it."""

COMMANDS = {
    "init": Lazily(module="init", help="Create the system tables of a new lakewarden home."),
    "status": Lazily(module="status", help="Show who leads, what is managed, and what needs attention."),
    "doctor": Lazily(module="doctor", help="Check the set-up and say how to fix what is wrong."),
    "daemon": Lazily(module="daemon", help="Look after the managed tables until told to stop."),
    "worker": Lazily(module="daemon", help="Take runs from the queue for a daemon elsewhere."),
    "gateway": Lazily(module="gateway", help="Let beeline, JDBC, PyHive and SQLAlchemy connect."),
    "sql": Lazily(module="sql", help="Query the system tables, set policies, convert: in SQL."),
    "top": Lazily(module="status", help="Show live what is going on."),
    "why": Lazily(module="status", help="Say why a table is, or is not, being worked on."),
    "pause": Lazily(module="pause", help="Stop all work on a table, a namespace (db.*) or everything (*)."),
    "resume": Lazily(module="pause", help="Lift a pause."),
    "tables": Lazily(module="tables", help="Register, convert, look at and govern tables."),
    "policy": Lazily(module="governance", help="Keep the policies of all tables in a file, for git."),
    "rollback": Lazily(module="rollback", help="Undo a bad write and everything derived from it."),
    "jobs": Lazily(module="jobs", help="Plan, run, list and cancel maintenance."),
    "lineage": Lazily(module="lineage", help="Show what tables were derived from, version by version."),
    "metastore": Lazily(module="metastore", help="Compare tables with the Hive metastore and sync them."),
    "system": Lazily(module="system", help="Back up, verify and repair the system tables; leave."),
    "tokens": Lazily(
        module="gateway", help="Manage who may connect to the gateway: create, list and revoke tokens."
    ),
    "config": Lazily(module="config", help="Show every setting with its value, unit and origin."),
    "completion": Lazily(
        module="config", help="Let bash, zsh or fish complete commands, tables, runs and keys."
    ),
}


class _Root(LazyGroup):
    lazily = COMMANDS


app = typer.Typer(
    name="lakewarden",
    cls=_Root,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
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
    home: Annotated[
        Path | None, typer.Option("--home", help="The home: where settings, database and system tables are.")
    ] = None,
    profile: Profiled = None,
    output: Annotated[Format | None, typer.Option("--output", "-o", help="How to print the result.")] = None,
) -> None:
    """A self-managing catalog daemon for lakehouse tables on Spark."""
    choose(profile)
    say_before({"--home": home, "--profile": profile, "-o": output})


def run() -> None:
    """Run the command line; every `LakewardenError` becomes one sentence, a hint and its exit code. So does what the
    operating system refuses: a full disk, a folder that cannot be written."""
    open_closed_streams()
    _print_what_can_be_printed()
    arguments = sys.argv[1:]
    for_caller(arguments)
    look_among(None)
    try:
        code = _called(arguments)
        sys.stdout.flush()
    except BrokenPipeError as error:
        code = ExitCode.OK if reader_is_gone() else _refused(error)
        say_nothing_more()
    sys.exit(code)


def _called(arguments: Sequence[str]) -> int:
    """The exit code of a command. Not by Typer's `main`, which would end the process on Ctrl-C and on a closed pipe
    before we could say anything."""
    try:
        _check_arguments(arguments)
        command = typer.main.get_command(app)
        with command.make_context(app.info.name, list(arguments)) as context:
            command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except TyperException as refused:
        return tell_refusal(refused)
    except typer.Abort as end:
        # Typer's prompts make this of Ctrl-C, and of an input that has ended: both leave the line of the question open.
        if end.__context__ is not None:
            echo_to_stderr("")
        if isinstance(end.__context__, KeyboardInterrupt):
            return _interrupted("")
        return tell_error(
            ConsentError("Not confirmed: nothing was changed.", hint="--yes skips the question.")
        )
    except LakewardenError as error:
        return tell_error(with_nearest(error))
    except KeyboardInterrupt as interrupt:
        return _interrupted(str(interrupt))
    except BrokenPipeError:
        raise
    except OSError as error:
        return _refused(error)
    return ExitCode.OK


def _interrupted(said: str) -> int:
    tell(said or "Interrupted.", exit_code=INTERRUPTED)
    return INTERRUPTED


def _refused(error: OSError) -> ExitCode:
    where = f" ({error.filename})" if error.filename else ""
    return tell_error(
        UnavailableError(
            f"{error.strerror or error}{where}.", hint="Check disk and permissions, then repeat the command."
        )
    )


def _print_what_can_be_printed() -> None:
    """A terminal that knows no box-drawing characters gets question marks, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _check_arguments(arguments: Sequence[str]) -> None:
    """Raise `UsageError` for bytes that are no text in this locale: no table can have such a name."""
    for number, argument in enumerate(arguments, start=1):
        if any("\ud800" <= letter <= "\udfff" for letter in argument):
            raise UsageError(
                f"Argument {number} is not text: {os.fsencode(argument)!r}.",
                hint="Arguments are UTF-8; if this one is, set LC_ALL=C.UTF-8.",
            )
