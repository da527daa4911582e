"""Offsets and checkpoints as Spark and Delta write them, and a small lake with a stream between two tables."""

import json
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.lineage.edges import NOT_KNOWN
from lakewarden.catalog.lineage.stream_batches import StreamHarvest
from lakewarden.catalog.lineage.streams.checkpoints import StreamCheckpoint, with_checkpoint
from lakewarden.catalog.lineage.streams.offsets import NOT_SAID, Began, SourceOffsets, StreamBatch
from lakewarden.catalog.lineage.streams.session_notes import StreamNote, StreamNotes
from lakewarden.catalog.model.rows import DELTA, LineageRow, TableRow
from lakewarden.catalog.model.rows import Source as Origin
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.catalog.system.own_rows import system_rows
from lakewarden.catalog.system.port import LINEAGE, TABLES
from lakewarden.catalog.system.store import DeltaSystemStore
from lakewarden.daemon.control.stream_recorder import StreamClerk
from lakewarden.daemon.control.sweep_writer import SweepWriter
from lakewarden.daemon.fleet.fleet_cache import FleetCache
from lakewarden.daemon.fleet.look import OnRecord
from lakewarden.daemon.fleet.observer import Observer
from lakewarden.daemon.telemetry.webhook import Silence
from lakewarden.jobs.rollback.planning_service import Gatherer
from support.builders.delta_logs import LogWriter, add
from support.builders.tables import FakeInspector

__all__ = ["QUERY", "Creek", "checkpoint", "offset"]

QUERY = "3c8f2a5e-0000-0000-0000-000000000001"


def offset(
    version: int, index: int = -1, *, table: str = "u-a", snapshot: bool = False, form: int = 1
) -> str:
    """An offset of a Delta source."""
    return json.dumps(
        {
            "sourceVersion": form,
            "reservoirId": table,
            "reservoirVersion": version,
            "index": index,
            "isStartingVersion": snapshot,
        }
    )


def checkpoint(folder: Path, *offsets: list[str], query: str = "q") -> Path:
    """A checkpoint: the offsets of each source, batch by batch."""
    for number, sources in enumerate(offsets):
        path = folder / "offsets" / str(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(["v1", '{"batchWatermarkMs":0}', *sources]))
        (path.parent / f".{number}.crc").write_bytes(b"crc")
    (folder / "metadata").write_text(json.dumps({"id": query}))
    return folder


