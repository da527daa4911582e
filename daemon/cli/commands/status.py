"""`lakewarden status | why`."""

import typer

from lakewarden.catalog.system.port import HEALTH
from lakewarden.catalog.validation.reverted_reads import READS_UNDONE
from lakewarden.daemon.cli.common import Home, Table, opened
from lakewarden.daemon.cli.output import Format, Output, note, show, show_one
from lakewarden.daemon.usecases.outlook import outlook_of
from lakewarden.daemon.usecases.status import status_of
from lakewarden.jobs.planning.explain import explain

app = typer.Typer(rich_markup_mode=None)


@app.command()
def status(home: Home = None, output: Output = Format.TABLE) -> None:
    """Who leads, what is managed, what needs attention."""
    show_one(status_of(opened(home)), format=output)


@app.command()
def why(where: Table, home: Home = None, output: Output = Format.TABLE) -> None:
    """For every kind of work: is it due on this table, and why or why not."""
    services = opened(home)
    row = services.desk.resolve(where, gone=True)
    answers = explain(outlook_of(services, row.table_id))
    show(answers, columns=["action", "verdict", "until", "because"], format=output)
    health = services.store.rows(HEALTH).get(row.table_id)
    for finding in health.findings if health is not None else ():
        if finding.check == READS_UNDONE:
            note(finding.message)
