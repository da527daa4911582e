"""Which other tables read files of one table's folder: shallow clones, and whoever else names them by absolute paths.

The system tables know where a table's files lay when the last sweep saw it. A table that has moved since is looked at
here: without a daemon, that sweep may be long ago.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from lakewarden.catalog.errors import LakewardenError, PreconditionError
from lakewarden.catalog.formats.files_elsewhere import is_reach_known, reads_from, with_reach
from lakewarden.catalog.formats.port import DataFile, LogProblem, Observation, TableReader
from lakewarden.catalog.model.rows import GONE, TableRow, TableState
from lakewarden.catalog.storage.place import Moment, Presence
from lakewarden.jobs.deletion.file_places import FilePlaces
from lakewarden.jobs.runs.port import JobContext

__all__ = ["FolderReaders", "named_paths"]


@dataclass(frozen=True, kw_only=True, slots=True)
class FolderReaders:
    """The other tables that read files of the folder that a run deletes from."""

    ctx: JobContext
    looked: dict[str, bool] = field(default_factory=dict)
    """What was looked at because nobody had before stays here."""

    def now(self) -> tuple[TableRow, ...]:
        """The readers that are managed or dropped, and not gone, by `table_id`. Where nobody has looked at a table yet,
        it is looked at here, once; raises `PreconditionError` if it cannot be seen."""
        guard, here = self.ctx.guard, self.ctx.target.location
        if guard is None:
            return ()
        moment = Moment(strict=True)
        rows = {row.table_id: row for row in guard.moved(self._as_it_is) if reads_from(row, here, moment)}
        rows |= {row.table_id: row for row in guard.readers_of(here)}
        return tuple(
            row
            for _, row in sorted(rows.items())
            if row.table_id != self.ctx.target.table_id
            and row.state is not TableState.PURGED
            and not self._is_gone(row)
            and (is_reach_known(row) or self._reads_from_here(row))
        )

    def places_named(self, row: TableRow) -> Iterator[str]:
        """The places of all files that a reader's log names, live or removed, to be compared with those of files in
        the folder. Raises `PreconditionError` if it cannot be read."""
        location = row.location or ""
        places = FilePlaces(location, of_folder=self.ctx.target.location)
        name = self.ctx.target.name
        try:
            for path in _all_paths(self.ctx.reader, location):
                yield places.of(path)
        except LakewardenError as error:
            raise PreconditionError(
                f"{row.name} reads files of {name}, and which ones cannot be told: {error}",
                hint="Repair it or bring it back; if it has moved, register it where it is now; "
                f"if it is gone for good, drop it. Until then nothing of {name} is deleted.",
            ) from error

    def _as_it_is(self, row: TableRow, version: int | None, head: str | None) -> TableRow | None:
        """The row, with where the table's files lie now; None if it has not moved since the sweep saw `version`. Of one
        that cannot be seen now, as for a sweep, what is on record counts."""
        reader, location = self.ctx.reader, row.location or ""
        if row.format != self.ctx.target.format:
            return None
        try:
            probe = reader.probe(location, seen=version, head=head)
            if probe.latest is None or not probe.moved:
                return None
            seen = reader.observe(location)
        except LakewardenError:
            return None
        return _told(row, seen) if isinstance(seen, Observation) else None

    def _is_gone(self, row: TableRow) -> bool:
        """One that cannot be seen now, because its disk is away, is not; nor is a clone that is managed still and
        not at its place: somebody may have moved it, and it reads the same files from wherever it is now."""
        found = Moment().place(row.location or "").presence(self.ctx.storage, self.ctx.reader.is_table)
        return found is Presence.GONE and not (is_reach_known(row) and row.state not in GONE)

    def _reads_from_here(self, row: TableRow) -> bool:
        if row.table_id not in self.looked:
            location, name = row.location or "", self.ctx.target.name
            if not self.ctx.reader.is_table(location):
                raise PreconditionError(
                    f"{row.name} may read files of {name}: nobody has looked yet, and it cannot be seen now.",
                    hint=f"Bring it back, or drop and purge it; until then nothing of {name} is deleted.",
                )
            told = _told(row, self.ctx.reader.observe(location))
            self.looked[row.table_id] = reads_from(told, self.ctx.target.location, Moment(strict=True))
        return self.looked[row.table_id]


def _told(row: TableRow, seen: Observation | LogProblem) -> TableRow:
    """The row, with where the files of the table lie that was seen; in no other folder where its log is broken."""
    elsewhere = seen.elsewhere if isinstance(seen, Observation) else ()
    return replace(row, properties=with_reach(row.properties, row.location or "", elsewhere))


def named_paths(files: Iterable[DataFile]) -> Iterator[str]:
    """The paths of data files and of the files that hold their deletion vectors."""
    for file in files:
        yield file.path
        if file.deletion_vector is not None:
            yield file.deletion_vector


def _all_paths(reader: TableReader, location: str) -> Iterator[str]:
    """Every file that the log at a location names, live or removed, or on a branch or tag."""
    yield from named_paths(reader.files(location))
    yield from reader.side_files(location)
    for stone in reader.tombstones(location):
        yield stone.path
        if stone.deletion_vector is not None:
            yield stone.deletion_vector
