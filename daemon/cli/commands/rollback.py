"""`lakewarden rollback ...`: undo a bad write together with everything that was derived from it."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Any

import typer

from lakewarden.catalog.errors import ExitCode
from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.model.rows import RollbackState
from lakewarden.catalog.policy.access import Caller
from lakewarden.catalog.registry.rollback_quarantine import release as release_table
from lakewarden.daemon.cli.commands.rollback_diff import diff_requests
from lakewarden.daemon.cli.commands.rollback_plan import PlanReport, show_plan
from lakewarden.daemon.cli.common import Home, Table, calling, opened, time_to_wait
from lakewarden.daemon.cli.lazy import commands
from lakewarden.daemon.cli.list_commands import LiveListing
from lakewarden.daemon.cli.output import Format, Output, note, show, show_one
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases import declared
from lakewarden.daemon.usecases.audit import run
from lakewarden.daemon.usecases.rollbacks.request import RollbackWish, consents_of, request_of
from lakewarden.daemon.usecases.rollbacks.rollback import rollbacks_of_services
from lakewarden.daemon.usecases.rollbacks.row_diff import compare_rows
from lakewarden.jobs.rollback.details_service import details_of
from lakewarden.jobs.rollback.journal.left_tainted import plan_for_the_left, plan_of, tables_left
from lakewarden.jobs.rollback.journal.progress import standing_of
from lakewarden.jobs.rollback.journal.steps import NO_VERSION
from lakewarden.jobs.rollback.journal.stored_plan import OnMoved, consents_asked, decode_plan
from lakewarden.jobs.rollback.plan.consents import Consent
from lakewarden.jobs.rollback.planning_service import Gathered
from lakewarden.jobs.rollback.report.details import Details
from lakewarden.jobs.rollback.report.next_steps import NextStep, plan_command, steps_from
from lakewarden.jobs.rollback.report.text import commands_in_words, not_in_plan, not_in_plan_as_json
from lakewarden.jobs.runs.row_diff import DiffRequest, RowDiff

app = commands("Undo a bad write and everything derived from it.")
Which = Annotated[str, typer.Argument(help="The rollback: its id or hash, or the first characters of one.")]
Consents = Annotated[
    list[str] | None,
    typer.Option(
        "--consent",
        metavar="KIND[=TABLE[@VERSIONS]]",
        help="Agree to what the plan lists of this kind, or to exactly this (collateral=db.t@7-9); "
        f"repeatable. Kinds: {', '.join(Consent)}.",
    ),
]
Timeout = Annotated[
    str | None,
    typer.Option(
        "--timeout",
        metavar="DURATION",
        help="Stop waiting after this time (30m), with exit code 3; the rollback goes on.",
    ),
]
Agreed = Annotated[
    list[str] | None, typer.Option("--agreed", help="The owner of this table agrees; repeatable.")
]
RemoveFiles = Annotated[
    list[str] | None,
    typer.Option("--remove-files", help="Only take the bad files out of this table; repeatable."),
]
Diffs = Annotated[
    list[str] | None,
    typer.Option(
        "--diff", help="Compare this table's rows with Spark: which go, which come back; repeatable."
    ),
]
Keys = Annotated[
    list[str] | None,
    typer.Option(
        "--key",
        metavar="[TABLE=]COLUMN[,COLUMN]",
        help="With --diff: the columns that identify a row; without, whole rows are compared. Repeatable.",
    ),
]
Samples = Annotated[int, typer.Option("--samples", help="With --diff: how many rows, or keys, to show.")]
STEP_COLUMNS = ("wave", "name", "kind", "from_version", "to_version", "state", "new_version", "message")


@app.command("plan")
def plan(
    where: Annotated[
        str | None, typer.Argument(help="db.table, a path, a URI or a table_id; not with --all-marked.")
    ] = None,
    to_version: Annotated[int | None, typer.Option("--to-version", min=0, help="Keep this version.")] = None,
    to_timestamp: Annotated[
        str | None, typer.Option("--to-timestamp", help="Keep what was head at this time (ISO 8601, UTC).")
    ] = None,
    bad: Annotated[
        list[int] | None, typer.Option("--bad", min=0, help="Undo only this version; repeatable.")
    ] = None,
    run_id: Annotated[str | None, typer.Option("--run", help="Undo only the commits of this run.")] = None,
    marked: Annotated[bool, typer.Option("--marked", help="Undo what is marked bad on this table.")] = False,
    all_marked: Annotated[
        bool, typer.Option("--all-marked", help="Undo what is marked bad on any table.")
    ] = False,
    cascade: Annotated[
        bool, typer.Option("--cascade", help="Include tables whose dependency says `plan`.")
    ] = False,
    consent: Consents = None,
    agreed: Agreed = None,
    remove_files: RemoveFiles = None,
    reapply: Annotated[
        bool, typer.Option("--reapply", help="Add lost clean appends again after the restore.")
    ] = False,
    on_moved: Annotated[
        OnMoved, typer.Option("--on-moved", help="If others write meanwhile: extend it, or take all back.")
    ] = OnMoved.EXTEND,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print the plan as a flowchart.")] = False,
    diff: Diffs = None,
    key: Keys = None,
    samples: Samples = 10,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Show what would be undone, and to which versions. Changes no table. Exit code 4: it needs a consent."""
    services = opened(home)
    wanted = RollbackWish(
        where=where,
        version=to_version,
        timestamp=to_timestamp,
        bad=tuple(bad or ()),
        run=run_id,
        marked=marked,
        all_marked=all_marked,
        cascade=cascade,
        consents=tuple(consent or ()),
        agreed=tuple(agreed or ()),
        remove_files=tuple(remove_files or ()),
        reapply=reapply,
    )
    caller = calling(services)
    found = _planned(services, caller, wanted, on_moved)
    told = PlanReport(plan=found.plan, details=details_of(found), caller=caller, on_moved=on_moved, home=home)
    asked = diff_requests(services.registry, found.plan, diff or (), key or (), samples=samples)
    show_plan(told, output, mermaid=mermaid, diffs=_compared(services, asked))
    if not found.plan.applicable:
        raise typer.Exit(ExitCode.PRECONDITION)


