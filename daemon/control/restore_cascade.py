"""Plain RESTOREs, and heads moved back by hand, are carried on to the tables derived from the reverted versions.

Level-triggered: a RESTORE is open as long as it is in `lakewarden.lineage`, a move as long as it is in
`lakewarden.health`, and `lakewarden.audit` has no entry that says what came of it. The entry is written last,
so a daemon that dies anywhere does the rest again: a plan's hash is its id, a rollback that was begun is in the
journal and goes on by itself. Neither needs the operational database.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, Protocol

import pyarrow.compute as pc

from lakewarden.catalog.errors import LakewardenError, UnreadableError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.formats.registry import has_branches
from lakewarden.catalog.lineage.graph.incarnations import may_be_same
from lakewarden.catalog.lineage.restores import (
    RestoreCommit,
    informed,
    is_foreign_restore,
    remembered,
    taken_back,
)
from lakewarden.catalog.lineage.versions import Version
from lakewarden.catalog.model.rollbacks import Rollback, Undone, rollback_locks
from lakewarden.catalog.model.rows import RollbackState, Source, TableRow, TableState
from lakewarden.catalog.policy.original_properties import awaits_lineage
from lakewarden.catalog.registry.marks import log_of
from lakewarden.catalog.system.port import AUDIT, LINEAGE, At, Fence
from lakewarden.daemon.control.handled_restores import ENTRY, HandledRestores
from lakewarden.daemon.control.run_recorder import DAEMON
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.daemon.telemetry.log import get_log
from lakewarden.daemon.telemetry.webhook import Event, EventKind, Notifier
from lakewarden.daemon.usecases import declared
from lakewarden.daemon.usecases.audit import run
from lakewarden.daemon.usecases.rollbacks.rollback import RollbackService
from lakewarden.jobs.rollback.journal.stored_plan import decode_plan
from lakewarden.jobs.rollback.plan.cascade import (
    Reaction,
    concerned,
    reaction,
    request_after,
    whole_request,
)
from lakewarden.jobs.rollback.plan.request import BadVersions
from lakewarden.jobs.rollback.planning_service import Gathered

__all__ = ["CascadeDriver", "OpenRestores", "RestoreCascadeDriver"]


_UNDONE: Final = (RollbackState.UNDOING, RollbackState.COMPENSATED)


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenRestores:
    """The unrecorded RESTOREs of one table, the versions that its head left behind by hand, and the tables that may be
    derived from it."""

    row: TableRow
    restores: tuple[RestoreCommit, ...] = ()
    left: tuple[Undone, ...] = ()
    parts: tuple[Undone, ...] = ()
    """What is left of moves that were handled, where head came back to some of their versions."""
    back: tuple[str, ...] = ()
    """The ids of the entries that are to say that versions are not left behind any more."""
    downstream: frozenset[str]

    @property
    def change(self) -> str:
        """What somebody did to the table, in words."""
        return (
            f"a RESTORE of {self.row.name}" if self.restores else f"moving the head of {self.row.name} back"
        )


class CascadeDriver(Protocol):
    """What a cycle does about plain RESTOREs, table by table."""

    def open(self) -> Sequence[OpenRestores]:
        """The tables whose RESTOREs are to be looked at. Costs next to nothing where there are none."""

    def carry(self, one: OpenRestores, fence: Fence) -> bool:
        """Look at one; whether a rollback was begun."""


@dataclass(kw_only=True, slots=True)
class RestoreCascadeDriver:
    """`CascadeDriver` on an installation's rollbacks. Keeps nothing that the system tables could not give back."""

    rollbacks: RollbackService
    cache: FleetCache
    notifier: Notifier
    _handled: HandledRestores = field(default_factory=HandledRestores)
    _handled_as_of: At | None = None
    _told: set[str] = field(default_factory=set)
    """The hashes of plans of which owners were told, and that others may follow."""
    _waits: dict[str, tuple[tuple[int, ...], frozenset[str]]] = field(default_factory=dict)
    """By table the versions that were taken back, and the tables whose logs have to be read before more is known."""

    def open(self) -> Sequence[OpenRestores]:
        governed, reverted_ranges = self.cache.governed(), self.cache.reverted_ranges
        left = tuple(chain.from_iterable(reverted_ranges.left_behind().values()))
        every: Iterable[RestoreCommit | Undone] = (*reverted_ranges.plain_restores(), *left)

        def is_looked_at(table_id: str) -> bool:
            known = governed.get(table_id)
            return known is not None and _is_looked_at(known.row)

        found = [one for one in every if is_looked_at(one.table_id) and not self._handled.has(one)]
        readers = self.cache.downstream() if found else {}
        found = [one for one in found if readers.get(one.table_id)]
        if found or self._handled_as_of is None:
            self._look_up()
        parts = self._handled.parts(left)
        still_open: dict[str, list[RestoreCommit | Undone]] = {}
        for one in found:
            if not self._handled.has(one) and one not in parts.get(one.table_id, ()):
                still_open.setdefault(one.table_id, []).append(one)
        back = {key: ids for key, ids in self._handled.returned(left).items() if is_looked_at(key)}
        return tuple(
            OpenRestores(
                row=governed[table_id].row,
                restores=tuple(one for one in mine if isinstance(one, RestoreCommit)),
                left=tuple(one for one in mine if isinstance(one, Undone)),
                parts=parts.get(table_id, ()),
                back=back.get(table_id, ()),
                downstream=_reached(table_id, readers) if mine else frozenset(),
            )
            for table_id, mine in sorted({**dict.fromkeys(back, ()), **still_open}.items())
        )

    def carry(self, one: OpenRestores, fence: Fence) -> bool:
        for part in one.parts:
            entry = self._handled.entry(part)
            self._record(one.row, entry, f"{_behind(one.row, part)}: what came of it is on record", fence)
        for entry in one.back:
            said = "no longer leaves these versions behind, or not all of them"
            self._record(one.row, entry, f"{one.row.name} {said}", fence)
        if not (one.restores or one.left):
            return False
        journal = self.rollbacks.journal.all()
        held = rollback_locks(journal)
        if not held.keys().isdisjoint({one.row.table_id, *one.downstream}):
            return False  # what is under way there has to come to its end first
        log, seen = log_of(self.rollbacks.services.registry, one.row)
        history = informed(log, self._on_record(one.row))
        if has_branches(one.row.format):  # what head left may have expired since
            rows = self.rollbacks.services.store.rows(LINEAGE).find(output_id=one.row.table_id)
            history = remembered(history, rows, None if seen is None else seen.format_id)
        planned = [_seeds(each, one.row) for each in journal if _waits_for(each, one.row)]
        restores = {each.version for each in one.restores if _is_in(history, each)}
        left = (each.version for each in history if any(_is_of(each, gone) for gone in one.left))
        also = frozenset(left).union(*planned)
        versions = taken_back(history, restores, also, head=None if seen is None else seen.version)
        if not versions:
            self._forget(one.row)
            self._close(one, self._nothing(one, history), fence)
            return False
        if self._still_waits(one.row, versions):
            return False
        request = request_after(one.row.table_id, versions)
        narrow = self.rollbacks.gatherer.gather(request)
        tried = any(_was_tried(each, one, versions) for each in journal)
        match reaction(narrow.plan, able=_able(narrow), tried=tried):
            case Reaction.NOTHING:
                self._forget(one.row)
                self._close(one, "nothing derived holds what it took back", fence)
            case Reaction.APPLY:
                if self._apply(one, narrow, fence):
                    return True
                self._keep(one, versions, fence)
            case Reaction.KEEP:
                self._keep(one, versions, fence)
        return False

    def _apply(self, one: OpenRestores, found: Gathered, fence: Fence) -> bool:
        """Begin the rollback. False if it cannot be done as it is: then somebody has to look at it."""
        name, plan_hash = one.row.name, found.plan.hash
        self.rollbacks.keep(found, actor=DAEMON)
        self._forget(one.row, but=plan_hash)
        reach("restored.kept")
        services, said, begun = self.rollbacks.services, f"apply {plan_hash} after {one.change}", True
        try:
            with run(
                services, DAEMON, declared.FOLLOW_RESTORE, name, rows=found.rows.values, on=said, fence=fence
            ):
                self.rollbacks.begin(plan_hash, actor=DAEMON)
        except LakewardenError as error:
            begun = False
            if error.retry:
                raise
        reach("restored.begun")
        if begun:
            told = f"is rolled back (rollback {plan_hash}): it was made from what {one.change} took back."
            acting = (table for table in concerned(found.plan) if table.acts)
            self._tell(EventKind.ROLLED_BACK, [(found.rows.get(each.table_id), told) for each in acting])
        return begun

    def _keep(self, one: OpenRestores, versions: tuple[int, ...], fence: Fence) -> None:
        """Keep the plan for everything that is concerned, tell the owners, and leave the rest to them."""
        found = self.rollbacks.gatherer.gather(whole_request(request_after(one.row.table_id, versions)))
        if found.plan.hash not in self._told:
            self._keep_and_tell(one, found)
        awaited = frozenset(each for each in found.unread if awaits_lineage(found.rows[each]))
        if awaited:
            self._told.add(found.plan.hash)  # it stays open: once these logs are read, more may be known
            self._waits[one.row.table_id] = versions, awaited
            return
        self._close(one, f"plan {found.plan.hash} waits", fence)

    def _still_waits(self, row: TableRow, versions: tuple[int, ...]) -> bool:
        """Whether a plan for these versions waits for logs that nobody has read since."""
        known, awaited = self._waits.get(row.table_id, ((), frozenset[str]()))
        rows = (self.cache.row(each) for each in awaited)
        return known == versions and all(each is not None and awaits_lineage(each) for each in rows)

    def _keep_and_tell(self, one: OpenRestores, found: Gathered) -> None:
        self.rollbacks.keep(found, actor=DAEMON)
        self._forget(one.row, but=found.plan.hash)
        told = f"holds, or may hold, what {one.change} took back. {_what_waits(found)}"
        rows = (found.rows.get(each.table_id) for each in concerned(found.plan))
        self._tell(EventKind.PLAN_WAITS, [(row, told) for row in rows])
        reach("restored.told")

    def _forget(self, row: TableRow, *, but: str | None = None) -> None:
        """Take plans about the table's RESTOREs back that nobody has applied and that are out of date now."""
        journal = self.rollbacks.journal
        old = [each for each in journal.all() if _waits_for(each, row) and each.rollback_id != but]
        journal.forget_plans(old, because=f"{row.name} went back again: they are stale")

    def _on_record(self, row: TableRow) -> Iterator[RestoreCommit]:
        """The RESTOREs of a table that are on record, those of its predecessors included."""
        return (each for each in self.cache.reverted_ranges.plain_restores() if each.table_id == row.table_id)

    def _nothing(self, one: OpenRestores, history: Sequence[Version]) -> str:
        """Why nothing was taken back. A RESTORE that does not say where it went is told: somebody has to find out."""
        if not one.restores:
            return "nothing tells of them any more, or they changed nothing"
        told = {each.version: each for each in history if is_foreign_restore(each)}
        if any(each.version not in told or not _is_in(history, each) for each in one.restores):
            return "the log does not have it"
        since = min(each.version for each in one.restores)
        blind = [version for version, each in told.items() if each.target is None and version >= since]
        if not blind:
            return "it took back nothing that is not in head again"
        why = "the log no longer tells to which version it went, so nobody knows what it took back"
        message = f"was restored in version {blind[-1]}: {why}. Tables derived from it stay as they are."
        self._tell(EventKind.PLAN_WAITS, [(one.row, message)])
        return why

    def _tell(self, kind: EventKind, messages: Iterable[tuple[TableRow | None, str]]) -> None:
        """Tell owners, each of their table."""
        now = self.rollbacks.services.clock.now()
        for row, message in messages:
            if row is not None:
                get_log("rollback").info(kind.value, table=row.name, because=message)
                self.notifier.tell(
                    Event(
                        kind=kind,
                        table_id=row.table_id,
                        name=row.name,
                        owner=row.owner,
                        message=f"{row.name} {message}",
                        at=now,
                    )
                )

    def _close(self, one: OpenRestores, what: str, fence: Fence) -> None:
        """Put on record what came of it: it is open no longer."""
        for restore in one.restores:
            about = f"RESTORE of {one.row.name} in version {restore.version}"
            self._record(one.row, self._handled.entry(restore), f"{about}: {what}", fence)
        for left in one.left:
            self._record(one.row, self._handled.entry(left), f"{_behind(one.row, left)}: {what}", fence)

    def _record(self, row: TableRow, entry: str, said: str, fence: Fence) -> None:
        services = self.rollbacks.services
        with run(
            services, DAEMON, declared.FOLLOW_RESTORE, row.table_id, on=said, fence=fence, audit_id=entry
        ):
            pass  # what was to be done is done: only the entry is left to write
        self._handled.add([entry])

    def _look_up(self) -> None:
        """Learn what has an entry. Asked once, and then only while something seems open."""
        rows = self.rollbacks.services.store.rows(AUDIT)
        if rows.at != self._handled_as_of:
            ids = rows.arrow(["audit_id"]).column("audit_id")
            self._handled.add(ids.filter(pc.starts_with(ids, ENTRY)).to_pylist())
            self._handled_as_of = rows.at


