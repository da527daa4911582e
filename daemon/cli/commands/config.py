"""`lakewarden config show | spark` and `lakewarden completion`."""

from enum import StrEnum
from typing import Annotated, Final

import typer
from typer.completion import get_completion_script  # type: ignore[attr-defined]  # Typer's own, not in its __all__

from lakewarden.daemon.cli.common import Home, services_of
from lakewarden.daemon.cli.completion.answer import VARIABLE
from lakewarden.daemon.cli.lazy import commands
from lakewarden.daemon.cli.list_commands import ListCommand
from lakewarden.daemon.cli.output import Format, Output, note, show, show_one
from lakewarden.daemon.usecases.spark_config import spark_config_of

app = commands()
_END_OF_BASH: Final = "    return 0\n"
_NO_SPACE: Final = "    [[ ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2> /dev/null\n"
"""After `key=` bash would begin another word, and leave the key without its value."""
config = commands("Show every setting with its value, unit and origin.")
app.add_typer(config, name="config")


class Shell(StrEnum):
    """Shells that complete."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@config.command("show", cls=ListCommand)
def config_show(home: Home = None, output: Output = Format.TABLE) -> None:
    """Show every setting: value, unit, where the value comes from, and why it exists."""
    rows = services_of(home).settings.explain()
    show(rows, columns=["key", "value", "unit", "origin", "doc"], format=output)


@config.command("spark")
def config_spark(home: Home = None, output: Output = Format.TABLE) -> None:
    """Print the Spark settings that your own session needs, for spark-defaults.conf or with -o json. No secrets."""
    found = spark_config_of(services_of(home), tell=note)
    if output is not Format.TABLE:
        show_one(found, format=output)
        return
    for key, value in found.items():
        typer.echo(f"{key} {value}")


@config.callback()
def _commands() -> None:
    """Settings."""


@app.command("completion")
def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print the code that makes a shell complete commands, tables, runs and keys, for its start-up file."""
    script = get_completion_script(prog_name="lakewarden", complete_var=VARIABLE, shell=shell.value)
    typer.echo(script.replace(_END_OF_BASH, _NO_SPACE + _END_OF_BASH) if shell is Shell.BASH else script)
