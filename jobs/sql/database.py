"""Which table a name without a database means: one of the session's database, as everywhere else in SQL. Pure."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from lakewarden.jobs.sql.statements import (
    AutoVacuum,
    ConvertTable,
    DescribeTable,
    MarkTable,
    RollbackTable,
    SetPolicy,
    ShowLineage,
    ShowRuns,
    Statement,
)

__all__ = ["in_database"]

_NAME: Final = re.compile(r"\w+")
_TABLE_ID: Final = re.compile(r"[0-9a-f]{32}")


def in_database(statement: Statement, database: Callable[[], str]) -> Statement:
    """One of the daemon's statements with each name that has no database in the session's own, which is only asked for
    then. Paths, ids and scopes stay as they are. A VACUUM once is left to the session, which finds its table itself."""
    match statement:
        case RollbackTable(where=where, remove_files=others):
            named = tuple(_in(one, database) for one in others)
            return replace(statement, where=_in(where, database), remove_files=named)
        case (
            AutoVacuum(where=str(where))
            | ConvertTable(where=str(where))
            | DescribeTable(where=str(where))
            | MarkTable(where=str(where))
            | SetPolicy(where=str(where))
            | ShowLineage(where=str(where))
            | ShowRuns(where=str(where))
        ):
            return replace(statement, where=_in(where, database))
        case _:
            return statement


def _in(where: str, database: Callable[[], str]) -> str:
    name = where.strip().replace("`", "")
    bare = _NAME.fullmatch(name) and not _TABLE_ID.fullmatch(name)
    return f"{database()}.{name}" if bare else where
