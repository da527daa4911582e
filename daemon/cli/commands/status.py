"""`lakewarden status | top | why`."""

import sys
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

from lakewarden.catalog.errors import ExitCode, LakewardenError, UsageError
from lakewarden.catalog.system.port import HEALTH
from lakewarden.catalog.validation.installations import ANOTHER_INSTALLATION
from lakewarden.catalog.validation.reverted_reads import READS_REVERTED
from lakewarden.daemon.cli.common import Home, Table, opened, opened_anyhow
from lakewarden.daemon.cli.layout import Panel
from lakewarden.daemon.cli.lazy import commands
from lakewarden.daemon.cli.list_commands import LiveListing
from lakewarden.daemon.cli.output import (
    Format,
    Output,
    note,
    plain,
    show,
    show_one,
    show_panels,
    shown_as,
    watch,
)
from lakewarden.daemon.cli.runs import RUN_COLUMNS, as_row, newest_line
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.outlook import outlook_of
from lakewarden.daemon.usecases.runs.listing import newest_on_record, runs_now
from lakewarden.daemon.usecases.status import findings_by_check, own_status, status_of
from lakewarden.daemon.usecases.tables import fleet
from lakewarden.jobs.planning.explain import explain

app = commands()

_FACTS: Final = ("tables", "quarantined", "tables_paused", "tables_held", "queued", "running", "last_look_at")
_NOW: Final = ("name", "action", "outcome", "worker", "started_at", "because", "progress")
_FOUND: Final = ("check", "severity", "tables", "example", "message")
_RECENT: Final = 10


@app.command()
def status(
    check: Annotated[bool, typer.Option("--check", help="Exit with 3 if anything needs attention.")] = False,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Show who leads, what is managed, and what needs attention. If the database or the system tables do not answer,
    show what the home knows (cycles that fail, and why), then say so, with that error's exit code."""
    services = opened_anyhow(home)
    try:
        services.require_initialised()
        found = status_of(services)
    except LakewardenError:
        own = own_status(services.settings.home)
        if own.failed_cycles or own.left_out:
            show_one(own, format=output)
        raise
    show_one(found, format=output)
    if check and found.attention:
        raise typer.Exit(ExitCode.PARTLY)


@app.command(cls=LiveListing)
def why(where: Table, home: Home = None, output: Output = Format.TABLE) -> None:
    """Say for every kind of work whether it is due on this table, and why or why not."""
    services = opened(home)
    row = services.registry.resolve(where, gone=True)
    answers = explain(outlook_of(services, row.table_id))
    show(answers, columns=["action", "verdict", "until", "because"], format=output)
    health = services.store.rows(HEALTH).get(row.table_id)
    for finding in health.findings if health is not None else ():
        if finding.check in (READS_REVERTED, ANOTHER_INSTALLATION):
            note(finding.message)


@app.command("top")
def top(
    interval: Annotated[
        float, typer.Option("--interval", min=0.5, help="Seconds between two updates.")
    ] = 2.0,
    once: Annotated[bool, typer.Option("--once", help="Print it once and end.")] = False,
    home: Home = None,
) -> None:
    """Show live, until Ctrl-C: who leads, what needs attention, findings, current runs and how far they are, the
    latest runs."""
    services = opened(home)
    if once:
        show_panels(_panels(services))
        return
    if not sys.stdout.isatty():
        raise UsageError("A live view needs a terminal.", hint="--once prints it once.")
    watch(lambda: _panels(services), interval)


def _panels(services: Services) -> Sequence[Panel]:
    found = fleet(services.store)
    status = plain(status_of(services, found))
    leader = "Nobody leads" if status["leader"] is None else f"{status['leader']} leads"
    paused = "" if status["paused"] is None else f"; all is paused: {status['paused']}"
    attention = [{"attention": one} for one in status["attention"]]
    unfinished = [
        {**as_row(run), "progress": newest_line(services, run)}
        for run in runs_now(services, finished=False).unfinished
    ]
    recent = plain(newest_on_record(services, _RECENT))
    return (
        _panel(f"lakewarden: {leader}{paused}", [status], _FACTS),
        _panel("Needs attention", attention, ("attention",)),
        _panel("Findings", plain(findings_by_check(found)), _FOUND),
        _panel("Being done", unfinished, _NOW),
        _panel("Done last", recent, RUN_COLUMNS),
    )


def _panel(title: str, items: Sequence[dict[str, Any]], columns: Sequence[str]) -> Panel:
    return Panel(title=title, shown=shown_as(items, columns))
