"""SHOW and DESCRIBE of what lakewarden manages, as statements. Pure."""

from typing import Final

from lakewarden.jobs.sql.statements import DescribeTable, ShowLineage, ShowRollbacks, ShowRuns, ShowTables
from lakewarden.jobs.sql.token_reader import StatementWords

__all__ = [
    "DESCRIBE_SYNTAX",
    "LINEAGE_SYNTAX",
    "ROLLBACKS_SYNTAX",
    "RUNS_SYNTAX",
    "TABLES_SYNTAX",
    "parse_describe",
    "parse_lineage",
    "parse_rollbacks",
    "parse_runs",
    "parse_tables",
]

TABLES_SYNTAX: Final = "SHOW MANAGED TABLES [LIKE 'pattern']"
DESCRIBE_SYNTAX: Final = "DESCRIBE MANAGED table"
RUNS_SYNTAX: Final = "SHOW RUNS [FOR table] [LIMIT n]"
LINEAGE_SYNTAX: Final = "SHOW LINEAGE [OF] table"
ROLLBACKS_SYNTAX: Final = "SHOW ROLLBACKS"


def parse_tables(words: StatementWords) -> ShowTables:
    """Read what follows SHOW MANAGED TABLES."""
    pattern = words.text() if words.takes("LIKE") else None
    words.end()
    return ShowTables(pattern=pattern)


def parse_describe(words: StatementWords) -> DescribeTable:
    """Read what follows DESCRIBE MANAGED."""
    where = words.table()
    words.end()
    return DescribeTable(where=where)


def parse_runs(words: StatementWords) -> ShowRuns:
    """Read what follows SHOW RUNS."""
    where = words.table() if words.takes("FOR") else None
    limit = words.number() if words.takes("LIMIT") else None
    words.end()
    return ShowRuns(where=where) if limit is None else ShowRuns(where=where, limit=limit)


def parse_lineage(words: StatementWords) -> ShowLineage:
    """Read what follows SHOW LINEAGE."""
    words.takes("OF")
    where = words.table()
    words.end()
    return ShowLineage(where=where)


def parse_rollbacks(words: StatementWords) -> ShowRollbacks:
    """Read what follows SHOW ROLLBACKS."""
    words.end()
    return ShowRollbacks()