@app.command("apply")
def apply_(
    plan_hash: Annotated[str, typer.Argument(metavar="HASH", help="The hash that `plan` printed.")],
    timeout: Timeout = None,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Apply a plan, if it would still be the same today, and wait until it is done. Exit code 3: not done
    within --timeout; 4: it was taken back."""
    seconds = time_to_wait(timeout)
    services = opened(home)
    rollbacks = rollbacks_of_services(services, timeout=seconds)
    with run(
        services,
        calling(services),
        declared.APPLY,
        plan_hash,
        rows=lambda: rollbacks.planned_tables(plan_hash),
        on=f"apply {plan_hash}",
    ) as actor:
        done = rollbacks.apply(plan_hash, actor=actor, tell=note)
    _show(done, output)


@app.command("resume")
def resume(
    which: Which,
    consent: Consents = None,
    timeout: Timeout = None,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Continue a rollback that was interrupted, or that stopped because somebody wrote meanwhile."""
    seconds = time_to_wait(timeout)
    services = opened(home)
    rollbacks = rollbacks_of_services(services, timeout=seconds)
    with run(
        services,
        calling(services),
        declared.GO_ON,
        which,
        rows=lambda: rollbacks.tables(which),
        on=f"resume {which}",
    ) as actor:
        agreed = consents_of(services.registry, consent or ())
        done = rollbacks.resume(which, agreed, actor=actor, tell=note)
    _show(done, output)


@app.command("undo")
def undo(
    which: Which,
    leave: Annotated[
        bool, typer.Option("--leave", help="End an undo that stopped: what was written to stays as it is.")
    ] = False,
    timeout: Timeout = None,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Make the old heads the heads again, as long as they are kept. Exit code 3: not done within --timeout."""
    seconds = time_to_wait(timeout)
    services = opened(home)
    rollbacks = rollbacks_of_services(services, timeout=seconds)
    with run(
        services,
        calling(services),
        declared.UNDO,
        which,
        rows=lambda: rollbacks.tables(which),
        on=f"undo {which}",
    ) as actor:
        done = rollbacks.undo(which, leave=leave, actor=actor, tell=note)
    _show(done, output)


@app.command("release")
def release(where: Table, home: Home = None, output: Output = Format.TABLE) -> None:
    """Lift the quarantine of a table that a rollback had quarantined: it is good again."""
    services = opened(home)
    with run(services, calling(services), declared.RELEASE, where, on=f"release {where}") as actor:
        row = release_table(services.registry, where, actor=actor)
    show_one({"name": row.name, "state": row.state, "state_reason": row.state_reason}, format=output)


@app.command("list", cls=LiveListing)
def list_(
    state: Annotated[RollbackState | None, typer.Option("--state", help="Only those in this state.")] = None,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """List every plan and rollback, newest first: its table, the version it goes back to, and how far it is."""
    every = reversed(rollbacks_of_services(opened(home)).journal.all())
    columns = [
        "rollback_id",
        "name",
        "to_version",
        "state",
        "tables",
        "progress",
        "actor",
        "recorded_at",
        "undo_until",
    ]
    rows = [
        {**_summary(one), "to_version": _version(one.head.to_version), "progress": _progress(one)}
        for one in every
        if state in (None, one.head.state)
    ]
    show(rows, columns=[*columns, "left", "message"], format=output)


@app.command("show")
def show_(
    which: Which,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print its plan as a flowchart.")] = False,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Show one rollback: its plan, how far each step is, and until when it can be undone."""
    services = opened(home)
    found = rollbacks_of_services(services).journal.find(which)
    if mermaid or (output is Format.TABLE and found.head.state is RollbackState.PLANNED):
        stored = decode_plan(found.head.payload or "")
        told = PlanReport(
            plan=stored.plan,
            details=stored.details,
            caller=calling(services),
            on_moved=stored.on_moved,
            home=home,
        )
        show_plan(told, output, mermaid=mermaid)
        return
    _show(found, output)


def _planned(services: Services, caller: Caller, wanted: RollbackWish, on_moved: OnMoved) -> Gathered:
    rollbacks, where = rollbacks_of_services(services), wanted.where or "what is marked bad"
    request = cache(lambda: request_of(services.registry, wanted))
    with run(
        services, caller, declared.PLAN, where, rows=lambda: rollbacks.seeds(request()), on=f"plan {where}"
    ) as actor:
        return rollbacks.plan(request(), actor=actor, on_moved=on_moved)


def _compared(services: Services, asked: Sequence[DiffRequest]) -> Callable[[], tuple[RowDiff, ...]]:
    """What compares the rows when it is called: people read the plan while Spark starts."""
    return lambda: compare_rows(services, asked, tell=note) if asked else ()


def _show(rollback: Rollback, output: Format) -> None:
    steps, stored = [_step(rollback, number) for number in range(len(rollback.steps))], plan_of(rollback)
    if output is not Format.TABLE:
        choices = [{"what": one.what, "command": one.command} for one in _ways_on(rollback)]
        told = {**_summary(rollback), "statement": _statement(rollback)}
        told |= not_in_plan_as_json(Details() if stored is None else stored.details)
        show_one({**told, "steps": steps, "next_choices": choices}, format=output)
        return
    show(steps, columns=STEP_COLUMNS, format=output)
    until = rollback.head.undo_until if rollback.head.state is RollbackState.DONE else None
    if rollback.is_group:
        until = None
        note(f"A statement over several tables: {_statement(rollback)}")
    window = "" if until is None else f"; it can be undone until {until:%Y-%m-%d %H:%M} UTC"
    state = (
        "undone"
        if rollback.head.state is RollbackState.COMPENSATED and rollback.head.undo
        else rollback.head.state
    )
    why = "" if rollback.head.message is None else f": {rollback.head.message}"
    note(f"Rollback {rollback.rollback_id} is {state}{why}{window}")
    if left := _left(rollback):
        note(f"Left as they were, though they hold, or may hold, what was made of it: {', '.join(left)}.")
    if stored is not None:
        for what, text in not_in_plan(stored.plan, stored.details):
            note(f"{what.capitalize()}: {text}")
    for line in commands_in_words(_ways_on(rollback)):
        note(line)


def _left(rollback: Rollback) -> list[str]:
    return [one.name for one in tables_left(rollback)]


def _ways_on(rollback: Rollback) -> tuple[NextStep, ...]:
    again = plan_for_the_left(rollback)
    if again is not None:
        return (
            NextStep(what="see what undoes that in the tables that were left", command=plan_command(again)),
        )
    return steps_from(rollback, consents_asked(rollback))


def _statement(rollback: Rollback) -> str | None:
    """The text of a statement over several tables; None for a rollback."""
    return decode_plan(rollback.head.payload or "").statement if rollback.is_group else None


def _summary(rollback: Rollback) -> dict[str, Any]:
    head = rollback.head
    return {
        "rollback_id": head.rollback_id,
        "hash": head.plan_hash,
        "name": head.name,
        "state": head.state,
        "undo": head.undo,
        "tables": _tables(rollback),
        "actor": head.actor,
        "recorded_at": head.recorded_at,
        "undo_until": head.undo_until,
        "message": head.message,
        "left": _left(rollback),
    }


def _tables(rollback: Rollback) -> int:
    """How many tables it changes; a plan has no steps yet, and says so itself."""
    if rollback.steps or rollback.is_group or rollback.head.payload is None:
        return rollback.tables
    return sum(table.acts for table in decode_plan(rollback.head.payload).plan.tables)


def _progress(rollback: Rollback) -> str | None:
    return standing_of(rollback).text.partition(";")[0] if rollback.steps else None


def _version(version: int) -> int | None:
    return None if version == NO_VERSION else version


def _step(rollback: Rollback, number: int) -> dict[str, Any]:
    row = rollback.steps[number]
    names = ("step", "wave", "table_id", "name", "kind", "from_version", "to_version", "state", "new_version")
    told = {name: getattr(row, name) for name in names}
    return {**told, "to_version": _version(row.to_version), "message": row.message}
