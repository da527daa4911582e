"""A Delta table read bucket by bucket: a leaf of a plan whose task i yields the rows of bucket i, and says so to Spark,
which then joins and groups by the bucket columns without an exchange.

Spark's own bucketed scan goes by names of files that Delta does not write. What it is made of does not: an RDD of files
(`FileScanRDD`), whose parts are chosen here, and a plan of an RDD (`LogicalRDD`) with its partitioning. Delta's own
reader of files says of each row whether a deletion vector has it, given the vector and a column for the answer.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from lakewarden.catalog.model.bucket_layout import BucketedFiles, BucketLayout, key_types, layout_in
from lakewarden.jobs.session.delta.buckets.row_places import RowPlaces, row_number
from lakewarden.jobs.session.delta.checksums import listed
from lakewarden.jobs.session.delta.merges.merge_work import (
    VECTORS,
    LeftToDeltaError,
    require_known_features,
)
from lakewarden.jobs.session.delta.merges.plan_pieces import attribute, leaf_of
from lakewarden.jobs.session.plans import JavaPlan, Plans
from lakewarden.jobs.sql.compile.values import quoted

__all__ = ["WRONG_BUCKET", "BucketedTable", "checked", "table_of"]

WRONG_BUCKET: Final = "lakewarden: a row of another bucket than its file says"
"""What Spark says when it comes upon a layout that is wrong."""
_MOST_TIMES: Final = 4
"""So often the files of a source are read, at most."""
_BATCHES: Final = "returning_batch"
_DELETED: Final = "__delta_internal_is_row_deleted"
"""What Delta's reader calls its answer."""


@dataclass(frozen=True, kw_only=True)
class BucketedTable:
    """One version of a table all of whose files name their bucket."""

    layout: BucketLayout
    snapshot: Any
    """Delta's own, in the JVM."""
    files: tuple[Sequence[Any], ...]
    """Delta's `AddFile`s, bucket by bucket."""
    split_from: int | None = None
    """The number of buckets that its files have, where that is smaller."""

    @property
    def largest(self) -> int:
        """The bytes of its largest bucket."""
        return max(sum(int(one.size()) for one in bucket) for bucket in self.files)

    @property
    def every_file(self) -> Sequence[Any]:
        """Delta's `AddFile`s."""
        return [one for bucket in self.files for one in bucket]

    def in_buckets(self, count: int) -> Self | None:
        """The same in another number of buckets; None if the one does not divide the other. Of more than there are (up
        to four times as many) several have the same files: each task takes its own rows out of them."""
        has = self.layout.count
        if (has % count and count % has) or count > _MOST_TIMES * has:
            return None
        files: list[list[Any]] = [[] for _ in range(count)]
        for number in range(max(count, has)):
            files[number % count] += self.files[number % has]
        layout = replace(self.layout, count=count)
        return replace(self, layout=layout, files=tuple(files), split_from=has if has < count else None)

    def only(self, buckets: Container[int]) -> Self:
        """The same without the files of other buckets."""
        files = (bucket if number in buckets else () for number, bucket in enumerate(self.files))
        return replace(self, files=tuple(files))

    def leaf(
        self,
        plans: Plans,
        session: Any,
        relation: JavaPlan,
        needed: Sequence[Any],
        places: RowPlaces | None = None,
    ) -> JavaPlan:
        """A plan that reads some columns, given as attributes of the `LogicalRelation` that it stands for, and in which
        `places` its rows are."""
        read = relation.relation()
        has_vectors = any(one.deletionVector() is not None for one in self.every_file)
        stored = list(needed)
        if places is not None or has_vectors:
            stored.append(row_number(plans) if places is None else places.row)
        if has_vectors:
            stored.append(attribute(plans, _DELETED, plans.sql.types.DataTypes.ByteType))
        of_file = () if places is None else (places.file,)
        format_ = self._with_vectors(plans, read.fileFormat()) if has_vectors else read.fileFormat()
        rdd = self._rdd(plans, session, read, format_, (stored, of_file), places)
        partitioning = plans.sql.catalyst.plans.physical.HashPartitioning(
            plans.scala_sequence(_keys(self.layout, needed)), self.layout.count
        )
        plan = leaf_of(plans, session, (*stored, *of_file), rdd, partitioning)
        if not has_vectors:
            return plan
        return plans.frame(session, plan).where(f"{quoted(_DELETED)} = 0")._jdf.queryExecution().analyzed()

    def _rdd(
        self,
        plans: Plans,
        session: Any,
        read: Any,
        format_: Any,
        columns: tuple[Sequence[Any], Sequence[Any]],
        places: RowPlaces | None,
    ) -> Any:
        """The rows of each bucket's files: columns that are read, and those that are the same for a whole file."""
        packages, types = plans.sql.execution.datasources, plans.sql.catalyst.types.DataTypeUtils
        options = {**plans.texts(read.options()), _BATCHES: "false"}
        schema, of_file = (types.fromAttributes(plans.scala_sequence(one)) for one in columns)
        nothing, no_map = plans.scala_sequence(()), plans.scala_map(())
        reader = format_.buildReaderWithPartitionValues(
            session, read.dataSchema(), of_file, schema, nothing, plans.scala_map(options.items()),
            session.sessionState().newHadoopConfWithOptions(read.options()),
        )  # fmt: skip
        parts = [self._part(plans, number, files, places) for number, files in enumerate(self.files)]
        return packages.FileScanRDD(
            session, reader, plans.scala_sequence(parts), schema, nothing, no_map,
            plans.sql.catalyst.FileSourceOptions(no_map),
        )  # fmt: skip

    def _with_vectors(self, plans: Plans, format_: Any) -> Any:
        """Delta's reader of files, told where vectors are."""
        path = str(self.snapshot.deltaLog().dataPath().toString())
        return format_.copy(
            format_.protocol(), format_.metadata(), format_.nullableRowTrackingConstantFields(),
            format_.nullableRowTrackingGeneratedFields(), format_.optimizationsEnabled(),
            plans.optional(path), format_.isCDCRead(),
        )  # fmt: skip

    def _part(self, plans: Plans, number: int, files: Sequence[Any], places: RowPlaces | None) -> Any:
        packages = plans.sql.execution.datasources
        gateway = plans.gateway
        path_of = plans.spark_path
        found = gateway.new_array(packages.PartitionedFile, len(files))
        row = plans.sql.catalyst.InternalRow
        empty = row.empty()
        for place, one in enumerate(files):
            path = path_of(one.absolutePath(self.snapshot.deltaLog()))
            told = empty if places is None else row.fromSeq(plans.scala_sequence((places.first_of(one),)))
            found[place] = packages.PartitionedFile(
                told, path, 0, one.size(), gateway.new_array(plans.text, 0), one.modificationTime(),
                one.size(), plans.scala_map(_told_of_vector(plans, one)),
            )  # fmt: skip
        return packages.FilePartition(number, found)


