"""What came of a list of tables, for people and programs: a sentence, and a row for each. Pure."""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Final

from lakewarden.catalog.errors import LakewardenError
from lakewarden.catalog.model.rows import HealthRow, TableState
from lakewarden.catalog.units import about_seconds, count_of
from lakewarden.catalog.validation.checks import CHECK_BY_NAME
from lakewarden.catalog.validation.installations import ANOTHER_INSTALLATION
from lakewarden.daemon.usecases.onboarding.registrations import ListedOutcome

__all__ = [
    "COLUMNS",
    "HEALTH_FOLLOWS",
    "ReportWord",
    "as_row",
    "is_done",
    "others_claim",
    "summary",
    "unrecorded",
    "word_of",
    "worth_a_line",
]

COLUMNS = ("line", "where", "outcome", "why", "hint")
"""The columns for tables that need attention."""
HEALTH_FOLLOWS: Final = "The daemon's next sweep writes it; so does the same command."


class ReportWord(StrEnum):
    """What came of a table, in a word."""

    REGISTERED = "registered"
    FORESEEN = "would be registered"
    MOVED = "moved"
    MANAGED = "already managed"
    REFUSED = "refused"


def word_of(one: ListedOutcome, *, dry_run: bool = False) -> ReportWord:
    """What came of it."""
    if isinstance(one.came, LakewardenError):
        return ReportWord.REFUSED
    if one.came.moved:
        return ReportWord.MOVED
    if not one.came.created:
        return ReportWord.MANAGED
    return ReportWord.FORESEEN if dry_run else ReportWord.REGISTERED


def is_done(one: ListedOutcome) -> bool:
    """Whether the table is managed and its health is on record."""
    return not isinstance(one.came, LakewardenError) and one.came.unrecorded is None


def worth_a_line(one: ListedOutcome) -> bool:
    """Whether somebody has to look at it: it was refused, it is managed and broken, its health is not on record, or
    another installation looks after it, too."""
    return not is_done(one) or _is_quarantined(one) or _claim(one) is not None


def others_claim(health: HealthRow | None) -> str | None:
    """What is said where another installation of lakewarden looks after a table, too; None where none is known."""
    found = () if health is None else health.findings
    return next((finding.message for finding in found if finding.check == ANOTHER_INSTALLATION), None)


def _claim(one: ListedOutcome) -> str | None:
    return None if isinstance(one.came, LakewardenError) else others_claim(one.came.health)


def _is_quarantined(one: ListedOutcome) -> bool:
    return not isinstance(one.came, LakewardenError) and one.came.row.state is TableState.QUARANTINED


def unrecorded(error: LakewardenError) -> str:
    """The explanation for a managed table without health on record."""
    return f"It is managed, but its health is not on record yet: {error}"


def summary(outcomes: Sequence[ListedOutcome], seconds: float, *, dry_run: bool = False) -> str:
    """The report in a sentence."""
    counts = Counter(word_of(one, dry_run=dry_run) for one in outcomes)
    new = ReportWord.FORESEEN if dry_run else ReportWord.REGISTERED
    quarantined = sum(word_of(one, dry_run=dry_run) is new and _is_quarantined(one) for one in outcomes)
    verb = "Would register" if dry_run else "Registered"
    broken = f", {quarantined:,} of them quarantined" if quarantined else ""
    others = "".join(
        f"; {counts[word]:,} {word}"
        for word in (ReportWord.MOVED, ReportWord.MANAGED, ReportWord.REFUSED)
        if counts[word]
    )
    waiting = sum(not isinstance(one.came, LakewardenError) and not is_done(one) for one in outcomes)
    health = f" The health of {waiting:,} is not on record yet." if waiting else ""
    return f"{verb} {count_of(counts[new], 'table')}{broken}{others}.{health} Took {about_seconds(seconds)}."


def as_row(one: ListedOutcome, *, dry_run: bool = False) -> dict[str, Any]:
    """The report as a row: the same keys for each."""
    listed, came = one.listed, one.came
    row = health = why = hint = None
    if isinstance(came, LakewardenError):
        why, hint = str(came), came.hint or None
    else:
        row, health = came.row, came.health
        if came.unrecorded is not None:
            why, hint = unrecorded(came.unrecorded), HEALTH_FOLLOWS
        elif row.state is TableState.QUARANTINED:
            why = row.state_reason
        elif (claim := others_claim(health)) is not None:
            why, hint = claim, CHECK_BY_NAME[ANOTHER_INSTALLATION].hint
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
        "why": why,
        "hint": hint,
    }
