"""How long a table has to keep what tables derived from it promise. Pure.

Undoing a bad load in a source and in all that came from it needs the source's versions for as long as any of these
promises to be undoable: the effective promise of a table is the longest of its own and those downstream.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lakewarden.catalog.model.rows import GONE, TableState

__all__ = ["LongerPromise", "downstream_of", "ids_by_place", "longer_promises"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LongerPromise:
    """A promise longer than the table's own, in seconds."""

    seconds: int
    table_id: str
    """The downstream table that made it."""


def longer_promises(own: Mapping[str, int], pairs: Iterable[tuple[str, str]]) -> Mapping[str, LongerPromise]:
    """By `table_id`, the tables that have to keep more than they promise themselves.

    `own` has every table's promise in seconds, `pairs` the (input, output) tables of all lineage, with circles and
    tables unknown to `own` as they come. Tables are visited once, from the longest promise down: linear in pairs.
    """
    inputs = defaultdict(set)
    for source, target in pairs:
        inputs[target].add(source)
    longest: dict[str, LongerPromise] = {}
    for table_id, seconds in sorted(own.items(), key=lambda item: (-item[1], item[0])):
        if table_id in longest or table_id not in inputs:
            continue
        promise = LongerPromise(seconds=seconds, table_id=table_id)
        longest[table_id] = promise
        ends = [table_id]
        while ends:
            for source in inputs.get(ends.pop(), ()):
                if source not in longest:
                    longest[source] = promise
                    ends.append(source)
    return {
        table_id: promise
        for table_id, promise in longest.items()
        if table_id in own and promise.seconds > own[table_id]
    }


def ids_by_place(tables: Iterable[tuple[str | None, str, str]]) -> Mapping[str, str]:
    """Whose reads are on record by their place, because nobody managed it then: location to `table_id`.

    `tables` are (location, `table_id`, state). A dropped table stands between its inputs and its readers all
    the same; of several at one place the one that is managed counts. What was purged is no table's place any more.
    """
    there = [one for one in tables if one[0] is not None and one[2] != TableState.PURGED]
    there.sort(key=lambda one: (one[2] not in GONE, one[1]))
    return {place: table_id for place, table_id, _ in there if place is not None}


def downstream_of(table_id: str, pairs: Iterable[tuple[str, str]]) -> frozenset[str]:
    """The tables derived from a table, directly or through others, by (input, output) pairs."""
    outputs = defaultdict(set)
    for source, target in pairs:
        outputs[source].add(target)
    found, ends = set[str](), [table_id]
    while ends:
        for target in outputs.get(ends.pop(), ()):
            if target not in found and target != table_id:
                found.add(target)
                ends.append(target)
    return frozenset(found)
