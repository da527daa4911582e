"""Random changes of t by s in the words of PostgreSQL, Teradata and SQL Server, and the same for a real PostgreSQL."""

import random
from dataclasses import dataclass
from typing import Final

from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["DialectChange", "random_dialect_change"]

_SOURCE: Final = "(SELECT k, max(b) AS b, max(c) AS c, max(n) AS n FROM s GROUP BY k) AS q"
"""Each key once, NULL as well."""
_ALSO: Final = (
    "",
    " AND q.b > 4",
    " AND t.a <> q.b",
    " AND t.s IS NOT NULL",
    " AND t.k IN (SELECT k FROM u)",
)
_SETS: Final = ("a = q.b", "a = t.k + q.b", "s = q.c", "d = q.n", "d = t.d + q.n", "k = q.k")


@dataclass(frozen=True, kw_only=True)
class DialectChange:
    """A statement of a dialect, and what PostgreSQL is asked."""

    dialect: Dialect
    text: str
    theirs: str


def random_dialect_change(seed: str) -> DialectChange:
    """An UPDATE, DELETE or MERGE whose rows have one match each."""
    chance = random.Random(f"dialect {seed}")
    dialect = chance.choice((Dialect.POSTGRES, Dialect.TERADATA, Dialect.TSQL))
    key, also = chance.choice(("id", "id", "k", "a")), chance.choice(_ALSO)
    by_column = {one.partition(" =")[0]: one for one in chance.sample(_SETS, k=2)}
    sets, where = ", ".join(by_column.values()), f"t.{key} = q.k{also}"
    match chance.randrange(3):
        case 0:
            theirs = f"UPDATE t SET {sets} FROM {_SOURCE} WHERE {where}"
            told = {Dialect.TERADATA: f"UPDATE t FROM {_SOURCE} SET {sets} WHERE {where}"}
        case 1:
            theirs = f"DELETE FROM t USING {_SOURCE} WHERE {where}"
            told = {
                Dialect.TERADATA: f"DELETE FROM t WHERE EXISTS (SELECT 1 FROM {_SOURCE} WHERE {where})",
                Dialect.TSQL: f"DELETE t FROM t JOIN {_SOURCE} ON {where}",
            }
        case _:
            clauses = ["WHEN MATCHED AND q.b > 5 THEN DELETE"] if chance.random() < 0.5 else []
            clauses.append(f"WHEN MATCHED{also.replace(_ALSO[-1], '')} THEN UPDATE SET {sets}")
            if chance.random() < 0.6:
                added = "q.k" if key == "id" else "NULL"
                insert = f"INSERT (id, k, a, s, d) VALUES ({added}, q.k, q.b, q.c, q.n)"
                clauses.append(f"WHEN NOT MATCHED{chance.choice(('', ' AND q.b > 3'))} THEN {insert}")
            theirs, told = f"MERGE INTO t USING {_SOURCE} ON t.{key} = q.k {' '.join(clauses)}", {}
    return DialectChange(dialect=dialect, text=told.get(dialect, theirs), theirs=theirs)
