"""Looking at tables without Spark: tables that have moved, the new state of their logs, and the rows that follow.

A table that did not move costs one look for the next version. Only what changed is written: a look that finds the same
as before leaves no trace, so that idle sweeps make no commit.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Protocol

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.formats.files_elsewhere import is_reach_known
from lakewarden.catalog.formats.heads import head_on_record
from lakewarden.catalog.formats.linked_folders import linked_folders
from lakewarden.catalog.formats.port import LogProblem, Observation, ProbeResult, TableReader
from lakewarden.catalog.formats.registry import reader_of
from lakewarden.catalog.lineage.left_versions import goes_on, is_told, left_versions
from lakewarden.catalog.lineage.restores import is_rewound
from lakewarden.catalog.lineage.reverted_reads import undone_reads
from lakewarden.catalog.lineage.rewritten_logs import RewrittenLog, ended_logs, rewritten_log
from lakewarden.catalog.lineage.stream_batches import StreamHarvest
from lakewarden.catalog.lineage.unswept import UnrecordedRows, unrecorded_rows
from lakewarden.catalog.model.rows import (
    Finding,
    HealthRow,
    LeftVersions,
    LineageRow,
    SchemaRow,
    Severity,
    Source,
    TableRow,
    TableState,
)
from lakewarden.catalog.model.unread_lineage import is_lineage_unread
from lakewarden.catalog.observation.health import health_of, schema_hash
from lakewarden.catalog.observation.schemas import next_schema
from lakewarden.catalog.policy.property_requests import has_new_requests, record_requests
from lakewarden.catalog.policy.scopes import Governed
from lakewarden.catalog.system.port import LINEAGE, SCHEMAS, SYSTEM_TABLES, SystemStore
from lakewarden.catalog.validation.checks import Tier
from lakewarden.catalog.validation.context import Subject
from lakewarden.catalog.validation.reverted_reads import READS_REVERTED, undone_findings
from lakewarden.daemon.fleet.last_looks import LastLook, LastLooks
from lakewarden.daemon.fleet.look import OnRecord, TableLook

__all__ = ["Inspector", "Observer"]

SELF_STRIDE: Final = 20
"""Commits after which a system table is looked at again. Every sweep that changes anything writes to some of them: to
look each time would make each sweep the cause of the next one's commit."""
_EXISTS: Final = "exists"
_JUDGED: Final = "judged"
_REQUESTS: Final = "policy_requests"


class Inspector(Protocol):
    """Validation, with whatever it has to ask for (metastore entries, files)."""

    def gone(self, governed: Governed, before: HealthRow | None, now: datetime) -> tuple[Finding, ...]:
        """Findings for a table whose log is not there."""

    def dropped(self, governed: Governed) -> str | None:
        """Why a table that is gone counts as dropped by its users; None if that cannot be said."""

    def entered(self, governed: Governed) -> str | None:
        """The name by which the metastore has a table at its place, where its row does not say so yet."""

    def changed(
        self, governed: Governed, seen: Observation | LogProblem, before: HealthRow | None, now: datetime
    ) -> tuple[Finding, ...]:
        """The checks that run whenever a table changed, with the findings of the daily ones still standing."""

    def daily(
        self, governed: Governed, seen: Observation | LogProblem, before: HealthRow | None, now: datetime
    ) -> tuple[Finding, ...]:
        """All checks, the dear ones too."""


