"""`lakewarden tables list | show | validate | history`: looking, without a JVM."""

import sys
from typing import Annotated, Final

import typer

from lakewarden.catalog.errors import ExitCode, LakewardenError
from lakewarden.catalog.formats.port import Reference
from lakewarden.catalog.formats.registry import reader_of
from lakewarden.catalog.model.bucket_layout import BucketLayout, layout_in
from lakewarden.catalog.model.rows import GONE, HealthRow, Severity, TableRow
from lakewarden.catalog.system.export import write_json
from lakewarden.catalog.system.port import HEALTH, SCHEMAS
from lakewarden.daemon.cli.common import Home, Table, calling, opened
from lakewarden.daemon.cli.format import ListView, view
from lakewarden.daemon.cli.list_commands import ListCommand, LiveListing
from lakewarden.daemon.cli.output import Format, Output, note, plain, show, show_one
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.tables import TableFilter, Work, fleet
from lakewarden.daemon.usecases.unmatched import unmatched_filters
from lakewarden.daemon.usecases.validation import validate_table

__all__ = ["add_to"]

_MOST_VERSIONS: Final = 20
LIST_COLUMNS = (
    "row",
    "name",
    "state",
    "stopped",
    "version",
    "files",
    "bytes",
    "owner",
    "small_files",
    "rows",
    "findings",
)


def add_to(app: typer.Typer) -> None:
    """Add these commands to the group."""
    app.command("list", cls=LiveListing)(list_tables)
    app.command("show")(show_table)
    app.command("validate", cls=ListCommand)(validate)
    app.command("history", cls=LiveListing)(history)


def list_tables(
    names: Annotated[
        str | None,
        typer.Argument(metavar="PATTERN", help="Only tables with a name like this: 'db.*', '*_raw'."),
    ] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Only tables of this database.")
    ] = None,
    owner: Annotated[str | None, typer.Option("--owner", help="Only tables of this owner.")] = None,
    state: Annotated[str | None, typer.Option("--state", help="Only tables in this state.")] = None,
    format: Annotated[str | None, typer.Option("--format", help="Only tables of this format.")] = None,
    finding: Annotated[
        str | None,
        typer.Option(
            "--finding", metavar="CHECK", help="Only tables with a finding of this check; *: of any check."
        ),
    ] = None,
    stopped: Annotated[
        Work | None,
        typer.Option("--stopped", help="Only tables that are paused, or held, by themselves or by a scope."),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Include dropped and purged tables.")] = False,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """List managed tables with their health; a table has to match every filter."""
    wanted = TableFilter(
        names=names,
        namespace=namespace,
        owner=owner,
        state=state,
        format=format,
        finding=finding,
        stopped=stopped,
        gone=all_,
    )
    store = opened(home).store
    found = fleet(store, wanted)
    for said in unmatched_filters(store, wanted) if not found.num_rows else ():
        note(said)
    if output is Format.JSON and view() == ListView():
        write_json(found, sys.stdout.buffer)
        return
    show(found.to_pylist(), columns=LIST_COLUMNS, format=output)


def show_table(where: Table, home: Home = None, output: Output = Format.TABLE) -> None:
    """Show one table: its row, its health, its findings."""
    services = opened(home)
    row = services.registry.resolve(where, gone=True)
    health = services.store.rows(HEALTH).get(row.table_id)
    extra = (
        {} if health is None else {key: value for key, value in plain(health).items() if key != "table_id"}
    )
    references, buckets = _references(services, row), _buckets(services, row, health)
    if references:
        extra["references"] = plain(references)
    if buckets is not None:
        extra["buckets"] = str(buckets)
    show_one({**plain(row), **extra, "name": row.name}, format=output)


def _references(services: Services, row: TableRow) -> tuple[Reference, ...]:
    """The table's branches and tags as they are now; what cannot be told is said."""
    if row.state in GONE or row.location is None:
        return ()
    try:
        return reader_of(services.readers, row.format).references(row.location)
    except LakewardenError as error:
        note(f"Its branches and tags cannot be told: {error}")
        return ()


def _buckets(services: Services, row: TableRow, health: HealthRow | None) -> BucketLayout | None:
    """How the table's rows are spread at the version that its health is of; what cannot be told is said."""
    if row.state in GONE or row.location is None or health is None or health.version is None:
        return None
    try:
        return layout_in(
            reader_of(services.readers, row.format).properties(row.location, version=health.version)
        )
    except LakewardenError as error:
        note(f"Its buckets cannot be told: {error}")
        return None


def validate(where: Table, home: Home = None, output: Output = Format.TABLE) -> None:
    """Run every check on one table now, the daily ones too. An error quarantines the table: exit 3."""
    services = opened(home)
    findings = validate_table(services, calling(services), where)
    show(findings, columns=["check", "severity", "since", "message"], format=output)
    if not findings:
        note("Every check passed.")
    if any(finding.severity is Severity.ERROR for finding in findings):
        raise typer.Exit(ExitCode.PARTLY)


def history(
    where: Table,
    schema: Annotated[bool, typer.Option("--schema", help="Schema versions instead of commits.")] = False,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Show the newest versions of a table from its log, or its schema versions; 20 unless --limit is given."""
    services = opened(home)
    row = services.registry.resolve(where)
    if schema:
        versions = sorted(
            services.store.rows(SCHEMAS).find(table_id=row.table_id), key=lambda one: -one.version
        )
        show(
            versions,
            columns=["version", "schema_id", "changed_at", "changed_by", "changes"],
            format=output,
            limit=_MOST_VERSIONS,
        )
        return
    location = row.location or ""
    reader = services.registry.reader_at(location, row.name)
    newest = reader.newest(location, count=view().offset + (view().limit or _MOST_VERSIONS))
    named = [name for name in ("branches", "tags") if any(getattr(one, name) for one in newest)]
    columns = [
        "version",
        "committed_at",
        "operation",
        *named,
        "added_files",
        "removed_files",
        "run_id",
        "engine",
    ]
    show(reversed(newest), columns=columns, format=output, limit=_MOST_VERSIONS)
