"""Commits that were made from versions which were taken back since: a job that had read before the rollback. Pure.

A rollback follows the lineage that is there when it runs. A commit that cites one of its versions and appears later, on
whatever table, is found here, for as long as it is in that table's head. Only what a commit read itself is looked at: a
table made from such a table has its own finding only if it cites a taken-back version itself.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from lakewarden.catalog.lineage.incarnations import may_be_same
from lakewarden.catalog.lineage.rows import ALIAS, RESTORE
from lakewarden.catalog.lineage.versions import Effect, effect_of
from lakewarden.catalog.model import Confidence, LineageRow, Mark, MarkVerdict
from lakewarden.catalog.rollbacks import Undone

__all__ = ["UndoneRead", "undone_reads"]

_SURE: Final = (Confidence.COMMITTED, Confidence.STREAM, Confidence.PLAN)


@dataclass(frozen=True, kw_only=True, slots=True)
class UndoneRead:
    """`version` of a table was made from `input_version` of another (or of itself), which `undone` speaks of."""

    version: int
    input_version: int
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

    `rows` is the lineage of the table (its versions as outputs), `format_id` its UUID at `head`, `undone` by `table_id` or
    location. A version that is marked clean does not count, nor does what a full overwrite or a RESTORE has left behind.
    """
    by_version = _of_this_log(rows, head, format_id)
    clean = [one for one in marks if one.verdict is MarkVerdict.CLEAN]
    found: list[UndoneRead] = []
    version, passed = head, set[int]()
    while version >= 0 and version not in passed:
        passed.add(version)
        said = by_version.get(version, ())
        found += [read for row in said if not _is_clean(row, clean) for read in _read(row, undone)]
        version = _origin(version, said)
    return tuple(found)


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
    first = row.input_version if row.from_version is None else row.from_version + 1
    return [
        UndoneRead(version=row.output_version, input_version=min(row.input_version, one.last), undone=one)
        for one in undone.get(row.input_id, ())
        if first <= one.last
        and one.first <= row.input_version
        and may_be_same(row.input_format_id, one.format_id)
    ][:1]


def _origin(version: int, said: Sequence[LineageRow]) -> int:
    """The version whose content this one carries on; -1 where it begins anew."""
    own = next((row for row in said if row.confidence is not Confidence.PLAN), None)
    if own is None or own.operation == ALIAS:
        return version - 1
    if own.operation == RESTORE:
        return -1 if own.input_version is None else own.input_version
    reads_self = any(row.input_id == row.output_id for row in said)
    return -1 if effect_of(own.operation) is Effect.FRESH and not reads_self else version - 1