def table_of(plans: Plans, snapshot: Any, expected: BucketLayout | None = None) -> BucketedTable:
    """One version of a table. Raises `LeftToDeltaError` if it cannot be read bucket by bucket, or its layout is not
    the one that is `expected`."""
    metadata, protocol = snapshot.metadata(), snapshot.protocol()
    settings = plans.texts(metadata.configuration())
    layout = layout_in(settings)
    if layout is None:
        raise LeftToDeltaError("has no buckets on record")
    if expected is not None and layout != expected:
        raise LeftToDeltaError("has other buckets by now")
    if key_types(str(metadata.schemaString()), layout) is None:
        raise LeftToDeltaError(f"has no columns {', '.join(layout.columns)} of a type that is hashed")
    if not metadata.partitionColumns().isEmpty():
        raise LeftToDeltaError("is partitioned")
    require_known_features(settings, protocol, besides=VECTORS)
    return BucketedTable(layout=layout, snapshot=snapshot, files=_by_bucket(snapshot, layout))


def checked(
    plans: Plans, session: Any, plan: JavaPlan, layout: BucketLayout, split_from: int | None = None
) -> JavaPlan:
    """The plan, which fails as soon as a task comes upon a row that is not of its bucket. A task reads the files of one
    of `split_from` buckets, where there are fewer, and leaves the rows of others to them."""
    named = {str(one.name()).lower(): str(one.name()) for one in plans.sequence(plan.output())}
    keys = ", ".join(quoted(named[column.lower()]) for column in layout.columns)
    mine = f"pmod(hash({keys}), {layout.count}) = spark_partition_id()"
    right = mine
    if split_from is not None:
        right = f"pmod(hash({keys}), {split_from}) = pmod(spark_partition_id(), {split_from})"
    condition = (
        f"CASE WHEN {right} THEN {mine if split_from else 'true'} ELSE raise_error('{WRONG_BUCKET}') END"
    )
    return plans.frame(session, plan).where(condition)._jdf.queryExecution().analyzed()


def _by_bucket(snapshot: Any, layout: BucketLayout) -> tuple[Sequence[Any], ...]:
    files = listed(snapshot) or tuple(snapshot.allFiles().collect())
    found = BucketedFiles.of(layout, files, lambda one: str(one.path()))
    if found.strays:
        raise LeftToDeltaError(f"has {len(found.strays)} files in no bucket")
    return found.placed


def _told_of_vector(plans: Plans, file: Any) -> Iterable[tuple[str, Any]]:
    """What Delta's reader is told of a file's vector."""
    vector, delta = file.deletionVector(), plans.sql.delta
    if vector is None:
        return ()
    names = delta.DeltaParquetFileFormat
    return (
        (names.FILE_ROW_INDEX_FILTER_ID_ENCODED(), vector.serializeToBase64()),
        (names.FILE_ROW_INDEX_FILTER_TYPE(), delta.RowIndexFilterType.IF_CONTAINED),
    )


def _keys(layout: BucketLayout, attributes: Sequence[Any]) -> Sequence[Any]:
    named: Mapping[str, Any] = {str(one.name()).lower(): one for one in attributes}
    return [named[column.lower()] for column in layout.columns]
