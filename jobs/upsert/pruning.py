"""Which rows of the target can the source's keys be, at all? A condition on the target alone, so that Delta leaves out
partitions and files by their statistics. Pure.

Whatever matches satisfies it, so it changes no result. Of a list of values Delta compares the smallest and the largest
with a file's statistics (partitions apart), so the gaps in it are said, too.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Final

from lakewarden.jobs.sql.compile.values import TableSchema, quoted

__all__ = [
    "BUCKETS",
    "FEW",
    "LONGEST",
    "RANGES",
    "Ends",
    "KeyFacts",
    "bucket_of",
    "fact_of",
    "lies_close",
    "pruning_of",
    "ranges_of",
]

FEW: Final = 100
"""So many distinct values of a key are listed one by one."""
RANGES: Final = 32
"""Into so many ranges the values of a key are put, where there are more."""
BUCKETS: Final = 1024
"""Into so many buckets they are sorted first, to find the gaps between them."""
LONGEST: Final = 8192
"""So many characters the values of one key may have in the condition: it is in the MERGE, and so in every commit."""
_CLOSE: Final = 0.8
"""If so many of the values between the smallest and the largest exist, gaps are not worth looking for."""
_SPAN: Final = 2**62
"""Keys that lie further apart are not put into ranges: differences would not fit into 64 bits."""
_DATE: Final = len("2026-11-22")
_FIRST_DATE: Final = "0001-01-01"
_NUMBERS: Final = {"date": "unix_date({})", "timestamp": "unix_micros({})"}
_INTEGERS: Final = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}
_DECIMAL: Final = re.compile(r"decimal\(\d+,\d+\)")
_TEXTS: Final = re.compile(r"string|varchar\(\d+\)")
_REPLACED: Final = "\ufffd"
"""Stands in Python for bytes of Spark's that are no UTF-8: such a text is another one than it was."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST: Final = -62_135_596_800_000_000
_LAST: Final = 253_402_300_799_999_999
"""Microseconds from 1970 to the beginning of year 1 and to the end of year 9999."""
_MEASURED: Final = ("date", "timestamp", *_INTEGERS)


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyFacts:
    """The values of one key in the source, as text (a timestamp as microseconds since 1970)."""

    column: str
    values: tuple[str, ...] | None = None
    """All of them where they are few, None where not."""
    ranges: tuple[tuple[str, str], ...] = ()
    """All values are in these."""
    nulls: bool = False
    """The key also has NULL, which matches."""


Ends = tuple[str, str] | tuple[None, None]
"""The smallest and the largest of some values, as in `KeyFacts`; None where there are none."""


def bucket_of(column: str, kind: str, ends: Ends) -> str | None:
    """An expression that puts the values of a key into at most `BUCKETS` buckets by their distances; None where nothing
    tells these. `column` as SQL."""
    if not _lies_apart(kind, ends):
        return None
    first, last = (_number(str(end), kind) for end in ends)
    number = f"CAST({_NUMBERS.get(kind, '{}').format(column)} AS BIGINT)"
    return f"({number} - ({first})) DIV {(last - first) // BUCKETS + 1}"


def fact_of(column: str, kind: str, ends: Ends, found: Sequence[Ends] | None, *, nulls: bool) -> KeyFacts:
    """What is known of a key with these `ends`. `found`: the ends of its buckets, which together hold all values; None
    where there are no buckets."""
    low, high = ends
    if found is not None and len(found) <= FEW and all(begin == end for begin, end in found):
        return KeyFacts(column=column, values=tuple(sorted(str(one) for one, _ in found)), nulls=nulls)
    if low is None or high is None:
        return KeyFacts(column=column, nulls=nulls)
    if found is None or not _lies_apart(kind, ends):
        return KeyFacts(column=column, ranges=((low, high),), nulls=nulls)
    texts = {_number(str(end), kind): str(end) for bucket in found for end in bucket}
    buckets = [(_number(str(begin), kind), _number(str(end), kind)) for begin, end in found]
    ranges = tuple((texts[begin], texts[end]) for begin, end in ranges_of(buckets))
    return KeyFacts(column=column, ranges=ranges, nulls=nulls)


def _lies_apart(kind: str, ends: Ends) -> bool:
    """Whether there are gaps between values."""
    low, high = ends
    if low is None or high is None or kind not in _MEASURED:
        return False
    if kind == "date" and (len(low) + len(high) != 2 * _DATE or low < _FIRST_DATE):
        return False  # years of five digits, or before the first
    return _number(high, kind) - _number(low, kind) < _SPAN


def lies_close(kind: str, ends: Ends, distinct: int) -> bool:
    """Whether about so many distinct values fill the range between their ends: then there are no gaps to look for. Few
    have to fill it all: what lies in a gap may be a partition."""
    if not _lies_apart(kind, ends):
        return False
    first, last = (_number(str(end), kind) for end in ends)
    return distinct >= (1 if distinct <= FEW else _CLOSE) * (last - first + 1)


def _number(text: str, kind: str) -> int:
    return date.fromisoformat(text).toordinal() - _EPOCH.toordinal() if kind == "date" else int(text)


def pruning_of(
    facts: Sequence[KeyFacts],
    source: TableSchema,
    target: TableSchema,
    *,
    partitions: Sequence[str] = (),
    escapes: bool = True,
) -> str:
    """The condition, empty where nothing can be said. The target is partitioned by `partitions`; `escapes`: backslashes
    in texts are escapes for the session."""
    ours, theirs = ({one.name.lower(): one.type for one in schema} for schema in (source, target))
    parted = {name.lower() for name in partitions}
    said = (
        _one(fact, ours, theirs, escapes=escapes, has_files=fact.column.lower() not in parted)
        for fact in facts
    )
    return " AND ".join(one for one in said if one)


