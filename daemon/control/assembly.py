"""The daemon, and a host of workers, put together from an installation's services: the second half of the
composition root."""

import os
import socket
import threading
import uuid
from functools import partial

from lakewarden.catalog.clock import Clock
from lakewarden.catalog.lineage.stream_batches import StreamHarvest
from lakewarden.catalog.lineage.streams.session_notes import StreamNotes
from lakewarden.catalog.lineage.write_notes import WriteNotes
from lakewarden.catalog.state.hint_spool import Spool, drain
from lakewarden.daemon.control.cycle import Cycle, CycleParts
from lakewarden.daemon.control.gone_lineage import GoneLineageClerk
from lakewarden.daemon.control.hints import HintSource
from lakewarden.daemon.control.leadership import Leadership
from lakewarden.daemon.control.main_loop import DISCOVER, PATIENCE, SWEEP, Service, ServiceParts
from lakewarden.daemon.control.restore_cascade import RestoreCascadeDriver
from lakewarden.daemon.control.run_recorder import RunRecorder
from lakewarden.daemon.control.stream_recorder import StreamClerk
from lakewarden.daemon.control.sweep_writer import SweepWriter
from lakewarden.daemon.control.system_maintenance import Caretaker
from lakewarden.daemon.control.ticker import Ticker
from lakewarden.daemon.control.write_clerk import WriteClerk
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.daemon.fleet.observer import Observer
from lakewarden.daemon.fleet.questions import Questions
from lakewarden.daemon.fleet.stores import Stores
from lakewarden.daemon.installation.services import Services
from lakewarden.daemon.settings.settings import Settings
from lakewarden.daemon.telemetry.failed_cycles import Troubles
from lakewarden.daemon.telemetry.liveness import Vitals
from lakewarden.daemon.telemetry.metrics import Metrics
from lakewarden.daemon.telemetry.openlineage_events import MakerSource
from lakewarden.daemon.telemetry.openlineage_sender import EventTail
from lakewarden.daemon.telemetry.openlineage_sinks import sinks_of
from lakewarden.daemon.telemetry.probes import Pages
from lakewarden.daemon.telemetry.webhook import Notifier, Silence, Webhook
from lakewarden.daemon.usecases.discovery import candidates
from lakewarden.daemon.usecases.rollbacks.rollback import rollbacks_of_services
from lakewarden.daemon.workers.host import HostParts, WorkerHost
from lakewarden.daemon.workers.lost_runs import Reaper
from lakewarden.daemon.workers.pool import WorkerPool
from lakewarden.jobs.engines.registry import engine_formats
from lakewarden.jobs.runs.host_clock import HostClock
from lakewarden.jobs.runs.standings import StoredStandings

__all__ = ["build_daemon", "build_worker_host", "holder_name"]


def holder_name() -> str:
    """Who holds the lease: machine, process, and a part that makes a restarted process another holder."""
    return f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


def build_daemon(services: Services, *, pages: bool = True) -> Service:
    """One daemon, not yet running. `pages`: serve /livez, /readyz and /metrics."""
    settings, metrics, holder, stopping = services.settings, Metrics(), holder_name(), threading.Event()
    vitals = Vitals(patience=PATIENCE)
    webhook = (
        Webhook(
            settings.webhook_url,
            timeout=settings.webhook_timeout,
            attempts=settings.webhook_attempts,
            secret=settings.webhook_secret,
            metrics=metrics,
        )
        if settings.webhook_url is not None
        else None
    )
    leadership = Leadership(
        leases=services.leases,
        store=services.store,
        name=settings.lease_name,
        holder=holder,
        ttl=settings.lease_ttl,
        grace=settings.run_lease,
        history=services.history,
        answers=services.require_answer,
        live=lambda: vitals.live().ok,
    )
    own_workers = 0 if settings.workers_external else settings.workers_count
    pool = services.worker_pool(own_workers, on_failure=metrics.worker_restarts.inc)
    cycle = _cycle(services, leadership, webhook or Silence(), metrics, vitals, stopping, pool)
    return Service(
        ServiceParts(
            queue=services.queue,
            cycle=cycle,
            leadership=leadership,
            ticker=Ticker({SWEEP: settings.sweep_interval, DISCOVER: settings.discovery_interval}),
            pool=pool,
            workers=own_workers,
            drain=settings.workers_drain,
            vitals=vitals,
            metrics=metrics,
            pages=_pages(settings, vitals, metrics) if pages else None,
            webhook=webhook,
            tails=_tails(services, metrics),
            troubles=Troubles(settings.home),
            clock=services.clock,
        ),
        stopping,
    )


def build_worker_host(services: Services) -> WorkerHost:
    """A host of workers for a daemon elsewhere, not yet running."""
    settings, metrics = services.settings, Metrics()
    vitals = Vitals(patience=PATIENCE, kind="worker")
    return WorkerHost(
        HostParts(
            queue=services.queue,
            pool=services.worker_pool(
                settings.workers_count, on_failure=metrics.worker_restarts.inc, logs=False
            ),
            count=settings.workers_count,
            formats=frozenset(engine_formats()),
            drain=settings.workers_drain,
            vitals=vitals,
            metrics=metrics,
            pages=_pages(settings, vitals, metrics),
            require_current=services.store.require_current,
        )
    )


