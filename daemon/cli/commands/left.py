"""What commands say of tables that leave management."""

from typing import Any

from lakewarden.catalog.units import sentence
from lakewarden.daemon.cli.output import note
from lakewarden.daemon.usecases.runs.leaving import Leaving, Left

__all__ = ["foreseen_as_row", "tell_foreseen", "tell_left"]


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
            f"Nothing tells what stood there before us for {names}: what equals our own setting is taken away."
        )


def tell_left(left: Left) -> None:
    """What became of the properties of a table that was dropped."""
    if left.sentence is not None:
        note(sentence(f"{left.row.name}: properties {left.sentence}"))
    if left.owed is not None:
        note(f"{left.row.name} was dropped, but its properties are not given back yet: {left.owed}")
