"""How rows that change are written (`rows.write`): who asks for which way, which word counts, and what `auto` makes of
the numbers of a table. Pure.

A statement comes before its table, and the table before its namespace. What a statement asks for is done or refused;
what a table or a namespace asks for, and this statement cannot do, is left out, and said.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from statistics import median
from typing import Final

from lakewarden.catalog.errors import LakewardenError, PreconditionError, UsageError
from lakewarden.catalog.model.enums import RowsWrite
from lakewarden.catalog.units import DAY, MIB, about_bytes

__all__ = [
    "OBSERVED",
    "ROWS_WRITE",
    "AskedBy",
    "AskedWay",
    "ChosenWay",
    "WrittenAndRead",
    "asked_in",
    "decided",
    "way_named",
]

ROWS_WRITE: Final = "lakewarden.rows.write"
"""A property of a table and of a namespace, and a setting of a session for its statements."""
OBSERVED: Final = timedelta(days=7)
"""So far back commits count."""
_DAYS: Final = int(OBSERVED.total_seconds()) // DAY
_PAGE: Final = "docs/governed-writes.md says what each of them does."
_SMALL: Final = 64 * MIB
"""A table that is written anew within seconds: its readers should not pay for delete files."""
_LARGE: Final = 0.3
"""A share of the rows. Written beside its files, such a change still writes three tenths of what files anew would be at
the most, and leaves as much to be read in vain; and it alone is three times what has a compaction write them anew
(`compaction.deleted_share`, unless somebody sets it)."""


class AskedBy(StrEnum):
    """Who asks for a way, the one that counts first."""

    STATEMENT = "the statement"
    TABLE = "the table"
    NAMESPACE = "its namespace"


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedWay:
    """What somebody asks for."""

    way: RowsWrite
    by: AskedBy

    def left_out(self, refusal: LakewardenError) -> "ChosenWay":
        """The table's own way, because of a `refusal`, which is raised if the statement itself asked."""
        if self.by is AskedBy.STATEMENT:
            raise refusal
        because = str(refusal).removesuffix(" Nothing was changed.").rstrip(".")
        note = (
            f"{self.by.capitalize()} asks for rows to be written by {self.way}, which is left out: {because}."
        )
        return ChosenWay(
            way=RowsWrite.TABLE, because=f"{self.by} asks for {self.way}, but {because}", note=note
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class ChosenWay:
    """How the rows of a statement are written."""

    way: RowsWrite
    """`table` where the table's own way is kept; never `auto`."""
    because: str
    note: str | None = None
    """What a person should know of it."""

    def __str__(self) -> str:
        own = "as the table's own properties say" if self.way is RowsWrite.TABLE else self.way.value
        return f"Rows are written: {own} ({self.because})."


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenAndRead:
    """What is known of a table before a statement runs; None for what is not."""

    size: int | None
    """Of its data files, in bytes."""
    writes: int | None
    """Commits that changed or took rows, within `OBSERVED`."""
    reads: int | None
    """Commits to any table that are on record as made from it, within `OBSERVED`."""
    all_change: bool = False
    """The statement changes every row; of others nobody knows beforehand."""
    has_more: bool = False
    """There were more `writes`."""
    shares: tuple[float | None, ...] = ()
    """Of the table's rows, which the newest of the `writes` took or replaced by others, each; None where the log does
    not tell."""

    @property
    def told(self) -> list[float]:
        """The `shares` that are known."""
        return [one for one in self.shares if one is not None]

    @property
    def share(self) -> float | None:
        """The median of what is told; None where more changes do not tell it than do."""
        return min(median(self.told), 1.0) if self.told and 2 * len(self.told) >= len(self.shares) else None


def way_named(told: object, where: str) -> RowsWrite:
    """The way that somebody wrote for a statement. Raises `UsageError`."""
    word = told.strip().strip("'\"").lower() if isinstance(told, str) else None
    found = next((one for one in RowsWrite if one == word), None)
    if found is None:
        ways = ", ".join(RowsWrite)
        raise UsageError(f"{where}={told!r} says nothing: it is one of {ways}.", hint=_PAGE)
    return found


def asked_in(properties: Mapping[str, str], by: AskedBy, name: str) -> AskedWay | None:
    """What the properties of a table or namespace that is called `name` ask for. Raises `PreconditionError` for a value
    that is none."""
    text = properties.get(ROWS_WRITE)
    if text is None:
        return None
    try:
        return AskedWay(way=way_named(text, ROWS_WRITE), by=by)
    except UsageError as error:
        raise PreconditionError(
            f"{ROWS_WRITE} of {name} is '{text}', which says nothing. Nothing was changed.",
            hint=f"It is one of {', '.join(RowsWrite)}.",
        ) from error


def decided(known: WrittenAndRead, beside: RowsWrite, by: AskedBy) -> ChosenWay:
    """What `auto` comes to, which `by` asks for: files anew, or `beside`, the table's way to say which rows are gone.
    Where a number is not known the table's own way stays."""

    def chosen(way: RowsWrite, because: str) -> ChosenWay:
        return ChosenWay(way=way, because=f"auto, as {by} asks: {because}")

    if known.size is None:
        return chosen(RowsWrite.TABLE, "how large the table is, is not known")
    if known.size <= _SMALL:
        sizes = f"the table has {about_bytes(known.size)}, and up to {about_bytes(_SMALL)} are written anew"
        return chosen(RowsWrite.REWRITE, sizes)
    if known.all_change:
        return chosen(RowsWrite.REWRITE, "all rows change")
    share = _share_told(known)
    if known.share is not None and known.share >= _LARGE:
        return chosen(RowsWrite.REWRITE, f"{share}, and from {_LARGE:.0%} on files are written anew")
    if known.writes is None:
        return chosen(RowsWrite.TABLE, "how often its rows are changed is not known")
    if known.reads is None:
        return chosen(RowsWrite.TABLE, "how often it is read is not known, as it is not managed")
    least = "at least " if known.has_more else ""
    rates = (
        f"within {_DAYS} days its rows were changed {least}{known.writes} times, and read {known.reads} times"
    )
    told = rates if share is None else f"{rates}; {share}"
    is_open = known.writes < known.reads if known.has_more else not known.writes and not known.reads
    if is_open:
        return chosen(RowsWrite.TABLE, told)
    return chosen(beside if known.writes >= known.reads else RowsWrite.REWRITE, told)


def _share_told(known: WrittenAndRead) -> str | None:
    """The share of the rows that a change takes, as half a sentence."""
    if known.share is None:
        return None
    percent = f"about {known.share:.1%}" if known.share >= 0.001 else "less than 0.1%"
    told, asked = len(known.told), len(known.shares)
    number = f"{told}" if told == asked else f"{told} of {asked}"
    among = "" if asked == 1 else f" (the median of {number})"
    return f"its changes took {percent} of its rows{among}"
