"""`lakewarden tables ...`: come under management, look, leave."""

import io
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from lakewarden.catalog.errors import ConsentError, ExitCode, LakewardenError, UsageError
from lakewarden.catalog.metastore.lookup import parse_name
from lakewarden.catalog.model.rows import DELTA, Source, TableRow, TableState
from lakewarden.catalog.policy.access import Caller
from lakewarden.catalog.policy.carried_promises import carried
from lakewarden.catalog.policy.effective import parse_value
from lakewarden.catalog.policy.original_properties import is_leaving
from lakewarden.catalog.registry.registration import WantedTable
from lakewarden.catalog.registry.removal import check_drop
from lakewarden.catalog.registry.removal import rename as rename_table
from lakewarden.catalog.registry.service import Registered
from lakewarden.daemon.cli.commands import governance, table_queries
from lakewarden.daemon.cli.commands.leaving import show_drop, tell_left
from lakewarden.daemon.cli.common import DryRun, Home, Table, Yes, calling, confirm, opened
from lakewarden.daemon.cli.format import view
from lakewarden.daemon.cli.lazy import commands
from lakewarden.daemon.cli.output import Format, Output, note, plain, show, show_one
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases import declared
from lakewarden.daemon.usecases.audit import run
from lakewarden.daemon.usecases.onboarding.lists import Listed, kind_of, listed_at, read_list
from lakewarden.daemon.usecases.onboarding.patterns import discovered, found_at, is_pattern
from lakewarden.daemon.usecases.onboarding.registrations import (
    ListedOutcome,
    adopt_listed,
    foresee_listed,
    register_listed,
    register_one,
)
from lakewarden.daemon.usecases.onboarding.report import (
    COLUMNS,
    HEALTH_FOLLOWS,
    as_row,
    is_done,
    others_claim,
    summary,
    unrecorded,
    worth_a_line,
)
from lakewarden.daemon.usecases.runs.convert import (
    ConvertRequest,
    Foreseen,
    convert_table,
    foresee_conversion,
)
from lakewarden.daemon.usecases.runs.leaving import Leaving, finish, foresee, leave
from lakewarden.daemon.usecases.runs.purge import give_name_back, purge_table, stop_deletion, undrop_table
from lakewarden.daemon.usecases.runs.revocation import EVERYTHING, PLANNED, PURGES, take_back_runs
from lakewarden.jobs.engines.registry import no_engine

app = commands("Register, convert, look at and govern tables.")
table_queries.add_to(app)
governance.add_to(app)

Name = Annotated[str | None, typer.Option("--name", help="Name to manage it under (db.table).")]
Owner = Annotated[str | None, typer.Option("--owner", help="Who is responsible. Default: you.")]

_CAME: Final = ("name", "location", "owner", "state_reason", "version", "files", "bytes", "findings")
_ADOPTED: Final = ("name", "state", "version", "files", "bytes", "findings", "location")


