"""What sessions noted of writes that are not governed becomes rows of `lakewarden.lineage`.

Which commit a note is of the table's log decides: the only one without a record of ours that was made between the
command's beginning and its end. Where there are several, or none, nobody can tell, and nothing is written. Where it is
known what the write has read, and that this was all, the rows are those of an executed plan; else they are hints, and
the commit stays unknown.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Final

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import LakewardenError, UnavailableError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.port import Commit, CommitKind, TableReader
from lakewarden.catalog.formats.registry import reader_of
from lakewarden.catalog.lineage.edges import NOTHING
from lakewarden.catalog.lineage.versions import version_of
from lakewarden.catalog.lineage.write_notes import SeenRead, WriteNote, WriteNotes
from lakewarden.catalog.model.rows import NO_PARENT, Confidence, LineageRow, TableRow
from lakewarden.catalog.system.port import LINEAGE, Fence, SystemStore
from lakewarden.catalog.units import count_of
from lakewarden.daemon.control.noted_files import is_young, legible
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.daemon.fleet.questions import Questions
from lakewarden.daemon.telemetry.log import get_log

__all__ = ["WriteClerk"]

_LOOKED_BACK: Final = 200
"""So many of the newest commits are looked at."""
_NO_ROWS: Final = (
    CommitKind.CREATE,
    CommitKind.MAINTENANCE,
    CommitKind.SCHEMA,
    CommitKind.PROPERTIES,
    CommitKind.METADATA,
    CommitKind.RESTORE,
)
"""What no write of rows is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteClerk:
    """Empties the folder of notes, by one commit per cycle at most."""

    store: SystemStore
    notes: WriteNotes
    cache: FleetCache
    readers: Sequence[TableReader]
    clock: Clock
    questions: Questions = field(default_factory=Questions)
    """Asks disks in time."""

    def record(self, fence: Fence) -> int:
        """Record what was noted; how many rows. Raises `UnavailableError` if the storage of the notes does
        not answer."""
        rows: list[LineageRow] = []
        done: list[str] = []
        for name, notes in legible(self.notes, _put_aside).items():
            found = [self._told(note, young=is_young(self.notes, name, self.clock.now())) for note in notes]
            if all(one is not None for one in found):
                rows += [row for each in found if each is not None for row in each]
                done.append(name)
        if rows:
            because = f"what {count_of(len(done), 'session')} saw of plain writes"
            self.cache.learned(rows, self.store.append(LINEAGE, rows, fence=fence, because=because))
            reach("writes.recorded")
        for name in done:
            self.notes.delete(name)
        return len(rows)

    def _told(self, note: WriteNote, *, young: bool) -> Sequence[LineageRow] | None:
        """The rows of a write; None if it is too early to say."""
        row = self.cache.row_at(note.location)
        if row is None:
            return None if young else ()
        try:
            commit = self._commit(row, note)
            if commit is None:
                return ()
            upto = self.cache.lineage_upto(row.table_id)
            # The newest version on record stays the place where the next sweep goes on.
            return None if upto is None or upto < commit.version else self._rows(row, note, commit)
        except UnavailableError:
            return None  # its storage is away: another time
        except LakewardenError:
            return ()  # a log that cannot be read says so elsewhere

    def _commit(self, row: TableRow, note: WriteNote) -> Commit | None:
        made = self._between(row, note.location, note)
        own = [one for one in made or () if one.kind not in _NO_ROWS and one.run_id is None]
        if len(own) != 1 or own[0].lineage is not None or note.version not in (None, own[0].version):
            return None
        return own[0]

    def _between(self, row: TableRow, location: str, note: WriteNote) -> Sequence[Commit] | None:
        """The commits to a table while a command ran; None if nobody can tell."""
        look = partial(reader_of(self.readers, row.format).newest, location, count=_LOOKED_BACK)
        newest = self.questions.one(location, look)
        if len(newest) == _LOOKED_BACK and _at(newest[0]) >= note.began:
            return None
        return [one for one in newest if note.began <= _at(one) <= note.ended]

    def _rows(self, row: TableRow, note: WriteNote, commit: Commit) -> Sequence[LineageRow]:
        made = version_of(commit)
        sure = [one for one in note.reads if not (note.twice and self._moved(one, note))]
        is_known = note.complete and len(sure) == len(note.reads)

        def edge(input_id: str, read: SeenRead | None = None) -> LineageRow:
            return LineageRow(
                output_id=row.table_id,
                output_version=commit.version,
                output_parent=NO_PARENT if commit.parent is None else commit.parent,
                input_id=input_id,
                input_version=None if read is None else read.version,
                operation=made.operation,
                run_id=None,
                confidence=Confidence.PLAN if is_known else Confidence.HINT,
                recorded_at=self.clock.now(),
                from_version=None if read is None else read.from_version,
                output_format_id=commit.format_id,
                input_format_id=None if read is None else read.format_id,
            )

        rows = [edge(self.cache.find(one.location) or one.location, one) for one in sure]
        return rows or ([edge(NOTHING)] if is_known else [])

    def _moved(self, read: SeenRead, note: WriteNote) -> bool:
        """Whether somebody has, or may have, committed to a source while the command ran."""
        source = self.cache.row_at(read.location)
        return source is None or self._between(source, read.location, note) != []


def _at(commit: Commit) -> datetime:
    return commit.stamped_at or commit.committed_at


def _put_aside(problem: str) -> None:
    get_log("writes").warning("a note was put aside", problem=problem)
