"""`lakewarden system backup | verify | repair | leave`."""

from typing import Annotated

import typer

from lakewarden.catalog.errors import ConsentError, ExitCode, LakewardenError
from lakewarden.catalog.policy.original_properties import is_leaving
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.catalog.system.recovery.backup import plan_backup, run_backup
from lakewarden.catalog.units import count_of
from lakewarden.daemon.cli.commands.leaving import foreseen_as_row, tell_left
from lakewarden.daemon.cli.common import DryRun, Home, Yes, calling, confirm, opened, opened_anyhow
from lakewarden.daemon.cli.lazy import commands
from lakewarden.daemon.cli.output import Format, Output, note, plain, show, show_one
from lakewarden.daemon.usecases import declared
from lakewarden.daemon.usecases.audit import run
from lakewarden.daemon.usecases.runs.leaving import finish, foresee, leave, those_who_leave
from lakewarden.daemon.usecases.runs.purge import give_name_back
from lakewarden.daemon.usecases.system_recovery import (
    backup_at,
    mend,
    next_step,
    planned,
    problems,
    refuse_managed,
    step_tables,
)

app = commands("Back up, verify and repair the system tables; leave.")

FromBackup = Annotated[
    str | None,
    typer.Option("--backup", help="A folder that `system backup` wrote, to compare with and restore from."),
]
Destination = Annotated[
    str, typer.Argument(help="A folder outside the system location and every managed table.")
]


@app.command()
def backup(
    destination: Destination, dry_run: DryRun = False, home: Home = None, output: Output = Format.TABLE
) -> None:
    """Copy all seven tables as of one moment; a second backup copies only what is new."""
    services = opened(home)
    place = canonical(destination)
    plan = plan_backup(services.store, place, services.storage(place))
    refuse_managed(services, place)
    summary = {
        "destination": place,
        "files": len(plan.files),
        "bytes": sum(file.size_bytes for file in plan.files),
        "files_already_there": len(plan.known),
    }
    if not dry_run:
        with run(services, calling(services), declared.BACKUP, place, on=f"backup {place}"):
            run_backup(services.store, plan, services.storage(place), clock=services.clock)
    note("Nothing was copied." if dry_run else "Backed up.")
    show_one(summary, format=output)


@app.command()
def verify(source: FromBackup = None, home: Home = None, output: Output = Format.TABLE) -> None:
    """Read every row of every system table, whatever state they are in. Exit 3 if something is wrong."""
    services = opened_anyhow(home)
    origin = backup_at(services, source)
    found = problems(services, origin)
    rows = [
        {
            "table": f"lakewarden.{one.table.name}",
            "damage": one.damage,
            "message": one.message,
            "path": one.path,
            "rows": one.rows,
        }
        for one in found
    ]
    show(rows, columns=["table", "damage", "message"], format=output)
    if rows:
        note(next_step(services, found, source=source, home=home))
        raise typer.Exit(ExitCode.PARTLY)
    note("All seven system tables are sound.")


@app.command()
def repair(
    source: FromBackup = None,
    accept_loss: Annotated[
        bool, typer.Option("--accept-loss", help="Agree to lose what no backup has.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Repair what `verify` finds: show the plan, ask for your consent, then repair. Stop the daemon first.

    With --backup, damaged and lost tables are restored from it, even all of them. What was there is kept aside.
    At the end everything is verified again: exit 3 if damage is left, which is then named.
    """
    services = opened_anyhow(home)
    origin = backup_at(services, source)
    plan = planned(services, origin)
    rows = [
        {"step": type(step).__name__, "table": step_tables(step), "loses": step.loses} for step in plan.steps
    ]
    rows += [
        {
            "step": "none: beyond repair",
            "table": f"lakewarden.{problem.table.name}",
            "loses": problem.message,
        }
        for problem in plan.beyond
    ]
    show(rows, columns=["step", "table", "loses"], format=output)
    if plan.beyond and origin is None:
        note("A backup can mend what is beyond repair: name it with --backup.")
    if dry_run or not plan.steps:
        note("Nothing was changed.")
        raise typer.Exit(ExitCode.PARTLY if plan.beyond else ExitCode.OK)
    if plan.losses and not accept_loss:
        raise ConsentError(
            "The repair gives something up: " + " ".join(plan.losses),
            hint="Agree with --accept-loss." if origin else "Name a --backup, or agree with --accept-loss.",
        )
    confirm(f"Carry out {len(plan.steps)} steps?", yes=yes)
    said = mend(services, calling(services), plan, origin, consent=accept_loss)
    left = problems(services, origin)
    note(f"Repaired in part: {count_of(len(left), 'problem')} left." if left else "Repaired.")
    for sentence in said:
        note(sentence)
    if left:
        for one in left:
            note(f"lakewarden.{one.table.name}: {one.message}")
        note(next_step(services, left, source=source, home=home))
        raise typer.Exit(ExitCode.PARTLY)


@app.command("leave")
def leave_all(
    dry_run: DryRun = False, yes: Yes = False, home: Home = None, output: Output = Format.TABLE
) -> None:
    """Drop every table from management and give its properties their old values back. Files, logs and rows stay.

    Exit 3 if some table could not be dropped, or has not got its properties back yet: repeat the command.
    """
    services = opened(home)
    foreseen = [foresee(services, row) for row in those_who_leave(services)]
    if dry_run or not foreseen:
        rows = [
            {"name": one.row.name, "location": one.row.location, **foreseen_as_row(one)} for one in foreseen
        ]
        show(rows, columns=["name", "sets", "unsets", "leaves", "trouble"], format=output)
        note("Nothing was changed.")
        return
    confirm(f"Drop {len(foreseen)} tables from management?", yes=yes)
    gone, refused, caller = [], [], calling(services)
    for one in foreseen:
        try:
            with run(services, caller, declared.LEAVE, one.row.table_id, on=one.row.name) as actor:
                give_name_back(services, one.row, tell=note)
                if not is_leaving(one.row):
                    leave(services, one, actor=actor)
            gone.append(one)
        except LakewardenError as error:
            refused.append(one.row.name)
            note(f"{one.row.name} was not dropped: {error.in_full}")
    lefts = finish(services, gone, actor=caller, tell=note)
    for left in lefts:
        tell_left(left)
    show([plain(left.row) for left in lefts], columns=["name", "state", "state_reason"], format=output)
    owed = [left for left in lefts if left.owed is not None]
    raise typer.Exit(ExitCode.PARTLY if refused or owed else ExitCode.OK)