@app.command()
def register(
    where: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TABLE",
            help="Paths, URIs, names in the metastore, patterns of them (/lake/*, db.*).",
        ),
    ] = None,
    from_file: Annotated[
        str | None,
        typer.Option(
            "--from-file", metavar="FILE", help="A list: CSV, YAML, JSON lines or paths; - is stdin."
        ),
    ] = None,
    name: Name = None,
    owner: Owner = None,
    copy: Annotated[
        bool, typer.Option("--copy", help="It is a copy, to be managed as a table of its own.")
    ] = False,
    moved: Annotated[
        bool, typer.Option("--moved", help="It has moved here for good, even though its old disk is away.")
    ] = False,
    dry_run: DryRun = False,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Manage existing tables, Delta's or Iceberg's, observing only until a policy asks for more.

    Many are registered in batches; if it is killed, run the same command again. Exit 3 if some were refused.
    """
    services = opened(home)
    places = where or []
    if len(places) == 1 and from_file is None and not dry_run and not is_pattern(services, places[0]):
        one = WantedTable(where=places[0], name=name, owner=owner, copy=copy, moved=moved, is_known=moved)
        _show_registered(register_one(services, calling(services), one), output)
        return
    if name is not None:
        raise UsageError("--name is for one table.", hint="A list has a column name: --from-file.")
    if not places and from_file is None:
        raise UsageError("No table is named.", hint="Name tables, or a list of them with --from-file.")
    listed = _listed(services, places, from_file, owner, copy=copy, moved=moved)
    began, do = time.monotonic(), foresee_listed if dry_run else register_listed
    outcomes = do(services, calling(services), listed, tell=note)
    _show_outcomes(outcomes, time.monotonic() - began, output, dry_run=dry_run)


def _show_registered(done: Registered, output: Format) -> None:
    note(f"{'Registered' if done.created else 'Already managed:'} {done.row.name} ({done.row.state}).")
    if (because := no_engine(done.row.format)) is not None:
        note(f"{because}.")
    _show_managed(done, output)
    _tell_unrecorded(done)


def _show_managed(done: Registered, output: Format) -> None:
    """What people want to see of a table that has just come; programs, and -o wide, get all there is."""
    item = _with_health(done)
    if output is Format.TABLE and not view().wide:
        item = {name: item[name] for name in _CAME if item.get(name) not in (None, [])}
    show_one(item, format=output)


def _tell_unrecorded(done: Registered) -> None:
    """A table that is managed, and whose health is not on record, is half of what was asked for. One that another
    installation looks after is all of it, and worth a word."""
    claim = others_claim(done.health)
    if claim is not None:
        note(claim)
    if done.unrecorded is not None:
        note(f"{unrecorded(done.unrecorded)} {HEALTH_FOLLOWS}")
        raise typer.Exit(ExitCode.PARTLY)


def _listed(
    services: Services,
    places: Sequence[str],
    from_file: str | None,
    owner: str | None,
    *,
    copy: bool,
    moved: bool,
) -> list[Listed]:
    """What the command line and a file name, in this order."""
    listed = [one for place in places for one in found_at(services, place, owner=owner, tell=note)]
    if from_file is not None:
        text = _text_of(from_file)
        listed += read_list(text, kind_of(from_file, text), owner=owner)
    return [
        one
        if isinstance(one.asked, LakewardenError)
        else replace(one, asked=replace(one.asked, copy=copy, moved=moved))
        for one in listed
    ]


def _text_of(file: str) -> str:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        # Windows begins files with a mark, and ends lines with two characters.
        return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig").read()
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is not a text file.", hint="Save it as UTF-8.") from error
    except (FileNotFoundError, IsADirectoryError) as error:
        raise UsageError(f"There is no file {file}.", hint="--from-file takes a list of tables.") from error


def _show_outcomes(
    outcomes: Sequence[ListedOutcome], seconds: float, output: Format, *, dry_run: bool
) -> None:
    """A sentence for people; those that need somebody as a table, all of them for programs."""
    note(summary(outcomes, seconds, dry_run=dry_run))
    shown = [one for one in outcomes if output is not Format.TABLE or worth_a_line(one)]
    if shown or output is not Format.TABLE:
        show([as_row(one, dry_run=dry_run) for one in shown], columns=COLUMNS, format=output)
    raise typer.Exit(ExitCode.OK if all(map(is_done, outcomes)) else ExitCode.PARTLY)


@app.command()
def convert(
    where: Table,
    name: Name = None,
    owner: Owner = None,
    partitioned_by: Annotated[
        str | None,
        typer.Option("--partitioned-by", help="Partition columns of a bare directory: 'year INT, m INT'."),
    ] = None,
    statistics: Annotated[bool, typer.Option(help="Collect file statistics while converting.")] = True,
    to: Annotated[str, typer.Option("--to", help="The table format that it becomes.")] = DELTA,
    retain: Annotated[
        str | None, typer.Option("--vacuum-retain", help="Retention, such as '30 days'.")
    ] = None,
    seen: Annotated[
        str | None,
        typer.Option("--seen", help="Convert only exactly the files that the dry run saw: its `seen` word."),
    ] = None,
    dry_run: DryRun = False,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Turn a Parquet directory or table into a managed table, of Delta unless `--to` says another format, in place."""
    services = opened(home)
    request = ConvertRequest(
        where=where,
        name=name,
        owner=owner,
        partitioned_by=_columns(partitioned_by),
        statistics=statistics,
        retain_seconds=None if retain is None else int(parse_value("vacuum.retention", retain)),
        seen=seen,
        format=to,
    )
    if dry_run:
        with run(services, calling(services), declared.CONVERT_DRY, where) as actor:
            foreseen = foresee_conversion(services, request, actor=actor)
        note(
            "Every check that needs no Spark passed; nothing was changed. For just these files: "
            f"--seen {foreseen.seen}."
        )
        show_one(_of_conversion(foreseen), format=output)
        return
    with run(services, calling(services), declared.CONVERT, where) as actor:
        done = convert_table(services, request, actor=actor, tell=note)
    _show_managed(done, output)


