"""Versions that a head left behind without a RESTORE: somebody moved it back by hand. Pure.

A format may let its head be set to any version (a ref, a snapshot). What head showed before is in no commit of the
table then, so it is told when it is seen: by the head on record, the head that is there now, and what each version was
made from. Versions on other branches, which head never showed, are not left behind.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from lakewarden.catalog.formats.port import Head
from lakewarden.catalog.lineage.edges import parent_of
from lakewarden.catalog.lineage.graph.incarnations import may_be_same
from lakewarden.catalog.model.rollbacks import Undone
from lakewarden.catalog.model.rows import HealthRow, LeftVersions, LineageRow

__all__ = ["goes_on", "is_told", "left_by", "left_versions"]

_MOST: Final = 50
"""So many ranges of one table are kept, the newest: each is a move that somebody made by hand."""


def goes_on(before: int, now: int, fresh: Iterable[LineageRow]) -> bool:
    """Whether head went forward from one version to another, as far as the rows of the new versions tell."""
    parents = _parents(fresh)
    version = now
    while version > before and version in parents:
        version = parents[version]
    return version == before


def is_told(version: int, left: Iterable[LeftVersions], format_id: str) -> bool:
    """Whether it is on record that head of this table left a version."""
    return any(one.format_id == format_id and one.first <= version <= one.last for one in left)


def left_versions(
    before: HealthRow, *, head: int, format_id: str, rows: Iterable[LineageRow], shown: Iterable[int] = ()
) -> tuple[LeftVersions, ...]:
    """What head, which is at version `head` now, has left behind: now, and earlier unless it came back to it.

    `rows` is the table's lineage, new versions included. Where that does not tell how the two heads are related,
    nothing is added. `shown` are versions that the log says were in head, and are not any more: also between two looks.

    A range that is on record stays as it is while all of it is left, whatever is left beside it: what came of a move is
    on record by its range.
    """
    parents = _parents(row for row in rows if may_be_same(row.output_format_id, format_id))
    line = frozenset(_line(parents, head))
    known = [one for one in before.left_behind if one.format_id == format_id]
    left = {version for version in parents if is_told(version, known, format_id)}
    left.update(version for version in shown if version in parents and version > min(line))
    if before.version is not None and _is_of(before, format_id) and min(line) <= before.version:
        left.update(version for version in _line(parents, before.version) if version > min(line))
    left -= line
    kept = [one for one in known if _is_whole(one, parents, left)]
    new = {version for version in left if not is_told(version, kept, format_id)}
    found = [*kept, *(_range(parents, line, versions, format_id) for versions in _runs(sorted(parents), new))]
    others = [one for one in before.left_behind if one.format_id != format_id]
    return (*others, *sorted(found, key=lambda one: one.first))[-_MOST:]


def left_by(row: HealthRow) -> Iterator[Undone]:
    """The same as what was taken back."""
    for one in row.left_behind:
        yield Undone(
            table_id=row.table_id,
            name=row.name,
            first=one.first,
            last=one.last,
            by=f"moving head back to version {one.back_to}",
            format_id=one.format_id,
        )


def _parents(rows: Iterable[LineageRow]) -> Mapping[int, int]:
    return {row.output_version: parent_of(row) for row in rows}


def _line(parents: Mapping[int, int], version: int) -> Iterator[int]:
    """A version and those it was made from, newest first, as far as they are on record."""
    yield version
    while version in parents and parents[version] >= 0:
        version = parents[version]
        yield version


def _is_whole(one: LeftVersions, recorded: Iterable[int], left: AbstractSet[int]) -> bool:
    """Whether all of a range that is on record is left behind still."""
    versions = {version for version in recorded if one.first <= version <= one.last}
    return bool(versions) and versions <= left


def _runs(recorded: list[int], left: AbstractSet[int]) -> Iterator[list[int]]:
    """The versions left behind, in groups that no other version on record lies between."""
    run = list[int]()
    for version in recorded:
        if version in left:
            run.append(version)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _range(
    parents: Mapping[int, int], line: AbstractSet[int], versions: list[int], format_id: str
) -> LeftVersions:
    back_to = next((one for one in _line(parents, versions[0]) if one in line), min(line))
    return LeftVersions(first=versions[0], last=versions[-1], back_to=back_to, format_id=format_id)


def _is_of(before: HealthRow, format_id: str) -> bool:
    """Whether the recorded head belongs to this table, not to a predecessor at its place."""
    return before.version is not None and Head(before.version, before.head).format_id == format_id
