"""Files of rows, and of keys whose rows go, that Iceberg's own writers write in Spark's tasks, and no table has yet.

Spark appends to a table in memory at the same place, by a transaction that is never committed: what it would have added
is what was written. A file of keys is a data file of a table that has no other columns. It becomes a delete file by
what a manifest says of it, with the partition and the field ids that the writer gave it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lakewarden.jobs.session.iceberg.written_tables import WrittenTable
from lakewarden.jobs.session.plans import JavaPlan, Plans

__all__ = ["LooseFiles"]

_OURS: Final = {"write.wap.enabled": "false", "commit.manifest-merge.enabled": "false"}
"""Properties of the table in memory: what is appended to it is its head."""


@dataclass(frozen=True)
class LooseFiles:
    """Writes beside one state of a table."""

    plans: Plans
    target: WrittenTable

    @property
    def _iceberg(self) -> Any:
        jvm: Any = self.plans.spark._jvm
        return jvm.org.apache.iceberg

    def rows(self, session: Any, query: JavaPlan) -> Sequence[Any]:
        """The `DataFile`s of a query's rows, by the table's spec and sort order. Raises what Spark raises."""
        base = self.target.base
        spec, order = base.spec(), base.sortOrder()
        made = []
        for file in self._written(session, query, base.schema(), spec, order):
            builder = self._filled(self._iceberg.DataFiles.builder(spec), spec, file)
            if file.sortOrderId():
                builder = builder.withSortOrder(order)
            made.append(builder.build())
        return made

    def keys(self, session: Any, query: JavaPlan, names: Sequence[str], spec: Any) -> Sequence[Any]:
        """The `DeleteFile`s of a query's keys: columns of the table by these names, from which the partitions of
        `spec` follow. Raises what Spark raises."""
        whole = self.target.base.schema()
        ids = self.plans.gateway.new_array(self.plans.gateway.jvm.int, len(names))
        for place, name in enumerate(names):
            ids[place] = whole.findField(name).fieldId()
        schema = self._iceberg.Schema(
            [one for one in self.plans.items(whole.columns()) if one.name() in names]
        )
        builders = self._iceberg.FileMetadata.deleteFileBuilder
        unsorted = self._iceberg.SortOrder.unsorted()
        # One whose fields are all void names columns that are no keys.
        written = spec if spec.isPartitioned() else self._iceberg.PartitionSpec.unpartitioned()
        return [
            self._filled(builders(spec).ofEqualityDeletes(ids), spec, file).build()
            for file in self._written(session, query, schema, written, unsorted)
        ]

    def _written(self, session: Any, query: JavaPlan, schema: Any, spec: Any, order: Any) -> Iterator[Any]:
        """What Spark appends to a table in memory with this schema, partitioned and sorted so."""
        base, real, made = self.target.base, self.target.table.table(), self._iceberg
        metadata = (
            made.TableMetadata.buildFromEmpty(base.formatVersion())
            .assignUUID()
            .setLocation(base.location())
            .setCurrentSchema(schema, base.lastColumnId())
            .setDefaultPartitionSpec(spec)
            .setDefaultSortOrder(order)
            .setProperties({**self.plans.java.HashMap(base.properties()), **_OURS})
            .build()
        )
        transaction = made.Transactions.replaceTableTransaction(real.name(), real.operations(), metadata)
        self._append(session, query, transaction.table())
        snapshot, files = transaction.currentMetadata().currentSnapshot(), real.io()
        if snapshot is None:
            return
        try:
            found = snapshot.addedDataFiles(files).iterator()
            while found.hasNext():
                yield found.next()
        finally:
            for manifest in self.plans.items(snapshot.allManifests(files)):
                files.deleteFile(manifest.path())
            files.deleteFile(snapshot.manifestListLocation())

    def _append(self, session: Any, query: JavaPlan, table: Any) -> None:
        jvm: Any = self.plans.spark._jvm
        relations = self.plans.sql.execution.datasources.v2.DataSourceV2Relation
        # With the catalog, which knows the functions that the table is partitioned by.
        relation = relations.create(
            self._iceberg.spark.source.SparkTable(table), self.target.relation.catalog(), self.plans.nothing
        )
        plan = self.plans.append_by_name(relation, query, self.plans.scala_map(()))
        modes = jvm.org.apache.spark.sql.execution.CommandExecutionMode
        session.sessionState().executePlan(plan, modes.ALL()).commandExecuted()

    def _filled(self, builder: Any, spec: Any, file: Any) -> Any:
        """A builder with what is known of a written file."""
        metrics = self._iceberg.Metrics(
            file.recordCount(),
            file.columnSizes(),
            file.valueCounts(),
            file.nullValueCounts(),
            file.nanValueCounts(),
            file.lowerBounds(),
            file.upperBounds(),
        )
        filled = (
            builder.withPath(file.location())
            .withFormat(file.format())
            .withFileSizeInBytes(file.fileSizeInBytes())
            .withMetrics(metrics)
            .withSplitOffsets(file.splitOffsets())
        )
        return filled.withPartition(file.partition()) if spec.isPartitioned() else filled
