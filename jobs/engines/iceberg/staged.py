"""Actions of Iceberg's library that commit by themselves, with these commits kept in memory: one commit of ours
publishes what they came to, on exactly the head that was decided on.

A process that ends before leaves nothing but files that no metadata names.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lakewarden.catalog.errors import ConflictError
from lakewarden.jobs.engines.iceberg.java_tables import JavaTable
from lakewarden.jobs.engines.iceberg.summaries import statistics_of, take_over
from lakewarden.jobs.engines.spark.errors import translated

__all__ = ["StagedTable", "staged"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StagedTable:
    """A table that takes commits which nobody else sees."""

    of: JavaTable
    table: Any
    """Iceberg's table, for its actions."""
    transaction: Any

    def publish(self, action: str, *, also: Callable[[Any, Any], None] | None = None) -> Any | None:
        """Make head what was committed here; None if nothing was. Raises `ConflictError`, and the files that were
        written are gone, if anybody has committed since the table was opened; they stay where nobody can tell. `action`
        as for `translated`. `also`: other rows than before were committed, and what else the same commit does, to a
        `TableMetadata.Builder` that has the snapshot."""
        made = self.transaction.currentMetadata()
        if made.currentSnapshot() is None or self._is_nothing(made):
            return None
        made = self._with_statistics(made) if also is None else self._with(made, also)
        try:
            with translated(action):
                self.of.table.operations().commit(self.of.base, made)
        except ConflictError:
            # A database or a storage that loses its answer is asked again by Iceberg's library, and then says "failed".
            if self._is_published(made):
                return made
            with translated(f"delete what was written in vain to {self.of.location}"):
                for path in self._written(made):
                    self.of.table.io().deleteFile(path)
            raise
        return made

    def _is_published(self, made: Any) -> bool:
        """Whether the table has what was committed here: the snapshots, and the files of statistics. Raises what the
        catalog says if it does not answer."""
        base, now = self.of.base, self.of.again().base
        ids = {int(one.snapshotId()) for one in made.snapshots() if base.snapshot(one.snapshotId()) is None}
        described = _statistics(made) - _statistics(base)
        is_there = all(now.snapshot(one) is not None for one in ids) and described <= _statistics(now)
        return bool(ids or described) and is_there

    def _is_nothing(self, made: Any) -> bool:
        before = self.of.base
        return bool(
            made.lastSequenceNumber() == before.lastSequenceNumber()
            and made.statisticsFiles().equals(before.statisticsFiles())
            and made.partitionStatisticsFiles().equals(before.partitionStatisticsFiles())
        )

    def _with_statistics(self, made: Any) -> Any:
        """A snapshot made here has the rows of the one before, and so what is known of these."""
        before, after = (int(one.currentSnapshot().snapshotId()) for one in (self.of.base, made))
        if before == after:
            return made
        jvm: Any = self.of.spark._jvm
        builder = jvm.org.apache.iceberg.TableMetadata.buildFrom(made)
        take_over(builder, made, before, after, jvm)
        return builder.build()

    def _with(self, made: Any, also: Callable[[Any, Any], None]) -> Any:
        jvm: Any = self.of.spark._jvm
        builder = jvm.org.apache.iceberg.TableMetadata.buildFrom(made)
        also(builder, made.currentSnapshot())
        return builder.build()

    def _written(self, made: Any) -> Iterator[str]:
        """The files that only snapshots made here name, and statistics."""
        io, before = self.of.table.io(), {one.snapshotId() for one in self.of.base.snapshots()}
        for snapshot in [one for one in made.snapshots() if one.snapshotId() not in before]:
            for added in (snapshot.addedDataFiles(io), snapshot.addedDeleteFiles(io)):
                yield from (str(one.location()) for one in added)
            for manifest in snapshot.allManifests(io):
                if manifest.snapshotId() == snapshot.snapshotId():
                    yield str(manifest.path())
            yield str(snapshot.manifestListLocation())
        yield from _statistics(made) - _statistics(self.of.base)


def _statistics(metadata: Any) -> set[str]:
    return {str(one.path()) for one in statistics_of(metadata)}


def staged(table: JavaTable) -> StagedTable:
    """Raises `ConflictError` if anybody has committed since the table was opened."""
    jvm: Any = table.spark._jvm
    with translated(f"open {table.location}"):
        transaction = jvm.org.apache.iceberg.Transactions.newTransaction(
            table.location, table.table.operations()
        )
        if transaction.startMetadata().metadataFileLocation() != table.base.metadataFileLocation():
            raise ConflictError(f"{table.location} was written to since it was opened.")
        operations = transaction.table().operations()
        inner = jvm.org.apache.iceberg.BaseTable(operations, table.location)
    return StagedTable(of=table, table=inner, transaction=transaction)