@dataclass
class Creek:
    """Managed tables `source` and `sink`, logs only, and what a daemon does with them. A stream reads one, writes one.

    The stream began with the content of `source`; batch n read version n + 1 of it.
    """

    folder: Path
    clock: SystemClock = field(default_factory=SystemClock)

    def __post_init__(self) -> None:
        system = canonical(str(self.folder / "system"))
        self.reader = DeltaReader()
        self.store = DeltaSystemStore(system, StorageOptions(), actor="test")
        self.store.create(system_rows(self.store, now=self.clock.now(), actor="test"))
        self.fence = self.store.raise_fence("one", at_least=1)
        self.notes = StreamNotes(system, StorageOptions(), clock=self.clock)
        self.harvest = StreamHarvest(
            store=self.store, storage=lambda _: StorageOptions(), readers=[self.reader]
        )
        self.cache = FleetCache(self.store, self.clock)
        self.source = LogWriter(root=self.folder / "source").create()
        self.sink = LogWriter(root=self.folder / "sink").create()
        self.source.commit(add("first"), operationParameters={"mode": "Append"})
        for number, table in enumerate((self.source, self.sink)):
            self.change(self._row(table, 50 + number))
        self.observer = Observer(
            readers=(self.reader,),
            inspector=FakeInspector(),
            store=self.store,
            clock=self.clock,
            checks_every=timedelta(days=1),
            streams=self.harvest,
        )

    def change(self, row: TableRow) -> None:
        """Write a row of `lakewarden.tables`."""
        self.store.edit(TABLES, lambda _: [row], because="test")

    def location(self, table: LogWriter) -> str:
        return canonical(str(table.root))

    def batch(self, epoch: int) -> StreamBatch:
        """What batch `epoch` tells of itself."""
        start = None if epoch == 0 else offset(epoch + 1, table=self.source.table_id)
        end = offset(epoch + 2, table=self.source.table_id)
        began = Began(content=True) if epoch == 0 else NOT_SAID
        return StreamBatch(
            query_id=QUERY, epoch=epoch, sources=(SourceOffsets(start=start, end=end),), began=began
        )

    def flow(self, *epochs: int) -> None:
        """Somebody appends to the source and the stream takes it to the sink, batch by batch."""
        for epoch in epochs:
            if epoch:
                self.source.commit(add(f"source-{epoch}"), operationParameters={"mode": "Append"})
            self.sink.commit(
                add(f"sink-{epoch}"),
                {"txn": {"appId": QUERY, "version": epoch}},
                operation="STREAMING UPDATE",
                operationParameters={"outputMode": "Append", "queryId": QUERY, "epochId": str(epoch)},
            )

    def checkpoint(self, *epochs: int) -> Path:
        """The stream's checkpoint with these batches."""
        offsets = [[one.end or "" for one in self.batch(epoch).sources] for epoch in epochs]
        return checkpoint(self.folder / "checkpoint", *offsets, query=QUERY)

    def declare(self, folder: Path, began: Began = NOT_SAID) -> None:
        """The owner declares a checkpoint of the sink."""
        (row,) = self.store.rows(TABLES).find(name="db.sink")
        self.change(with_checkpoint(row, StreamCheckpoint(location=canonical(str(folder)), began=began)))

    def note(self, *epochs: int) -> None:
        """An attached session leaves what it saw."""
        sink = self.location(self.sink)
        self.notes.put(StreamNote(sink=sink, batch=self.batch(epoch)) for epoch in epochs)

    def sweep(self, *, record: bool = True) -> None:
        """Look at every table that moved, write it down, and record what sessions noted."""
        self.cache.refresh()
        looks = [
            self.observer.look(
                governed,
                self.cache.health(table_id),
                must=False,
                checks=False,
                on_record=OnRecord(
                    schema=self.cache.has_schema(table_id), lineage=self.cache.lineage_of(table_id)
                ),
            )
            for table_id, governed in self.cache.governed().items()
            if governed.row.name.startswith("db.")
        ]
        writer = SweepWriter(store=self.store, cache=self.cache, notifier=Silence(), clock=self.clock)
        writer.write([look for look in looks if look is not None], (), self.fence)
        if record:
            self.clerk().record(self.fence)

    def clerk(self) -> StreamClerk:
        return StreamClerk(
            store=self.store,
            notes=self.notes,
            harvest=self.harvest,
            cache=self.cache,
            readers=(self.reader,),
            clock=self.clock,
        )

    def gatherer(self) -> Gatherer:
        return Gatherer(
            store=self.store, readers=[self.reader], storage=lambda _: StorageOptions(), clock=self.clock
        )

    def edges(self) -> dict[int, list[tuple[str, int | None, int | None, str]]]:
        """By version of the sink: (input, after, up to, confidence) of the rows on record that are not overruled."""
        rows = [row for row in self.store.rows(LINEAGE).all() if row.output_id == "id-sink"]
        known = {row.output_version for row in rows if row.confidence == "stream"}
        found: dict[int, list[tuple[str, int | None, int | None, str]]] = {}
        for row in rows:
            if not (row.input_id == NOT_KNOWN and row.confidence == "hint" and row.output_version in known):
                found.setdefault(row.output_version, []).append(_edge(row))
        return found

    def _row(self, table: LogWriter, number: int) -> TableRow:
        now, name = self.clock.now(), table.root.name
        return TableRow(
            row=number,
            table_id=f"id-{name}",
            name=f"db.{name}",
            format=DELTA,
            location=self.location(table),
            owner="ana",
            source=Origin.CONVERT,
            registered_at=now,
            registered_by="ana",
            updated_at=now,
            updated_by="ana",
            format_ids=(table.table_id,),
        )


def _edge(row: LineageRow) -> tuple[str, int | None, int | None, str]:
    return row.input_id, row.from_version, row.input_version, row.confidence.value