@app.command()
def adopt(
    where: Annotated[
        str | None, typer.Argument(help="A table; without it, everything that discovery finds.")
    ] = None,
    owner: Owner = None,
    dry_run: DryRun = False,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Manage tables found in the metastore or under the discovery roots, observing only. Exit 3 if some are refused."""
    services = opened(home)
    if where is not None and not dry_run:
        wanted = WantedTable(where=where, owner=owner)
        done = register_one(services, calling(services), wanted, source=Source.DISCOVER)
        show([_with_health(done)], columns=_ADOPTED, format=output)
        _tell_unrecorded(done)
        return
    found, untold = ([where], []) if where is not None else discovered(services, tell=note)
    if dry_run:
        show([{"where": one} for one in found], columns=["where"], format=output)
        raise typer.Exit(ExitCode.PARTLY if untold else ExitCode.OK)
    listed = [*(listed_at(one, owner=owner) for one in found), *untold]
    began = time.monotonic()
    outcomes = adopt_listed(services, calling(services), listed, tell=note)
    _show_outcomes(outcomes, time.monotonic() - began, output, dry_run=False)


@app.command()
def drop(
    where: Table,
    purge: Annotated[
        bool, typer.Option("--purge", help="Delete the files too, after a grace period.")
    ] = False,
    at_version: Annotated[
        int | None, typer.Option("--at-version", help="With --purge: the version the dry run showed.")
    ] = None,
    unknown_files: Annotated[
        str | None,
        typer.Option(
            "--unknown-files", help="With --purge: also delete the unknown files; takes the dry run's token."
        ),
    ] = None,
    other_installations: Annotated[
        str | None,
        typer.Option(
            "--other-installations",
            help="With --purge: although they manage or hold it, too; takes the ids that the dry run showed.",
        ),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Stop managing a table. Its files stay, unless --purge confirms what a dry run showed.

    To stop a purge, repeat the command without --purge: files that are left stay, the table stays dropped.
    """
    services = opened(home)
    row = services.registry.resolve(where, gone=True)
    if is_leaving(row) and not (purge or dry_run):
        with run(services, calling(services), declared.DROP, row.table_id, on=row.name) as actor:
            return _finish(services, foresee(services, row), output, actor)
    if row.state is TableState.PURGING and not purge:
        return _stop_purge(services, row, output, dry_run=dry_run, yes=yes)
    row = services.registry.resolve(where)
    foreseen = foresee(services, row)
    if dry_run:
        with run(services, calling(services), declared.DROP_DRY, row.table_id) as actor:
            check_drop(services.registry, row, actor=actor, purge=purge)
        return show_drop(services, foreseen, purge, output)
    if purge and at_version is None:
        raise ConsentError(
            "A purge needs the version that its dry run showed.",
            hint=f"Run `lakewarden tables drop {where} --purge --dry-run` first, then add --at-version.",
        )
    confirm(f"{'Purge' if purge else 'Drop'} {row.name} at {row.location}?", yes=yes)
    with run(services, calling(services), declared.DROP, row.table_id, on=row.name) as actor:
        give_name_back(services, row, tell=note)
        if purge and at_version is not None:
            consent = {"token": unknown_files, "others": other_installations}
            row = purge_table(services, row, at_version, **consent, actor=actor)
        else:
            leave(services, foreseen, actor=actor)
    if purge:
        take_back_runs(services, row, EVERYTHING, f"{row.name} was dropped")
        return show_one(row, format=output)
    return _finish(services, foreseen, output, calling(services))


def _stop_purge(services: Services, row: TableRow, output: Format, *, dry_run: bool, yes: bool) -> None:
    if dry_run:
        note("Nothing was changed. Its deletion would be stopped; what is left of its files stays.")
    else:
        confirm(f"Stop the deletion of {row.name} at {row.location}?", yes=yes)
        with run(services, calling(services), declared.DROP, row.table_id, on=row.name) as actor:
            row = stop_deletion(services, row, actor=actor, tell=note)
        take_back_runs(services, row, PURGES, "its deletion was stopped")
    show_one(row, format=output)


def _finish(services: Services, foreseen: Leaving, output: Format, caller: Caller) -> None:
    """Give back what a dropped table is owed, and show its row. The drop stands, whatever comes of it."""
    give_name_back(services, foreseen.row, tell=note)  # it may have been taken away late
    [left] = finish(services, [foreseen], actor=caller, tell=note)
    tell_left(left)
    show_one(left.row, format=output)


@app.command()
def undrop(where: Table, home: Home = None, output: Output = Format.TABLE) -> None:
    """Bring a dropped table back under management."""
    services = opened(home)
    with run(services, calling(services), declared.UNDROP, where) as actor:
        row = undrop_table(services, where, actor=actor, tell=note)
    take_back_runs(services, row, PURGES, f"{row.name} was undropped")
    show_one(row, format=output)


@app.command()
def rename(where: Table, new_name: str, home: Home = None, output: Output = Format.TABLE) -> None:
    """Rename a managed table here; the metastore is not changed. What its old namespace promised of it, it keeps."""
    services = opened(home)
    with run(services, calling(services), declared.RENAME, where) as actor:
        before = services.registry.resolve(where)
        row = rename_table(services.registry, where, new_name, actor=actor)
    if (kept := carried(before.policy, row.policy)) is not None:
        note(f"{row.name} keeps {kept}, as it had as {before.name}: its new scopes say less.")
    take_back_runs(services, row, PLANNED, f"it is called {row.name} now", ordered=False)
    show_one(row, format=output)


def _columns(text: str | None) -> tuple[tuple[str, str], ...]:
    if text is None:
        return ()
    pairs = [part.strip().split(None, 1) for part in text.split(",")]
    if any(len(pair) != 2 or parse_name(pair[0]) is None for pair in pairs):
        raise typer.BadParameter("write it like 'year INT, month INT'", param_hint="--partitioned-by")
    return tuple((name, type_.upper()) for name, type_ in pairs)


def _of_conversion(foreseen: Foreseen) -> dict[str, Any]:
    return {
        "name": foreseen.row.name,
        "location": foreseen.row.location,
        "owner": foreseen.row.owner,
        "files": foreseen.files,
        "bytes": foreseen.bytes,
        "seen": foreseen.seen,
        "properties": dict(foreseen.properties),
    }


def _with_health(done: Registered) -> dict[str, Any]:
    health = plain(done.health) if done.health else {"findings": []}
    return {
        **plain(done.row),
        **{key: value for key, value in health.items() if key not in ("table_id", "name")},
    }
