"""Streams on real Spark between real Delta tables that an installation manages, and rollbacks of these tables."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import lakewarden
from lakewarden.catalog.lineage.stream_batches import StreamHarvest
from lakewarden.catalog.lineage.streams.checkpoints import StreamCheckpoint, with_checkpoint
from lakewarden.catalog.lineage.streams.offsets import NOT_SAID, Began, batch_key
from lakewarden.catalog.lineage.streams.session_notes import StreamNote, StreamNotes, waiting
from lakewarden.catalog.model.rollbacks import Rollback
from lakewarden.catalog.model.rows import DELTA, Source, TableRow
from lakewarden.catalog.storage.file_store import StorageOptions, canonical, open_store
from lakewarden.catalog.system.port import TABLES
from lakewarden.jobs.rollback.plan.model import RollbackPlan
from lakewarden.jobs.rollback.plan.request import BadVersions, RollbackRequest
from lakewarden.jobs.rollback.planning_service import Gatherer
from support.builders.rollbacks import Lake

__all__ = ["Edge", "Sea"]

Edge = tuple[str, int | None, int | None]
"""(table, after, up to) of one input of a batch."""


@dataclass
class Sea(Lake):
    """A lake with streams. `spark` is the user's session; `id` is the only column of every table."""

    spark: SparkSession = field(kw_only=True)

    def sql(self, name: str) -> str:
        """The table as SQL names it."""
        return f"delta.`{self.place(name)}`"

    def checkpoint(self, name: str) -> str:
        """Where a checkpoint is: beside the tables."""
        return f"{self.folder if self.root is None else self.root}/{name}"

    def create(self, name: str, properties: str = "") -> None:
        """An empty managed table, version 0."""
        if properties:
            self.spark.sql(f"CREATE TABLE {self.sql(name)} (id BIGINT) USING delta {properties}")
        else:
            DeltaTable.create(self.place(name), pa.schema([("id", pa.int64())]))
        now = self.clock.now()
        row = TableRow(
            row=100 + len(self.store.rows(TABLES).all()),
            table_id=f"id-{name}",
            name=f"db.{name}",
            format=DELTA,
            location=self.location(name),
            owner="ana",
            source=Source.CONVERT,
            registered_at=now,
            registered_by="ana",
            updated_at=now,
            updated_by="ana",
            format_ids=(self.seen(name).format_id,),
        )
        self.store.edit(TABLES, lambda _: [row], because="test")

    def insert(self, name: str, *ids: int, files: int = 1) -> int:
        """Somebody appends ids, in so many files. Returns the version."""
        if files == 1:
            return self.append(name, *ids)
        values = ", ".join(f"({one}L)" for one in ids)
        frame = self.spark.sql(f"SELECT col1 AS id FROM VALUES {values}").repartition(files, "id")
        frame.write.format("delta").mode("append").save(self.place(name))
        return self.head(name)

    def compact(self, name: str) -> None:
        """Somebody makes one file of all."""
        DeltaTable(self.place(name)).optimize.compact()

    def flow(self, source: str, sink: str, checkpoint: str = "checkpoint", **options: object) -> str:
        """A stream takes what is new, then ends. Returns the query's id; raises what made it fail."""
        writer = self._coming(source, options).writeStream.format("delta").trigger(availableNow=True)
        query = writer.option("checkpointLocation", self.checkpoint(checkpoint)).start(self.place(sink))
        query.awaitTermination()
        return str(query.id)

    def upserts(self, source: str, sink: str, checkpoint: str = "checkpoint", **options: object) -> str:
        """A stream upserts what is new, then ends; a change feed's as change data. Returns the query's id; raises what
        made it fail."""
        with lakewarden.attach(self.spark, home=self.folder) as lw:
            query = lw.upsert_stream(
                self._coming(source, options),
                self.place(sink),
                keys="id",
                checkpoint=self.checkpoint(checkpoint),
                trigger={"availableNow": True},
                cdc="delta" if "readChangeFeed" in options else None,
            )
            query.awaitTermination()
        return str(query.id)

    def running(self, frame: DataFrame, sink: str, checkpoint: str = "checkpoint") -> StreamingQuery:
        """A stream of `frame` that runs until it is stopped; its first batch is done."""
        writer = frame.writeStream.format("delta").option("checkpointLocation", self.checkpoint(checkpoint))
        query = writer.start(self.place(sink))
        query.processAllAvailable()
        return query

    def wait_for_notes(self, count: int, seconds: float = 60) -> None:
        """Wait until an attached session has left so many notes."""
        until = time.monotonic() + seconds
        while len(self.noted()) < count:
            assert time.monotonic() < until, self.noted()
            time.sleep(0.1)

    def declare(self, sink: str, checkpoint: str = "checkpoint", *, began: Began = NOT_SAID) -> None:
        """The owner of the sink declares the checkpoint."""
        (row,) = self.store.rows(TABLES).find(name=f"db.{sink}")
        declared = StreamCheckpoint(location=canonical(self.checkpoint(checkpoint)), began=began)
        self.store.edit(TABLES, lambda _: [with_checkpoint(row, declared)], because="test")

    def told_by_checkpoint(self, sink: str) -> dict[int, list[Edge]]:
        """By batch number, what the declared checkpoints tell."""
        (row,) = self.store.rows(TABLES).find(name=f"db.{sink}")
        commits = tuple(self.reader.commits(self.location(sink), after=-1))
        reads = self._harvest().reads(row, commits)
        return {
            key[1]: [(one.table_id or one.location, one.from_version, one.version) for one in read.inputs]
            for key, read in sorted(reads.items())
        }

    def told_by_notes(self, sink: str) -> dict[int, list[Edge]]:
        """By batch number, what the session noted."""
        (row,) = self.store.rows(TABLES).find(name=f"db.{sink}")
        rows, _ = self._harvest().noted(self.noted(), row, self.reader, at=self.clock.now())
        epochs = {
            commit.version: key[1]
            for commit in self.reader.commits(self.location(sink), after=-1)
            if (key := batch_key(commit)) is not None
        }
        found: dict[int, list[Edge]] = {}
        for one in rows:
            edge = (one.input_id, one.from_version, one.input_version)
            found.setdefault(epochs[one.output_version], []).append(edge)
        return dict(sorted(found.items()))

    def noted(self) -> tuple[StreamNote, ...]:
        """The notes that wait."""
        notes = StreamNotes(canonical(str(self.folder / "system")), StorageOptions(), clock=self.clock)
        return tuple(waiting(notes))

    def batches(self, sink: str) -> dict[int, list[int]]:
        """By batch number, the ids that it brought."""
        found: dict[int, list[int]] = {}
        for commit in self.reader.commits(self.location(sink), after=-1):
            key = batch_key(commit)
            if key is not None:
                before = self.rows(sink, commit.version - 1)
                found[key[1]] = sorted(set(self.rows(sink, commit.version)) - set(before))
        return found

    def plan(self, name: str, *bad: int) -> RollbackPlan:
        """The plan that undoes versions of a table and what was derived from them."""
        request = RollbackRequest(seeds=(BadVersions(table_id=f"id-{name}", versions=bad),), cascade=True)
        return self._gatherer().gather(request).plan

    def roll_back(self, name: str, *bad: int) -> RollbackPlan:
        """Plan and execute. Returns the plan."""
        request = RollbackRequest(seeds=(BadVersions(table_id=f"id-{name}", versions=bad),), cascade=True)
        found = self._gatherer().gather(request)
        self.begin(*found.steps())
        done: Rollback = self.go_on()
        assert done.head.state == "done", done.head.message
        return found.plan

    def rewind(self, batch: int, checkpoint: str = "checkpoint") -> None:
        """Take a checkpoint back to before a batch, as docs/streams.md says."""
        store = open_store(canonical(self.checkpoint(checkpoint)))
        for kind in ("offsets", "commits"):
            for path in [entry.path for entry in store.list(kind)]:
                number = path.rpartition("/")[2].removeprefix(".").removesuffix(".crc")
                if number.isdigit() and int(number) >= batch:
                    store.delete(path)

    def _coming(self, source: str, options: Mapping[str, object]) -> DataFrame:
        told = {key: str(value) for key, value in options.items()}
        return self.spark.readStream.format("delta").options(**told).load(self.place(source))

    def _harvest(self) -> StreamHarvest:
        return StreamHarvest(store=self.store, storage=lambda _: StorageOptions(), readers=[self.reader])

    def _gatherer(self) -> Gatherer:
        return Gatherer(
            store=self.store, readers=[self.reader], storage=lambda _: StorageOptions(), clock=self.clock
        )
