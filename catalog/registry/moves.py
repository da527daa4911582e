"""A table that is no longer where it was, and may be the one that somebody found: whether its row follows, and what if
not. Pure."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from lakewarden.catalog.errors import NotAllowedError, PreconditionError, RefusedError
from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.model.identity import Held
from lakewarden.catalog.model.left_by_users import without_leaving
from lakewarden.catalog.model.pending_quarantine import released
from lakewarden.catalog.model.rows import GONE, TableRow, TableState
from lakewarden.catalog.units import sentence

__all__ = [
    "from_nowhere",
    "held_copy",
    "moved_to",
    "not_seen",
    "one_of",
    "or_one_of",
    "refuse_lost_name",
    "taken_back",
]


def moved_to(row: TableRow, location: str, *, told: bool) -> TableRow:
    """The row at its new place, where it was `told`, or seen, that nothing is left at the old one."""
    if row.state is TableState.PURGING:
        raise PreconditionError(
            sentence(f"{location} is {row.name}, which was dropped; {row.state_reason}"),
            hint=f"`lakewarden tables undrop {row.table_id}` first, then register it here.",
        )
    if not told:
        raise RefusedError(
            f"{location} carries the same table UUID as {row.name} at {row.location}, which cannot be seen: "
            "its disk may be away.",
            hint="If the table has moved here for good, repeat with --moved; if it is a copy, with --copy.",
        )
    before = () if row.location in (None, location) else (row.location,)
    return replace(row, location=location, aliases=tuple(dict.fromkeys((*row.aliases, *before))))


def taken_back(row: TableRow) -> TableRow:
    """The row of a table that was found again."""
    back = replace(released(row), state=TableState.ACTIVE, state_reason=None)
    return replace(back, properties=without_leaving(back.properties))


def refuse_lost_name(row: TableRow, location: str, named: Iterable[Held]) -> None:
    """Raise `RefusedError` where another table has by now the name of one that is found again."""
    for one in named:
        if one.state not in GONE and one.table_id != row.table_id:
            raise RefusedError(
                f"{location} is {row.name}, which its users seemed to have dropped; that name is taken by the table "
                f"at {one.location}.",
                hint=f"Give that one another name with `lakewarden tables rename {one.table_id}`, then repeat the "
                "command; if this is a copy, repeat it with --copy.",
            )


def from_nowhere(seen: Observation | LogProblem | None, location: str) -> RefusedError:
    """Somebody says that a table has moved here, and none that is on record has."""
    if isinstance(seen, LogProblem):
        return RefusedError(
            f"{location} cannot be read, so that nobody can tell which table has moved there: {seen.message}",
            hint="Mend its log, then repeat the command.",
        )
    return RefusedError(
        f"No table on record has the UUID of the one at {location}, so that none has moved there.",
        hint="Leave out --moved, and it is managed as a table of its own.",
    )


def not_seen(
    twins: Sequence[Held], alive: Collection[str], surely_gone: Collection[str | None]
) -> Sequence[Held]:
    """Of tables with one UUID those that may be the one that is found: they are not to be seen where they were. Where
    another copy of them lives, only what is surely gone, and was not dropped, may be it."""
    away = [one for one in twins if one.location not in alive]
    if len(away) == len(twins):
        return away
    return [one for one in away if one.location in surely_gone and one.state not in GONE]


def one_of(lost: Sequence[str], location: str) -> RefusedError:
    """Nobody can tell which of several copies of one table has come to a place."""
    return RefusedError(
        f"{location} carries the same table UUID as {' and '.join(lost)}, of which none is to be seen where it was.",
        hint=f"Say which of them has moved by its name, such as with --name {lost[0]}; if this is another copy, "
        "repeat with --copy.",
    )


def or_one_of(lost: Sequence[str]) -> str:
    """The end of a hint, where it may be one of these tables."""
    names = " or ".join(lost)
    return f"; if it is {names}, which is not to be seen where it was, with --name {lost[0]}" if lost else ""


def held_copy(row: TableRow, location: str) -> NotAllowedError:
    """What is said to be a copy may be the very table that a legal hold protects."""
    return NotAllowedError(
        f"{location} carries the same table UUID as {row.name}, which is under a legal hold, and is not to be seen at "
        f"{row.location} any more: it is that table, and no copy.",
        hint="Register it without --copy: its hold goes with it.",
    )