class Observer:
    """Looks at one table at a time and remembers what it saw. Nothing is written here. Safe with many threads that look
    at different tables."""

    def __init__(
        self,
        *,
        readers: tuple[TableReader, ...],
        inspector: Inspector,
        store: SystemStore,
        clock: Clock,
        checks_every: timedelta,
        streams: StreamHarvest | None = None,
    ) -> None:
        self._streams = streams
        self._readers = tuple(readers)
        self._inspector, self._store, self._clock, self._checks_every = inspector, store, clock, checks_every
        self._last = LastLooks()

    def wants_checks(self, before: HealthRow | None) -> bool:
        """Whether the daily checks of a table are due."""
        checked = before.checked_at if before is not None else None
        return checked is None or self._clock.now() - checked >= self._checks_every

    def look(
        self, governed: Governed, before: HealthRow | None, *, must: bool, checks: bool, on_record: OnRecord
    ) -> TableLook | None:
        """Look at one table; None if it did not move and nothing asks for more.

        `must`: look even so. `checks`: run the daily checks as well. Raises `UnavailableError` from a silent storage.
        """
        row, now = governed.row, self._clock.now()
        reader, location = reader_of(self._readers, row.format), row.location or ""
        probe = reader.probe(
            location,
            seen=None if before is None else before.version,
            head=None if before is None else head_on_record(row, before),
        )
        was_gone = before is not None and _is_gone(before)
        if not probe.exists:
            return self._gone(governed, before, now) if must or checks or not was_gone else None
        moved = self._moved(row, before, probe)
        unjudged = before is not None and any(one.check == _JUDGED for one in before.findings)
        back = was_gone and not self._is_as_it_failed(row, probe)
        is_due = must or checks or moved or back or unjudged
        if not (is_due or self._never_judged(governed, before, on_record)):
            return None
        seen = self._read(row.table_id, reader, location)
        judge = self._inspector.daily if checks else self._inspector.changed
        rewritten = self._rewritten(row, seen, before, reader, now)
        rewound = rewritten is not None or self._rewound(row, seen, before, reader)
        if rewritten is not None:
            on_record = replace(on_record, lineage=rewritten.kept(on_record.lineage))
        new = self._lineage(row, seen, reader, on_record, now)
        findings = (
            *judge(governed, seen, before, now),
            *_requests(row, seen, before, now, rewound=rewound),
            *self._undone(
                Subject(row=row, policy=governed.policy, seen=seen, before=before, now=now),
                new.rows,
                on_record,
            ),
        )
        health = health_of(row, governed.policy, seen, findings, now=now, before=before)
        behind = self._left_behind(row, seen, before, new.rows, rewritten)
        health = replace(health, left_behind=behind, checked_at=now if checks else health.checked_at)
        failed = probe if isinstance(seen, LogProblem) else None
        self._last.keep(row.table_id, LastLook(at=now, version=health.version, failed=failed))
        return TableLook(
            table_id=row.table_id,
            location=row.location,
            row_at=row.updated_at,
            at=now,
            findings=findings,
            seen=seen,
            health=health if checks or _is_news(health, before, governed) else None,
            schema=self._schema(row, seen, reader, before, on_record.schema),
            lineage=new.rows,
            made_at=new.made_at,
            rewritten=rewritten,
            rewound=rewound,
            linked=linked_folders(location) if checks else None,
            entered=None if row.source is Source.SELF else self._inspector.entered(governed),
        )

    def forget(self, table_id: str) -> None:
        """Read this table's log from scratch next time."""
        self._last.forget_observation(table_id)

    def unjudged(self, governed: Governed, before: HealthRow | None, problem: str) -> TableLook:
        """The finding on a table after an unforeseen error: it is quarantined until one gets through."""
        row, now = governed.row, self._clock.now()
        self.forget(row.table_id)
        lost = LogProblem(check=_JUDGED, message=problem)
        subject = Subject(row=row, policy=governed.policy, seen=lost, before=before, now=now)
        findings = (subject.say(_JUDGED, "unforeseen", problem=problem), *subject.standing(tier=Tier.DAILY))
        return self._nothing_seen(row, before, findings, now)

    def _gone(self, governed: Governed, before: HealthRow | None, now: datetime) -> TableLook:
        self.forget(governed.row.table_id)
        look = self._nothing_seen(governed.row, before, self._inspector.gone(governed, before, now), now)
        return replace(look, dropped=self._inspector.dropped(governed))

    def _nothing_seen(
        self, row: TableRow, before: HealthRow | None, findings: tuple[Finding, ...], now: datetime
    ) -> TableLook:
        base = before or HealthRow(table_id=row.table_id, name=row.name, observed_at=now)
        health = replace(base, name=row.name, findings=findings, observed_at=now)
        self._last.keep(row.table_id, LastLook(at=now, version=health.version))
        return TableLook(
            table_id=row.table_id,
            location=row.location,
            row_at=row.updated_at,
            at=now,
            findings=findings,
            seen=None,
            health=None if _same(health, before) else health,
        )

    def _read(self, table_id: str, reader: TableReader, location: str) -> Observation | LogProblem:
        try:
            seen = reader.observe(location, since=self._last.observation(table_id))
        except UnreadableError as error:
            seen = LogProblem(check="log_readable", message=str(error))
        if isinstance(seen, Observation):
            self._last.keep_observation(table_id, seen)
        else:
            self.forget(table_id)
        return seen

    def _never_judged(self, governed: Governed, before: HealthRow | None, on_record: OnRecord) -> bool:
        """Whether the table has to be looked at though its log stands still. Its row (policy, name, location) or a
        scope's policy has changed, its schema, lineage or the place of its files is not on record, or an earlier
        process reported late taint: that may have been lifted since, or lineage is lost. Looks of this process that
        left no trace count."""
        row = governed.row
        last = self._last.of(row.table_id)
        looked = None if last is None else last.at
        complete = row.source is Source.SELF or (on_record.complete and is_reach_known(row))
        is_unread = is_lineage_unread(row.properties) and (last is None or last.failed is None)
        if before is None or is_unread or (looked is None and not complete):
            return True
        if looked is None and any(one.check == READS_REVERTED for one in before.findings):
            return True
        return governed.changed_at > (max(looked, before.observed_at) if looked else before.observed_at)

    def _moved(self, row: TableRow, before: HealthRow | None, probe: ProbeResult) -> bool:
        """Whether the table moved since this process looked, whatever a command has entered meanwhile. One
        with a broken log did only if it looks different from then: it is not read again by every sweep."""
        if row.source is Source.SELF:
            return self._self_moved(row, before)
        last, known = self._last.of(row.table_id), None if before is None else before.head
        moved = probe.moved or (None not in (probe.head, known) and probe.head != known)
        if last is None:
            return moved or row.state is TableState.QUARANTINED
        if last.failed is not None:
            return probe != last.failed
        return moved or (before is not None and before.version != last.version)

    def _is_as_it_failed(self, row: TableRow, probe: ProbeResult) -> bool:
        """Whether a table looks as it did when this process could not read its log."""
        last = self._last.of(row.table_id)
        return last is not None and probe == last.failed

    def _self_moved(self, row: TableRow, before: HealthRow | None) -> bool:
        if before is None or before.version is None:
            return True
        table = next(one for one in SYSTEM_TABLES if self._store.location(one) == row.location)
        return self._store.rows(table).version - before.version >= SELF_STRIDE

    def _schema(
        self,
        row: TableRow,
        seen: Observation | LogProblem,
        reader: TableReader,
        before: HealthRow | None,
        known: bool,
    ) -> SchemaRow | None:
        if isinstance(seen, LogProblem) or row.source is Source.SELF:
            return None  # the schemas of system tables are versioned with lakewarden itself
        unchanged = before is not None and before.schema_hash == schema_hash(seen.schema)
        if unchanged and known:
            return None
        history = self._store.rows(SCHEMAS).find(table_id=row.table_id)
        return next_schema(row.table_id, seen, history, reader.commits)

    def _lineage(
        self,
        row: TableRow,
        seen: Observation | LogProblem,
        reader: TableReader,
        on_record: OnRecord,
        now: datetime,
    ) -> UnrecordedRows:
        """The rows of the versions that have none."""
        if isinstance(seen, LogProblem) or row.source is Source.SELF:
            return UnrecordedRows()
        if on_record.has_lineage_of(seen) and not is_lineage_unread(row.properties):
            return UnrecordedRows()
        return unrecorded_rows(
            reader,
            row,
            on_record.lineage,
            newest=seen.newest_version,
            head_id=seen.format_id,
            upto=seen.newest_version,
            streams=self._streams,
            held=self._store.rows(LINEAGE),
            ended=partial(ended_logs, on_record.undone),
            at=now,
        )

    def _rewritten(
        self,
        row: TableRow,
        seen: Observation | LogProblem,
        before: HealthRow | None,
        reader: TableReader,
        now: datetime,
    ) -> RewrittenLog | None:
        """Lineage is read only where the version on record is not what it was."""
        if isinstance(seen, LogProblem) or row.source is Source.SELF or before is None:
            return None
        recorded = partial(self._store.rows(LINEAGE).find, output_id=row.table_id)
        return rewritten_log(reader, seen, before, recorded, now)

    def _left_behind(
        self,
        row: TableRow,
        seen: Observation | LogProblem,
        before: HealthRow | None,
        fresh: tuple[LineageRow, ...],
        rewritten: RewrittenLog | None,
    ) -> tuple[LeftVersions, ...]:
        """Versions that head no longer goes back to. Lineage is read only where head did not just go on, or came back
        from elsewhere meanwhile."""
        if before is None:
            return ()
        if rewritten is not None:
            return (*rewritten.left_before(before.left_behind), rewritten.left())
        if isinstance(seen, LogProblem) or row.source is Source.SELF or before.version is None:
            return before.left_behind
        is_known = all(is_told(one, before.left_behind, seen.format_id) for one in seen.left)
        if is_known and (before.head == seen.head or goes_on(before.version, seen.version, fresh)):
            return before.left_behind
        rows = (*self._store.rows(LINEAGE).find(output_id=row.table_id), *fresh)
        if all(one.output_version != seen.version for one in rows):
            return before.left_behind  # no commit made what head shows: it was emptied, not moved back
        return left_versions(before, head=seen.version, format_id=seen.format_id, rows=rows, shown=seen.left)

    def _undone(
        self, subject: Subject, fresh: tuple[LineageRow, ...], on_record: OnRecord
    ) -> tuple[Finding, ...]:
        """What head holds of versions that were taken back. Lineage is read only where there can be anything."""
        table_id, undone = subject.row.table_id, on_record.undone
        may = on_record.may_hold_undone or table_id in undone or any(row.input_id in undone for row in fresh)
        if isinstance(subject.seen, LogProblem) or not may:
            return ()
        rows = self._store.rows(LINEAGE).find(output_id=table_id)
        found = undone_reads(
            (*rows, *fresh),
            subject.seen.version,
            undone,
            format_id=subject.seen.format_id,
            marks=subject.row.marks,
        )
        return undone_findings(subject, found)

    def _rewound(
        self, row: TableRow, seen: Observation | LogProblem, before: HealthRow | None, reader: TableReader
    ) -> bool:
        if isinstance(seen, LogProblem) or before is None or before.version is None:
            return False
        if not has_new_requests(row, seen.properties):
            return False
        since = reader.commits(seen.location, after=before.version, upto=seen.version)
        same = row.format_ids[-1:] == (seen.format_id,)
        return is_rewound(tuple(since), before=before.version if same else None, now=seen.version)


