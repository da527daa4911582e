"""`lakewarden jobs ...`: planned, running and finished work."""

import sys
from datetime import UTC
from typing import Annotated, Final

import typer

from lakewarden.catalog.errors import PreconditionError, UsageError
from lakewarden.catalog.model.rows import Action, Outcome
from lakewarden.catalog.state.port import Run, RunState
from lakewarden.catalog.system.port import TABLES
from lakewarden.catalog.units import did_you_mean, printable
from lakewarden.daemon.cli.common import DryRun, Home, Table, calling, opened, time_to_wait
from lakewarden.daemon.cli.lazy import commands
from lakewarden.daemon.cli.list_commands import LiveListing
from lakewarden.daemon.cli.output import Format, Output, note, plain, show, show_one
from lakewarden.daemon.cli.runs import RUN_COLUMNS, as_facts, as_row
from lakewarden.daemon.usecases import declared
from lakewarden.daemon.usecases.audit import run
from lakewarden.daemon.usecases.outlook import outlook
from lakewarden.daemon.usecases.runs.dry_runs import foresee_run, is_foreseen
from lakewarden.daemon.usecases.runs.listing import run_of, runs_now
from lakewarden.daemon.usecases.runs.orders import order_run
from lakewarden.daemon.usecases.runs.run_lines import followed, id_of, lines_of, whole_log
from lakewarden.daemon.usecases.runs.waiting import raise_for, run_and_wait, wait_for
from lakewarden.jobs.actions.spec import Order
from lakewarden.jobs.planning.explain import explain

app = commands("Plan, run, list and cancel maintenance.")
_MOST: Final = 50


