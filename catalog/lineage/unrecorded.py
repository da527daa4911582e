"""The end of a log that is not on record yet, and which UUID the table had before it.

What is on record is told by UUID: a table that was dropped and made again counts its versions anew, and
CREATE OR REPLACE goes on counting under another UUID. A RESTORE that does not say where it went is looked
into here, once: what its files tell goes on record with the rest.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.formats.port import Commit, TableReader
from lakewarden.catalog.lineage.versions import is_blind_restore
from lakewarden.catalog.model.arrow_columns import highest_of_pairs
from lakewarden.catalog.model.rows import Confidence, LineageRow, TableRow

__all__ = [
    "Recorded",
    "UnrecordedCommits",
    "newest_on_record",
    "recorded_by_table",
    "recorded_of",
    "recorded_upto",
    "unrecorded",
]

Recorded = Mapping[str | None, int]
"""By UUID (None: not known), the newest version of a table that `lakewarden.lineage` has rows for."""
_EVERYTHING = -1


@dataclass(frozen=True, kw_only=True, slots=True)
class UnrecordedCommits:
    """Commits in order."""

    commits: Sequence[Commit]
    format_id: str | None = None
    """The UUID before the first of them, None if it is not known or there was none."""
    anew: bool = False
    """All commits of the log, although something is on record, because that may be another log's."""


def recorded_upto(recorded: Recorded, format_id: str | None) -> int | None:
    """The newest version on record of a table with this UUID; of whatever UUID where there is none with it."""
    return recorded.get(format_id, max(recorded.values(), default=None))


def newest_on_record(row: TableRow, recorded: Recorded) -> int | None:
    """The newest version on record of a table as it was last seen."""
    return recorded_upto(recorded, row.format_ids[-1] if row.format_ids else None)


def recorded_of(rows: Iterable[LineageRow]) -> Recorded:
    """The records about one table, from its rows. What a session saw its plan read is written down at once, its commit
    perhaps not seen yet: that does not count."""
    found: dict[str | None, int] = {}
    for row in rows:
        if row.confidence is not Confidence.PLAN:
            known = found.get(row.output_format_id, row.output_version)
            found[row.output_format_id] = max(known, row.output_version)
    return found


def recorded_by_table(rows: pa.Table) -> dict[str, dict[str | None, int]]:
    """The same for every table, from the columns of all rows."""
    harvested = rows.filter(pc.not_equal(rows["confidence"], Confidence.PLAN.value))
    return highest_of_pairs(
        harvested["output_id"], harvested["output_format_id"], harvested["output_version"]
    )


def unrecorded(
    reader: TableReader,
    row: TableRow,
    *,
    recorded: Recorded,
    newest: int,
    head_id: str | None = None,
    upto: int | None = None,
) -> UnrecordedCommits:
    """The commits up to version `upto` (None: all) of a table's log that `lakewarden.lineage` has no rows for.

    `newest` is the newest version there is, `head_id` the UUID of head where that is known. Commits behind a change of
    the UUID may be among them although they are on record.
    """
    location = row.location or ""
    after, format_id = _EVERYTHING, None
    if recorded:
        after, format_id = _resumed(reader, row, recorded, newest, head_id)
    commits = tuple(_told(reader, location, one) for one in reader.commits(location, after=after, upto=upto))
    return UnrecordedCommits(
        commits=commits, format_id=format_id, anew=bool(recorded) and after == _EVERYTHING
    )


def _resumed(
    reader: TableReader, row: TableRow, recorded: Recorded, newest: int, head_id: str | None
) -> tuple[int, str | None]:
    """The newest version on record that is surely of this very log, and its UUID."""
    if head_id is not None and head_id in recorded:
        same = {head_id}
    else:
        first = next(iter(reader.commits(row.location or "", after=_EVERYTHING)), None)
        began = None if first is None or first.parent is not None else first.format_id
        if began is None:  # the beginning is cleaned away
            same = {one for one in recorded if one is not None}
        elif began in recorded:
            same = {began, *_since(row, began)}
        else:
            same = set()
        if not same and None in recorded and (began is None or began in row.format_ids):
            return _within(recorded[None], newest), row.format_ids[-1] if row.format_ids else None
    found = [(version, one) for one, version in recorded.items() if one in same and version <= newest]
    return max(found, default=(_EVERYTHING, None), key=lambda one: one[0])


def _since(row: TableRow, began: str) -> Sequence[str]:
    """The UUIDs that a table was seen with since a log began with one of them."""
    places = [place for place, one in enumerate(row.format_ids) if one == began]
    return row.format_ids[places[-1] :] if places else ()


def _within(version: int, newest: int) -> int:
    return version if version <= newest else _EVERYTHING


def _told(reader: TableReader, location: str, commit: Commit) -> Commit:
    if not is_blind_restore(commit):
        return commit
    return replace(commit, restored=reader.restored(location, version=commit.version))
