"""Where rows of a table are: a number for each, that of its file and that of the row in it. What a change takes away is
told by these as the rows go by, one set of numbers for a whole statement, and put into deletion vectors by Delta's own
code: the files stay.

A set is one of Delta's own bitmaps, an array of 32-bit ones: one for each file.
"""

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self

import orjson

from lakewarden.jobs.session.delta.merges.plan_pieces import attribute, column, leaf_of
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind

__all__ = ["MarkedRows", "RowPlaces", "TakenRows", "marks_rows", "row_number", "taken_rows"]

_MOST_FILES: Final = 2_000
"""Each task has a bitmap for each file before the last one that it marks rows of."""
_BITS: Final = 32
_ROW: Final = "_tmp_metadata_row_index"
"""What Spark's reader of Parquet calls the number of a row in its file."""
_FILE: Final = "__lakewarden_file"
_MARKED: Final = "__lakewarden_marked"
_FORMAT: Final = "Portable"
_HEAD: Final = struct.Struct("<iqi")
"""How Delta's portable bitmaps begin: their mark, how many there are, and the number of the first."""
_MARK: Final = 1681511377
_BOUNDS: Final = "tightBounds"
_TIGHT: Final = re.compile(rf'"{_BOUNDS}"\s*:\s*true')
_WIDE: Final = f'"{_BOUNDS}":false'
_NUMBER: Final = struct.Struct("<i")
_TOLD: Final = ("DeletionVectorsAdded", "DeletionVectorsRemoved", "DeletionVectorsUpdated")
_OBSERVER: Final = "CollectMetricsExec"
_UTIL: Final = "org.apache.spark.util"


def marks_rows(command: Any, session: Any, transaction: Any, files: Sequence[Any]) -> bool:
    """Whether a statement of Delta's takes rows of a table with these files away by vectors, as Delta itself decides
    it. A table with very many is written anew, which leaves it with fewer."""
    is_asked = bool(command.shouldWritePersistentDeletionVectors(session, transaction))
    return is_asked and len(files) <= _MOST_FILES


def row_number(plans: Plans) -> Any:
    """The column of a file's rows by their numbers."""
    return attribute(plans, _ROW, plans.sql.types.DataTypes.LongType)


@dataclass(frozen=True, kw_only=True)
class RowPlaces:
    """Columns that are read beside those of a table."""

    files: tuple[Any, ...]
    """Delta's `AddFile`s; they are numbered from one."""
    row: Any
    """The number of a row in its file."""
    file: Any
    """The number of its file, above the bits of that of the row."""
    numbers: Mapping[str, int] = field(repr=False)
    """The number of a file, by its path."""

    @classmethod
    def of(cls, plans: Plans, files: Sequence[Any]) -> Self:
        """Those of files."""
        return cls(
            files=tuple(files),
            row=row_number(plans),
            file=attribute(plans, _FILE, plans.sql.types.DataTypes.LongType),
            numbers={str(one.path()): number for number, one in enumerate(files, start=1)},
        )

    def first_of(self, file: Any) -> int:
        """Where the rows of a file begin."""
        return self.numbers[str(file.path())] << _BITS

    def marked(self, plans: Plans, plan: JavaPlan) -> JavaPlan:
        """The plan, whose rows are marked as they go by; a row that is none of the table's has no place."""
        expressions = plans.sql.catalyst.expressions
        place = expressions.BitwiseOr(self.file, self.row)
        found = expressions.aggregation.BitmapAggregator(place, 0, 0, _FORMAT).toAggregateExpression()
        told = plans.scala_sequence((column(plans, _MARKED, found),))
        return plans.logical.CollectMetrics(_MARKED, told, plan, 0)


@dataclass(frozen=True, kw_only=True)
class MarkedRows:
    """A plan that is made ready to be run once, and says then which rows it has marked."""

    rows: JavaPlan
    """A leaf that yields what the plan yields."""
    observer: Any = field(repr=False)
    """The node of the physical plan that marks."""

    @classmethod
    def of(cls, plans: Plans, session: Any, frame: Any) -> Self:
        """Those of a DataFrame. What writes it would make a physical plan of its own, which nobody could ask."""
        execution = frame._jdf.queryExecution()
        physical = execution.executedPlan()
        (observer,) = [node for node in plans.nodes(physical) if kind(node) == _OBSERVER]
        _keep_to_itself(plans, int(observer.accumulatorId()))
        columns = plans.sequence(execution.analyzed().output())
        rows = leaf_of(plans, session, columns, execution.toRdd(), physical.outputPartitioning())
        return cls(rows=rows, observer=observer)

    @property
    def found(self) -> tuple[int, bytes]:
        """How many rows were marked, and the set of their places. Known when the rows have been read."""
        told = self.observer.collectedMetrics().getStruct(0)
        return int(told.getLong(0)), bytes(told.get(2))


def _keep_to_itself(plans: Plans, number: int) -> None:
    """Have Spark not tell its listeners of a set as it grows: of an accumulator with a name, it writes out the whole
    value for each task that ends, on the thread that schedules all jobs."""
    found = plans.class_named(f"{_UTIL}.AccumulatorContext").get(number).get()
    unnamed = plans.class_named(f"{_UTIL}.AccumulatorMetadata")(number, plans.nothing, False)
    getattr(found, "metadata_$eq")(unnamed)


@dataclass(frozen=True, kw_only=True)
class TakenRows:
    """What a transaction is told of rows that are taken away."""

    actions: tuple[Any, ...]
    """Files come with their new vectors, and go as they were; one without rows that are left only goes."""
    gone: tuple[Any, ...]
    """`AddFile`s of which nothing is left."""
    vectors: Mapping[str, int]
    """Those that were added, removed and updated, as Delta's own statements say it."""

    def told(self, of: str = "num") -> Mapping[str, int]:
        """The same, with the words that a statement's measures begin with."""
        return {f"{of}{name}": count for name, count in self.vectors.items()}


