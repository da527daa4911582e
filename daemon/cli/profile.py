"""`--profile`, before or after a command: which of several homes is meant. What was chosen is in `profile()`."""

from contextvars import ContextVar
from functools import cache
from typing import Annotated, Any

import typer

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
    if name is not None:
        _chosen.set(name)


Profiled = Annotated[
    str | None,
    typer.Option("--profile", metavar="NAME", help="One of several homes by its name in profiles.toml."),
]


def add_to(command: Any) -> None:
    """Give the option to every command that has a home, the command itself or those of a group."""
    for one in getattr(command, "commands", {}).values():
        add_to(one)
    places = [number for number, one in enumerate(command.params) if one.name == "home"]
    if places and all(one.name != "profile" for one in command.params):
        command.params.insert(places[0] + 1, _option())


@cache
def _option() -> Any:
    app = typer.Typer(add_completion=False)
    app.command()(_declared)
    return typer.main.get_command(app).params[0]


def _declared(
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="NAME",
            callback=_choose_another,
            expose_value=False,
            help="One of several homes by its name in profiles.toml.",
        ),
    ] = None,
) -> None:
    """The option itself."""
