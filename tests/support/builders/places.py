"""Managed tables on real folders, and runs on them that ask the catalog as workers do: no Spark, no database."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from subprocess import run
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.model.rows import TableRow
from lakewarden.catalog.registry.register import register
from lakewarden.catalog.registry.service import Registry
from lakewarden.catalog.storage.file_store import FileEntry
from lakewarden.jobs.actions.purge import Purge
from lakewarden.jobs.actions.vacuum import Vacuum
from lakewarden.jobs.executors.purge import purge
from lakewarden.jobs.executors.vacuum import vacuum
from lakewarden.jobs.runs.port import JobContext, Report, Target
from lakewarden.jobs.runs.standings import StoredStandings
from support.builders.registries import ANA, made_registry
from support.builders.runs import Bench
from support.builders.tables import FakeReader
from support.fakes.engine import FakeEngine

__all__ = ["Estate", "bound", "overwritten", "paths"]


class _Agreeing(FakeEngine):
    def agreed(self, location: str, *, candidates: Sequence[FileEntry]) -> Sequence[FileEntry]:
        return candidates


@dataclass
class Estate:
    """A catalog, and the runs of its tables."""

    registry: Registry = field(
        default_factory=lambda: replace(made_registry(FakeReader()), readers=(DeltaReader(),))
    )
    bench: Bench = field(default_factory=Bench)

    def register(self, where: Path, **how: Any) -> TableRow:
        return register(self.registry, str(where), actor=ANA, **how).row

    def context(self, row: TableRow) -> JobContext:
        return JobContext(
            target=Target(table_id=row.table_id, name=row.name, location=row.location or ""),
            run_id="run-1",
            reader=DeltaReader(),
            clock=self.bench.clock,
            engine=_Agreeing(self.bench.clock),
            metastore=None,
            still_ours=lambda: None,
            guard=_Readers(self.registry),
        )

    def vacuum(self, row: TableRow, *, context: JobContext | None = None, **how: Any) -> Report:
        """All that can go, without any retention, whatever the row's policy is."""
        seen = self.bench.seen(row.location or "")
        action = Vacuum(
            **{
                "requires": seen.at,
                "retention_seconds": 0,
                "max_share": 1.0,
                **how,
            }
        )
        return vacuum(context or self.context(row), action)

    def purge(self, row: TableRow) -> Report:
        """Its files, whatever its row says."""
        seen = self.bench.seen(row.location or "")
        action = Purge(requires=seen.at, unknown=None, files=1, bytes=1)
        return purge(self.context(row), action)


@dataclass
class _Readers:
    """A guard that allows everything, and knows who reads the files of whom."""

    registry: Registry

    def confirm(self) -> None:
        """The run is ours."""

    def ask(self, table_id: str, name: str, location: str) -> None:
        """It may go on."""

    def readers_of(self, location: str) -> tuple[TableRow, ...]:
        return StoredStandings(self.registry.store).readers_of(location)

    def moved(self, look: object) -> tuple[TableRow, ...]:
        return ()


def overwritten(folder: Path, *, partitions: bool = False) -> list[str]:
    """A table that keeps nothing, written anew once. Returns the paths of the files that it does not need any more."""
    rows = pa.table({"id": pa.array(range(4), pa.int64()), "p": pa.array([1, 1, 2, 2], pa.int64())})
    by = ["p"] if partitions else None
    keeps_nothing = {"delta.deletedFileRetentionDuration": "interval 0 days"}
    write_deltalake(folder, rows, partition_by=by, configuration=keeps_nothing)
    old = paths(folder)
    write_deltalake(folder, rows, mode="overwrite", partition_by=by)
    return old


def paths(folder: Path) -> list[str]:
    """The live files of a table."""
    return sorted(uri.removeprefix("file://") for uri in DeltaTable(folder).file_uris())


@contextmanager
def bound(folder: Path, name: Path) -> Iterator[None]:
    """`folder` under another name. Skips the test where that is not allowed."""
    name.mkdir(parents=True)
    if run(["mount", "--bind", folder, name], capture_output=True, check=False).returncode:
        pytest.skip("mounting a folder under another name takes root")
    try:
        yield
    finally:
        run(["umount", name], check=True)