@app.command("plan", cls=LiveListing)
def plan_(
    explained: Annotated[
        bool, typer.Option("--explain", help="Include everything that is not due, with the reason.")
    ] = False,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Show what the daemon would start now. Changes nothing."""
    answers = [one for one in explain(outlook(opened(home))) if explained or one.verdict == "due"]
    show(answers, columns=["name", "action", "verdict", "until", "because"], format=output)


@app.command("run")
def run_(
    where: Table,
    action: Annotated[Action, typer.Argument(help="What to do.")],
    full: Annotated[bool, typer.Option("--full", help="Vacuum: list the folder, too.")] = False,
    consent: Annotated[
        bool, typer.Option("--consent", help="Agree to delete more than the size breaker allows.")
    ] = False,
    dry_run: DryRun = False,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Run one action on one table now, due or not, and wait for it. Pauses and holds are respected.

    --dry-run: properties, sync, statistics and log_care say what they would change; vacuum, compact and
    metadata_care make a recorded run that changes nothing in the table; the other actions have none.
    """
    services = opened(home)
    row = services.registry.resolve(where)
    order = Order(action=action, full=full, consented=consent, dry_run=dry_run)
    if dry_run and is_foreseen(action):
        with run(services, calling(services), declared.RUN_DRY, row.table_id) as actor:
            foreseen = foresee_run(services, row, order, actor=actor)
        note("Nothing was changed.")
        show(foreseen, columns=["name", "action", "version", "change", "message"], format=output)
        return
    with run(services, calling(services), declared.RUN, row.table_id, on=f"{action} {row.name}") as actor:
        request = order_run(services, row, order, actor=actor)
        result = run_and_wait(services, request, tell=note)
        raise_for(result)
    show_one({"run_id": request.run_id, "name": row.name, "action": action, **plain(result)}, format=output)


@app.command("list", cls=LiveListing)
def list_(
    where: Annotated[str | None, typer.Argument(help="Only this table.")] = None,
    action: Annotated[Action | None, typer.Option("--action", help="Only runs of this action.")] = None,
    outcome: Annotated[
        str | None,
        typer.Option(
            "--outcome", help="Only runs with this outcome or state: failed, succeeded, running, ..."
        ),
    ] = None,
    owner: Annotated[str | None, typer.Option("--owner", help="Only runs on tables of this owner.")] = None,
    unfinished: Annotated[bool, typer.Option("--unfinished", help="Only what is queued or running.")] = False,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """List runs: queued and running ones, then finished ones, newest first; 50 unless --limit is given."""
    _require_outcome(outcome)
    services = opened(home)
    table_id = services.registry.resolve(where, gone=True).table_id if where else None
    found = runs_now(services, table_id, finished=not unfinished)
    owned = None if owner is None else {row.table_id for row in services.store.rows(TABLES).find(owner=owner)}
    items = [
        one
        for one in (*map(as_row, found.unfinished), *map(plain, found.finished))
        if action in (None, one["action"])
        and outcome in (None, one["outcome"])
        and (owned is None or one["table_id"] in owned)
    ]
    show(items, columns=RUN_COLUMNS, format=output, limit=_MOST)


def _require_outcome(outcome: str | None) -> None:
    known = [*Outcome, *(state for state in RunState if state is not RunState.FINISHED)]
    if outcome is not None and outcome not in known:
        hint = did_you_mean(outcome, known, otherwise=f"One of {', '.join(known)}.")
        raise UsageError(f"There is no outcome {outcome!r}.", hint=hint)


@app.command("show")
def show_(run_id: str, home: Home = None, output: Output = Format.TABLE) -> None:
    """Show everything about one run (the first characters of its id are enough)."""
    services = opened(home)
    found = run_of(services, run_id)
    if isinstance(found, Run) and output is Format.TABLE:
        show_one(as_facts(services, found), format=output)
        return
    show_one(found, format=output)


@app.command("logs")
def logs(
    run_id: Annotated[str, typer.Argument(help="Its id; the first characters are enough.")],
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing new lines until the run has ended.")
    ] = False,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Show what one run logged; kept for a week. Spark's own messages are in its worker's log, which is named."""
    services, as_text = opened(home), output is Format.TABLE
    if follow and not as_text:
        raise UsageError(
            "-f prints lines of text.", hint="Leave -o out, or -f: then it is what there is now."
        )
    found = run_of(services, run_id)
    if not as_text:
        show(lines_of(services, found), columns=["at", "level", "message"], format=output)
        return
    if follow and isinstance(found, Run) and found.worker is None:
        note("No worker has begun it yet.")
    empty = True
    for line in followed(services, found) if follow else lines_of(services, found):
        typer.echo(printable(f"{line.at.astimezone(UTC):%Y-%m-%d %H:%M:%S} {line.level:<8} {line.message}"))
        sys.stdout.flush()
        empty = False
    if empty:
        note("No line of it is kept: it has not begun, ended more than a week ago, or is none of a worker's.")
    ended = run_of(services, id_of(found)) if follow else found
    if (where := whole_log(services, ended)) is not None:
        note(where)


@app.command("wait")
def wait(
    run_id: Annotated[str, typer.Argument(help="Its id; the first characters are enough.")],
    timeout: Annotated[
        str | None,
        typer.Option("--timeout", help="Stop waiting after this time, such as '10 min', with exit code 3."),
    ] = None,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Wait until a run has ended, and exit as it did. If you stop waiting, the run goes on."""
    services, longest = opened(home), time_to_wait(timeout)
    found = run_of(services, run_id)
    result = wait_for(services, found, timeout=longest, tell=note)
    raise_for(result)
    request = found.request if isinstance(found, Run) else found
    show_one(
        {"run_id": request.run_id, "name": request.name, "action": request.action, **plain(result)},
        format=output,
    )


@app.command("cancel")
def cancel(run_id: str, home: Home = None, output: Output = Format.TABLE) -> None:
    """Cancel a run: a queued one at once, a running one at its next safe point."""
    services = opened(home)
    found = run_of(services, run_id)
    if not isinstance(found, Run):
        raise PreconditionError(f"Run {found.run_id} is finished.", hint="There is nothing left to cancel.")
    request = found.request
    with run(
        services,
        calling(services),
        declared.CANCEL,
        request.table_id,
        rows=lambda: (services.store.rows(TABLES).get(request.table_id),),
        on=f"cancel {request.action} {request.name}",
    ):
        if not services.queue.cancel(request.run_id):
            raise PreconditionError(
                f"Run {request.run_id} is finished.", hint="There is nothing left to cancel."
            )
    note(f"Cancelled {request.action} of {request.name}.")
    if output is not Format.TABLE:
        now = services.queue.get(request.run_id) or found
        told = {"run_id": request.run_id, "name": request.name, "action": request.action, "state": now.state}
        show_one(told, format=output)
