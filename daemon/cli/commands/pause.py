"""`lakewarden pause | resume`: one switch that stops everything."""

from typing import Annotated

import typer

from lakewarden.catalog.registry.governance import set_pause
from lakewarden.daemon.cli.common import Home, calling, opened, tell_empty_scope
from lakewarden.daemon.cli.lazy import commands
from lakewarden.daemon.cli.output import Format, Output, show_one
from lakewarden.daemon.usecases import declared
from lakewarden.daemon.usecases.audit import run
from lakewarden.daemon.usecases.runs.revocation import EVERYTHING, take_back_runs

app = commands()
Scope = Annotated[str, typer.Argument(help="A table, a namespace (db.*) or everything (*).")]


@app.command()
def pause(
    where: Scope = "*",
    reason: Annotated[
        str, typer.Option("--reason", help="Why it is paused, for others to see.")
    ] = "paused by hand",
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Stop all work on a table, a namespace (db.*) or everything (*); looking goes on."""
    services = opened(home)
    with run(services, calling(services), declared.PAUSE, where) as actor:
        row = set_pause(services.registry, where, reason, actor=actor)
    take_back_runs(services, row, EVERYTHING, f"{row.name} was paused ({reason})")
    tell_empty_scope(services, where)
    show_one({"name": row.name, "paused": row.paused}, format=output)


@app.command()
def resume(where: Scope = "*", home: Home = None, output: Output = Format.TABLE) -> None:
    """Lift a pause."""
    services = opened(home)
    with run(services, calling(services), declared.RESUME, where) as actor:
        row = set_pause(services.registry, where, None, actor=actor)
    tell_empty_scope(services, where)
    show_one({"name": row.name, "paused": row.paused}, format=output)
