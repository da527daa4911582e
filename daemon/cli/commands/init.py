"""`lakewarden init`."""

from typing import Annotated

import typer

from lakewarden.catalog.model.rows import Source
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.cli.common import Home, services_of
from lakewarden.daemon.cli.lazy import commands
from lakewarden.daemon.cli.output import Format, Output, note, show
from lakewarden.daemon.usecases.init import initialise

app = commands()


@app.command("init")
def init(
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over", help="Make another installation's entries in the metastore this one's: it is gone."
        ),
    ] = False,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Create the system tables. Needs neither a metastore nor a JVM. Running it again changes nothing."""
    services = services_of(home)
    done = initialise(services, services.user, take_over=take_over)
    note(f"{'Created' if done.created else 'Found'} the system tables of {services.settings.home}.")
    if done.metastore_note:
        note(done.metastore_note)
    own = (row for row in services.store.rows(TABLES).all() if row.source is Source.SELF)
    rows = sorted(own, key=lambda row: row.row)
    show(rows, columns=["row", "name", "format", "state", "owner", "location"], format=output)


@app.callback()
def _commands() -> None:
    """Set-up."""
