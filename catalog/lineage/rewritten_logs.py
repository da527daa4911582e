"""Logs that somebody put back and wrote on: versions that have been recorded exist no more, or are other commits now,
with the same numbers and the same UUID. Pure.

What the table was until then becomes a predecessor at the same place, as if it had been dropped and made again: its
rows of `lakewarden.lineage` get a UUID of their own, which holds the head that it ended with, so that what was read of
it is not taken for what has the same numbers now.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from lakewarden.catalog.clock import from_millis, to_millis
from lakewarden.catalog.formats.port import Commit, Head, Observation, TableReader
from lakewarden.catalog.formats.registry import has_branches
from lakewarden.catalog.lineage.edges import ALIAS, RESTORE, parent_of
from lakewarden.catalog.lineage.graph.incarnations import Histories
from lakewarden.catalog.lineage.recording import rows_from
from lakewarden.catalog.lineage.unrecorded import Recorded
from lakewarden.catalog.lineage.versions import Effect, Version, effect_of
from lakewarden.catalog.model.lineage_record import LineageInput, Operation
from lakewarden.catalog.model.rollbacks import Undone
from lakewarden.catalog.model.rows import Confidence, HealthRow, LeftVersions, LineageRow, Mark

__all__ = ["RewrittenLog", "ended_log", "ended_logs", "inputs_told_apart", "rewritten_log", "told_apart"]

_SINCE: Final = "~"


@dataclass(frozen=True, kw_only=True, slots=True)
class RewrittenLog:
    """Which versions of a table on record are not those that its log has now."""

    table_id: str
    location: str
    """Of a table that was read before it was managed, rows have this."""
    format_id: str
    """The table's UUID, before and now."""
    first: int
    last: int
    ended_as: str
    """The UUID of what the table was."""
    seen_at: datetime
    """When that head was seen."""
    since: datetime
    """What was committed before then has read what the table was."""

    def left(self) -> LeftVersions:
        """What head showed and shows no more."""
        return LeftVersions(first=self.first, last=self.last, back_to=self.first - 1, format_id=self.ended_as)

    def left_before(self, left: Iterable[LeftVersions]) -> Iterator[LeftVersions]:
        """What of `left` is left still: the numbers of what goes are those of other versions now."""
        for one in left:
            if one.format_id != self.format_id or one.last < self.first:
                yield one
            elif one.first < self.first:
                yield replace(one, last=self.first - 1)

    def mark(self, one: Mark) -> Mark:
        """An owner's mark; one that is of a version that goes stays with what the table was."""
        meant = one.version >= self.first and one.format_id == self.format_id and one.at < self.since
        return replace(one, format_id=self.ended_as) if meant else one

    def kept(self, recorded: Recorded) -> Recorded:
        """What is on record of the log as it is now."""
        kept: dict[str | None, int] = {
            one: version for one, version in recorded.items() if one not in (None, self.format_id)
        }
        if self.first > 0:
            kept[self.format_id] = self.first - 1
        return kept

    def is_meant(self, row: LineageRow) -> bool:
        """Whether a row is of a version that goes, or has one as input."""
        return self._is_own(row) or self._is_read(row)

    def moved(self, rows: Iterable[LineageRow]) -> Iterator[LineageRow]:
        """What takes the place of those rows that are meant. Those of the table itself that a sweep wrote which did not
        get to its end are of the log as it is now: nothing takes their place, for they are made once more. A reader
        that came on record after the log was written on may have read either: its row names no UUID any more."""
        for row in rows:
            if not self._is_own(row):
                if self._is_read(row):
                    told = row.recorded_at < self.since
                    yield from self.read(row) if told else (replace(row, input_format_id=None),)
            elif row.recorded_at <= self.seen_at:
                yield from self._own(row)

    def read(self, row: LineageRow) -> Sequence[LineageRow]:
        """A row whose commit has read what the table was, for all that it has read."""
        if not self._is_read(row):
            return (row,)
        read = replace(row, input_format_id=self.ended_as)
        if not self._begins_before(row.from_version):
            return (read,)
        return (replace(row, input_version=self.first - 1), replace(read, from_version=self.first - 1))

    def read_input(self, one: LineageInput) -> Sequence[LineageInput]:
        """The same for what a commit says itself."""
        of_it = one.table_id == self.table_id or (one.table_id is None and one.location == self.location)
        if not (of_it and self._goes(one.version, one.format_id)):
            return (one,)
        read = replace(one, format_id=self.ended_as)
        if not self._begins_before(one.from_version):
            return (read,)
        return (replace(one, version=self.first - 1), replace(read, from_version=self.first - 1))

    def _is_own(self, row: LineageRow) -> bool:
        of_it = row.output_id == self.table_id and row.output_version >= self.first
        return of_it and row.output_format_id in (None, self.format_id)

    def _is_read(self, row: LineageRow) -> bool:
        of_it = row.input_id in (self.table_id, self.location)
        return of_it and self._goes(row.input_version, row.input_format_id)

    def _goes(self, version: int | None, format_id: str | None) -> bool:
        return version is not None and self.first <= version <= self.last and format_id == self.format_id

    def _begins_before(self, from_version: int | None) -> bool:
        """Whether changes that were read begin with versions that stay."""
        return from_version is not None and from_version < self.first - 1

    def _own(self, row: LineageRow) -> Iterator[LineageRow]:
        moved = replace(row, output_format_id=self.ended_as)
        parent = parent_of(row)
        if row.input_id == self.table_id and row.input_version is not None:
            if row.operation in (ALIAS, RESTORE) and row.input_version < self.first:
                moved = replace(moved, operation=Operation.UPDATE.value)  # in another table now: it was read
            yield from self.read(moved)
            return
        yield moved
        if 0 <= parent < self.first and effect_of(row.operation) is not Effect.FRESH:
            yield replace(
                moved,
                input_id=self.table_id,
                input_version=parent,
                from_version=None,
                input_format_id=self.format_id,
            )


