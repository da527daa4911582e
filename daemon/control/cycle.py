"""One cycle: reap and record runs, claim hints, observe, write what changed, plan, enqueue. One sentence at its end.

The order is what makes a crash at any point harmless: runs are recorded before they are forgotten, hints are forgotten
last, and what finishes meanwhile still counts as under way. Whatever goes wrong with one table is that table's affair
and never stops the cycle: this is one of two modules that catch every exception.
"""

import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Final, TypeVar

from lakewarden.catalog.errors import FencedError, LakewardenError, MetastoreAwayError
from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.isolation import Stopped, Unforeseen, in_one_line, isolated
from lakewarden.catalog.model.rollbacks import next_run_id
from lakewarden.catalog.model.rows import HealthRow, RunRow, TableState
from lakewarden.catalog.policy.scopes import Governed
from lakewarden.catalog.registry.discovery import DiscoveredTable
from lakewarden.catalog.registry.service import Registry
from lakewarden.catalog.state.port import Queue, Run, RunRequest
from lakewarden.catalog.storage.place import Moment
from lakewarden.catalog.system.port import RUNS, Fence
from lakewarden.daemon.control.adoption import Adoption
from lakewarden.daemon.control.cycle_report import CycleReport, has_work, in_a_sentence
from lakewarden.daemon.control.hints import HintSource, PendingHints
from lakewarden.daemon.control.restore_cascade import CascadeDriver, OpenRestores
from lakewarden.daemon.control.returns import returned, take_back
from lakewarden.daemon.control.rounds import Rounds
from lakewarden.daemon.control.run_recorder import Ended, RunRecorder
from lakewarden.daemon.control.sweep_writer import SweepWriter
from lakewarden.daemon.control.system_maintenance import Caretaker
from lakewarden.daemon.fleet.disks import Disks
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.daemon.fleet.look import OnRecord, TableLook
from lakewarden.daemon.fleet.observer import Observer
from lakewarden.daemon.fleet.questions import Questions
from lakewarden.daemon.fleet.stores import Stores
from lakewarden.daemon.telemetry.log import get_log
from lakewarden.daemon.telemetry.metrics import Metrics
from lakewarden.daemon.workers.lost_runs import Reaper
from lakewarden.jobs.actions.budget import Budget
from lakewarden.jobs.actions.rollback import RollBack
from lakewarden.jobs.planning.explain import summary
from lakewarden.jobs.planning.planner import Plan, PlannedRun, plan, request_for
from lakewarden.jobs.planning.resting import Resting

__all__ = ["Cycle", "CycleParts"]

