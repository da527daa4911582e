"""What Spark or Delta refuses of statements that they get as they are, in our words and with the place. Pure."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from sqlglot import Token
from sqlglot.errors import SqlglotError

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.dialects import PARSERS
from lakewarden.jobs.sql.compile.places import wrong_at
from lakewarden.jobs.sql.compile.reading import outer_tokens, tokens_of_any
from lakewarden.jobs.sql.compile.shapes import RETURNING
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["query_in_merge", "returning"]

_QUERIES: Final = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "FROM"})


def query_in_merge(text: str) -> UsageError | None:
    """The error for a query in ON, WHEN or SET of a MERGE; None where there is none."""
    outer = outer_tokens(text)
    on = next((token for token in outer if token.text.upper() == "ON"), None)
    if on is None or not any(token.text.upper() == "MERGE" for token in outer[: outer.index(on)]):
        return None
    place = _query_after(tokens_of_any(text), on.end)
    if place is None:
        return None
    return wrong_at(
        place,
        "Delta runs no query here, and a MERGE with *, BY SOURCE, WITH or db.t.column does "
        "not let it be asked before.",
        hint="Ask it in USING, and compare with its column: "
        "USING (SELECT s.*, (SELECT max(e) FROM u) AS m FROM s) AS s; "
        "for IN or EXISTS LEFT JOIN the table there.",
    ).of(text)


def returning(text: str) -> UsageError | None:
    """The error for PostgreSQL's RETURNING at the end of a statement that Spark cannot read; None without one."""
    place = next((token.start for token in outer_tokens(text) if token.text.upper() == "RETURNING"), None)
    if place is None:
        return None
    try:
        trees = PARSERS[Dialect.POSTGRES].parse(text)
    except SqlglotError:
        return None
    if not any(tree is not None and tree.args.get("returning") for tree in trees):
        return None
    return wrong_at(place, RETURNING, hint="Leave it out, and SELECT the rows afterwards.").of(text)


def _query_after(tokens: Sequence[Token], end: int) -> int | None:
    """Where the first query in parentheses begins behind a place."""
    for before, token in pairwise(tokens):
        if token.start > end and before.text == "(" and token.text.upper() in _QUERIES:
            return token.start
    return None
