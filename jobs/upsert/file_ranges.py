"""Whether a file of the target can have one of the source's keys, by the file's statistics. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from lakewarden.jobs.sql.compile.values import TableSchema
from lakewarden.jobs.upsert.pruning import KeyFacts

__all__ = ["may_hold"]

_INTEGERS: Final = frozenset({"tinyint", "smallint", "int", "bigint"})
_MIN, _MAX = "minValues", "maxValues"
_REPLACED: Final = "\ufffd"
"""Stands in Python for bytes that are no UTF-8."""


def may_hold(stats: str | None, facts: Sequence[KeyFacts], source: TableSchema, target: TableSchema) -> bool:
    """Whether a file with these statistics (Delta's, as JSON) can have rows with keys of which these facts are known.
    Only whole numbers and texts are compared: of all else, and where nothing is known, it can."""
    ours, theirs = ({one.name.lower(): one.type for one in schema} for schema in (source, target))
    try:
        told = orjson.loads(stats or "{}")
    except ValueError:
        return True
    sides = [told.get(side) if isinstance(told, dict) else None for side in (_MIN, _MAX)]
    ends = [{name.lower(): end for name, end in (side or {}).items()} for side in sides]
    return all(_may_hold(fact, ours, theirs, ends) for fact in facts)


def _may_hold(
    fact: KeyFacts, ours: Mapping[str, str], theirs: Mapping[str, str], ends: Sequence[Mapping[str, Any]]
) -> bool:
    """By one key."""
    name = fact.column.lower()
    kinds = {ours.get(name), theirs.get(name)}
    kind: type[int | str]
    if kinds <= _INTEGERS:
        kind = int
    elif kinds == {"string"}:
        kind = str  # code points and UTF-8 have one order, and what statistics cut off widens a range
    else:
        return True
    low, high = (end.get(name) for end in ends)
    if fact.nulls or type(low) is not kind or type(high) is not kind:
        return True
    ranges = fact.ranges if fact.values is None else [(one, one) for one in fact.values]
    if fact.values is None and not ranges:
        return True
    if any(_REPLACED in end for ends in ranges for end in ends):
        return True
    return any(kind(begin) <= high and kind(end) >= low for begin, end in ranges)
