"""MARK TABLE and UNMARK TABLE as statements. Pure."""

from typing import Final

from lakewarden.catalog.model.rows import MarkVerdict
from lakewarden.jobs.sql.statements import MarkTable
from lakewarden.jobs.sql.token_reader import StatementWords

__all__ = ["MARK_SYNTAX", "UNMARK_SYNTAX", "parse_mark", "parse_unmark"]

MARK_SYNTAX: Final = "MARK TABLE table VERSION[S] n[, ...] BAD|CLEAN [BECAUSE '...']"
UNMARK_SYNTAX: Final = "UNMARK TABLE table VERSION[S] n[, ...]"


def parse_mark(words: StatementWords) -> MarkTable:
    """Read what follows MARK TABLE."""
    where, versions = words.table(), words.versions()
    if words.takes("BAD"):
        verdict = MarkVerdict.BAD
    else:
        words.expect("CLEAN")
        verdict = MarkVerdict.CLEAN
    note = words.text() if words.takes("BECAUSE") else None
    words.end()
    return MarkTable(where=where, versions=versions, verdict=verdict, note=note)


def parse_unmark(words: StatementWords) -> MarkTable:
    """Read what follows UNMARK TABLE."""
    where, versions = words.table(), words.versions()
    words.end()
    return MarkTable(where=where, versions=versions, verdict=None)
