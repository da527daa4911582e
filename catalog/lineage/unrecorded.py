"""The end of a log that is not on record yet, and which UUID the table had before it.

A RESTORE that does not say where it went is looked into here, once: what its files tell goes on record with the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lakewarden.catalog.formats.base import Commit, TableReader
from lakewarden.catalog.lineage.tail import resume_after
from lakewarden.catalog.lineage.versions import is_blind_restore
from lakewarden.catalog.model import TableRow

__all__ = ["Unrecorded", "unrecorded"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Unrecorded:
    """Commits in order; `format_id` is the UUID before the first of them, None if it is not known or there was none.
    `anew`: all commits of the log, because it may be another one than that on record."""

    commits: Sequence[Commit]
    format_id: str | None = None
    anew: bool = False


def unrecorded(
    reader: TableReader,
    row: TableRow,
    *,
    on_record: int | None,
    head: int,
    head_id: str | None = None,
    upto: int | None = None,
) -> Unrecorded:
    """The commits up to version `upto` (None: all) of a table's log that `lakewarden.lineage` has no rows for.

    `on_record` is the newest version that has rows, `head` the newest there is, `head_id` its UUID where that is known. A
    table that was dropped and made again may have more versions by now than are on record: its version 0 has a UUID that
    the row does not know.
    """
    location = row.location or ""
    after = resume_after(on_record, head)
    if after >= 0 and row.format_ids and head_id != row.format_ids[-1]:
        first = next(iter(reader.commits(location, after=-1, upto=0)), None)
        if first is not None and first.format_id is not None and first.format_id not in row.format_ids:
            after = -1
    commits = tuple(_told(reader, location, one) for one in reader.commits(location, after=after, upto=upto))
    if after < 0:
        return Unrecorded(commits=commits, anew=on_record is not None)
    return Unrecorded(commits=commits, format_id=row.format_ids[-1] if row.format_ids else None)


def _told(reader: TableReader, location: str, commit: Commit) -> Commit:
    if not is_blind_restore(commit):
        return commit
    return replace(commit, restored=reader.restored(location, version=commit.version))
