"""`lakewarden system backup | verify | repair`."""

from typing import Annotated

import typer

from lakewarden.catalog.access import Deed
from lakewarden.catalog.errors import ConsentError, ExitCode, UsageError
from lakewarden.catalog.storage import StorageOptions, canonical
from lakewarden.catalog.system.backup import plan_backup, read_backup, run_backup
from lakewarden.catalog.system.commits import Note
from lakewarden.catalog.system.repair import plan_repair
from lakewarden.catalog.system.repair import repair as repair_tables
from lakewarden.catalog.system.verify import verify as verify_tables
from lakewarden.daemon.audit import audited
from lakewarden.daemon.cli.common import DryRun, Home, Yes, confirm, opened
from lakewarden.daemon.cli.output import Format, Output, note, show, show_one

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Back up, verify and repair the system tables."
)

Destination = Annotated[str, typer.Argument(help="A folder outside the system location.")]


@app.command()
def backup(
    destination: Destination, dry_run: DryRun = False, home: Home = None, output: Output = Format.TABLE
) -> None:
    """Copy all seven tables, at versions of one moment; a second backup copies only what is new."""
    services = opened(home)
    place = canonical(destination)
    plan = plan_backup(services.store, place, services.storage(place))
    summary = {
        "destination": place,
        "files": len(plan.files),
        "bytes": sum(file.size_bytes for file in plan.files),
        "files_already_there": len(plan.known),
    }
    if not dry_run:
        with audited(services, Deed.SYSTEM, f"backup {place}"):
            run_backup(services.store, plan, services.storage(place), clock=services.clock)
    note("Nothing was copied." if dry_run else "Backed up.")
    show_one(summary, format=output)


@app.command()
def verify(home: Home = None, output: Output = Format.TABLE) -> None:
    """Read every row of every system table. Exit 3 if something is wrong."""
    problems = verify_tables(opened(home).store)
    rows = [
        {
            "table": f"lakewarden.{one.table.name}",
            "damage": one.damage,
            "message": one.message,
            "path": one.path,
            "rows": one.rows,
        }
        for one in problems
    ]
    show(rows, columns=["table", "damage", "message"], format=output)
    if rows:
        raise typer.Exit(ExitCode.PARTLY)
    note("All seven system tables are sound.")


@app.command()
def repair(
    source: Annotated[str | None, typer.Option("--backup", help="A backup to take lost files from.")] = None,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Agree to lose what no backup has.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Mend what `verify` finds: the plan first, then, with your consent, the repair."""
    services = opened(home)
    place = canonical(source) if source else None
    found = read_backup(place, services.storage(place)) if place else None
    if place and found is None:
        raise UsageError(
            f"There is no backup at {place}.", hint="Give the folder that `system backup` wrote."
        )
    plan = plan_repair(verify_tables(services.store), found)
    rows = [{"step": type(step).__name__, "loses": step.loses} for step in plan.steps]
    rows += [{"step": "none: beyond repair", "loses": problem.message} for problem in plan.beyond]
    show(rows, columns=["step", "loses"], format=output)
    if dry_run or not plan.steps:
        note("Nothing was changed.")
        raise typer.Exit(ExitCode.PARTLY if plan.beyond else ExitCode.OK)
    if plan.losses and not accept_loss:
        raise ConsentError(
            "The repair gives something up.", hint="Name a --backup, or agree with --accept-loss."
        )
    confirm(f"Carry out {len(plan.steps)} steps?", yes=yes)
    with audited(services, Deed.SYSTEM, "repair") as actor:
        repair_tables(
            services.store,
            plan,
            backup_location=place,
            backup_options=services.storage(place) if place else StorageOptions(),
            consent=accept_loss,
            now=services.clock.now(),
            note=Note(because="repair", actor=actor.name),
        )
    raise typer.Exit(ExitCode.PARTLY if plan.beyond else ExitCode.OK)
