"""VACUUM as a statement: once, automatically, or of all that is due. Pure."""

from typing import Final

from lakewarden.jobs.sql.statements import AutoVacuum, VacuumDue, VacuumTable
from lakewarden.jobs.sql.token_reader import StatementWords

__all__ = ["AUTO_VACUUM_SYNTAX", "VACUUM_DUE_SYNTAX", "VACUUM_FORMS", "VACUUM_SYNTAX", "parse_vacuum"]

VACUUM_SYNTAX: Final = "VACUUM table [FULL|LITE] [RETAIN n HOURS|DAYS] [DRY RUN]"
AUTO_VACUUM_SYNTAX: Final = "VACUUM table AUTO RUN [RETAIN n HOURS|DAYS] | AUTO OFF"
VACUUM_DUE_SYNTAX: Final = "VACUUM AUTO RUN"
VACUUM_FORMS: Final = f"{VACUUM_SYNTAX}; {AUTO_VACUUM_SYNTAX}; {VACUUM_DUE_SYNTAX}"


def parse_vacuum(words: StatementWords) -> VacuumTable | AutoVacuum | VacuumDue:
    """Read what follows VACUUM. What Delta can besides is read as such: only of managed tables it is refused."""
    if words.takes("AUTO", "RUN"):
        words.end()
        return VacuumDue()
    where, spelling = words.table_and_spelling()
    if words.takes("USING", "INVENTORY"):
        return VacuumTable(where=where, spelling=spelling, inventory=True)
    if words.takes("AUTO"):
        return _automatic(words, where)
    full = words.takes("FULL")
    if not full:
        words.takes("LITE")
    retain = words.retention(least=0) if words.takes("RETAIN") else None
    dry_run = words.takes("DRY", "RUN")
    words.end()
    return VacuumTable(where=where, spelling=spelling, full=full, retain_seconds=retain, dry_run=dry_run)


def _automatic(words: StatementWords, where: str) -> AutoVacuum:
    if words.takes("OFF"):
        words.end()
        return AutoVacuum(where=where, on=False)
    words.expect("RUN")
    retain = words.retention() if words.takes("RETAIN") else None
    words.end()
    return AutoVacuum(where=where, on=True, retain_seconds=retain)
