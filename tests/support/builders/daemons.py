"""A daemon's cycle on fakes: the ports' own in-memory implementations, a manual clock, tables that the test changes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from lakewarden.catalog.formats.port import LogProblem, Observation
from lakewarden.catalog.model.rows import DELTA, Finding, Outcome, PolicySettings, RunRow, Source, TableRow
from lakewarden.catalog.policy.effective import EffectivePolicy
from lakewarden.catalog.registry.discovery import DiscoveredTable
from lakewarden.catalog.registry.service import Registry
from lakewarden.catalog.state.port import Result, Run
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.catalog.storage.options import StorageMap
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import HEALTH, RUNS, TABLES, Fence
from lakewarden.daemon.control.cycle import Cycle, CycleParts
from lakewarden.daemon.control.cycle_report import CycleReport
from lakewarden.daemon.control.hints import HintSource
from lakewarden.daemon.control.restore_cascade import OpenRestores
from lakewarden.daemon.control.run_recorder import RunRecorder
from lakewarden.daemon.control.sweep_writer import SweepWriter
from lakewarden.daemon.control.system_maintenance import Caretaker
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.daemon.fleet.observer import Observer
from lakewarden.daemon.fleet.questions import Questions
from lakewarden.daemon.fleet.stores import Stores
from lakewarden.daemon.telemetry.metrics import Metrics
from lakewarden.daemon.telemetry.webhook import Event
from lakewarden.daemon.workers.lost_runs import Reaper
from lakewarden.jobs.actions.budget import Budget
from lakewarden.jobs.runs.host_clock import HostClock
from lakewarden.jobs.runs.standings import StoredStandings
from support.builders.commits import changed
from support.builders.tables import FakeInspector, FakeReader, observation
from support.fakes.clock import ManualClock
from support.fakes.state import FakeInbox, FakeLeases, FakeQueue, FakeRunLog
from support.fakes.system_store import FakeSystemStore

__all__ = ["World"]

LEASE = timedelta(seconds=60)


@dataclass
class Told:
    """A notifier that keeps what it is told."""

    events: list[Event] = field(default_factory=list)

    def tell(self, event: Event) -> None:
        self.events.append(event)


class NoRestores:
    """A cascade_driver for tables that nobody restores."""

    def open(self) -> Sequence[OpenRestores]:
        return ()

    def carry(self, one: OpenRestores, fence: Fence) -> bool:
        return False


class World:
    """Everything a cycle touches, in memory. `restart` makes a new daemon on the same stores."""

    def __init__(self) -> None:
        self.clock = ManualClock(moment=datetime(2026, 6, 1, 12, 0, tzinfo=UTC))
        self.store, self.reader, self.inspector = FakeSystemStore(), FakeReader(), FakeInspector()
        self.inbox, self.queue, self.run_log = FakeInbox(), FakeQueue(self.clock), FakeRunLog()
        self.leases = FakeLeases(self.clock)
        self.told, self.metrics = Told(), Metrics()
        self.found: list[DiscoveredTable | None] = []
        self.store.create(system_rows(self.store, now=self.clock.now(), actor="root"))
        for row in self.store.rows(TABLES).all():
            self.reader.tables[row.location or ""] = observation(row.location or "", self.clock.now())
        self.fence = self.store.raise_fence("one", at_least=1)
        self.cycle = self.restart()

    def restart(self) -> Cycle:
        """A daemon that has just started: no memory, the same stores."""
        cache, questions = FleetCache(self.store, self.clock), Questions()
        registry = Registry(
            store=self.store,
            readers=(self.reader,),
            metastore=None,
            clock=self.clock,
            inspect=self._inspect,
            storage=lambda location: StorageOptions(),
        )
        recorder = RunRecorder(
            store=self.store,
            queue=self.queue,
            cache=cache,
            registry=registry,
            notifier=self.told,
            metrics=self.metrics,
        )
        observer = Observer(
            readers=(self.reader,),
            inspector=self.inspector,
            store=self.store,
            clock=self.clock,
            checks_every=timedelta(days=1),
        )
        self.cycle = Cycle(
            CycleParts(
                queue=self.queue,
                cache=cache,
                observer=observer,
                writer=SweepWriter(store=self.store, cache=cache, notifier=self.told, clock=self.clock),
                reaper=Reaper(
                    queue=self.queue,
                    run_log=self.run_log,
                    registry=registry,
                    clock=self.clock,
                    attempts=3,
                    pause=timedelta(seconds=10),
                    asked=questions.one,
                ),
                recorder=recorder,
                hints=HintSource(
                    inbox=self.inbox,
                    cache=cache,
                    drain=lambda: 0,
                    metastore=None,
                    asked=questions.one,
                ),
                caretaker=Caretaker(
                    store=self.store,
                    cache=cache,
                    recorder=recorder,
                    clock=self.clock,
                    standings=StoredStandings(self.store),
                    clocks=HostClock(own=self.clock, database=self.leases.now, host="here"),
                ),
                registry=registry,
                metrics=self.metrics,
                budget=Budget(),
                checks_per_cycle=100,
                threads=2,
                stores=Stores(clock=self.clock, longest_pause=timedelta(minutes=5), threads=2),
                store_of=StorageMap().store_of,
                adopt=True,
                cascade_driver=NoRestores(),
                discover=self._discover,
                require=lambda fence: None,
                beat=lambda: None,
                questions=questions,
            )
        )
        return self.cycle

    def add(
        self, name: str, *, policy: PolicySettings | None = None, lake: str = "file:///lake", **changes: Any
    ) -> TableRow:
        """A converted table with a log."""
        now, location = self.clock.now(), f"{lake}/{name}"
        row = TableRow(
            row=100 + len(self.reader.tables),
            table_id=f"id-{name}",
            name=name,
            format=DELTA,
            location=location,
            owner="ana",
            source=Source.CONVERT,
            registered_at=now,
            registered_by="ana",
            updated_at=now,
            updated_by="ana",
            policy=policy or PolicySettings(),
            format_ids=(f"uuid-{location}",),
        )
        self.reader.tables[location] = observation(location, now, **changes)
        self.store.edit(TABLES, lambda _: [row], because="test")
        return row

    def write(self, row: TableRow, **changes: Any) -> None:
        """Somebody commits to a table."""
        location = row.location or ""
        before = self.reader.tables[location]
        assert isinstance(before, Observation)
        new = {"version": before.version + 1, "committed_at": self.clock.now()}
        self.reader.tables[location] = changed(before, **{**new, **changes})

    def settle(self) -> None:
        """Sweep and work until there is nothing left to do."""
        for _ in range(20):
            report = self.sweep()
            if report.idle:
                return
            while self.work(Result(outcome=Outcome.SKIPPED, message="nothing to do")) is not None:
                pass
        raise AssertionError(f"it never came to rest: {report.sentence()}")

    def sweep(self, *, may_plan: bool = True, discover: bool = False) -> CycleReport:
        """One cycle, half a minute after the last."""
        self.clock.advance(timedelta(seconds=30))
        return self.cycle.run(self.fence, may_plan=may_plan, discover=discover)

    def work(self, result: Result) -> Run | None:
        """A worker takes one run and ends it so."""
        run = self.queue.claim("w", LEASE)
        if run is not None:
            assert self.queue.start(run.request.run_id, "w", LEASE)
            self.clock.advance(timedelta(seconds=1))
            started = self.queue.get(run.request.run_id)
            assert started is not None and self.queue.finish(started, "w", result)
        return run

    def row(self, name: str) -> TableRow:
        """The row of a table as it is stored."""
        (row,) = self.store.rows(TABLES).find(name=name)
        return row

    def health(self, name: str) -> Any:
        """The stored health of a table, None if there is none."""
        return self.store.rows(HEALTH).get(f"id-{name}")

    def runs(self) -> tuple[RunRow, ...]:
        """All recorded runs."""
        return self.store.rows(RUNS).all()

    def _discover(self) -> Iterator[DiscoveredTable | None]:
        return iter(self.found)

    def _inspect(
        self, row: TableRow, policy: EffectivePolicy, seen: Observation | LogProblem
    ) -> tuple[Finding, ...]:
        return ()