def _is_looked_at(row: TableRow) -> bool:
    """A table that is quarantined waits until it is healed; system tables are nobody's source."""
    return row.source is not Source.SELF and row.state is TableState.ACTIVE


def _is_in(history: Iterable[Version], restore: RestoreCommit) -> bool:
    """Whether a log has a RESTORE: not another commit of the same number, in a table made anew."""
    return any(
        one.version == restore.version and may_be_same(one.format_id, restore.format_id) for one in history
    )


def _is_of(one: Version, left: Undone) -> bool:
    return left.first <= one.version <= left.last and may_be_same(one.format_id, left.format_id)


def _reached(table_id: str, readers: Mapping[str, Iterable[str]]) -> frozenset[str]:
    found: set[str] = set()
    ends = [table_id]
    while ends:
        for reader in readers.get(ends.pop(), ()):
            if reader not in found:
                found.add(reader)
                ends.append(reader)
    return frozenset(found)


def _seeds(rollback: Rollback, row: TableRow) -> frozenset[int]:
    """The versions of the table that a rollback of the daemon's is about; none if it is about something else."""
    if rollback.head.actor != DAEMON.name:
        return frozenset()
    try:
        seeds = decode_plan(rollback.head.payload or "").plan.request.seeds
    except UnreadableError:  # made by another version of lakewarden: it is made anew
        return frozenset()
    return frozenset(
        version
        for seed in seeds
        if isinstance(seed, BadVersions) and seed.table_id == row.table_id
        for version in seed.versions
    )


