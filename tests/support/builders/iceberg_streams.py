"""Streams on real Spark between real Iceberg and Delta tables that an installation manages, and rollbacks of these."""

import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

import lakewarden
from lakewarden.catalog.lineage.stream_batches import StreamHarvest
from lakewarden.catalog.lineage.streams.checkpoints import StreamCheckpoint
from lakewarden.catalog.lineage.streams.offsets import batch_key
from lakewarden.catalog.lineage.streams.session_notes import StreamNote, StreamNotes, waiting
from lakewarden.catalog.model.rows import Confidence, RollbackState
from lakewarden.catalog.named_catalogs.declaration import CatalogDeclaration, CatalogKind
from lakewarden.catalog.registry.governance import declare_checkpoint
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.storage.file_store import canonical, open_store
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import LINEAGE
from lakewarden.daemon.control.stream_recorder import StreamClerk
from lakewarden.daemon.control.sweep_writer import SweepWriter
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.daemon.fleet.look import OnRecord
from lakewarden.daemon.fleet.observer import Observer
from lakewarden.daemon.installation.services import Services, open_services
from lakewarden.daemon.telemetry.webhook import Silence
from lakewarden.daemon.usecases.lineage.stream_queries import StreamQuery, learn_streams
from lakewarden.daemon.usecases.rollbacks.rollback import rollbacks_of_services
from lakewarden.jobs.engines.delta.engine import DeltaEngine
from lakewarden.jobs.engines.iceberg.engine import IcebergEngine
from lakewarden.jobs.rollback.execute.saga import Saga
from lakewarden.jobs.rollback.execute.table_steps import StepExecutor
from lakewarden.jobs.rollback.plan.model import RollbackPlan
from lakewarden.jobs.rollback.plan.request import BadVersions, RollbackRequest
from lakewarden.jobs.session.attached import Attached
from support.builders.callers import actor
from support.builders.tables import FakeInspector
from support.fakes.tools import SeveralFormats

__all__ = ["Edge", "Rivers"]

Edge = tuple[str, int | None, int | None]
"""(table, after, up to) of one input of a batch."""
ROOT = actor("root", admin=True)
_WEEK = timedelta(days=7)


