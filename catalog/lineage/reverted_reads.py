"""Commits that were made from versions which were taken back since: a job that had read before the rollback. Pure.

A rollback follows the lineage that is there when it runs. A later commit of any table that cites one of its versions is
found here while that table's head holds it. Only what a commit read itself is looked at: a table made from such a table
has its own finding only if it cites a taken-back version itself.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lakewarden.catalog.lineage.edges import ALIAS, RESTORE, parent_of
from lakewarden.catalog.lineage.graph.incarnations import may_be_same
from lakewarden.catalog.lineage.versions import Effect, effect_of
from lakewarden.catalog.model.lineage_record import Operation
from lakewarden.catalog.model.rollbacks import Undone, is_mark
from lakewarden.catalog.model.rows import NO_PARENT, Confidence, LineageRow, Mark, MarkVerdict

__all__ = ["UndoneRead", "undone_reads"]

_SURE: Final = (Confidence.COMMITTED, Confidence.STREAM, Confidence.PLAN)


@dataclass(frozen=True, kw_only=True, slots=True)
class UndoneRead:
    """A version of a table was made from a version of another, or of itself, that was taken back."""

    version: int
    input_version: int
    """The version that it was made from."""
    undone: Undone


def undone_reads(
    rows: Iterable[LineageRow],
    head: int,
    undone: Mapping[str, Sequence[Undone]],
    *,
    format_id: str | None = None,
    marks: Iterable[Mark] = (),
) -> tuple[UndoneRead, ...]:
    """What the head of a table holds of versions that were taken back, newest first.

    `rows` is the lineage of the table (its versions as outputs), `format_id` its UUID at `head`, `undone` by
    `table_id` or location. A version that is marked clean does not count, nor does what a full overwrite or a
    RESTORE has left behind, or a rollback has taken the files of.
    """
    by_version = _of_this_log(rows, head, format_id)
    clean = [one for one in marks if one.verdict is MarkVerdict.CLEAN]
    found: list[UndoneRead] = []
    passed: set[tuple[int, bool]] = set()
    ends = [(head, True)]
    while ends:
        version, whole = ends.pop()
        if version < 0 or (version, True) in passed or (version, whole) in passed:
            continue
        said = by_version.get(version, ())
        if (version, False) not in passed:
            found += [read for row in said if not _is_clean(row, clean) for read in _read(row, undone)]
        passed.add((version, whole))
        ends += _origins(version, said, by_version) if whole else ()
    return tuple(sorted(found, key=lambda one: -one.version))


def _of_this_log(
    rows: Iterable[LineageRow], head: int, format_id: str | None
) -> Mapping[int, Sequence[LineageRow]]:
    """Rows by version. Where a table made anew counts the same versions again, those of its own UUID."""
    found: dict[int, list[LineageRow]] = defaultdict(list)
    for row in rows:
        if row.output_version <= head:
            found[row.output_version].append(row)
    for version, said in found.items():
        own = [row for row in said if row.output_format_id in (None, format_id)]
        found[version] = own or said
    return found


def _is_clean(row: LineageRow, clean: Sequence[Mark]) -> bool:
    return any(
        mark.version == row.output_version and may_be_same(mark.format_id, row.output_format_id)
        for mark in clean
    )


def _read(row: LineageRow, undone: Mapping[str, Sequence[Undone]]) -> Iterable[UndoneRead]:
    if row.operation in (ALIAS, RESTORE) or row.input_version is None or row.confidence not in _SURE:
        return ()
    if is_mark(row.run_id) and row.input_id == row.output_id:
        return ()  # a rollback of ours that takes out, or adds again, what it has looked at
    first = row.input_version if row.from_version is None else row.from_version + 1
    return [
        UndoneRead(version=row.output_version, input_version=min(row.input_version, one.last), undone=one)
        for one in undone.get(row.input_id, ())
        if first <= one.last
        and one.first <= row.input_version
        and may_be_same(row.input_format_id, one.format_id)
    ][:1]


def _origins(
    version: int, said: Sequence[LineageRow], by_version: Mapping[int, Sequence[LineageRow]]
) -> Sequence[tuple[int, bool]]:
    """The versions whose content this one carries on: whole, or only what they did themselves;
    none where it begins anew."""
    parent = _parent(version, said, by_version)
    own = next((row for row in said if row.confidence is not Confidence.PLAN), None)
    if own is None or own.operation == ALIAS:
        return [(parent, True)]
    if own.operation == RESTORE:
        return [] if own.input_version is None else [(own.input_version, True)]
    if own.operation == Operation.REMOVE_FILES:
        return [one for row in said for one in _left(row, by_version)]
    reads_self = any(row.input_id == row.output_id for row in said)
    return [] if effect_of(own.operation) is Effect.FRESH and not reads_self else [(parent, True)]


def _parent(version: int, said: Sequence[LineageRow], by_version: Iterable[int]) -> int:
    """The version that this one was made from; the newest before it on record where it is not on record itself."""
    if not said:
        return max((one for one in by_version if one < version), default=NO_PARENT)
    return parent_of(next((row for row in said if row.output_parent is not None), said[0]))


def _left(row: LineageRow, by_version: Iterable[int]) -> Sequence[tuple[int, bool]]:
    """What a version left in that took others out: one before them whole, and those in between for themselves."""
    if row.input_version is None or row.input_id != row.output_id:
        return []
    if row.from_version is None:
        return [(row.input_version, True)]
    return [(version, False) for version in by_version if row.from_version < version <= row.input_version]
