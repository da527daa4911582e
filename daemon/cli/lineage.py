"""`lakewarden lineage show`."""

from enum import StrEnum
from typing import Annotated

import typer

from lakewarden.catalog.lineage.neighbours import Direction
from lakewarden.daemon.cli.common import Home, Table, opened
from lakewarden.daemon.cli.output import Format, note, show_one
from lakewarden.daemon.lineage import named_edges
from lakewarden.daemon.lineage_views import as_dot, as_mermaid, as_tree

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="What tables come from, version by version."
)


class View(StrEnum):
    """How lineage is printed."""

    TREE = "tree"
    MERMAID = "mermaid"
    DOT = "dot"
    JSON = "json"


@app.callback()
def _group() -> None:
    """What tables come from, version by version."""


@app.command()
def show(
    where: Table,
    upstream: Annotated[bool, typer.Option("--upstream", help="Only what the table comes from.")] = False,
    downstream: Annotated[bool, typer.Option("--downstream", help="Only what comes from it.")] = False,
    versions: Annotated[
        bool, typer.Option("--versions", help="Every version edge, not the newest of each two tables.")
    ] = False,
    home: Home = None,
    output: Annotated[View, typer.Option("--output", "-o", help="How to print it.")] = View.TREE,
) -> None:
    """The tables a table comes from, and those that come from it, with the versions that were read and written."""
    services = opened(home)
    row = services.desk.resolve(where, gone=True)
    direction = Direction.BOTH
    if upstream is not downstream:
        direction = Direction.UPSTREAM if upstream else Direction.DOWNSTREAM
    edges = named_edges(services.store, row, direction, versions=versions)
    match output:
        case View.TREE:
            lines = as_tree(row.name, edges, direction)
        case View.MERMAID:
            lines = as_mermaid(edges)
        case View.DOT:
            lines = as_dot(edges)
        case View.JSON:
            show_one({"table_id": row.table_id, "name": row.name, "edges": edges}, format=Format.JSON)
            return
    for line in lines:
        typer.echo(line)
    if not edges:
        note("No lineage is on record; the daemon writes it down when it sees a table move.")
