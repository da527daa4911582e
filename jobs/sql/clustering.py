"""ALTER TABLE ... CLUSTERED BY as a statement: the layout goes on record as properties, which Spark sets. Pure."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

from sqlglot import Token, TokenType

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.model.bucket_layout import LAYOUT_PROPERTIES, MOST_BUCKETS, BucketLayout
from lakewarden.jobs.sql.statements import Unmanaged
from lakewarden.jobs.sql.token_reader import StatementWords

__all__ = ["CLUSTERING_SYNTAX", "is_clustering", "parse_clustering"]

CLUSTERING_SYNTAX: Final = (
    "ALTER TABLE table CLUSTERED BY (column[, ...]) [SORTED BY (column[, ...])] "
    "INTO n BUCKETS | NOT CLUSTERED"
)


def is_clustering(tokens: Sequence[Token]) -> bool:
    """Whether an ALTER TABLE is about buckets."""
    words = [None if one.token_type is TokenType.IDENTIFIER else one.text.upper() for one in tokens]
    return any(pair in (("CLUSTERED", "BY"), ("NOT", "CLUSTERED")) for pair in pairwise(words))


def parse_clustering(words: StatementWords) -> Unmanaged:
    """Read what follows ALTER TABLE."""
    _, table = words.table_and_spelling()
    if words.takes("NOT", "CLUSTERED"):
        words.end()
        keys = ", ".join(f"'{key}'" for key in LAYOUT_PROPERTIES)
        return Unmanaged(sql=f"ALTER TABLE {table} UNSET TBLPROPERTIES IF EXISTS ({keys})")
    words.expect("CLUSTERED", "BY")
    columns = _columns(words)
    sort = _columns(words) if words.takes("SORTED", "BY") else ()
    words.expect("INTO")
    count = words.number()
    words.expect("BUCKETS")
    words.end()
    if not 0 < count <= MOST_BUCKETS:
        raise UsageError(f"A table has 1 to {MOST_BUCKETS} buckets.", hint=CLUSTERING_SYNTAX)
    layout = BucketLayout(columns=columns, count=count, sort=sort)
    return Unmanaged(sql=f"ALTER TABLE {table} SET TBLPROPERTIES ({_told(layout.properties)})")


def _columns(words: StatementWords) -> tuple[str, ...]:
    words.expect("(")
    names = [_column(words)]
    while words.takes(","):
        names.append(_column(words))
    words.expect(")")
    return tuple(names)


def _column(words: StatementWords) -> str:
    name = words.next()
    if "," in name:
        raise UsageError(
            f"A table has no buckets by {name}.", hint="Take a column without commas in its name."
        )
    return name


def _told(properties: Mapping[str, str]) -> str:
    said = ((key, value.replace("\\", "\\\\").replace("'", "\\'")) for key, value in properties.items())
    return ", ".join(f"'{key}' = '{value}'" for key, value in said)