def _pages(settings: Settings, vitals: Vitals, metrics: Metrics) -> Pages:
    return Pages(host=settings.http_host, port=settings.http_port, vitals=vitals, metrics=metrics)


def _tails(services: Services, metrics: Metrics) -> tuple[EventTail, ...]:
    """What sends lineage events: one per sink that the settings name."""
    settings, store = services.settings, services.store
    return tuple(
        EventTail(
            store=store,
            bookmarks=services.bookmarks,
            sink=sink,
            maker=MakerSource(store, settings),
            metrics=metrics,
        )
        for sink in sinks_of(settings)
    )


def _cycle(
    services: Services,
    leadership: Leadership,
    notifier: Notifier,
    metrics: Metrics,
    vitals: Vitals,
    stopping: threading.Event,
    pool: WorkerPool,
) -> Cycle:
    settings, store, clock = services.settings, services.store, services.clock
    cache = FleetCache(store, clock)
    questions = Questions(disks=services.disks)
    recorder = _recorder(services, cache, notifier, metrics, questions)
    harvest = StreamHarvest(store=store, storage=services.storage, readers=services.readers)
    observer = Observer(
        readers=services.readers,
        inspector=services.inspection,
        store=store,
        clock=clock,
        checks_every=settings.sweep_checks_every,
        streams=harvest,
    )
    return Cycle(
        CycleParts(
            queue=services.queue,
            cache=cache,
            observer=observer,
            writer=SweepWriter(store=store, cache=cache, notifier=notifier, clock=clock),
            reaper=_reaper(services, pool, questions),
            recorder=recorder,
            hints=_hint_source(services, cache, questions),
            caretaker=_caretaker(services, cache, recorder, vitals),
            registry=services.registry,
            metrics=metrics,
            budget=services.budget,
            checks_per_cycle=settings.sweep_checks_per_cycle,
            threads=settings.sweep_threads,
            stores=_stores(settings, clock),
            store_of=settings.storage.store_of,
            adopt=settings.discovery_adopt,
            cascade_driver=RestoreCascadeDriver(
                rollbacks=rollbacks_of_services(services), cache=cache, notifier=notifier
            ),
            discover=partial(candidates, services, renamed=True),
            require=leadership.require,
            beat=vitals.beat,
            stopping=stopping.is_set,
            streams=_clerk(services, cache, harvest, questions).record,
            writes=_write_clerk(services, cache, questions).record,
            gone=_gone_clerk(services, cache, harvest, questions).record,
            unrecorded=lambda fence: services.audit_spool.drain(store, fence=fence),
            no_spark=services.no_spark,
            disks=services.disks,
            questions=questions,
        )
    )


def _recorder(
    services: Services, cache: FleetCache, notifier: Notifier, metrics: Metrics, questions: Questions
) -> RunRecorder:
    return RunRecorder(
        store=services.store,
        queue=services.queue,
        cache=cache,
        registry=services.registry,
        notifier=notifier,
        metrics=metrics,
        questions=questions,
        entries=services.entries,
    )


def _stores(settings: Settings, clock: Clock) -> Stores:
    return Stores(clock=clock, longest_pause=settings.sweep_longest_pause, threads=settings.sweep_threads)


def _reaper(services: Services, pool: WorkerPool, questions: Questions) -> Reaper:
    settings = services.settings
    return Reaper(
        queue=services.queue,
        run_log=services.run_log,
        registry=services.registry,
        clock=services.clock,
        attempts=settings.run_attempts,
        pause=settings.run_heartbeat,
        silence=pool.silence,
        asked=questions.one,
    )


def _hint_source(services: Services, cache: FleetCache, questions: Questions) -> HintSource:
    store = services.store
    spool = Spool(services.settings.system_location, store.storage(), clock=services.clock)
    return HintSource(
        inbox=services.inbox,
        cache=cache,
        drain=partial(drain, spool, services.inbox),
        metastore=services.metastore,
        asked=questions.one,
    )


def _clerk(
    services: Services, cache: FleetCache, harvest: StreamHarvest, questions: Questions
) -> StreamClerk:
    location = services.settings.system_location
    return StreamClerk(
        store=services.store,
        notes=StreamNotes(location, services.store.storage(), clock=services.clock),
        harvest=harvest,
        cache=cache,
        readers=services.readers,
        clock=services.clock,
        questions=questions,
    )


def _gone_clerk(
    services: Services, cache: FleetCache, harvest: StreamHarvest, questions: Questions
) -> GoneLineageClerk:
    return GoneLineageClerk(
        store=services.store,
        cache=cache,
        readers=services.readers,
        harvest=harvest,
        clock=services.clock,
        tick=lambda: questions.tick(),
    )


def _write_clerk(services: Services, cache: FleetCache, questions: Questions) -> WriteClerk:
    location = services.settings.system_location
    return WriteClerk(
        store=services.store,
        notes=WriteNotes(location, services.store.storage(), clock=services.clock),
        cache=cache,
        readers=services.readers,
        clock=services.clock,
        questions=questions,
    )


def _caretaker(services: Services, cache: FleetCache, recorder: RunRecorder, vitals: Vitals) -> Caretaker:
    store, clock = services.store, services.clock
    return Caretaker(
        store=store,
        cache=cache,
        recorder=recorder,
        clock=clock,
        standings=StoredStandings(store),
        clocks=HostClock(own=clock, database=services.leases.now, host=socket.gethostname()),
        beat=vitals.beat,
    )
