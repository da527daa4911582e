"""`lakewarden metastore diff | sync`."""

from typing import Annotated

import typer

from lakewarden.catalog.errors import ExitCode, LakewardenError
from lakewarden.catalog.model.rows import Action
from lakewarden.daemon.cli.common import DryRun, Home, calling, opened
from lakewarden.daemon.cli.lazy import commands
from lakewarden.daemon.cli.list_commands import ListCommand
from lakewarden.daemon.cli.output import Format, Output, note, show
from lakewarden.daemon.usecases import declared
from lakewarden.daemon.usecases.audit import run
from lakewarden.daemon.usecases.metastore import drifts
from lakewarden.daemon.usecases.runs.orders import order_run
from lakewarden.daemon.usecases.runs.waiting import raise_for, run_and_wait
from lakewarden.jobs.actions.spec import Order

app = commands("Compare tables with the Hive metastore and sync them.")
Where = Annotated[str | None, typer.Argument(help="One table; without it, all tables.")]
COLUMNS = ("name", "aspect", "message")


@app.command(cls=ListCommand)
def diff(where: Where = None, home: Home = None, output: Output = Format.TABLE) -> None:
    """Show where the metastore's entries differ from the tables' logs. Changes nothing."""
    found = list(drifts(opened(home), where))
    show(found, columns=COLUMNS, format=output)
    if not found:
        note("The metastore agrees.")


@app.command(cls=ListCommand)
def sync(
    where: Where = None, dry_run: DryRun = False, home: Home = None, output: Output = Format.TABLE
) -> None:
    """Make the entries agree with the tables, by compare-and-set. Exit 3 if some could not be changed."""
    services = opened(home)
    found = list(drifts(services, where))
    show(found, columns=COLUMNS, format=output)
    if dry_run:
        note("Nothing was changed.")
        return
    failed, caller = 0, calling(services)
    for table_id in dict.fromkeys(one.table_id for one in found if one.aspect not in ("entry", "obstacle")):
        row = services.registry.get(table_id)
        try:
            with run(services, caller, declared.SYNC, row.table_id, on=row.name) as actor:
                request = order_run(services, row, Order(action=Action.SYNC), actor=actor)
                raise_for(run_and_wait(services, request, tell=note))
        except LakewardenError as error:
            failed += 1
            note(f"{row.name}: {error.in_full}")
    if failed:
        raise typer.Exit(ExitCode.PARTLY)
