"""Tables on a terminal: cells wrap, words that call for attention have a colour, what has no room is left out.

The one door to rich, imported only where somebody looks on. NO_COLOR and TERM=dumb are respected.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lakewarden.catalog.errors import LakewardenError
from lakewarden.daemon.cli.layout import GAP, Panel, Shown, fitting, wraps

__all__ = ["print_pairs", "print_panels", "print_table", "table_of", "watch", "watch_text"]

_COLOURS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("active", "succeeded", "due", "ok"), "green"),
    **dict.fromkeys(("queued", "claimed", "running", "converting"), "cyan"),
    **dict.fromkeys(("warn", "warning", "paused", "held", "paused, held", "skipped", "cancelled"), "yellow"),
    **dict.fromkeys(("quarantined", "purging", "fail", "failed", "abandoned", "error"), "red"),
}


def print_table(shown: Shown) -> tuple[str, ...]:
    """Print it as wide as the terminal is. Returns the columns that it had no room for."""
    console = _console()
    kept = fitting(shown, console.width)
    console.print(table_of(shown, kept))
    return tuple(name for name in shown.columns if name not in kept)


def print_pairs(pairs: Mapping[str, str]) -> None:
    """A line for each key and its value; long values go on below where they began."""
    grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_header=False)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for key, value in pairs.items():
        grid.add_row(Text(key, style="bold"), _cell(value))
    _console().print(grid)


def print_panels(panels: Sequence[Panel]) -> None:
    """Each table below its title, as wide as the terminal is."""
    console = _console()
    console.print(Group(*list(_drawn(panels, console.width))[:-1]))


def watch(look: Callable[[], Sequence[Panel]], seconds: float) -> None:
    """Show what `look` finds on the whole screen, again and again, until interrupted."""
    _again(lambda console: Group(*_drawn(look(), console.width)), seconds)


def watch_text(title: str, look: Callable[[], str], seconds: float) -> None:
    """The same of what is text already, under a line with its title and when that was."""

    def drawn(console: Console) -> Group:
        text = Text.from_ansi(look())
        at = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}"
        head = Text(f"{title}  {at} UTC, every {seconds:g} s until Ctrl-C", style="bold reverse")
        lines = list(text.wrap(console, console.width))
        room = console.height - 1
        if len(lines) > room:
            more = len(lines) - room + 1
            lines[room - 1 :] = [Text(f"{more} more lines: filters, --limit and --offset show fewer.")]
        return Group(head, *lines)

    _again(drawn, seconds)


def _again(look: Callable[[Console], Group], seconds: float) -> None:
    """What is wrong at the first look is raised. Later it is shown, because whoever looks on has not gone away."""
    console = _console()
    shown = look(console)
    with Live(
        console=console, screen=True, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
    ) as screen:
        while True:
            screen.update(shown, refresh=True)
            time.sleep(seconds)
            try:
                shown = look(console)
            except LakewardenError as error:
                shown = Group(Text(error.in_full, style="red"))


def _drawn(panels: Sequence[Panel], width: int) -> Iterator[Text | Table]:
    for panel in panels:
        yield Text(panel.title, style="bold reverse")
        yield table_of(panel.shown, fitting(panel.shown, width)) if panel.shown.rows else Text(panel.empty)
        yield Text()


def table_of(shown: Shown, kept: tuple[str, ...]) -> Table:
    """The columns `kept` of a table as rich draws it."""
    grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for name in kept:
        right = name in shown.numbers
        grid.add_column(
            name.upper(),
            no_wrap=not wraps(name, shown),
            overflow="fold",
            justify="right" if right else "left",
        )
    places = [shown.columns.index(name) for name in kept]
    for row in shown.rows:
        grid.add_row(*(_cell(row[place]) for place in places))
    return grid


def _cell(text: str) -> Text:
    return Text(text, style=_COLOURS.get(text, ""))


def _console() -> Console:
    return Console(highlight=False)
