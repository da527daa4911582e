"""What came of a list of tables, for people and programs: a sentence, and a row for each. Pure."""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.model.rows import TableState
from lakewarden.catalog.units import about_seconds, count_of
from lakewarden.daemon.usecases.onboarding.registrations import Outcome

__all__ = ["COLUMNS", "Word", "as_row", "summary", "worth_a_line"]

COLUMNS = ("line", "where", "outcome", "why", "hint")
"""What a table of those that need somebody shows."""


class Word(StrEnum):
    """What came of a table, in a word."""

    REGISTERED = "registered"
    FORESEEN = "would be registered"
    MOVED = "moved"
    MANAGED = "already managed"
    REFUSED = "refused"


def word_of(one: Outcome, *, dry_run: bool = False) -> Word:
    """What came of it."""
    if isinstance(one.came, LakewardenError):
        return Word.REFUSED
    if one.came.moved:
        return Word.MOVED
    if not one.came.created:
        return Word.MANAGED
    return Word.FORESEEN if dry_run else Word.REGISTERED


def worth_a_line(one: Outcome) -> bool:
    """Whether somebody has to look at it: it was refused, or it is managed and broken."""
    return isinstance(one.came, LakewardenError) or one.came.row.state is TableState.QUARANTINED


def summary(outcomes: Sequence[Outcome], seconds: float, *, dry_run: bool = False) -> str:
    """All of it in a sentence."""
    counts = Counter(word_of(one, dry_run=dry_run) for one in outcomes)
    new = Word.FORESEEN if dry_run else Word.REGISTERED
    quarantined = sum(word_of(one, dry_run=dry_run) is new and worth_a_line(one) for one in outcomes)
    verb = "Would register" if dry_run else "Registered"
    broken = f", {quarantined:,} of them quarantined" if quarantined else ""
    others = "".join(
        f"; {counts[word]:,} {word}" for word in (Word.MOVED, Word.MANAGED, Word.REFUSED) if counts[word]
    )
    return f"{verb} {count_of(counts[new], 'table')}{broken}{others}. Took {about_seconds(seconds)}."


def as_row(one: Outcome, *, dry_run: bool = False) -> dict[str, Any]:
    """All of it as a row: the same keys for each."""
    listed, came = one.listed, one.came
    row = health = error = None
    if isinstance(came, LakewardenError):
        error = came
    else:
        row, health = came.row, came.health
    broken = row is not None and row.state is TableState.QUARANTINED
    return {
        "line": listed.line,
        "where": listed.where,
        "outcome": word_of(one, dry_run=dry_run).value,
        "table_id": row.table_id if row is not None else None,
        "name": row.name if row is not None else None,
        "owner": row.owner if row is not None else None,
        "state": row.state.value if row is not None else None,
        "location": row.location if row is not None else None,
        "version": health.version if health is not None else None,
        "files": health.files if health is not None else None,
        "bytes": health.bytes if health is not None else None,
        "findings": list(health.findings) if health is not None else [],
        "why": str(error)
        if error is not None
        else (row.state_reason if broken and row is not None else None),
        "hint": (error.hint or None) if error is not None else None,
    }
