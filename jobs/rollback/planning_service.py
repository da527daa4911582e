"""Everything a rollback plan is made of, read from the system tables and the logs, and the plan made of it.

Reads, never writes. Lineage is taken as far as logs have it, also where no sweep has written it down yet. A
plan is made twice: the first says which files and versions have to be looked for.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.errors import UnreadableError
from lakewarden.catalog.formats.heads import unread_head
from lakewarden.catalog.formats.port import LogProblem, Observation, TableReader
from lakewarden.catalog.formats.registry import has_branches, reader_of, spec_of
from lakewarden.catalog.garbage_collection import uncollected
from lakewarden.catalog.lineage.graph.build import build_graph
from lakewarden.catalog.lineage.graph.graph import VersionGraph
from lakewarden.catalog.lineage.graph.incarnations import Histories
from lakewarden.catalog.lineage.graph.reachability import tables_reached
from lakewarden.catalog.lineage.marks import marked
from lakewarden.catalog.lineage.recording import rows_of_upserts
from lakewarden.catalog.lineage.rewritten_logs import inputs_told_apart
from lakewarden.catalog.lineage.stream_batches import StreamHarvest
from lakewarden.catalog.lineage.streams.session_notes import StreamNotes, waiting
from lakewarden.catalog.lineage.unrecorded import newest_on_record
from lakewarden.catalog.lineage.versions import Effect, Version, history_of
from lakewarden.catalog.model.pending_quarantine import Quarantine
from lakewarden.catalog.model.rows import (
    DELTA,
    GONE,
    UNKNOWN_PARENT,
    MarkVerdict,
    RowKind,
    Source,
    TableFormat,
    TableRow,
)
from lakewarden.catalog.policy.scopes import Governed, govern, scopes_by_name
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.catalog.system.port import TABLES, SystemStore
from lakewarden.jobs.rollback.gathered_lineage import GatheredLineage, LineageGatherer, encoded
from lakewarden.jobs.rollback.journal.steps import TableStep
from lakewarden.jobs.rollback.journal.stored_plan import steps_of
from lakewarden.jobs.rollback.plan.facts import TableFacts
from lakewarden.jobs.rollback.plan.model import RollbackPlan, Step, TablePlan
from lakewarden.jobs.rollback.plan.request import CommitsOf, RollbackRequest
from lakewarden.jobs.rollback.plan.rollback_planner import plan_rollback
from lakewarden.jobs.rollback.plan.stream_advice import with_streams
from lakewarden.jobs.rollback.target_check import TargetCheck

__all__ = ["Gathered", "Gatherer"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Gathered:
    """A plan, the rows of the tables in it, and the UUIDs that their heads had when it was made. The rest is what it
    was decided from, for whoever explains it."""

    plan: RollbackPlan
    rows: Mapping[str, TableRow]
    format_ids: Mapping[str, str]
    graph: VersionGraph
    histories: Histories
    facts: Mapping[str, TableFacts]
    lineage: pa.Table
    """Rows of `ROW_COLUMNS`."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """By table, why nobody knows what it was made from, although something of that may be lost."""

    @property
    def formats(self) -> Mapping[str, TableFormat]:
        """The formats of the plan's tables that are not Delta, by `table_id`."""
        rows = (self.rows.get(table.table_id) for table in self.plan.tables)
        return {
            row.table_id: row.format
            for row in rows
            if row is not None and row.format is not None and row.format != DELTA
        }

    def steps(self) -> tuple[TableStep, ...]:
        """What executing the plan does to tables by restoring them, roots first."""
        heads = {key: one.head for key, one in self.facts.items() if one.head is not None}
        return steps_of(self.plan, self.format_ids, self.formats, heads)


