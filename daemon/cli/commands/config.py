"""`lakewarden config show`."""

import typer

from lakewarden.daemon import callers
from lakewarden.daemon.cli.common import Home
from lakewarden.daemon.cli.listing import Listing
from lakewarden.daemon.cli.output import Format, Output, show
from lakewarden.daemon.installation.services import open_services

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Every setting with its value, unit and origin."
)


@app.command("show", cls=Listing)
def config_show(home: Home = None, output: Output = Format.TABLE) -> None:
    """Every setting: value, unit, where the value comes from, and why it exists."""
    rows = open_services(home=home, user=callers.real_user()).settings.explain()
    show(rows, columns=["key", "value", "unit", "origin", "doc"], format=output)


@app.callback()
def _commands() -> None:
    """Settings."""