def rewritten_log(
    reader: TableReader,
    seen: Observation,
    before: HealthRow,
    recorded: Callable[[], Iterable[LineageRow]],
    now: datetime,
) -> RewrittenLog | None:
    """Whether the version on record is not there any more, or is another commit of the same table; `recorded` has the
    table's lineage. None where nothing can tell, or where the log is a copy of the one on record."""
    head, shown = before.head, before.version
    if head is None or shown is None or before.committed_at is None or head == seen.head:
        return None
    if Head(shown, head).format_id != seen.format_id:
        return None  # another table's
    told = reader.has_head(seen.location, version=shown, head=head)
    branches = has_branches(seen.format)
    if told or (told is None and (seen.version >= shown or branches)):
        return None  # where head can be moved back, what it has left may have expired
    commits = tuple(reader.commits(seen.location, after=-1, upto=shown))
    young = _younger(commits, before.committed_at)
    if young and young[0] is commits[0] and not branches:
        # Times that were not copied with the files: what was done decides. Snapshots have theirs in their metadata.
        young = _different(commits, recorded(), before, seen.format_id)
        if not young and told is False:
            return None
    since = young[0].committed_at if young else now
    last = max(_recorded(recorded(), before, shown, seen.format_id)) if branches else shown
    return RewrittenLog(
        table_id=before.table_id,
        location=seen.location,
        format_id=seen.format_id,
        first=young[0].version if young else min(seen.newest_version + 1, shown),
        last=last,
        ended_as=f"{head}{_SINCE}{to_millis(since)}",
        seen_at=before.observed_at,
        since=since,
    )


def told_apart(
    rows: Iterable[LineageRow], logs: Sequence[RewrittenLog], made_at: Mapping[int, datetime]
) -> tuple[LineageRow, ...]:
    """Fresh rows of one table: those of versions that were committed before a log was written on have read what was
    there before. `made_at` has the time of each version's commit."""
    found = list(rows)
    for log in logs:
        old = {version for version, at in made_at.items() if at < log.since}
        found = [part for row in found for part in (log.read(row) if row.output_version in old else (row,))]
    return tuple(found)


def inputs_told_apart(histories: Histories, logs: Sequence[RewrittenLog]) -> Histories:
    """The same for what tables' logs tell."""
    if not logs:
        return histories
    return {key: [_told_apart(one, logs) for one in history] for key, history in histories.items()}


def ended_log(table_id: str, location: str, left: LeftVersions | Undone) -> RewrittenLog | None:
    """The rewritten log of which these versions are; None where head was only moved."""
    head, mark, millis = (left.format_id or "").rpartition(_SINCE)
    if not mark:
        return None
    since = from_millis(int(millis))
    return RewrittenLog(
        table_id=table_id,
        location=location,
        format_id=Head(left.last, head).format_id or "",
        first=left.first,
        last=left.last,
        ended_as=left.format_id or "",
        seen_at=since,
        since=since,
    )


def ended_logs(undone: Mapping[str, Iterable[Undone]], read: Iterable[str]) -> Iterator[RewrittenLog]:
    """The rewritten logs among what was taken back (by `table_id` and by location) of the tables that were read."""
    for key in dict.fromkeys(read):
        for one in undone.get(key, ()):
            log = ended_log(one.table_id, key, one)
            if log is not None:
                yield log


def _told_apart(version: Version, logs: Sequence[RewrittenLog]) -> Version:
    inputs = version.inputs
    for log in logs:
        if version.committed_at is not None and version.committed_at < log.since:
            inputs = tuple(part for one in inputs for part in log.read_input(one))
    return replace(version, inputs=inputs)


def _younger(commits: Sequence[Commit], than: datetime) -> Sequence[Commit]:
    """The commits from the first on that is younger than a moment."""
    place = next((place for place, one in enumerate(commits) if one.committed_at > than), len(commits))
    return commits[place:]


def _recorded(rows: Iterable[LineageRow], before: HealthRow, shown: int, format_id: str) -> Iterator[int]:
    """The version that head showed, and those on record, also of branches and what head had left. What was recorded
    since that head was seen is of the log as it is now."""
    yield shown
    for row in rows:
        is_swept = row.confidence is not Confidence.PLAN and row.recorded_at <= before.observed_at
        if is_swept and row.output_format_id == format_id:
            yield row.output_version


def _different(
    commits: Sequence[Commit], rows: Iterable[LineageRow], before: HealthRow, format_id: str
) -> Sequence[Commit]:
    """The commits from the first on that did something else than is on record of its version."""
    recorded = _done(one for one in rows if one.output_format_id in (None, format_id))
    found = _done(rows_from(before.table_id, commits, format_id=None, at=before.observed_at))
    place = next(
        (
            place
            for place, one in enumerate(commits)
            if recorded.get(one.version, found.get(one.version)) != found.get(one.version)
        ),
        len(commits),
    )
    return commits[place:]


def _done(rows: Iterable[LineageRow]) -> Mapping[int, tuple[str, str | None]]:
    return {
        row.output_version: (row.operation, row.run_id)
        for row in rows
        if row.confidence not in (Confidence.PLAN, Confidence.STREAM)
    }
