"""The one place that constructs: settings in, everything else out. Lazily, so that each command opens only its own."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lakewarden.catalog.clock import Clock, SystemClock
from lakewarden.catalog.errors import (
    ExecutionError,
    LakewardenError,
    OutdatedError,
    PreconditionError,
    UnavailableError,
)
from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.metastore.port import Metastore
from lakewarden.catalog.metastore.system_database import with_system_database
from lakewarden.catalog.metastore.table_heads import TableHeads
from lakewarden.catalog.metastore.taken_entries import TakenEntries
from lakewarden.catalog.model.rows import RunRow
from lakewarden.catalog.named_catalogs.port import NamedCatalogs
from lakewarden.catalog.registry.other_installations import Others
from lakewarden.catalog.registry.service import Registry
from lakewarden.catalog.state.port import Bookmarks, Inbox, Leases, Queue, RunLog
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.catalog.storage.place import Moment
from lakewarden.catalog.storage.troubles import silent
from lakewarden.catalog.system.audit_spool import AuditSpool
from lakewarden.catalog.system.port import RUNS, TABLES, SystemStore
from lakewarden.catalog.system.store import DeltaSystemStore
from lakewarden.catalog.validation.system_history import SystemHistory
from lakewarden.daemon.fleet.disks import Disks
from lakewarden.daemon.fleet.inspector import Inspection
from lakewarden.daemon.installation.lazily import later
from lakewarden.daemon.settings.settings import Settings, load_settings
from lakewarden.jobs.actions.budget import Budget
from lakewarden.jobs.runs.log_stores import why_not
from lakewarden.jobs.runs.s3a import is_for_s3
from lakewarden.jobs.runs.spark_settings import JarSource

if TYPE_CHECKING:
    from lakewarden.catalog.formats import registry as formats
    from lakewarden.catalog.metastore import hive
    from lakewarden.catalog.named_catalogs import catalogs as named_catalogs
    from lakewarden.catalog.state import bookmarks, db, inbox, lease, queue, run_log, system_heads
    from lakewarden.daemon.workers import pool
    from lakewarden.jobs.engines.spark import jars as spark_jars
    from lakewarden.jobs.engines.spark.s3 import jars as s3_jars
else:
    formats = later("lakewarden.catalog.formats.registry")
    hive = later("lakewarden.catalog.metastore.hive")
    bookmarks = later("lakewarden.catalog.state.bookmarks")
    named_catalogs = later("lakewarden.catalog.named_catalogs.catalogs")
    db = later("lakewarden.catalog.state.db")
    inbox = later("lakewarden.catalog.state.inbox")
    lease = later("lakewarden.catalog.state.lease")
    queue = later("lakewarden.catalog.state.queue")
    run_log = later("lakewarden.catalog.state.run_log")
    system_heads = later("lakewarden.catalog.state.system_heads")
    pool = later("lakewarden.daemon.workers.pool")
    spark_jars = later("lakewarden.jobs.engines.spark.jars")
    s3_jars = later("lakewarden.jobs.engines.spark.s3.jars")

__all__ = ["Services", "open_services"]

_TEND_SECONDS: Final = 1.0
_STARTS: Final = 3
"""After so many starts in a row that the machine refused, a command waits for no worker of its own any more."""
_LOOKED_FOR_SECONDS: Final = 60.0
"""So long a compiler that is there, or is not, is not looked for again: planning asks for every table."""


class Services:
    """Everything an installation has, opened when it is first asked for; `user` is whose process it is, by
    whom it commits to the system tables. `as_it_is`: its operational database is neither made nor upgraded."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock | None = None,
        user: str = "lakewarden",
        as_it_is: bool = False,
    ) -> None:
        self.settings = settings
        self._as_it_is = as_it_is
        self.clock: Clock = clock or SystemClock()
        self.user = user
        self._log_store: tuple[float, PreconditionError | None] | None = None
        self._tenders: list[Future[None]] = []

    def storage(self, location: str) -> StorageOptions:
        """Credentials and endpoints for a location."""
        return self.settings.storage_for(location)

    @cached_property
    def disks(self) -> Disks:
        """Which disks do not answer."""
        return Disks()

    @cached_property
    def store(self) -> SystemStore:
        """The system tables. Raises `UnavailableError` if they are on a disk that does not answer."""
        self.require_answer()
        location = self.settings.system_location
        return DeltaSystemStore(location, self.storage(location), actor=self.user)

    @cached_property
    def leases(self) -> Leases:
        """Who leads."""
        return lease.DatabaseLeases(self._database)

    @cached_property
    def inbox(self) -> Inbox:
        """Hints."""
        return inbox.DatabaseInbox(self._database)

    @cached_property
    def queue(self) -> Queue:
        """Runs between plan and record."""
        return queue.DatabaseQueue(self._database)

    @cached_property
    def run_log(self) -> RunLog:
        """What was said during runs."""
        return run_log.DatabaseRunLog(self._database)

    @cached_property
    def bookmarks(self) -> Bookmarks:
        """How far something has been read."""
        return bookmarks.DatabaseBookmarks(self._database)

    @cached_property
    def history(self) -> SystemHistory:
        """Whether the system tables are those that the database last saw."""
        heads = system_heads.DatabaseSystemHeads(self._database, self.settings.system_location)
        return SystemHistory(self.store, heads)

    @cached_property
    def readers(self) -> tuple[TableReader, ...]:
        """One reader per table format."""
        return formats.readers(self.storage, self.heads)

    @cached_property
    def heads(self) -> TableHeads:
        """Heads that catalogs keep."""
        return self._heads_for(1.0)

    @cached_property
    def heads_now(self) -> TableHeads:
        """The same for whoever acts by them, and reads again what he did: asked for each time anew."""
        return self._heads_for(0.0)

    def _heads_for(self, moment: float) -> TableHeads:
        catalogs = self.catalogs
        return TableHeads(
            lambda: self.metastore,
            lambda: self.store.rows(TABLES),
            declared=None if catalogs is None else catalogs.catalog,
            moment=moment,
        )

    @cached_property
    def entries(self) -> TakenEntries:
        """The entries of catalogs that keep heads."""
        return TakenEntries(heads=self.heads, metastore=lambda: self.metastore, catalogs=self.catalogs)

    @cached_property
    def catalogs(self) -> NamedCatalogs | None:
        """The catalogs that the settings declare, None where there are none."""
        declared = self.settings.catalogs
        return named_catalogs.DeclaredCatalogs(declared) if declared else None

    @cached_property
    def metastore(self) -> Metastore | None:
        """The Hive metastore, None where none is configured."""
        uri, database = self.settings.metastore_uri, self.settings.system_database
        return None if uri is None else with_system_database(hive.HiveMetastore(uri), database)

    @cached_property
    def inspection(self) -> Inspection:
        """Validation."""
        return Inspection(
            clock=self.clock,
            store=self.store,
            readers=self.readers,
            metastore=lambda: self.metastore,
            storage=self.storage,
            disks=self.disks,
        )

    @cached_property
    def registry(self) -> Registry:
        """The registry's ports."""
        return Registry(
            store=self.store,
            readers=self.readers,
            metastore=self.metastore,
            clock=self.clock,
            inspect=self.inspection.on_register,
            storage=self.storage,
            heads=self.heads,
            catalogs=self.catalogs,
            moment=lambda: Moment(unanswered=self.disks.hanging()),
        )

    @cached_property
    def audit_spool(self) -> AuditSpool:
        """Audit entries that could not be written yet."""
        location = self.settings.system_location
        return AuditSpool(location, self.storage(location))

    @cached_property
    def others(self) -> Others:
        """Looks for other installations."""
        return Others(
            metastore=self.metastore,
            storage=self.storage,
            installation=self.store.installation,
            clock=self.clock,
        )

    @property
    def budget(self) -> Budget:
        """How much one cycle may start."""
        settings = self.settings
        return Budget(
            runs_per_cycle=settings.budget_runs_per_cycle,
            unfinished=settings.budget_unfinished,
            backoff=settings.backoff_first,
            backoff_cap=settings.backoff_longest,
        )

    def no_spark(self, location: str) -> str | None:
        """Why this installation's Spark sessions may not work on a table at a location, as the end of a sentence; None
        where they may."""
        because = why_not(location, self.spark_conf)
        if because is None and location.startswith("s3://") and (lacks := self.no_log_store()) is not None:
            return f"{str(lacks)[:1].lower()}{str(lacks)[1:].removesuffix('.')}"
        return because

    def no_log_store(self) -> PreconditionError | None:
        """Why workers on this machine could not commit safely to S3, whatever the settings say; None where they can, or
        need not: workers elsewhere have what they have there."""
        settings = self.settings
        if settings.workers_external or not is_for_s3(self.spark_conf):
            return None
        now, known = time.monotonic(), self._log_store
        if known is None or now - known[0] > _LOOKED_FOR_SECONDS:
            fetches = JarSource(settings.spark_jars) is JarSource.MAVEN
            cache = settings.jars_cache or spark_jars.default_cache()
            known = self._log_store = now, s3_jars.lacking(cache, fetches=fetches)
        return known[1]

    @cached_property
    def spark_conf(self) -> Mapping[str, str]:
        """What the operator and lakewarden tell Spark beyond jars and sizes. Holds secrets."""
        return dict(pool.spark_settings(self.settings).conf)

    def worker_pool(
        self, count: int, *, on_failure: Callable[[], None] = lambda: None, logs: bool = True
    ) -> "pool.WorkerPool":
        """Worker processes of this installation; none runs before `tend`. `logs`: in files of the home folder, else
        they say what they have to say where this process does."""
        launch = pool.worker_launcher(
            config=partial(pool.worker_config, self.settings),
            logs=self.settings.home / "logs" if logs else None,
            environment={},
        )
        return pool.WorkerPool(
            launch,
            count=count,
            prefix=pool.pool_name(),
            on_failure=on_failure,
            recorded=self.recorded_run,
        )

    def recorded_run(self, run_id: str) -> RunRow | None:
        """The row of `lakewarden.runs`, None where there is none. Raises `UnavailableError` where that cannot be told
        now, `OutdatedError` where only a newer lakewarden can."""
        self.require_answer()
        try:
            return self.store.rows(RUNS).get(run_id)
        except (OutdatedError, UnavailableError):
            raise
        except LakewardenError as error:
            raise UnavailableError(str(error), hint=error.hint) from error

    @contextmanager
    def own_workers(self, count: int) -> Iterator[None]:
        """Workers for one command where no daemon leads: kept alive in the block, drained after it. None where
        others do the work (`workers.external`): they need no daemon for it."""
        if self.settings.workers_external:
            yield
            return
        workers, ended = self.worker_pool(count), threading.Event()

        def tend() -> None:
            _tend_once(workers, count)
            while not ended.wait(_TEND_SECONDS):
                with suppress(UnavailableError):  # workers that live ask the queue themselves
                    workers.look(self.queue)
                    _tend_once(workers, count)

        with ThreadPoolExecutor(1, thread_name_prefix="workers") as one:
            tender = one.submit(tend)
            self._tenders.append(tender)
            try:
                yield
            finally:
                ended.set()
                wait([tender])
                self._tenders.remove(tender)
                workers.drain(self.settings.workers_drain)

    def require_workers(self) -> None:
        """Raise what ended the care for workers of our own, if anything did: whoever waits for them would for ever.
        Raises `ExecutionError` if none can be started."""
        for tender in tuple(self._tenders):
            if tender.done():
                tender.result()

    def require_answer(self) -> None:
        """Raise `UnavailableError` if the system tables are on a disk that hangs: a reader would wait for ever."""
        location = self.settings.system_location
        if self.disks.held([location]) is not None:
            raise silent(location)

    def require_initialised(self) -> None:
        """Raise `PreconditionError` unless `lakewarden init` was run here."""
        if not self.store.exists():
            raise PreconditionError(
                f"There are no system tables at {self.settings.system_location}.",
                hint="`lakewarden init` makes them; --home says where. If they were lost: "
                "`lakewarden system repair --backup FOLDER`.",
            )

    @cached_property
    def _database(self) -> "db.Database":
        return db.open_database(self.settings.database_url, as_it_is=self._as_it_is)


def _tend_once(workers: "pool.WorkerPool", count: int) -> None:
    workers.tend(count)
    if workers.refused_starts >= _STARTS and workers.alive == 0:
        raise ExecutionError(
            f"No worker can be started here ({workers.unstarted}).",
            hint="Make room or memory, or mend the rights of the home folder's `logs`; then repeat the command.",
        )


def open_services(
    *,
    home: Path | None = None,
    profile: str | None = None,
    flags: Mapping[str, str] | None = None,
    user: str = "lakewarden",
    as_it_is: bool = False,
) -> Services:
    """Services by settings (file, environment, then `home` or `profile`, and `flags`) for a user's process. Opens
    nothing yet."""
    settings = load_settings(home=home, profile=profile, flags=flags)
    return Services(settings, user=user, as_it_is=as_it_is)
