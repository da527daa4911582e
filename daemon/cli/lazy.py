"""Commands that are imported when they are called."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from lakewarden.daemon.cli.profile import add_to
from lakewarden.daemon.installation.lazily import load

__all__ = ["Lazily", "LazyCommand", "LazyGroup", "command_of", "commands"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Lazily:
    """Where a command is: a module of `commands` with a Typer `app`, and the sentence that help shows for it."""

    module: str
    help: str


def commands(help: str | None = None) -> typer.Typer:
    """The Typer `app` of a module, or of a group in it, which has `help` and shows it where no command is named. Shells
    complete by `lakewarden completion`, and help is plain text."""
    return typer.Typer(
        no_args_is_help=help is not None, add_completion=False, rich_markup_mode=None, help=help
    )


def command_of(where: Lazily) -> Any:
    """The command, or the group of commands, of a module, with the options that all have."""
    command = typer.main.get_command(load(f"{__package__}.commands.{where.module}").app)
    add_to(command)
    return command


class LazyCommand(TyperCommand):
    """Stands for a command until it is called: knows its name and help, loads the rest from its module."""

    def __init__(self, name: str, where: Lazily) -> None:
        super().__init__(name, callback=None, help=where.help)
        self._where = where

    def load(self) -> Any:
        """The real command: the module's whole app for a group, the one command of that name otherwise."""
        command = command_of(self._where)
        if isinstance(command, TyperGroup) and self.name is not None and self.name in command.commands:
            return command.commands[self.name]
        command.name = self.name
        return command

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        return self.load().make_context(info_name, args, parent, **extra)


class LazyGroup(TyperGroup):
    """A group whose commands are `LazyCommand`s; subclasses say which."""

    lazily: Mapping[str, Lazily] = {}

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        for name, where in self.lazily.items():
            self.add_command(LazyCommand(name, where))
