"""`lakewarden lineage mark | marks`: what owners say of single versions."""

from typing import Annotated

import typer

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.model.rows import MarkVerdict
from lakewarden.catalog.registry.marks import mark_versions, marks_of, unmark_versions
from lakewarden.daemon.cli.common import Home, Table, calling, opened
from lakewarden.daemon.cli.list_commands import ListCommand
from lakewarden.daemon.cli.output import Format, Output, note, plain, show
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases import declared
from lakewarden.daemon.usecases.audit import run

__all__ = ["add_to"]

COLUMNS = ("version", "verdict", "by", "at", "note", "applies")


def add_to(app: typer.Typer) -> None:
    """Add these commands to the group."""
    app.command("mark")(mark)
    app.command("marks", cls=ListCommand)(marks)


def mark(
    where: Table,
    versions: Annotated[list[int], typer.Argument(metavar="VERSION...", min=0, help="The versions to mark.")],
    bad: Annotated[bool, typer.Option("--bad", help="Bad: `rollback plan --marked` undoes them.")] = False,
    clean: Annotated[
        bool, typer.Option("--clean", help="Clean, whatever they read: no plan treats them as tainted.")
    ] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove their marks.")] = False,
    text: Annotated[str | None, typer.Option("--note", help="Why.")] = None,
    home: Home = None,
    output: Output = Format.TABLE,
) -> None:
    """Mark versions of a table bad or clean. A mark changes no table; plans made from now on use it."""
    if bad + clean + remove != 1 or (remove and text is not None):
        raise UsageError(
            "A mark takes exactly one of --bad, --clean and --remove; --note goes with the first two.",
            hint="lakewarden lineage mark db.t 7 --bad --note 'half of the file was missing'",
        )
    services = opened(home)
    with run(services, calling(services), declared.MARK, where, on=f"mark {where}") as actor:
        if remove:
            unmark_versions(services.registry, where, versions, actor=actor)
        else:
            verdict = MarkVerdict.BAD if bad else MarkVerdict.CLEAN
            mark_versions(services.registry, where, versions, verdict, note=text, actor=actor)
    _show(services, where, output)


def marks(where: Table, home: Home = None, output: Output = Format.TABLE) -> None:
    """Show the marks of a table. `applies` is no if the table was dropped and created anew since."""
    _show(opened(home), where, output)


def _show(services: Services, where: str, output: Format) -> None:
    row = services.registry.resolve(where)
    found = [{**plain(one), "applies": applies} for one, applies in marks_of(services.registry, row)]
    show(found, columns=COLUMNS, format=output)
    if not found:
        note(f"No version of {row.name} is marked.")