T = TypeVar("T")
_LOOKED_AT: Final = (TableState.ACTIVE, TableState.QUARANTINED)
_LINES: Final = 5
"""So many tables that had to be skipped get a line each; the rest is counted."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CycleParts:
    """What a cycle works with."""

    queue: Queue
    cache: FleetCache
    observer: Observer
    writer: SweepWriter
    reaper: Reaper
    recorder: RunRecorder
    hints: HintSource
    caretaker: Caretaker
    registry: Registry
    metrics: Metrics
    budget: Budget
    checks_per_cycle: int  #: So many tables at most get the daily checks
    threads: int  #: So many look at tables
    stores: Stores  #: How much each store is asked
    store_of: Callable[[str], str | None]  #: Which store answers for a location
    adopt: bool
    cascade_driver: CascadeDriver  #: Follows plain RESTOREs into derived tables
    discover: Callable[[], Iterator[DiscoveredTable | None]]  #: Finds tables without a row
    require: Callable[[Fence], None]  #: Raises `FencedError` once the lease is lost
    beat: Callable[[], None]  #: Says that the cycle goes on
    stopping: Callable[[], bool] = lambda: False  #: Whether the cycle shall end at the next table
    streams: Callable[[Fence], object] = lambda fence: None  #: Records what sessions noted of streams
    writes: Callable[[Fence], object] = lambda fence: None  #: Records what sessions noted of plain writes
    gone: Callable[[Fence], object] = lambda fence: None  #: Reads lost lineage of tables that are gone
    unrecorded: Callable[[Fence], object] = lambda fence: None  #: Records audit entries that wait
    no_spark: Callable[[str], str | None] = lambda location: None  #: Why Spark may not work at a location
    disks: Disks = field(default_factory=Disks)  #: Those that hang
    questions: Questions = field(default_factory=Questions)  #: Asks them in time


@dataclass(slots=True)
class Cycle:
    """Runs cycles. Keeps nothing that the system tables could not give back."""

    parts: CycleParts
    _again: set[str] = field(default_factory=set)
    _skipped: dict[str, str] = field(default_factory=dict)
    """What was left out of the cycle, and why."""
    _resting: Resting = field(default_factory=Resting)
    _adoption: Adoption = field(init=False)
    _rounds: Rounds = field(init=False)

    def __post_init__(self) -> None:
        parts = self.parts
        parts.questions.tick = self._go_on
        self._adoption = Adoption(
            guard=self._guarded,
            go_on=self._go_on,
            no_metastore=parts.hints.metastore_outage,
            moment=lambda: Moment(unanswered=parts.disks.hanging()),
        )
        self._rounds = Rounds(
            stores=parts.stores,
            store_of=parts.store_of,
            threads=parts.threads,
            passed_over=self._skipped.__setitem__,
            tick=self._go_on,
            disks=parts.disks,
        )

    def run(self, fence: Fence, *, may_plan: bool, discover: bool = False) -> CycleReport:
        """One cycle under the fence. Raises only `FencedError`: then this daemon leads no more."""
        began = time.monotonic()
        self._skipped.clear()
        try:
            report = self._run(fence, may_plan=may_plan, discover=discover)
        except FencedError:
            raise
        except Stopped:
            report = CycleReport(stopped=True)
        except LakewardenError as error:
            report = CycleReport(trouble=str(error))
        except Exception as error:  # noqa: BLE001  # whatever it is: it is logged, and the daemon goes on
            get_log("cycle").exception("unexpected error")
            trouble = f"An unexpected error ({in_one_line(error)}); its trace is in the log."
            report = CycleReport(trouble=trouble)
        seconds, left_out = time.monotonic() - began, in_a_sentence(self._skipped)
        report = replace(report, seconds=seconds, skipped=len(self._skipped), left_out=left_out)
        self._measure(report)
        return report

    def _run(self, fence: Fence, *, may_plan: bool, discover: bool) -> CycleReport:
        parts = self.parts
        parts.cache.refresh()
        # Before finished runs are recorded: one that finishes in between still counts as under way, so nothing is
        # planned from health that does not know of it yet.
        unfinished = parts.queue.unfinished()
        reaped = sum(
            bool(self._guarded(run.request.name, partial(parts.reaper.finish, run)))
            for run in parts.reaper.lost()
        )
        recorded = parts.recorder.record(fence, self._attempt)
        heard = self._guarded("hints", parts.hints.listen) or PendingHints()
        adopted = self._adopt(heard.unknown, discover=discover) + self._taken_back()
        if recorded or adopted or heard.look or heard.unknown:
            parts.cache.refresh()  # what followed from runs or was heard of may have been written since
        doubted = parts.cache.reverted_ranges.doubted()
        must = heard.look | {row.table_id for row in recorded} | self._again | doubted
        self._again.clear()
        seen = self._observe(must)
        reach("cycle.observed")
        parts.require(fence)
        looks, outdated = self._standing(seen)
        # Before writing: what is written down now may give reason to look at the same tables again.
        parts.cache.reverted_ranges.looked_at(look.table_id for look in looks)
        passed_over = parts.cache.reverted_ranges.doubted()
        self._again.update(doubted | outdated)
        changed = self._write(looks, recorded, fence)
        self._guarded("streams", partial(parts.streams, fence))
        self._guarded("writes", partial(parts.writes, fence))
        self._guarded("gone tables", partial(parts.gone, fence))
        self._guarded("audit", partial(parts.unrecorded, fence))
        self._again = outdated | self._not_seen(must)
        if may_plan:
            self._carry(fence)
        made = self._plan(unfinished) if may_plan else None
        queued = self._start(made, fence) if made is not None else 0
        parts.hints.done(heard, later=self._adoption.postponed, now=parts.registry.clock.now())
        return CycleReport(
            looked=len(parts.cache.governed()),
            changed=changed,
            adopted=adopted,
            reaped=reaped,
            recorded=recorded,
            planned="planning waits until workers had time to report" if made is None else summary(made),
            queued=queued,
            unfinished=len(unfinished),
            searching=self._adoption.searching,
            idle=made is not None
            and not (unfinished or recorded or outdated or has_work(made) or self._adoption.searching)
            and parts.cache.governed().keys().isdisjoint(parts.cache.reverted_ranges.doubted() - passed_over),
        )

    def _observe(self, must: Collection[str]) -> list[TableLook]:
        """Looks at the tables that moved, or that something asks to look at; by several threads. The daily checks
        wait for a store that is away, and keep none from the others."""
        parts = self.parts
        shown = [one for one in parts.cache.governed().values() if one.row.state in _LOOKED_AT]
        waiting = (one.row.table_id for one in shown if self._wants_checks(one))
        checked = frozenset(islice(waiting, parts.checks_per_cycle))
        look = partial(self._look, must=must, checked=checked)
        return [seen for seen in self._rounds.look(shown, look) if seen is not None]

    def _standing(self, seen: Sequence[TableLook]) -> tuple[tuple[TableLook, ...], set[str]]:
        """The looks that are still of the rows as they are by now, and the tables to look at again."""
        looks = self.parts.writer.standing(seen)
        outdated = {look.table_id for look in seen} - {look.table_id for look in looks}
        for table_id in outdated:
            self.parts.observer.forget(table_id)
        return looks, outdated

    def _not_seen(self, must: Collection[str]) -> set[str]:
        """Of the tables that had to be looked at those that were left out of this cycle."""
        shown = self.parts.cache.governed().values()
        return {
            one.row.table_id for one in shown if one.row.table_id in must and one.row.name in self._skipped
        }

    def _wants_checks(self, governed: Governed) -> bool:
        health = self.parts.cache.health(governed.row.table_id)
        return self.parts.observer.wants_checks(health) and not self._rounds.is_away(governed)

    def _look(self, governed: Governed, must: Collection[str], checked: Collection[str]) -> TableLook | None:
        cache, table_id = self.parts.cache, governed.row.table_id
        before = cache.health(table_id)
        on_record = OnRecord(
            schema=cache.has_schema(table_id),
            lineage=cache.lineage_of(table_id),
            undone=cache.reverted_ranges.ranges,
            may_hold_undone=cache.reverted_ranges.may_hold(table_id),
        )
        look = partial(
            self.parts.observer.look,
            governed,
            before,
            must=table_id in must,
            checks=table_id in checked,
            on_record=on_record,
        )
        return self._judged(governed, before, partial(self._rounds.asked, governed, look))

    def _judged(
        self, governed: Governed, before: HealthRow | None, look: Callable[[], TableLook | None]
    ) -> TableLook | None:
        """A look at one table. An unforeseen error is a finding on that table and quarantines it."""
        name = governed.row.name
        found = self._guarded(name, partial(isolated, look))
        if not isinstance(found, Unforeseen):
            return found
        self._skipped[name] = f"{found.problem}."
        seen = self.parts.observer.unjudged(governed, before, found.problem)
        if seen.health is not None:
            self._say(found, name)
        return seen

    def _write(self, looks: Sequence[TableLook], recorded: Sequence[RunRow], fence: Fence) -> int:
        """Write what was found. Where it cannot be written as a whole,
        the tables to blame are told apart from the others."""
        parts = self.parts
        written = isolated(partial(parts.writer.write, looks, recorded, fence))
        if not isinstance(written, Unforeseen):
            return written
        self._say(written, "what this sweep found")
        sound = [self._provable(look) for look in looks]
        return parts.writer.write(sound, recorded, fence)

    def _provable(self, look: TableLook) -> TableLook:
        parts, governed = self.parts, self.parts.cache.governed().get(look.table_id)
        found = isolated(partial(parts.writer.prove, look))
        if not isinstance(found, Unforeseen) or governed is None:
            return look
        self._skipped[governed.row.name] = f"{found.problem}."
        self._say(found, governed.row.name)
        return parts.observer.unjudged(governed, parts.cache.health(look.table_id), found.problem)

    def _carry(self, fence: Fence) -> None:
        """What plain RESTOREs took back is followed into derived tables.
        A rollback that begins is planned for at once."""
        parts, begun = self.parts, False
        for one in self._guarded("restored tables", parts.cascade_driver.open) or ():
            parts.require(fence)
            begun |= bool(self._guarded(one.row.name, partial(self._carried, one, fence)))
        if begun:
            parts.cache.refresh()

    def _carried(self, one: OpenRestores, fence: Fence) -> bool:
        """What it takes is read from the logs of all tables, whichever hang."""
        rows = *(each.row for each in self.parts.cache.governed().values()), *self.parts.cache.gone_unread()
        self.parts.questions.require(row.location or "" for row in rows)
        return self.parts.cascade_driver.carry(one, fence)

    def _plan(self, unfinished: Collection[Run]) -> Plan:
        parts, metastore = self.parts, self.parts.registry.metastore
        world = parts.cache.world(
            unfinished, parts.budget, has_metastore=metastore is not None, no_spark=parts.no_spark
        )
        made = plan(world, parts.registry.clock.now(), resting=self._resting)
        reach("cycle.planned")
        return made

    def _start(self, made: Plan, fence: Fence) -> int:
        """Queue what is planned for workers; what concerns system tables is done here and now."""
        parts = self.parts
        ours = [run for run in made.runs if parts.caretaker.takes(run)]
        theirs = [run for run in made.runs if not parts.caretaker.takes(run)]
        parts.require(fence)
        asked = [
            self._guarded(run.name, partial(request_for, run, new_id=partial(self._id_of, run)))
            for run in theirs
        ]
        queued = self._enqueue([one for one in asked if one is not None])
        reach("cycle.enqueued")
        for run in ours:
            self._guarded(run.name, partial(parts.caretaker.take, run, fence))
            self._again.add(run.table_id)
        return queued

    def _enqueue(self, requests: Sequence[RunRequest]) -> int:
        """Queue runs: together, or each by itself where one of them cannot be stored."""
        queue = self.parts.queue
        together = isolated(partial(queue.enqueue, requests))
        if not isinstance(together, Unforeseen):
            return len(together)
        self._say(together, "what is planned")
        return sum(len(self._guarded(one.name, partial(queue.enqueue, [one])) or ()) for one in requests)

    def _id_of(self, run: PlannedRun) -> str:
        """A new id; for a rollback, the one that the command which began it comes to as well."""
        action = run.due.action
        if not isinstance(action, RollBack):
            return uuid.uuid4().hex
        recorded, queue = self.parts.recorder.store.rows(RUNS), self.parts.queue
        return next_run_id(action.rollback_id, lambda one: queue.forgot(one) or recorded.get(one) is not None)

    def _adopt(self, subjects: Iterable[str], *, discover: bool) -> int:
        parts = self.parts
        if not parts.adopt:
            return 0
        search = parts.discover if discover else None
        return self._adoption.run(parts.registry, subjects, search, threads=parts.threads)

    def _taken_back(self) -> int:
        parts, registry = self.parts, self.parts.registry
        back = returned(registry, parts.cache.left(), parts.questions)
        return sum(bool(self._guarded(row.name, partial(take_back, registry, row))) for row in back)

    def _guarded(self, what: str, do: Callable[[], T]) -> T | None:
        """Do something that concerns one table. If it fails, that table is left out of this cycle."""
        done: list[T] = []
        self._attempt(what, lambda: done.append(do()))
        return done[0] if done else None

    def _attempt(self, what: str, do: Callable[[], object]) -> Ended:
        """Do something that concerns one table, and say how it ended.
        Between two such things a stopping daemon ends."""
        self._go_on()
        ended = Ended.NEVER
        try:
            do()
            return Ended.DONE
        except (FencedError, Stopped):
            raise
        except LakewardenError as error:
            ended, problem = Ended.LATER if error.retry else Ended.NEVER, str(error)
            if isinstance(error, MetastoreAwayError):
                self.parts.hints.metastore_outage.met(problem)
            elif len(self._skipped) < _LINES:
                get_log("cycle").warning("skipped", table=what, problem=problem)
        except Exception as error:  # noqa: BLE001  # whatever it is: it is logged, and the daemon goes on
            get_log("cycle").exception("unexpected error", table=what)
            problem = f"An unexpected error ({in_one_line(error)})."
        self._skipped[what] = problem
        return ended

    def _say(self, found: Unforeseen, what: str) -> None:
        get_log("cycle").error("unforeseen", table=what, problem=found.problem, trace=found.trace)

    def _go_on(self) -> None:
        """Between two tables: say that the cycle goes on, or raise `Stopped` where it shall not."""
        self.parts.beat()
        if self.parts.stopping():
            raise Stopped

    def _measure(self, report: CycleReport) -> None:
        metrics, cache = self.parts.metrics, self.parts.cache
        if report.stopped:
            return
        metrics.cycles.labels("failed" if report.trouble else "done").inc()
        metrics.cycle_seconds.observe(report.seconds)
        if report.trouble is not None:
            return
        metrics.last_cycle.set(self.parts.registry.clock.now().timestamp())
        metrics.observed.inc(report.changed)
        metrics.unfinished.set(report.unfinished + report.queued)
        metrics.set_counts(metrics.tables, Counter(one.row.state.value for one in cache.governed().values()))
        severities = Counter(found.severity.value for row in cache.healths() for found in row.findings)
        metrics.set_counts(metrics.findings, severities)
