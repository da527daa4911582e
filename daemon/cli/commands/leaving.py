"""What commands say and show of tables that leave management."""

from typing import Any

from lakewarden.catalog.units import sentence
from lakewarden.daemon.cli.output import Format, note, plain, show_one
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.usecases.runs.leaving import Leaving, Left
from lakewarden.daemon.usecases.runs.purge import foresee_purge
from lakewarden.jobs.deletion.table_folder import inner_table

__all__ = ["foreseen_as_row", "show_drop", "tell_foreseen", "tell_left"]


def foreseen_as_row(one: Leaving) -> dict[str, Any]:
    """The columns of a dry run: properties to set, to unset, and those that are left because somebody changed
    them since."""
    wanted = one.wanted
    return {
        "sets": dict(wanted.sets),
        "unsets": list(wanted.unsets),
        "leaves": list(wanted.left),
        "trouble": one.trouble,
    }


def tell_foreseen(one: Leaving) -> None:
    """What a drop would give back, in words."""
    if one.trouble is not None:
        note(f"{one.row.name} cannot be read now: {one.trouble}")
    if one.wanted:
        note(f"A drop gives its properties back: {one.wanted.sentence.removeprefix('given back: ')}.")
    if one.guessed:
        names = ", ".join(one.guessed)
        note(
            f"Nothing tells what stood there before us for {names}: "
            "what equals our own setting is taken away."
        )


def show_drop(services: Services, foreseen: Leaving, purge: bool, output: Format) -> None:
    """What a drop would give back, or a purge would delete. Only a purge has to reach the table."""
    row = foreseen.row
    if not purge:
        note("Nothing was changed. What a purge would delete: --purge --dry-run.")
        tell_foreseen(foreseen)
        show_one({"name": row.name, "location": row.location, **foreseen_as_row(foreseen)}, format=output)
        return
    counted = foresee_purge(services, row)
    shown = {**plain(counted), **foreseen_as_row(foreseen)}
    if counted["inner_tables"]:
        show_one(shown, format=output)
        raise inner_table(row.name, counted["inner_tables"][0])
    token = "" if counted["unknown_token"] is None else f" --unknown-files {counted['unknown_token']}"
    if counted["other_installations_token"] is not None:
        token += f" --other-installations {counted['other_installations_token']}"
        note(f"Other installations of lakewarden: {'; '.join(counted['other_installations'])}.")
    note(f"Nothing was changed. To delete the files: --purge --at-version {counted['version']}{token} --yes.")
    tell_foreseen(foreseen)
    show_one(shown, format=output)


def tell_left(left: Left) -> None:
    """What became of the properties of a table that was dropped."""
    if left.sentence is not None:
        note(sentence(f"{left.row.name}: properties {left.sentence}"))
    if left.owed is not None:
        note(f"{left.row.name} was dropped, but its properties are not given back yet: {left.owed}")
