"""Which of an owner's marks speak of the table as it is now. Pure.

A mark names the UUID that the table had at its version. A table that was dropped and made again counts from 0
anew, with another UUID: marks of its predecessor say nothing of it. After CREATE OR REPLACE the log goes on:
versions from before keep their marks, and no later version has one.
"""

from collections.abc import Iterable, Sequence

from lakewarden.catalog.lineage.versions import Version
from lakewarden.catalog.model.rows import Mark, MarkVerdict

__all__ = ["marked", "standing_marks"]


def standing_marks(
    marks: Iterable[Mark], history: Sequence[Version], head_id: str | None, *, branching: bool = False
) -> tuple[Mark, ...]:
    """The marks on versions of this log; `head_id` is the table's UUID now, None if it cannot be read.

    If the log no longer tells the UUID of a version, the UUID has to be one in the log. Of a `branching` log, versions
    after its last may have expired.
    """
    if not history:
        return ()
    told = {one.version: one.format_id for one in history}
    known = {one for one in (*told.values(), head_id) if one is not None}
    last = history[-1].version

    def stands(mark: Mark) -> bool:
        if mark.format_id is None or (mark.version > last and not branching):
            return mark.version <= last
        stamp = told.get(mark.version)
        return mark.format_id == stamp if stamp is not None else mark.format_id in known

    return tuple(mark for mark in marks if stands(mark))


def marked(
    marks: Iterable[Mark],
    verdict: MarkVerdict,
    history: Sequence[Version],
    head_id: str | None,
    *,
    branching: bool = False,
) -> tuple[int, ...]:
    """The versions of this log with a verdict, in order; `branching` as for `standing_marks`."""
    standing = standing_marks(marks, history, head_id, branching=branching)
    return tuple(sorted(one.version for one in standing if one.verdict is verdict))
