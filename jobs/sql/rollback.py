"""ROLLBACK TABLE as a statement. Pure."""

from typing import Final

from lakewarden.jobs.sql.statements import RollbackTable
from lakewarden.jobs.sql.token_reader import StatementWords

__all__ = ["ROLLBACK_SYNTAX", "parse_rollback"]

ROLLBACK_SYNTAX: Final = (
    "ROLLBACK TABLE table TO VERSION n | TO TIMESTAMP '...' | BAD VERSION[S] n[, "
    "...] | MARKED [CASCADE] [REAPPLY] [REMOVE FILES [FROM table[, ...]]]"
)


def parse_rollback(words: StatementWords) -> RollbackTable:
    """Read what follows ROLLBACK TABLE."""
    where = words.table()
    version: int | None = None
    timestamp: str | None = None
    bad: tuple[int, ...] = ()
    marked = False
    if words.takes("TO", "VERSION"):
        version = words.number()
    elif words.takes("TO", "TIMESTAMP"):
        timestamp = words.text()
    elif words.takes("BAD"):
        bad = words.versions()
    elif words.takes("MARKED"):
        marked = True
    else:
        raise words.unexpected()
    cascade = reapply = False
    remove_files: tuple[str, ...] = ()
    while words.more:
        if not cascade and words.takes("CASCADE"):
            cascade = True
        elif not reapply and words.takes("REAPPLY"):
            reapply = True
        elif not remove_files and words.takes("REMOVE", "FILES"):
            remove_files = words.tables() if words.takes("FROM") else (where,)
        else:
            raise words.unexpected()
    return RollbackTable(
        where=where,
        version=version,
        timestamp=timestamp,
        bad=bad,
        marked=marked,
        cascade=cascade,
        reapply=reapply,
        remove_files=remove_files,
    )