def taken_rows(plans: Plans, session: Any, transaction: Any, places: RowPlaces, marked: bytes) -> TakenRows:
    """Write the vectors that take the rows at these `marked` places away, beside those that are away already."""
    commands, log, snapshot = plans.sql.delta.commands, transaction.deltaLog(), transaction.snapshot()
    files, data = [], []
    for number, bitmap, count in _bitmaps(plans, marked):
        one = places.files[number - 1]
        vector = one.deletionVector()
        before = plans.optional(None if vector is None else vector.serializeToBase64())
        data.append(commands.DeletionVectorData(str(one.path()), before, bitmap, count))
        files.append(one)
    write = commands.DeletionVectorWriter.createMapperToStoreDeletionVectors(
        session, log.newDeltaHadoopConf(), log.dataPath(),
        plans.sql.delta.util.Utils.getRandomPrefixLength(snapshot.metadata()),
    )  # fmt: skip
    written = plans.sequence(write.apply(plans.scala_sequence(data).iterator()).toSeq())
    touched = [
        commands.TouchedFileWithDV(str(one.path()), one, new.deletionVector(), new.matchedRowCount())
        for one, new in zip(files, written, strict=True)
    ]
    is_plain = all(_has_plain_statistics(plans, one) for one in files)
    actions, told = (
        _plainly(plans, touched) if is_plain else _by_statistics(plans, session, snapshot, touched)
    )
    gone = tuple(one for one, now in zip(files, touched, strict=True) if now.isFullyReplaced())
    return TakenRows(actions=actions, gone=gone, vectors=dict(zip(_TOLD, told, strict=True)))


def _has_plain_statistics(plans: Plans, file: Any) -> bool:
    """Whether a file has statistics that hold as bounds when more of its rows go: the number of its rows is there, and
    its NULLs were counted with all rows, or are counted so already."""
    is_wide = plans.option(file.tightBounds()) is False
    if plans.option(file.numPhysicalRecords()) is None or not (file.deletionVector() is None or is_wide):
        return False
    told = str(file.stats())
    return told.count(f'"{_BOUNDS}"') == (_BOUNDS in orjson.loads(told))  # no column has this name


def _plainly(plans: Plans, touched: Sequence[Any]) -> tuple[tuple[Any, ...], tuple[int, int, int]]:
    """Files with their new vectors, and as they were; how many vectors were added, removed and updated."""
    actions, added, removed, updated = list[Any](), 0, 0, 0
    for one in touched:
        old = one.fileLogEntry()
        has_some = old.deletionVector() is not None
        if one.isFullyReplaced():
            actions.append(old.remove())
            removed += has_some
            continue
        pair = old.removeRows(one.newDeletionVector(), False, True)
        actions += (_with_wide_bounds(plans, pair._1()), pair._2())
        added, updated = added + (not has_some), updated + has_some
    return tuple(actions), (added, removed, updated)


def _with_wide_bounds(plans: Plans, file: Any) -> Any:
    """A file whose statistics say that they hold as bounds. Delta's own code for that reads each number that has a
    fraction as a double, and decimals would come out as others: here their text stays."""
    action = orjson.loads(str(file.json()))
    told = str(action["add"]["stats"])
    if _TIGHT.search(told):
        told = _TIGHT.sub(_WIDE, told)
    elif f'"{_BOUNDS}"' not in told:
        told = told.replace("{", "{" + _WIDE + ",", 1)
    action["add"]["stats"] = told
    return plans.sql.delta.actions.Action.fromJson(orjson.dumps(action).decode())


def _by_statistics(
    plans: Plans, session: Any, snapshot: Any, touched: Sequence[Any]
) -> tuple[tuple[Any, ...], tuple[int, int, int]]:
    """The same by Delta's own statements' code, which looks for statistics in the log and in the files: jobs of
    Spark's."""
    delta = plans.sql.delta
    length = delta.stats.StatsCollectionUtils.getDataSkippingStringPrefixLength(session, snapshot.metadata())
    done = delta.commands.DMLWithDeletionVectorsHelper.processUnmodifiedData(
        session, plans.scala_sequence(touched), snapshot, length
    )
    told = done._2()
    added, removed, updated = (int(told.apply(f"num{name}")) for name in _TOLD)
    return tuple(plans.sequence(done._1())), (added, removed, updated)


def _bitmaps(plans: Plans, marked: bytes) -> Iterator[tuple[int, bytes, int]]:
    """The number of each file with marked rows, their numbers in it as a bitmap for that file alone, and how many there
    are."""
    mark, count, _ = _HEAD.unpack_from(marked) if len(marked) >= _HEAD.size else (_MARK, 0, 0)
    if mark != _MARK:
        raise ValueError("The set of marked rows is none of Delta's portable bitmaps.")
    roaring = plans.class_named("org.roaringbitmap.RoaringBitmap")
    buffers = plans.class_named("java.nio.ByteBuffer")
    little = plans.class_named("java.nio.ByteOrder").LITTLE_ENDIAN
    start, whole = _HEAD.size - _NUMBER.size, buffers.wrap(marked).order(little)
    for _ in range(count):
        (number,) = _NUMBER.unpack_from(marked, start)
        start += _NUMBER.size
        one = roaring()
        whole.position(start)
        one.deserialize(whole)
        size = int(one.serializedSizeInBytes())
        rows = int(one.getLongCardinality())
        if rows:
            yield number, _HEAD.pack(_MARK, 1, 0) + marked[start : start + size], rows
        start += size
