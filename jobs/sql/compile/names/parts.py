"""The parts that queries and conditions may have: what is not listed is read by nobody, and so refused. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from sqlglot import exp

from lakewarden.jobs.sql.compile.places import wrong_in, wrong_part

__all__ = ["refuse_unread_parts"]

_RESULTS: Final = frozenset({"this", "with_", "order", "limit", "offset"})
_READ: Final[Mapping[type[exp.Expr], frozenset[str]]] = {
    exp.Select: frozenset(
        [
            "with_",
            "expressions",
            "distinct",
            "from_",
            "joins",
            "laterals",
            "where",
            "group",
            "having",
            "qualify",
            "windows",
            "order",
            "limit",
            "offset",
        ]
    ),
    exp.Subquery: _RESULTS | {"alias"},
    exp.Union: _RESULTS | {"expression", "distinct"},
    exp.Except: _RESULTS | {"expression", "distinct"},
    exp.Intersect: _RESULTS | {"expression", "distinct"},
    exp.With: frozenset({"expressions", "recursive"}),
    exp.CTE: frozenset({"this", "alias"}),
    exp.Table: frozenset({"this", "alias", "version", "sample"}),
    exp.Values: frozenset({"expressions", "alias"}),
    exp.Lateral: frozenset({"this", "view", "outer", "alias"}),
    exp.Join: frozenset({"this", "on", "using", "side", "kind", "method"}),
    exp.Group: frozenset({"expressions", "grouping_sets", "cube", "rollup"}),
    exp.Ordered: frozenset({"this", "desc", "nulls_first"}),
    exp.Limit: frozenset({"this", "expression"}),
    exp.Fetch: frozenset({"direction", "count"}),
    exp.Offset: frozenset({"this", "expression"}),
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Like: frozenset({"this", "expression", "negate"}),
    exp.In: frozenset({"this", "expressions", "query"}),
    exp.Exists: frozenset({"this"}),
}
_WORDS: Final[Mapping[str, str]] = {
    "cluster": "CLUSTER BY",
    "connect": "CONNECT BY",
    "distribute": "DISTRIBUTE BY",
    "into": "SELECT INTO",
    "kind": "SELECT AS",
    "limit_options": "PERCENT or WITH TIES",
    "locks": "A lock (FOR UPDATE)",
    "match": "MATCH_RECOGNIZE",
    "operation_modifiers": "This word behind SELECT",
    "pivots": "PIVOT",
    "sample": "TABLESAMPLE",
    "sort": "SORT BY",
}
"""What parts are called in SQL that have other names here."""


def refuse_unread_parts(query: exp.Expr) -> None:
    """Raise `UsageError`, with the place, for a part of a query that would be lost, and for one that runs a program."""
    for node in query.walk():
        if isinstance(node, exp.QueryTransform):
            raise wrong_in(node, "TRANSFORM is not supported here.", hint="Leave it out.")
        odd = next(_unread(node), None)
        if odd is not None:
            raise wrong_part(
                node,
                odd,
                f"{_WORDS.get(odd, odd.strip('_').replace('_', ' ').upper())} is not supported here.",
                hint="Leave it out.",
            )


def _unread(node: exp.Expr) -> Iterator[str]:
    read = _READ.get(type(node))
    return (
        iter(()) if read is None else (key for key, value in node.args.items() if value and key not in read)
    )