@dataclass(frozen=True, slots=True)
class _TableLog:
    """What a table's log says."""

    seen: Observation | LogProblem
    history: tuple[Version, ...]
    hidden: bool = False
    """The log cannot be read, and has versions that are not on record, or lineage of which something may be lost; the
    history then has a head that nobody knows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Gatherer:
    """Makes plans from what is there now, marks included."""

    store: SystemStore
    readers: Sequence[TableReader]
    """One for each format."""
    storage: Callable[[str], StorageOptions]
    clock: Clock
    no_spark: Callable[[str], str | None] = lambda location: None
    """Why Spark may not work on a table at a location."""
    no_engine: Callable[[TableFormat | None], str | None] = lambda format_: None
    """Why tables of a format are never changed here; None: they are."""
    forget: Callable[[], None] = lambda: None
    """Forgets what catalogs answered before: a plan is made of what is there now."""

    def gather(self, request: RollbackRequest) -> Gathered:
        """The plan for a request. Raises `NotFoundError` for a seed that is no version of its table."""
        self.forget()
        with uncollected():
            return self._gather(request)

    def _gather(self, request: RollbackRequest) -> Gathered:
        tables = {row.table_id: row for row in self.store.rows(TABLES).all()}
        managed = {key: row for key, row in tables.items() if row.kind is RowKind.TABLE and row.location}
        # Notes before the rows: the daemon makes rows of notes, then forgets them.
        notes = tuple(waiting(self._notes()))
        lineage = self._lineage.gather(managed, notes)
        rows, unread, seeds = lineage.rows, lineage.unread, _seeds(request, lineage.rows)
        concerned = _concerned({*seeds, *unread}, rows, managed)
        logs = self._logs({key: managed[key] for key in sorted(concerned)}, lineage)
        seen = {key: log.seen for key, log in logs.items()}
        told = {key: log.history for key, log in logs.items()}
        histories = inputs_told_apart({key: told.get(key, ()) for key in sorted(concerned)}, lineage.ended)
        ids = {key: one.format_id for key, one in seen.items() if isinstance(one, Observation)}
        request = replace(request, clean=_clean(managed, histories, ids))
        scopes = scopes_by_name(tables.values())
        governed = {key: govern(managed[key], scopes) for key in concerned}
        facts = {key: self._facts(one, seen.get(key)) for key, one in governed.items()}
        facts |= {
            key: replace(facts[key], may_read=seeds if key in unread else _read_by(key, rows, managed))
            for key, log in logs.items()
            if log.hidden
        }
        places = {row.location or "": key for key, row in managed.items() if row.state not in GONE}
        graph = build_graph(
            rows,
            histories,
            trusting=frozenset(
                key for key, one in governed.items() if one.policy.settings.rollback_trust_plans
            ),
            places=places,
            newest={key: managed[key].format_ids[-1] for key in concerned if managed[key].format_ids},
            heads={key: one.version for key, one in seen.items() if isinstance(one, Observation)},
            empty=frozenset(key for key, one in told.items() if _is_empty(one, seen[key])),
            runs=frozenset(one.run_id for one in request.seeds if isinstance(one, CommitsOf)),
            branching=frozenset(key for key, row in managed.items() if has_branches(row.format)),
            unread=frozenset(unread),
        )
        first = plan_rollback(request, graph, histories, facts)
        facts |= {
            table.table_id: self._looked(table, managed.get(table.table_id), facts, seen.get(table.table_id))
            for table in first.tables
        }
        return Gathered(
            plan=with_streams(
                plan_rollback(request, graph, histories, facts),
                self._streams(rows, histories, places),
                managed,
                histories,
            ),
            rows=managed,
            format_ids=ids,
            graph=graph,
            histories=histories,
            facts=facts,
            lineage=rows,
            unread=unread,
        )

    def _facts(self, governed: Governed, seen: Observation | LogProblem | None) -> TableFacts:
        row = governed.row
        facts = TableFacts(
            table_id=row.table_id,
            name=row.name,
            location=row.location or "",
            dependencies=row.dependencies,
            system=row.source is Source.SELF,
            hold=governed.hold,
            paused=governed.paused,
            gone=row.state in GONE,
            aside=Quarantine.of(row) is not None,
        )
        if seen is None:
            return facts
        if isinstance(seen, LogProblem):
            return replace(facts, unreadable=seen.message)
        stays_out = self._stays_out(row, seen)
        return replace(
            facts,
            format_id=seen.format_id,
            head=seen.head,
            append_only=seen.append_only,
            stays_out=stays_out,
        )

    def _stays_out(self, row: TableRow, seen: Observation) -> str | None:
        because = self.no_engine(row.format)
        if because is None and not (seen.capabilities.restore or seen.capabilities.unsupported):
            because = f"lakewarden does not roll {spec_of(seen.format).label} tables back yet"
        if because is not None:
            return f"{row.name} stays as it is: {because}."
        because = self.no_spark(row.location or "") if seen.capabilities.spark_alone else None
        return because and f"Only Spark commits to {row.name} for us, and it stays out: {because}."

    def _streams(
        self, rows: pa.Table, histories: Mapping[str, Sequence[Version]], places: Mapping[str, str]
    ) -> pa.Table:
        """The rows, and those of streaming queries whose batches were upserted."""
        now = self.clock.now()
        upserted = [
            replace(row, input_id=places.get(row.input_id, row.input_id))
            for key, history in histories.items()
            for row in rows_of_upserts(key, history, at=now)
        ]
        return pa.concat_tables([rows, encoded(upserted)])

    def _looked(
        self,
        table: TablePlan,
        row: TableRow | None,
        facts: Mapping[str, TableFacts],
        seen: Observation | LogProblem | None,
    ) -> TableFacts:
        """The facts, with what the plan makes it worth looking at in the table's files."""
        known = facts[table.table_id]
        if table.step is not Step.RESTORE or table.to_version is None or known.unreadable is not None:
            return known
        target = TargetCheck(
            table=table,
            target=table.to_version,
            reader=self._reader(row),
            storage=self.storage,
            no_spark=self.no_spark,
        )
        return target.completed(known, seen)

    def _reader(self, row: TableRow | None) -> TableReader:
        return reader_of(self.readers, None if row is None else row.format)

    @property
    def _lineage(self) -> LineageGatherer:
        harvest = StreamHarvest(store=self.store, storage=self.storage, readers=self.readers)
        return LineageGatherer(store=self.store, readers=self.readers, harvest=harvest, clock=self.clock)

    def _notes(self) -> StreamNotes:
        system = self.store.location(TABLES).rpartition("/")[0]
        return StreamNotes(system, self.store.storage(), clock=self.clock)

    def _logs(self, concerned: Mapping[str, TableRow], lineage: GatheredLineage) -> Mapping[str, _TableLog]:
        logs = {key: self._log(row, lineage) for key, row in concerned.items() if row.state not in GONE}
        return {
            **logs,
            **{key: _unread_log(key, concerned[key], logs.get(key), lineage) for key in lineage.unread},
        }

    def _log(self, row: TableRow, lineage: GatheredLineage) -> _TableLog:
        location, reader = row.location or "", self._reader(row)
        seen = reader.observe(location)
        head_id = seen.format_id if isinstance(seen, Observation) else None
        try:
            return _TableLog(seen, history_of(reader.commits(location, after=-1), head_id=head_id))
        except UnreadableError as error:
            problem = LogProblem(check="log_readable", message=str(error))
            probe = reader.probe(location, seen=None)
            on_record = newest_on_record(row, lineage.recorded.get(row.table_id, {}))
            unread = unread_head(probe.latest, on_record) if probe.exists else None
            if unread is not None and probe.latest is None:
                unread = max(unread, _newest_spoken(row, lineage) + 1)
            if unread is None:
                return _TableLog(problem, ())
            parent = UNKNOWN_PARENT if on_record is None else on_record
            head = Version(version=unread, parent=parent, operation="unknown", effect=Effect.CHANGE)
            return _TableLog(problem, (head,), hidden=True)