def _requests(
    row: TableRow, seen: Observation | LogProblem, before: HealthRow | None, now: datetime, *, rewound: bool
) -> tuple[Finding, ...]:
    """What the table's properties ask for and cannot have. It stands until they ask for something else."""
    if isinstance(seen, LogProblem):
        return ()
    if not has_new_requests(row, seen.properties):
        return tuple(one for one in before.findings if one.check == _REQUESTS) if before is not None else ()
    _, problems = record_requests(row, seen.properties, rewound=rewound)
    return tuple(
        Finding(check=_REQUESTS, severity=Severity.WARNING, message=problem, since=now)
        for problem in problems
    )


def _is_gone(health: HealthRow) -> bool:
    return any(one.check == _EXISTS and one.severity is Severity.ERROR for one in health.findings)


def _is_news(health: HealthRow, before: HealthRow | None, governed: Governed) -> bool:
    """Whether there is anything to write: it says something else, or it was found by rules that came after what is on
    record. A row from the future (some machine's clock is ahead) is no reason to write in every sweep."""
    newly_judged = before is not None and before.observed_at < governed.changed_at <= health.observed_at
    return newly_judged or not _same(health, before)


def _same(health: HealthRow, before: HealthRow | None) -> bool:
    """Whether two rows say the same, whenever they were written."""
    if before is None:
        return False
    return replace(health, observed_at=before.observed_at, checked_at=before.checked_at) == before
