"""Schema versions with column ids that outlive renames and moves. Pure.

Where a table maps its columns (Delta column mapping), the format's own field ids are the truth. Elsewhere lakewarden
assigns ids and keeps them by name: there a rename is a drop and an add, because that is what the files say too.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from lakewarden.catalog.formats.port import Commit, Observation
from lakewarden.catalog.model.rows import Change, Column, ColumnChange, SchemaRow

__all__ = ["assign_ids", "changes_between", "next_schema"]


class Commits(Protocol):
    """`TableReader.commits`, or what stands for it."""

    def __call__(self, location: str, *, after: int, upto: int | None = None) -> Iterable[Commit]:
        """The versions with `after` < version <= `upto` and a log entry, in order."""


def next_schema(
    table_id: str, seen: Observation, history: Sequence[SchemaRow], commits: Commits
) -> SchemaRow | None:
    """The schema version to record for what was just read, given all those on record; None if nothing changed.

    The last commit since the one on record that set the table's metadata made this schema. Where its log entry is gone,
    or nothing was on record before, the version is the one that was read. A head that was moved back shows a schema
    that is on record: nothing changed, whatever came after it meanwhile.
    """
    before, since = _made_from(seen, history, commits)
    known = before.columns if before is not None else ()
    used = max((column.id for row in history for column in row.columns), default=0)
    columns = seen.schema if seen.names_columns else assign_ids(seen.schema, known, used=used)
    if before is not None and before.columns == columns:
        return None
    made = None if before is None else next((one for one in since if one.format_id is not None), None)
    return SchemaRow(
        table_id=table_id,
        version=seen.version if made is None else made.version,
        schema_id=max((row.schema_id + 1 for row in history), default=0),
        columns=columns,
        changes=changes_between(known, columns) if before is not None else (),
        changed_by=None if made is None else made.user,
        changed_at=seen.committed_at if made is None else made.committed_at,
    )


def _made_from(
    seen: Observation, history: Iterable[SchemaRow], commits: Commits
) -> tuple[SchemaRow | None, Sequence[Commit]]:
    """The schema on record that the one just read follows, and the commits from it to head, newest first.

    That of the youngest version that head was made from, or is: others have been left behind by a head that was moved
    back. Where the log does not reach so far, the newest one before it.
    """
    recorded = sorted((row for row in history if row.version <= seen.version), key=lambda row: -row.version)
    version: int | None = seen.version
    line = list[Commit]()
    for row in recorded:
        there = {one.version: one for one in commits(seen.location, after=row.version, upto=version)}
        while version in there:
            line.append(there[version])
            version = there[version].parent
        if version is None:
            break
        if version >= row.version:  # it is this one, or nobody can tell any more
            return row, line
    return None, line


def assign_ids(columns: Iterable[Column], known: Iterable[Column], *, used: int) -> tuple[Column, ...]:
    """Give every column the id that its path has among `known`, new ones an id above `used`: none is used twice."""
    ids = {column.path: column.id for column in known}
    assigned: list[Column] = []
    for column in columns:
        if column.path not in ids:
            used += 1
            ids[column.path] = used
        assigned.append(replace(column, id=ids[column.path]))
    return tuple(assigned)


def changes_between(before: tuple[Column, ...], after: tuple[Column, ...]) -> tuple[ColumnChange, ...]:
    """What happened to each column, by id: dropped ones first, then in the order of the new schema."""
    old = {column.id: column for column in before}
    new = {column.id: column for column in after}
    changes = [
        ColumnChange(column_id=column.id, change=Change.DROP, before=_words(column))
        for column in before
        if column.id not in new
    ]
    moved = _moved(
        [column.id for column in before if column.id in new], [one.id for one in after if one.id in old]
    )
    for column in after:
        if column.id not in old:
            changes.append(ColumnChange(column_id=column.id, change=Change.ADD, after=_words(column)))
        else:
            changes.extend(_changes_of(old[column.id], column, moved=column.id in moved))
    return tuple(changes)


def _changes_of(before: Column, after: Column, *, moved: bool) -> list[ColumnChange]:
    pairs = (
        (Change.RENAME, before.path, after.path),
        (Change.TYPE, before.type, after.type),
        (Change.NULLABILITY, _null_words(before), _null_words(after)),
    )
    changes = [
        ColumnChange(column_id=after.id, change=change, before=old, after=new)
        for change, old, new in pairs
        if old != new
    ]
    return [*changes, ColumnChange(column_id=after.id, change=Change.MOVE)] if moved else changes


def _moved(before: list[int], after: list[int]) -> set[int]:
    """Ids whose place among the columns that stayed is another one."""
    return {one for place, one in enumerate(after) if before[place] != one}


def _words(column: Column) -> str:
    return f"{column.path} {column.type}{'' if column.nullable else ' NOT NULL'}"


def _null_words(column: Column) -> str:
    return "nullable" if column.nullable else "not null"
