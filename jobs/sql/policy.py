"""ALTER TABLE ... SET POLICY as a statement. Pure."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from sqlglot import Token, TokenType

from lakewarden.catalog.policy.keys import Value, parse_value, policy_key
from lakewarden.jobs.sql.statements import SetPolicy
from lakewarden.jobs.sql.token_reader import StatementWords

__all__ = ["POLICY_SYNTAX", "is_policy", "parse_policy"]

POLICY_SYNTAX: Final = "ALTER TABLE table SET POLICY ('key' = 'value'[, ...]) | UNSET POLICY ('key'[, ...])"


def is_policy(tokens: Sequence[Token]) -> bool:
    """Whether an ALTER TABLE is about a policy: anything else is Spark's."""
    words = [None if one.token_type is TokenType.IDENTIFIER else one.text.upper() for one in tokens]
    return any(pair in (("SET", "POLICY"), ("UNSET", "POLICY")) for pair in pairwise(words))


def parse_policy(words: StatementWords) -> SetPolicy:
    """Read what follows ALTER TABLE. Raises `UsageError` also for a key or a value that is none."""
    where = words.table()
    unset = words.takes("UNSET")
    if not unset:
        words.expect("SET")
    words.expect("POLICY")
    words.expect("(")
    values = [_unset(words) if unset else _set(words)]
    while words.takes(","):
        values.append(_unset(words) if unset else _set(words))
    words.expect(")")
    words.end()
    return SetPolicy(where=where, values=tuple(values))


def _set(words: StatementWords) -> tuple[str, Value | None]:
    key = _key(words)
    words.expect("=")
    return key, parse_value(key, words.next())


def _unset(words: StatementWords) -> tuple[str, Value | None]:
    return _key(words), None


def _key(words: StatementWords) -> str:
    """A key, in quotes or not."""
    text = words.next()
    while words.takes("."):
        text = f"{text}.{words.next()}"
    return policy_key(text.lower()).key