def _unread_log(key: str, row: TableRow, log: _TableLog | None, lineage: GatheredLineage) -> _TableLog:
    """The log of a table of which nobody knows what it was made from. Its head comes after every version that is spoken
    of: whatever was read of the table may hold anything."""
    seen = LogProblem(check="log_readable", message=lineage.unread[key])
    if log is not None and log.history:
        return replace(log, hidden=True)
    newest = _newest_spoken(row, lineage)
    head = Version(version=newest + 1, parent=UNKNOWN_PARENT, operation="unknown", effect=Effect.CHANGE)
    return _TableLog(seen if log is None else log.seen, (head,), hidden=True)


def _newest_spoken(row: TableRow, lineage: GatheredLineage) -> int:
    """The newest version of a table that is spoken of, whoever made or read it; -1 for none."""
    rows, named = lineage.rows, pa.array([row.table_id, row.location])
    spoken = (
        rows.filter(pc.is_in(rows[f"{end}_id"], value_set=named))[f"{end}_version"]
        for end in ("output", "input")
    )
    return max((pc.max(versions).as_py() for versions in spoken if len(versions.drop_null())), default=-1)


def _is_empty(history: Sequence[Version], seen: Observation | LogProblem) -> bool:
    """Whether head holds nothing, and no commit made it so."""
    if isinstance(seen, LogProblem) or seen.version or seen.files:
        return False
    return all(one.version for one in history)


def _read_by(table_id: str, rows: pa.Table, managed: Mapping[str, TableRow]) -> frozenset[str]:
    """The tables that any version of a table is known to have read."""
    places = {row.location: key for key, row in managed.items()}
    inputs = pc.unique(rows["input_id"].filter(pc.equal(rows["output_id"], table_id))).to_pylist()
    return frozenset(places.get(one, one) for one in inputs) - {table_id}


def _seeds(request: RollbackRequest, rows: pa.Table) -> frozenset[str]:
    found: set[str] = set()
    for seed in request.seeds:
        if isinstance(seed, CommitsOf):
            found.update(rows.filter(pc.equal(rows["run_id"], seed.run_id))["output_id"].to_pylist())
        else:
            found.add(seed.table_id)
    return frozenset(found)


def _concerned(seeds: Iterable[str], rows: pa.Table, managed: Mapping[str, TableRow]) -> set[str]:
    """The tables that may have to be rolled back: everything downstream of the seeds, by lineage or declaration."""
    reached = tables_reached(
        rows,
        seeds,
        dependencies={key: [one.upstream for one in row.dependencies] for key, row in managed.items()},
        places={row.location or "": key for key, row in managed.items()},
    )
    return {table_id for table_id in reached if table_id in managed}


def _clean(
    managed: Mapping[str, TableRow], histories: Histories, format_ids: Mapping[str, str]
) -> frozenset[tuple[str, int]]:
    """The versions marked clean by now, also since the request was first made."""
    return frozenset(
        (key, version)
        for key, history in histories.items()
        for version in marked(
            managed[key].marks,
            MarkVerdict.CLEAN,
            history,
            format_ids.get(key),
            branching=has_branches(managed[key].format),
        )
    )
