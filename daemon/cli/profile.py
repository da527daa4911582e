"""`--profile`: which of several homes is meant. What was chosen is in `profile()`. And what all commands share."""

from contextvars import ContextVar
from functools import cache
from typing import Annotated, Any

import typer

from lakewarden.catalog.errors import UsageError
from lakewarden.daemon.cli.leading_options import agreed

__all__ = ["Profiled", "add_to", "choose", "profile"]

_chosen: ContextVar[str | None] = ContextVar("profile", default=None)


def profile() -> str | None:
    """The profile that the command line names."""
    return _chosen.get()


def choose(name: str | None) -> None:
    """The command line names this one, or (None) none so far."""
    _chosen.set(name)


def _choose_another(name: str | None) -> None:
    """After the command: what was said before it counts where nothing is said here."""
    _chosen.set(agreed("--profile", name))


def _refuse(context: typer.Context, output: str | None) -> None:
    """Of a command without a result: an option that it would not heed is none that it takes."""
    if agreed("-o", output) is not None:
        raise UsageError(
            f"`{context.command_path}` has no result to print in another way.", hint="Leave -o out."
        )


Profiled = Annotated[
    str | None,
    typer.Option("--profile", metavar="NAME", help="The home with this name in profiles.toml."),
]


def add_to(command: Any) -> None:
    """Give the options to every command, itself or those of a group: `--profile` to those that have a home; to those
    without `-o` one that is refused."""
    children = getattr(command, "commands", {}).values()
    for one in children:
        add_to(one)
    places = [number for number, one in enumerate(command.params) if one.name == "home"]
    if places and all(one.name != "profile" for one in command.params):
        command.params.insert(places[0] + 1, _options()[0])
    if not children and all(one.name != "output" for one in command.params):
        command.params.append(_options()[1])


@cache
def _options() -> tuple[Any, ...]:
    app = typer.Typer(add_completion=False)
    app.command()(_declared)
    return tuple(typer.main.get_command(app).params)


def _declared(
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="NAME",
            callback=_choose_another,
            expose_value=False,
            help="The home with this name in profiles.toml.",
        ),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", callback=_refuse, expose_value=False, hidden=True)
    ] = None,
) -> None:
    """The options themselves."""
