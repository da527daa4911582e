"""The ways in which rows are written beside data files: of which tables, what they leave, and who reads that."""

import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.formats.registry import readers
from lakewarden.catalog.model.bucket_layout import BucketLayout
from lakewarden.catalog.model.rows import DELTA
from lakewarden.catalog.policy.rows_write import ROWS_WRITE
from lakewarden.catalog.storage.file_store import StorageOptions
from lakewarden.jobs.actions.compact import Compact
from lakewarden.jobs.engines.delta.engine import DeltaEngine
from lakewarden.jobs.engines.iceberg.engine import IcebergEngine
from lakewarden.jobs.executors.compact import compact
from lakewarden.jobs.runs.head import observe
from lakewarden.jobs.runs.port import Engine, JobContext, Report, Target
from support.own_rows.delta_rows import delta_rows
from support.own_rows.iceberg_rows import iceberg_rows
from support.two_databases.sides import Both
from support.two_databases.stored import AsDelta, AsIceberg, AsVectors, Beside

__all__ = ["WAYS", "Way", "added_kinds", "compacted", "other_readings", "reader_of"]

_KEYS: Final[Mapping[str, str]] = {"lakewarden.keys": "id"}
_ADDED: Final[Mapping[str, str]] = {
    "added-dvs": "vector",
    "added-position-delete-files": "position",
    "added-equality-delete-files": "equality",
}
"""What the summary of a snapshot says of the deletes that came with it."""


@dataclass(frozen=True, kw_only=True)
class Way:
    """`asked` is the value of `rows.write`, for statements and upserts alike; statements of a table that asks for
    equality are written as its own mode says, `beside`."""

    asked: str
    version: int | None
    """Of Iceberg's format; None: a Delta table."""
    beside: str = ""
    layout: BucketLayout | None = None
    """Of a Delta table in buckets."""

    @property
    def of_statements(self) -> str:
        """The kind of deletes that a statement leaves."""
        return self.beside or self.asked

    @property
    def own(self) -> str:
        """What is on record as the way of a statement."""
        return "table" if self.beside else self.asked

    def stored(self, spark: SparkSession, uri: str, folder: Path, *, by_table: bool) -> Beside:
        """A table that is written so. `by_table`: it asks for it itself. Else its own properties say something else."""
        told = {**_KEYS, **({ROWS_WRITE: self.asked} if by_table else {})}
        if self.version is None:
            vectors = AsVectors(spark, folder, told=told, layout=self.layout)
            return Beside(vectors, AsDelta(spark, folder))
        mode = "merge-on-read" if self.beside else "copy-on-write"
        made = AsIceberg(spark, uri, mode, self.version, told=told, files=2)
        return Beside(made, AsDelta(spark, folder))


WAYS: Final[Mapping[str, Way]] = {
    "delta vectors": Way(asked="vector", version=None),
    "delta vectors in buckets": Way(
        asked="vector", version=None, layout=BucketLayout(columns=("id",), count=3)
    ),
    "iceberg positions": Way(asked="position", version=2),
    "iceberg vectors": Way(asked="vector", version=3),
    "equality, version 2": Way(asked="equality", version=2, beside="position"),
    "equality, version 3": Way(asked="equality", version=3, beside="vector"),
}


def reader_of(both: Both) -> TableReader:
    """lakewarden's, of t, as those have it that act: without a moment for which heads are remembered."""
    is_delta = _folder(both) is not None
    known = readers(both.services.storage, both.services.heads_now)
    return next(one for one in known if (one.format == DELTA) is is_delta)


def added_kinds(both: Both) -> set[str]:
    """The kinds of deletes that came with the newest commit of t, as its log says."""
    if (folder := _folder(both)) is not None:
        newest = max((folder / "_delta_log").glob("*.json"))
        actions = [json.loads(line) for line in newest.read_text().splitlines()]
        return {"vector" for one in actions if "deletionVector" in one.get("add", {})}
    told = json.loads(Path(_metadata(both)).read_text())
    (newest_one,) = (one for one in told["snapshots"] if one["snapshot-id"] == told["current-snapshot-id"])
    summary = newest_one["summary"]
    if "added-dvs" in summary:  # these are counted as deletes by position, too
        summary.pop("added-position-delete-files", None)
    return {kind for key, kind in _ADDED.items() if int(summary.get(key, 0))}


def other_readings(both: Both) -> Mapping[str, list[Any]]:
    """What t holds for others than plain Spark: by their names."""
    found: dict[str, list[Any]] = {"lw": [tuple(row) for row in both.lw.sql("SELECT * FROM t").collect()]}
    if (folder := _folder(both)) is not None:
        found["own reader"] = delta_rows(folder)
    else:
        metadata = _metadata(both)
        found["own reader"] = iceberg_rows(metadata)
        deletes = observe(_context(both, "read")).deletes
        if find_spec("pyiceberg") is not None and not any(one.kind == "equality" for one in deletes):
            table = importlib.import_module("pyiceberg.table").StaticTable.from_metadata(metadata)
            found["pyiceberg"] = [tuple(row.values()) for row in table.scan().to_arrow().to_pylist()]
    return {reader: sorted(rows, key=repr) for reader, rows in found.items()}


def compacted(both: Both, run_id: str, *, purge: bool, join: bool) -> Report:
    """A compaction of t as the daemon's workers do it."""
    context = _context(both, run_id)
    action = Compact(
        requires=observe(context).at,
        target_bytes=2**20,
        min_small_files=2,
        quiet_seconds=0,
        purge=purge,
        join_deletes=join,
    )
    return compact(context, action)


def _context(both: Both, run_id: str) -> JobContext:
    reader = reader_of(both)
    engine: Engine
    if reader.format == DELTA:
        engine = DeltaEngine(lambda: both.spark, storage=lambda _: StorageOptions(), clock=SystemClock())
    else:
        heads = both.services.heads_now
        engine = IcebergEngine(lambda: both.spark, storage=lambda _: StorageOptions(), heads=heads)
    return JobContext(
        target=Target(table_id="t", name="db.t", location=both.places["t"], format=reader.format),
        run_id=run_id,
        reader=reader,
        clock=SystemClock(),
        engine=engine,
        metastore=None,
        still_ours=lambda: None,
    )


def _folder(both: Both) -> Path | None:
    """Of t, where it is a Delta table."""
    assert isinstance(both.stored, Beside)
    return both.stored.t.folder / "t" if isinstance(both.stored.t, AsVectors) else None


def _metadata(both: Both) -> str:
    """The metadata file of t's head."""
    head = both.services.heads_now(both.places["t"])
    assert head is not None and head.file is not None
    return head.file.removeprefix("file://").removeprefix("file:")