@dataclass
class Rivers:
    """`spark` is the user's session, with the catalog `by_path`; `id` is the only column of every table."""

    spark: SparkSession
    folder: Path
    warehouse: Path
    database: str
    uri: str | None = None
    """The metastore that keeps the heads of Iceberg tables; None: their folders do."""
    declared: CatalogDeclaration | None = None
    """The catalog that keeps them."""
    ids: dict[str, str] = field(default_factory=dict)
    """By name."""
    formats: dict[str, str] = field(default_factory=dict)
    _fences: int = 0

    def __post_init__(self) -> None:
        if self.declared is not None:
            self.home.mkdir(parents=True)
            (self.home / "lakewarden.toml").write_text(_section(self.declared))
        store = self.services.store
        store.create(system_rows(store, now=self.services.clock.now(), actor="root"))

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def services(self) -> Services:
        return open_services(home=self.home, flags=self._flags)

    @property
    def _flags(self) -> dict[str, str]:
        return {} if self.uri is None else {"metastore.uri": self.uri}

    @property
    def _catalog(self) -> str:
        if self.declared is not None:
            return self.declared.name
        return "by_path" if self.uri is None else "by_name"

    def create(self, name: str, format_: str = "iceberg") -> None:
        """An empty managed table."""
        # A metastore's locks are in tables that the embedded one does not have.
        told = "'format-version'='2', 'engine.hive.lock-enabled'='false'"
        properties = f"TBLPROPERTIES ({told})" if format_ == "iceberg" else ""
        self.formats[name] = format_
        self.spark.sql(f"CREATE TABLE {self.sql(name)} (id BIGINT) USING {format_} {properties}")
        by_name = format_ == "iceberg" and self.uri is not None
        where = f"{self.database}.{name}" if by_name else str(self.place(name))
        if format_ == "iceberg" and self.declared is not None:
            where = self.sql(name)
        row = register(self.services.registry, where, actor=ROOT, name=f"db.{name}").row
        self.ids[name] = row.table_id

    def sql(self, name: str) -> str:
        """The table as SQL names it."""
        if self.formats[name] == "iceberg":
            return f"{self._catalog}.{self.database}.{name}"
        return f"delta.`{self.place(name)}`"

    def place(self, name: str) -> Path:
        if self.formats[name] == "iceberg" and self.declared is not None:
            return self.warehouse / self.database / name
        if self.formats[name] == "iceberg":
            folder = "hadoop" if self.uri is None else "hive"
            return self.warehouse / folder / self._folder / name
        return self.folder / "delta" / name

    @property
    def _folder(self) -> str:
        return self.database if self.uri is None else f"{self.database}.db"

    def insert(self, name: str, *ids: int, files: int = 1) -> int:
        """Somebody appends, in so many files. Returns the version."""
        values = ", ".join(f"({one}L)" for one in ids)
        hint = f"/*+ COALESCE({files}) */"
        self.spark.sql(f"INSERT INTO {self.sql(name)} SELECT {hint} col1 FROM VALUES {values}")
        return self.head(name)

    def compact(self, name: str) -> None:
        """Somebody makes one file of all."""
        options = "map('rewrite-all', 'true')"
        table = f"{self.database}.{name}"
        self.spark.sql(
            f"CALL {self._catalog}.system.rewrite_data_files(table => '{table}', options => {options})"
        )

    def head(self, name: str) -> int:
        services = self.services
        reader = services.registry.reader_at(self.location(name), name)
        return reader.probe(self.location(name), seen=None).latest or 0

    def location(self, name: str) -> str:
        return canonical(str(self.place(name)))

    def rows(self, name: str) -> list[int]:
        return sorted(row[0] for row in self.spark.sql(f"SELECT id FROM {self.sql(name)}").collect())

    def flow(self, source: str, sink: str, **options: object) -> str:
        """A stream takes what is new, then ends. Returns the query's id; raises what made it fail."""
        query = self.started(source, sink, **options)
        query.awaitTermination()
        return str(query.id)

    def started(self, source: str, sink: str, **options: object) -> StreamingQuery:
        writer = self._coming(source, sink, options).trigger(availableNow=True)
        return self._begun(writer, sink, options)

    def upserts(self, lw: Attached, source: str, sink: str) -> str:
        """A stream upserts what is new, then ends. Returns the query's id; raises what made it fail."""
        query = lw.upsert_stream(
            self.spark.readStream.format("iceberg").load(self.sql(source)),
            self.sql(sink),
            keys="id",
            checkpoint=str(self.checkpoint(sink)),
            trigger={"availableNow": True},
        )
        query.awaitTermination()
        return str(query.id)

    def running(self, source: str, sink: str, **options: object) -> StreamingQuery:
        """A stream that runs until it is stopped; its first batch is done."""
        query = self._begun(self._coming(source, sink, options), sink, options)
        query.processAllAvailable()
        return query

    def _coming(self, source: str, sink: str, options: Mapping[str, object]) -> DataStreamWriter:
        told = {
            key.replace("_", "-"): str(value)
            for key, value in options.items()
            if key not in ("checkpoint", "distinct")
        }
        reader = self.spark.readStream.options(**told)
        frame = (
            reader.format("delta").load(str(self.place(source)))
            if self.formats[source] == "delta"
            else reader.format("iceberg").load(self.sql(source))
        )
        if options.get("distinct"):
            frame = frame.dropDuplicates(["id"])
        return frame.writeStream.format(self.formats[sink]).outputMode("append")

    def _begun(self, writer: DataStreamWriter, sink: str, options: Mapping[str, object]) -> StreamingQuery:
        writer = writer.option(
            "checkpointLocation", str(self.checkpoint(str(options.get("checkpoint", sink))))
        )
        if self.formats[sink] == "delta":
            return writer.start(str(self.place(sink)))
        return writer.toTable(self.sql(sink))

    def expire(self, name: str) -> None:
        """All that may expire, by Iceberg's own procedure."""
        table = f"{self.database}.{name}"
        when = "older_than => TIMESTAMP '2999-01-01 00:00:00', retain_last => 1"
        self.spark.sql(f"CALL {self._catalog}.system.expire_snapshots(table => '{table}', {when})")

    def time_after(self, name: str) -> int:
        """The first millisecond after head was made."""
        snapshots = f"SELECT max(unix_millis(committed_at)) FROM {self.sql(name)}.snapshots"
        return int(self.spark.sql(snapshots).collect()[0][0]) + 1

    def copy_checkpoint(self, name: str, to: str) -> None:
        shutil.copytree(self.checkpoint(name), self.checkpoint(to))

    def checkpoint(self, name: str) -> Path:
        return self.folder / "checkpoints" / name

    def attached(self) -> Attached:
        return lakewarden.attach(self.spark, home=self.home, settings=self._flags)

    def noted(self) -> tuple[StreamNote, ...]:
        """The notes that wait."""
        return tuple(waiting(self._notes(self.services)))

    def _notes(self, services: Services) -> StreamNotes:
        return StreamNotes(services.settings.system_location, services.store.storage(), clock=services.clock)

    def wait_for_notes(self, count: int, seconds: float = 60) -> None:
        until = time.monotonic() + seconds
        while len(self.noted()) < count:
            assert time.monotonic() < until, self.noted()
            time.sleep(0.1)

    def declare(self, sink: str, checkpoint: str | None = None) -> None:
        """The owner of the sink declares the checkpoint."""
        folder = StreamCheckpoint(location=canonical(str(self.checkpoint(checkpoint or sink))))
        declare_checkpoint(self.services.registry, f"db.{sink}", folder, remove=False, actor=ROOT)

    def learned(self, sink: str) -> tuple[StreamQuery, ...]:
        services = self.services
        return learn_streams(services, services.registry.resolve(f"db.{sink}"))

    def recorded(self) -> None:
        """The daemon's sweep, and its clerk, record what tables got."""
        services = self.services
        store, clock, harvest = services.store, services.clock, self._harvest()
        cache = FleetCache(store, clock)
        cache.refresh()
        observer = Observer(
            readers=services.readers,
            inspector=FakeInspector(),
            store=store,
            clock=clock,
            checks_every=timedelta(days=1),
            streams=harvest,
        )
        looks = [
            observer.look(
                governed,
                cache.health(table_id),
                must=False,
                checks=False,
                on_record=OnRecord(schema=cache.has_schema(table_id), lineage=cache.lineage_of(table_id)),
            )
            for table_id, governed in cache.governed().items()
            if table_id in self.ids.values()
        ]
        self._fences += 1
        fence = store.raise_fence("daemon", at_least=self._fences)
        writer = SweepWriter(store=store, cache=cache, notifier=Silence(), clock=clock)
        writer.write([look for look in looks if look is not None], (), fence)
        cache.refresh()
        clerk = StreamClerk(
            store=store,
            notes=self._notes(services),
            harvest=harvest,
            cache=cache,
            readers=services.readers,
            clock=clock,
        )
        clerk.record(fence)

    def told_by_checkpoint(self, sink: str) -> dict[int, list[Edge]]:
        """By batch number, what the declared checkpoints tell."""
        services = self.services
        reader = services.registry.reader_at(self.location(sink), sink)
        commits = tuple(reader.commits(self.location(sink), after=-1))
        reads = self._harvest().reads(services.registry.resolve(f"db.{sink}"), commits)
        return {
            key[1]: [
                self._edge(one.table_id or one.location, one.from_version, one.version) for one in read.inputs
            ]
            for key, read in sorted(reads.items())
        }

    def told_by_notes(self, sink: str) -> dict[int, list[Edge]]:
        """By batch number, what the session noted."""
        services = self.services
        row = services.registry.resolve(f"db.{sink}")
        reader = services.registry.reader_at(self.location(sink), sink)
        rows, _ = self._harvest().noted(self.noted(), row, reader, at=services.clock.now())
        epochs = {version: epoch for epoch, made in self.batches(sink).items() for version in made}
        found: dict[int, list[Edge]] = {}
        for one in rows:
            edge = self._edge(one.input_id, one.from_version, one.input_version)
            found.setdefault(epochs[one.output_version], []).append(edge)
        return dict(sorted(found.items()))

    def advice(self, plan: RollbackPlan) -> dict[str, list[str]]:
        """By table, what the owners of streams are told."""
        return {one.name: [told.what_to_do for told in one.streams] for one in plan.tables}

    def _edge(self, input_id: str, after: int | None, upto: int | None) -> Edge:
        names = {table_id: name for name, table_id in self.ids.items()}
        return names.get(input_id, input_id), after, upto

    def _harvest(self) -> StreamHarvest:
        services = self.services
        return StreamHarvest(store=services.store, storage=services.storage, readers=services.readers)

    def request(self, name: str, *bad: int, remove: bool = False) -> RollbackRequest:
        undo = frozenset(self.ids.values()) if remove else frozenset()
        return RollbackRequest(
            seeds=(BadVersions(table_id=self.ids[name], versions=bad),), cascade=True, undo=undo
        )

    def plan(self, name: str, *bad: int, remove: bool = False) -> RollbackPlan:
        """The plan that undoes versions of a table and what was derived from them."""
        rollbacks = rollbacks_of_services(self.services)
        return rollbacks.plan(self.request(name, *bad, remove=remove), actor=ROOT).plan

    def roll_back(self, name: str, *bad: int, remove: bool = False) -> str:
        """Plan and execute, as a worker does whose session is the test's. The rollback's id."""
        planned = self.plan(name, *bad, remove=remove)
        assert planned.applicable, list(planned.blockers())
        rollback_id = rollbacks_of_services(self.services).begin(planned.hash, actor=ROOT).rollback_id
        assert self.go_on(rollback_id) is RollbackState.DONE
        return rollback_id

    def undo(self, rollback_id: str) -> None:
        journal = rollbacks_of_services(self.services).journal
        rollback = journal.get(rollback_id)
        undoing = rollback.with_head(RollbackState.UNDOING, undo=True)
        journal.save(undoing, expects=rollback.head.state, because="test")
        assert self.go_on(rollback_id) is RollbackState.COMPENSATED

    def go_on(self, rollback_id: str) -> RollbackState:
        services = self.services
        engines = (
            DeltaEngine(lambda: self.spark, storage=services.storage, clock=services.clock),
            IcebergEngine(lambda: self.spark, storage=services.storage, heads=services.heads),
        )
        executor = StepExecutor(tools=SeveralFormats(services.readers, engines), storage=services.storage)
        saga = Saga(journal=rollbacks_of_services(services).journal, executor=executor, undo_for=_WEEK)
        done = saga.go_on(rollback_id)
        return done.head.state

    def rewind(self, checkpoint: str, batch: int) -> None:
        """Take a checkpoint back to before a batch, as docs/streams.md says."""
        store = open_store(canonical(str(self.checkpoint(checkpoint))))
        for kind in ("offsets", "commits"):
            for path in [entry.path for entry in store.list(kind)]:
                number = path.rpartition("/")[2].removeprefix(".").removesuffix(".crc")
                if number.isdigit() and int(number) >= batch:
                    store.delete(path)

    def batches(self, sink: str) -> dict[int, list[int]]:
        """By batch number, the versions of the sink that hold it."""
        found: dict[int, list[int]] = {}
        reader = self.services.registry.reader_at(self.location(sink), sink)
        for commit in reader.commits(self.location(sink), after=-1):
            key = batch_key(commit)
            if key is not None:
                found.setdefault(key[1], []).append(commit.version)
        return found

    def read_by_runs(self, sink: str) -> dict[int, list[Edge]]:
        """By version, what is on record of what commits themselves say."""
        return self._told(sink, Confidence.COMMITTED)

    def on_record(self, sink: str) -> dict[int, list[Edge]]:
        """By version, what is on record of its batches."""
        return self._told(sink, Confidence.STREAM)

    def _told(self, sink: str, confidence: Confidence) -> dict[int, list[Edge]]:
        found: dict[int, list[Edge]] = {}
        for row in self.services.store.rows(LINEAGE).find(output_id=self.ids[sink]):
            if row.confidence is confidence:
                edge = self._edge(row.input_id, row.from_version, row.input_version)
                found.setdefault(row.output_version, []).append(edge)
        return {version: sorted(edges, key=str) for version, edges in sorted(found.items())}


def _section(one: CatalogDeclaration) -> str:
    """How a settings file declares a catalog of the tests; the credential is in the environment."""
    lines = [f"[catalogs.{one.name}]", f'type = "{one.kind.value}"', f'uri = "{one.uri}"']
    if one.warehouse is not None:
        lines.append(f'warehouse = "{one.warehouse}"')
    if one.kind is CatalogKind.REST:
        lines.append('credential = "env:TESTS_CREDENTIAL"')
    return "\n".join(lines) + "\n"
