"""What to say of a statement that is none of the daemon's: a misspelt one, one of nobody's, or one of Spark's. Pure."""

from collections.abc import Sequence
from difflib import SequenceMatcher, get_close_matches
from typing import Final

from sqlglot import Token, TokenType

from lakewarden.catalog.errors import NotFoundError, UsageError
from lakewarden.catalog.system.port import SystemTableName
from lakewarden.catalog.units import did_you_mean
from lakewarden.jobs.sql.beginning import beginning
from lakewarden.jobs.sql.parser import BEGINNINGS
from lakewarden.jobs.sql.token_reader import tokens_of

__all__ = ["meant", "not_here", "unmanaged"]

_ALIKE: Final = 0.7
"""So much of each word has to be the same."""
_SPARKS: Final = frozenset({
    "(", "ADD", "ALTER", "ANALYZE", "BEGIN", "CACHE", "CALL", "CLEAR", "COMMENT", "COPY", "CREATE",
    "DECLARE", "DELETE", "DESC", "DESCRIBE", "DROP", "EXECUTE", "EXPLAIN", "FROM", "GENERATE", "GRANT",
    "INSERT", "LIST", "LOAD", "MAP", "MERGE", "MSCK", "OPTIMIZE", "REDUCE", "REFRESH", "REORG",
    "REPAIR", "REPLACE", "RESET", "RESTORE", "REVOKE", "SELECT", "SET", "SHOW", "TABLE", "TRUNCATE",
    "UNCACHE", "UPDATE", "USE", "VACUUM", "VALUES", "WITH", "DEL", "UPD", "UPSERT",
})  # fmt: skip
"""How the statements begin that a session runs."""
_SHOWN: Final = frozenset({
    "CATALOGS", "COLUMNS", "CREATE", "CURRENT", "DATABASES", "FUNCTIONS", "NAMESPACES", "PARTITIONS",
    "SCHEMAS", "TABLE", "TABLES", "TBLPROPERTIES", "VIEWS",
})  # fmt: skip
"""What Spark's SHOW shows."""
_DATABASE: Final = "lakewarden"
_HERE: Final = (
    "Here: SELECT on lakewarden.*, UPDATE lakewarden.tables, SHOW, DESCRIBE MANAGED, "
    "ALTER TABLE ... SET POLICY, VACUUM, CONVERT TO DELTA, ROLLBACK, MARK and UNMARK TABLE, EXPLAIN GOVERNED."
)
_HELP: Final = f"{_HERE} Else: attach(spark).sql(), or a gateway with --url."
_WITH_SPARK: Final = f"Run it by lakewarden.attach(spark).sql(), or at a gateway with --url. {_HERE}"


def not_here(text: str) -> UsageError:
    """The error for a statement that cannot be run without a session."""
    tokens = tokens_of(text)
    words = [token.text.upper() for token in tokens]
    close_to = _meant(words)
    if close_to is not None:
        wrong = " ".join(words[: len(close_to)])
        return UsageError(f"'{wrong}' begins no statement that lakewarden knows.", hint=meant(text))
    if words[0] not in _SPARKS:
        close = get_close_matches(words[0], _SPARKS, n=1, cutoff=_ALIKE)
        hint = f"Did you mean {close[0]}? That needs a Spark session." if close else _HELP
        return UsageError(f"'{words[0]}' begins no statement that lakewarden knows.", hint=hint)
    unknown = next(filter(None, map(_unknown_system_table, tokens, tokens[1:], tokens[2:])), None)
    if unknown is not None:
        here = ", ".join(f"{_DATABASE}.{one}" for one in SystemTableName)
        hint = did_you_mean(unknown, SystemTableName, otherwise=f"Here: {here}.")
        return UsageError(f"{_DATABASE}.{unknown} is not a system table.", hint=hint)
    return UsageError("This statement needs a Spark session.", hint=_WITH_SPARK)


def _unknown_system_table(database: Token, dot: Token, table: Token) -> str | None:
    """Three words that name a table beside the system tables, which there is not."""
    name = table.text.lower()
    is_ours = database.text.lower() == _DATABASE and dot.token_type is TokenType.DOT
    return name if is_ours and name not in set(SystemTableName) else None


def meant(text: str) -> str | None:
    """The statement of the daemon that a text begins almost like, as a question; for what Spark could not read."""
    words = [word.text.upper() for word in beginning(text, max(map(len, BEGINNINGS)))]
    found = _meant(words) if words else None
    return None if found is None else f"Did you mean {' '.join(found)}?"


def unmanaged(where: str) -> NotFoundError:
    """The error for a VACUUM of a table that only Spark could vacuum."""
    return NotFoundError(
        f"{where} is not a managed table: its VACUUM is Spark's.",
        hint="`lakewarden tables list` shows those that are; a session runs Spark's own VACUUM.",
    )


def _meant(words: Sequence[str]) -> tuple[str, ...] | None:
    """The statement of the daemon that begins almost like this."""
    if words[0] == "SHOW" and len(words) > 1 and words[1] in _SHOWN:
        return None
    found = [(_likeness(words, one), one) for one in BEGINNINGS if len(words) >= len(one)]
    best = max(found, default=(0.0, ()))
    return best[1] if _ALIKE <= best[0] < 1 else None


def _likeness(words: Sequence[str], beginning: Sequence[str]) -> float:
    """Of the word that is least alike: 1 where all are the same."""
    return min(
        SequenceMatcher(None, word, other).ratio() for word, other in zip(words, beginning, strict=False)
    )