def ranges_of(buckets: Sequence[tuple[int, int]], most: int = RANGES) -> tuple[tuple[int, int], ...]:
    """At most so many ranges that hold those of the buckets: the widest gaps between these stay open, and none that
    is narrower than a bucket."""
    ordered = sorted(buckets)
    least = (ordered[-1][1] - ordered[0][0]) // BUCKETS + 1 if ordered else 0
    widths = {place: ordered[place][0] - ordered[place - 1][1] for place in range(1, len(ordered))}
    gaps = sorted(
        (place for place, width in widths.items() if width > least), key=widths.__getitem__, reverse=True
    )
    cuts = [0, *sorted(gaps[: most - 1]), len(ordered)]
    parts = (ordered[begin:end] for begin, end in pairwise(cuts))
    return tuple((part[0][0], part[-1][1]) for part in parts if part)


def _one(
    fact: KeyFacts, ours: Mapping[str, str], theirs: Mapping[str, str], *, escapes: bool, has_files: bool
) -> str:
    """Of one key. `has_files`: what it leaves out are files by their statistics, not partitions."""
    name = fact.column.lower()
    kind = theirs[name]
    if not _alike(ours.get(name, kind), kind) or (_TEXTS.fullmatch(kind) and not escapes):
        return ""
    if kind == "timestamp" and not _within_years(fact):
        return ""
    if any(_REPLACED in one for one in _told(fact)):
        return ""
    if kind in _INTEGERS:  # a value that the target's type cannot hold is still one
        kind = max(kind, ours.get(name, kind), key=tuple(_INTEGERS).index)
    column = f"target.{quoted(fact.column)}"
    fact = _bounded(fact, kind)
    if fact.values is not None:
        listed = ", ".join(_literal(value, kind) for value in fact.values)
        found = f"{column} IN ({listed})" if fact.values else "FALSE"
        gaps = _between(column, _ranges_among(fact.values, kind), kind) if has_files else ""
        found = f"{found} AND {gaps}" if " OR " in gaps else found
    elif fact.ranges:
        found = _between(column, fact.ranges, kind)
    else:
        return ""
    return f"(({found}) OR {column} IS NULL)" if fact.nulls else found


def _bounded(fact: KeyFacts, kind: str) -> KeyFacts:
    """The same of values that are too long to be written down: no more than their ends, if these are not."""
    values = fact.values or ()
    if sum(map(len, values)) > LONGEST:
        texts = sorted(values) if _TEXTS.fullmatch(kind) else ()  # code points and UTF-8 have one order
        fact = replace(fact, values=None, ranges=((texts[0], texts[-1]),) if texts else ())
    is_long = sum(len(end) for ends in fact.ranges for end in ends) > LONGEST
    return replace(fact, ranges=()) if is_long else fact


def _between(column: str, ranges: Sequence[tuple[str, str]], kind: str) -> str:
    """Whether a value lies in one of the ranges."""
    literals = [(_literal(low, kind), _literal(high, kind)) for low, high in ranges]
    parts = [
        f"{column} = {low}" if low == high else f"{column} BETWEEN {low} AND {high}" for low, high in literals
    ]
    return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"


def _ranges_among(values: Sequence[str], kind: str) -> Sequence[tuple[str, str]]:
    """A few values as ranges with the gaps between them open; none where they do not tell these."""
    if not values:
        return ()
    if kind not in _MEASURED:
        return [(value, value) for value in values] if len(values) <= RANGES else ()
    ordered = sorted(values, key=lambda value: _number(value, kind)) if kind != "date" else sorted(values)
    if not _lies_apart(kind, (ordered[0], ordered[-1])):
        return ()
    texts = {_number(value, kind): value for value in ordered}
    return [(texts[low], texts[high]) for low, high in ranges_of([(one, one) for one in texts])]


def _alike(ours: str, theirs: str) -> bool:
    """Whether values of the two types are compared without a cast, and have the same form in statistics."""
    if ours in _INTEGERS and theirs in _INTEGERS:
        return True
    if _TEXTS.fullmatch(ours) and _TEXTS.fullmatch(theirs):
        return True
    if _DECIMAL.fullmatch(theirs):
        return ours == theirs
    return ours == theirs and theirs in ("date", "timestamp", "timestamp_ntz")


def _within_years(fact: KeyFacts) -> bool:
    """Whether all moments have a year of four digits, as they are written."""
    return all(_FIRST <= int(one) <= _LAST for one in _told(fact))


def _told(fact: KeyFacts) -> tuple[str, ...]:
    """The values and ends that are known."""
    return (*(fact.values or ()), *(end for ends in fact.ranges for end in ends))


def _literal(value: str, kind: str) -> str:
    if kind in _INTEGERS:
        return f"{value}{_INTEGERS[kind]}"
    if _DECIMAL.fullmatch(kind):
        return f"{value}BD"
    if kind == "date":
        return f"DATE'{value}'"
    if kind == "timestamp":
        moment = _EPOCH + timedelta(microseconds=int(value))
        return f"TIMESTAMP'{moment.isoformat(sep=' ', timespec='microseconds')}'"
    if kind == "timestamp_ntz":
        return f"TIMESTAMP_NTZ'{value}'"
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
