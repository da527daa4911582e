"""ROLLBACK TABLE as a statement. Pure."""

from collections.abc import Sequence
from typing import Final

from sqlglot import Token

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.statements import RollbackTable

__all__ = ["ROLLBACK_SYNTAX", "parse_rollback"]

ROLLBACK_SYNTAX: Final = "ROLLBACK TABLE table TO VERSION n | TO TIMESTAMP '...' [CASCADE] [REAPPLY]"
_AFTER_ROLLBACK_TABLE: Final = 2
_TARGET: Final = 2
"""Words of `VERSION n` or `TIMESTAMP '...'`."""


def parse_rollback(tokens: Sequence[Token]) -> RollbackTable:
    """Read a statement that begins with ROLLBACK TABLE. Raises `UsageError` with the syntax."""
    words = [token.text for token in tokens[_AFTER_ROLLBACK_TABLE:]]
    to = next((place for place, word in enumerate(words) if word.upper() == "TO"), 0)
    where, rest = "".join(words[:to]), words[to + 1 :]
    options = [word.upper() for word in rest[_TARGET:]]
    cascade, reapply = "CASCADE" in options, "REAPPLY" in options
    if len(options) != cascade + reapply:
        raise UsageError("This ROLLBACK cannot be understood.", hint=ROLLBACK_SYNTAX)
    match rest[:_TARGET]:
        case [kind, number] if where and kind.upper() == "VERSION" and number.isdigit():
            return RollbackTable(where=where, version=int(number), cascade=cascade, reapply=reapply)
        case [kind, moment] if where and kind.upper() == "TIMESTAMP":
            return RollbackTable(where=where, timestamp=moment, cascade=cascade, reapply=reapply)
        case _:
            raise UsageError("This ROLLBACK cannot be understood.", hint=ROLLBACK_SYNTAX)
