"""Commands that print a list: columns, rows, order, and whether the list is refreshed. The options mean the same for
all."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from lakewarden.daemon.cli.format import look_at, view
from lakewarden.daemon.cli.watching import watch_command

__all__ = ["ListCommand", "LiveListing"]

_LIVE: Final = ("watch", "interval")
"""Options of those alone whose rows change while somebody looks on."""


class ListCommand(TyperCommand):
    """A command whose rows can be chosen, sorted and shown whole. What was chosen is in `format.view()`."""

    def __init__(self, name: str | None, *, params: Sequence[Any] | None = None, **more: Any) -> None:
        super().__init__(name, params=[*(params or ()), *self.options()], **more)

    @classmethod
    def options(cls) -> tuple[Any, ...]:
        """What every command of the kind takes."""
        return tuple(one for one in _options() if one.name not in _LIVE)


class LiveListing(ListCommand):
    """A list that can be watched. Only of commands that change nothing: they are called again and again."""

    @classmethod
    def options(cls) -> tuple[Any, ...]:
        return _options()

    def invoke(self, context: Any) -> Any:
        """Once, or again and again."""
        once = super().invoke
        return watch_command(context.command_path, lambda: once(context)) if view().watch else once(context)


def _columns(text: str | None) -> None:
    if text is not None:
        look_at(replace(view(), columns=tuple(name.strip().lower() for name in text.split(","))))


def _sort(text: str | None) -> None:
    if text is not None:
        column = text.strip().lower()
        look_at(replace(view(), sort=column.removeprefix("-"), descending=column.startswith("-")))


def _limit(rows: int | None) -> None:
    if rows is not None:
        look_at(replace(view(), limit=rows))


def _offset(rows: int) -> None:
    look_at(replace(view(), offset=rows))


def _whole(wanted: bool) -> None:
    look_at(replace(view(), whole=wanted))


def _watch(wanted: bool) -> None:
    look_at(replace(view(), watch=wanted))


def _interval(seconds: float) -> None:
    look_at(replace(view(), interval=seconds))


@cache
def _options() -> tuple[Any, ...]:
    app = typer.Typer(add_completion=False)
    app.command()(_declared)
    return tuple(typer.main.get_command(app).params)


def _declared(
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns",
            metavar="A,B",
            callback=_columns,
            expose_value=False,
            help="Show only these columns, in this order; -o wide shows all.",
        ),
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(
            "--sort",
            metavar="COLUMN",
            callback=_sort,
            expose_value=False,
            help="Sort by this column, smallest first; -COLUMN: largest first.",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", min=1, callback=_limit, expose_value=False, help="Show at most this many rows."
        ),
    ] = None,
    offset: Annotated[
        int,
        typer.Option(
            "--offset", min=0, callback=_offset, expose_value=False, help="Skip this many rows first."
        ),
    ] = 0,
    no_truncate: Annotated[
        bool,
        typer.Option(
            "--no-truncate",
            callback=_whole,
            expose_value=False,
            help="On a terminal: do not wrap cells or leave out columns.",
        ),
    ] = False,
    watch: Annotated[
        bool,
        typer.Option(
            "--watch", "-w", callback=_watch, expose_value=False, help="Look again and again, until Ctrl-C."
        ),
    ] = False,
    interval: Annotated[
        float,
        typer.Option(
            "--interval",
            min=0.5,
            callback=_interval,
            expose_value=False,
            help="With --watch: seconds between two looks.",
        ),
    ] = 2.0,
) -> None:
    """The options themselves."""
