"""RESTOREs that are no rollback of ours: somebody took versions of a table back and nothing else. Pure.

What was derived from those versions is still there. Which versions they were is read from the table's log: what its head
had before the RESTORE, and has not any more.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.lineage.rows import RESTORE
from lakewarden.catalog.lineage.versions import Effect, Version
from lakewarden.catalog.model import LineageRow
from lakewarden.catalog.rollbacks import is_mark

__all__ = [
    "RESTORE_COLUMNS",
    "PlainRestore",
    "foreign_restores",
    "is_foreign_restore",
    "restores_in",
    "taken_back",
]

RESTORE_COLUMNS: Final = ("output_id", "output_version", "operation", "run_id", "output_format_id")
_OPERATIONS: Final = (RESTORE, "RESTORE")
"""The second where the log does not say which version was restored."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlainRestore:
    """Version `version` of a table is a RESTORE that no rollback of ours made; `format_id` is the table's UUID at it."""

    table_id: str
    version: int
    format_id: str | None


def restores_in(rows: pa.Table) -> Iterator[PlainRestore]:
    """The plain RESTOREs among rows of `lakewarden.lineage` (columns `RESTORE_COLUMNS`)."""
    found = rows.filter(pc.is_in(rows["operation"], value_set=pa.array(_OPERATIONS))).select(RESTORE_COLUMNS)
    for row in found.to_pylist():
        if not is_mark(row["run_id"]):
            yield PlainRestore(
                table_id=row["output_id"], version=row["output_version"], format_id=row["output_format_id"]
            )


def foreign_restores(rows: Iterable[LineageRow]) -> Iterator[PlainRestore]:
    """The same for rows as objects."""
    for row in rows:
        if row.operation in _OPERATIONS and not is_mark(row.run_id):
            yield PlainRestore(
                table_id=row.output_id, version=row.output_version, format_id=row.output_format_id
            )


def is_foreign_restore(one: Version) -> bool:
    """Whether a version of a log is a RESTORE that no rollback of ours made."""
    return one.effect is Effect.RESTORE and not is_mark(one.run_id)


def taken_back(
    history: Sequence[Version], restores: Collection[int], also: Iterable[int] = ()
) -> tuple[int, ...]:
    """The content commits that these RESTOREs took out of head, and `also`, less those that are in head again.

    A RESTORE that does not say where it went takes back nothing that could be told.
    """
    line = {one.version: one for one in history}
    lost = set(also)
    for version in restores:
        one = line.get(version)
        if one is not None and is_foreign_restore(one) and one.target is not None:
            lost |= set(_ancestors(line, version - 1)) - set(_ancestors(line, one.target))
    if history:
        lost -= set(_ancestors(line, history[-1].version))
    return tuple(sorted(version for version in lost if version in line and _is_content(line[version])))


def _ancestors(line: Mapping[int, Version], version: int) -> Iterator[int]:
    """The version and those its content goes back to, as far as the log tells, newest first."""
    one = line.get(version)
    while one is not None:
        yield one.version
        target = one.target if one.effect is Effect.RESTORE else None
        one = line.get(one.version - 1 if target is None else target)


def _is_content(one: Version) -> bool:
    return one.effect not in (Effect.ALIAS, Effect.RESTORE)
