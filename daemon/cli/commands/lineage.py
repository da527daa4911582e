"""`lakewarden lineage show | declare | events | stream`; marks.py adds `mark` and `marks`."""

from enum import StrEnum
from typing import Annotated

import typer

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.lineage.queries import Direction
from lakewarden.catalog.lineage.streams.checkpoints import StreamCheckpoint, began_of
from lakewarden.catalog.lineage.streams.offsets import NOT_SAID
from lakewarden.catalog.model.rows import OnRollback
from lakewarden.catalog.registry.governance import declare_checkpoint, declare_dependency
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.catalog.units import printable
from lakewarden.daemon.cli.commands import marks
from lakewarden.daemon.cli.common import Home, Table, calling, opened
from lakewarden.daemon.cli.lazy import commands
from lakewarden.daemon.cli.output import Format, Output, note, show_one
from lakewarden.daemon.cli.output import show as show_rows
from lakewarden.daemon.telemetry.openlineage_events import events_on_record
from lakewarden.daemon.usecases import declared
from lakewarden.daemon.usecases.audit import run
from lakewarden.daemon.usecases.lineage.edges import named_edges
from lakewarden.daemon.usecases.lineage.stream_queries import learn_streams, require_checkpoint
from lakewarden.daemon.usecases.lineage.views import as_dot, as_mermaid, as_tree

app = commands("Show what tables were derived from, version by version.")


class LineageView(StrEnum):
    """How lineage is printed."""

    TREE = "tree"
    MERMAID = "mermaid"
    DOT = "dot"
    JSON = "json"


@app.command()
def show(
    where: Table,
    upstream: Annotated[
        bool, typer.Option("--upstream", help="Only what the table was derived from.")
    ] = False,
    downstream: Annotated[bool, typer.Option("--downstream", help="Only what was derived from it.")] = False,
    versions: Annotated[
        bool,
        typer.Option("--versions", help="Show every version edge, not only the newest between two tables."),
    ] = False,
    home: Home = None,
    output: Annotated[
        LineageView, typer.Option("--output", "-o", help="How to print it.")
    ] = LineageView.TREE,
) -> None:
    """Show the tables that a table was derived from, and those derived from it, with the versions read and written."""
    services = opened(home)
    row = services.registry.resolve(where, gone=True)
    direction = Direction.BOTH
    if upstream is not downstream:
        direction = Direction.UPSTREAM if upstream else Direction.DOWNSTREAM
    edges = named_edges(services.store, row, direction, versions=versions)
    match output:
        case LineageView.TREE:
            lines = as_tree(row.name, edges, direction)
        case LineageView.MERMAID:
            lines = as_mermaid(edges)
        case LineageView.DOT:
            lines = as_dot(edges)
        case LineageView.JSON:
            show_one({"table_id": row.table_id, "name": row.name, "edges": edges}, format=Format.JSON)
            return
    for line in lines:
        typer.echo(printable(line))
    if not edges:
        note(
            "No lineage is on record; the daemon writes it down when it sees a table move. "
            "A plan reads the logs too."
        )


@app.command()
def declare(
    where: Table,
    upstream: Annotated[str, typer.Option("--upstream", help="The table it is derived from.")],
    on_rollback: Annotated[
        OnRollback | None,
        typer.Option(
            "--on-rollback",
            help="What a rollback of the upstream table does here: block (it needs this owner's consent), "
            "plan (it is planned and waits), cascade (it is done).",
        ),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the declaration back.")] = False,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Declare that a table is derived from another, and what a rollback there does here."""
    if remove == (on_rollback is not None):
        raise UsageError(
            "A declaration takes either --on-rollback or --remove.", hint="--on-rollback plan, or --remove."
        )
    services = opened(home)
    with run(services, calling(services), declared.DECLARE, where) as actor:
        row = declare_dependency(services.registry, where, upstream, on_rollback, actor=actor)
    show_one({"name": row.name, "dependencies": row.dependencies}, format=output)


@app.command()
def events(
    where: Annotated[
        str | None,
        typer.Argument(
            metavar="[TABLE]", help="db.table, a path, a URI or a table_id; without it, all tables."
        ),
    ] = None,
    since_version: Annotated[
        int | None,
        typer.Option("--since-version", min=0, help="Only versions of the table from this one on."),
    ] = None,
    home: Home = None,
) -> None:
    """Print the OpenLineage events of every version on record, as the daemon sends them, one JSON object per line."""
    if since_version is not None and where is None:
        raise UsageError("--since-version is about one table.", hint="lakewarden lineage events TABLE.")
    services = opened(home)
    table_id = None if where is None else services.registry.resolve(where, gone=True).table_id
    found = events_on_record(services.store, services.settings, table_id=table_id, since=since_version or 0)
    told = False
    for event in found:
        typer.echo(event.text)
        told = True
    if not told:
        note("No version is on record; the daemon writes them down when it sees a table move.")


@app.command()
def stream(
    where: Table,
    checkpoint: Annotated[
        str | None,
        typer.Option("--checkpoint", help="The checkpoint folder of a query that writes the table."),
    ] = None,
    starting_version: Annotated[
        str | None,
        typer.Option(
            "--starting-version",
            help="What the query began with: the value of its option `startingVersion`, or `none` if "
            "that was not set. Without it, all that its source ever held counts as read by its first batch.",
        ),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take the declaration back.")] = False,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Show the streaming queries that write a table and how many batches are known, or declare a checkpoint."""
    if checkpoint is None and (remove or starting_version is not None):
        raise UsageError("Which checkpoint?", hint="Name its folder with --checkpoint.")
    services = opened(home)
    if checkpoint is not None:
        began = NOT_SAID if starting_version is None else began_of(starting_version)
        folder = StreamCheckpoint(location=canonical(checkpoint), began=began)
        with run(services, calling(services), declared.STREAM, where) as actor:
            if not remove:
                require_checkpoint(services, folder.location)
            declare_checkpoint(services.registry, where, folder, remove=remove, actor=actor)
    found = learn_streams(services, services.registry.resolve(where))
    columns = ("query_id", "checkpoint", "starting_version", "batches", "known")
    show_rows(found, format=output, columns=columns)
    if not found:
        note("No stream is known to write it; --checkpoint declares one.")


marks.add_to(app)