def _waits_for(rollback: Rollback, row: TableRow) -> bool:
    """Whether this is the daemon's own unapplied plan for this table's RESTOREs."""
    return rollback.head.state is RollbackState.PLANNED and bool(_seeds(rollback, row))


def _was_tried(rollback: Rollback, one: OpenRestores, versions: tuple[int, ...]) -> bool:
    """Whether the daemon began the same before, with any outcome; or, of a head that was moved by hand, something about
    any of these versions that somebody undid."""
    seeds = _seeds(rollback, one.row)
    if not one.restores and rollback.head.state in _UNDONE and not seeds.isdisjoint(versions):
        return True
    return rollback.head.state is not RollbackState.PLANNED and seeds == set(versions)


def _behind(row: TableRow, left: Undone) -> str:
    return f"{row.name}, whose head left versions {left.first} to {left.last} behind"


def _able(found: Gathered) -> bool:
    """Whether the daemon may work on every table that would change."""
    rows = [found.rows.get(table.table_id) for table in found.plan.tables if table.acts]
    return all(row is not None and row.state is TableState.ACTIVE for row in rows)


def _what_waits(found: Gathered) -> str:
    plan = found.plan
    blockers = [blocker.message for _, blocker in plan.blockers()]
    if not found.steps():
        return " ".join(["No plan mends that by itself.", *blockers[:1]])
    if blockers:
        return f"Plan {plan.hash} waits, and cannot be applied yet: {blockers[0]}"
    return f"Plan {plan.hash} waits: `lakewarden rollback show {plan.hash}`, then apply it."
