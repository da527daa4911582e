"""A judged UPDATE or DELETE of one bucketed table, done bucket by bucket: Delta's own would leave the rows that it
writes in no bucket.

First the files that may have such rows, by their statistics, are asked for their buckets; those are written anew, or
lose such rows by deletion vectors. One commit of a transaction of Delta's own, on the very version that was read. What
is not known to come out as Delta's own statement would have it is left to that.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.model.bucket_layout import BucketLayout
from lakewarden.jobs.session.delta.buckets.bucketed_leaves import bucketed
from lakewarden.jobs.session.delta.buckets.merge_parts import require_keys_kept
from lakewarden.jobs.session.delta.buckets.reading import (
    WRONG_BUCKET,
    BucketedTable,
    checked,
    table_of,
)
from lakewarden.jobs.session.delta.buckets.row_places import MarkedRows, RowPlaces, marks_rows, taken_rows
from lakewarden.jobs.session.delta.delta_reads import delta_index
from lakewarden.jobs.session.delta.merges.merge_work import LeftToDeltaError, require_same_schema
from lakewarden.jobs.session.delta.merges.plan_pieces import Replacement, column, counted, metric, used
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind

__all__ = ["RowsChange", "rows_change"]

_UPDATE: Final = "UpdateCommand"
_COUNTED: Final = ("rowsRead", "rowsKept")


class RowsChange:
    """A change that is not run yet, in a session that is set up for it."""

    def __init__(
        self,
        plans: Plans,
        session: Any,
        command: JavaPlan,
        leaf: JavaPlan,
        table: BucketedTable,
        transaction: Any,
    ) -> None:
        self._plans, self._session, self._command = plans, session, command
        self._leaf, self._table, self._transaction = leaf, table, transaction
        self._files = Replacement(plans, session, command, transaction)
        self._condition = plans.option(command.condition())
        """None for all rows."""
        self._is_update = kind(command) == _UPDATE
        self._read, self._kept = (metric(plans, name) for name in _COUNTED)
        self._has_vectors = marks_rows(command, session, transaction, table.every_file)

    def run(self) -> DataFrame | None:
        """Do it; None, and nothing was changed, where rows turn out not to be as they should. Raises what Spark and
        Delta raise, also after a race that was lost."""
        with self._plans.active(self._session):
            try:
                done = self._run()
            except (PySparkException, Py4JJavaError) as error:
                if WRONG_BUCKET in str(error):
                    return None
                raise
        return self._plans.spark.range(0) if done else None

    def _run(self) -> bool:
        if self._files.is_done:
            return True
        maybe = self._table.only(self._maybe())
        if self._has_vectors and self._condition is not None:
            if not self._mark(maybe):
                return False
        else:
            touched = self._touched(maybe)
            if touched:
                changed = self._table.only(touched)
                added = self._files.written(self._plans.frame(self._session, self._rows(changed)))
                old = changed.every_file
                self._commit([one.remove() for one in old], added, self._told(old, added))
        self._files.recache()
        return True

    def _mark(self, table: BucketedTable) -> bool:
        """Take such rows away by vectors, and write them as they will be beside the others. Whether each was marked."""
        plans, session = self._plans, self._session
        places = RowPlaces.of(plans, table.every_file)
        read = self._leaf_of(table, self._columns, places)
        such = plans.logical.Filter(self._condition, plans.logical.Filter(counted(plans, self._read), read))
        changed = metric(plans, "rowsChanged")
        plan = places.marked(plans, plans.logical.Filter(counted(plans, changed), such))
        if self._is_update:
            new = zip(
                plans.sequence(self._leaf.output()),
                plans.sequence(self._command.updateExpressions()),
                strict=True,
            )
            values = plans.scala_sequence(column(plans, str(old.name()), value) for old, value in new)
            plan = checked(plans, session, plans.logical.Project(values, plan), table.layout)
        marked = MarkedRows.of(plans, session, plans.frame(session, plan))
        added = self._files.run(plans.frame(session, marked.rows), writes=self._is_update)
        count, found = marked.found
        if count != int(changed.value()):
            return False
        if count:
            done = taken_rows(plans, session, self._transaction, places, found)
            self._kept.set(int(self._read.value()) - count)
            told = {**self._told(done.gone, added), "numCopiedRows": 0, **done.told()}
            reach("buckets.marked")
            self._commit(done.actions, added, told)
        return True

    def _maybe(self) -> frozenset[int]:
        """The buckets that may have such rows."""
        plans, every = self._plans, frozenset(range(self._table.layout.count))
        if self._condition is None:
            return frozenset(number for number in every if self._table.files[number])
        found = self._transaction.filterFiles(plans.scala_sequence((self._condition,)), False)
        paths = {str(one.path()) for one in plans.sequence(found)}
        return frozenset(
            number
            for number, files in enumerate(self._table.files)
            if any(str(one.path()) in paths for one in files)
        )

    def _touched(self, maybe: BucketedTable) -> frozenset[int]:
        """Those of them that have some."""
        plans = self._plans
        has_files = frozenset(number for number, files in enumerate(maybe.files) if files)
        if self._condition is None or not has_files:
            return has_files
        read = self._leaf_of(maybe, used(plans, (self._condition,)))
        such = plans.logical.LocalLimit(plans.number(1), plans.logical.Filter(self._condition, read))
        rows = plans.frame(self._session, such).selectExpr("spark_partition_id() AS bucket").collect()
        return frozenset(int(row["bucket"]) for row in rows)

    def _rows(self, table: BucketedTable) -> JavaPlan:
        """The rows of these buckets as they will be."""
        plans, logical = self._plans, self._plans.logical
        expressions, columns = plans.sql.catalyst.expressions, plans.sequence(self._leaf.output())
        read = self._leaf_of(table, self._columns)
        every = logical.Filter(counted(plans, self._read), read)
        condition = plans.always if self._condition is None else self._condition
        if not self._is_update:
            others = expressions.Not(expressions.EqualNullSafe(condition, plans.always))
            return logical.Filter(counted(plans, self._kept), logical.Filter(others, every))
        counts = expressions.If(condition, plans.always, counted(plans, self._kept))
        values = [
            column(plans, str(old.name()), expressions.If(condition, new, old))
            for old, new in zip(columns, plans.sequence(self._command.updateExpressions()), strict=True)
        ]
        return logical.Project(plans.scala_sequence(values), logical.Filter(counts, every))

    @property
    def _columns(self) -> Any:
        return self._plans.sql.catalyst.expressions.AttributeSet.apply(self._leaf.output())

    def _leaf_of(self, table: BucketedTable, needed: Any, places: RowPlaces | None = None) -> JavaPlan:
        leaf = bucketed(self._plans, self._session, self._leaf, table, needed, places)
        return checked(self._plans, self._session, leaf, table.layout)

    def _commit(self, actions: Sequence[Any], added: Sequence[Any], told: Mapping[str, int]) -> None:
        operations, condition = self._plans.sql.delta, self._condition
        if self._is_update:
            operation = getattr(operations, "DeltaOperations$Update")(self._plans.optional(condition))
        else:
            operation = getattr(operations, "DeltaOperations$Delete")(
                self._plans.scala_sequence((condition,))
            )
        self._files.commit(operation, actions, added, told)

    def _told(self, old: Sequence[Any], added: Sequence[Any]) -> Mapping[str, int]:
        """What Delta's own statement says of itself."""
        read, kept = int(self._read.value()), int(self._kept.value())
        return {
            "numUpdatedRows" if self._is_update else "numDeletedRows": read - kept,
            "numCopiedRows": kept,
            "numAddedFiles": len(added),
            "numRemovedFiles": len(old),
            "numAddedBytes": sum(int(one.size()) for one in added),
            "numRemovedBytes": sum(int(one.size()) for one in old),
        }


def rows_change(plans: Plans, session: Any, command: JavaPlan, layout: BucketLayout) -> RowsChange:
    """An analysed UPDATE or DELETE as a bucketed change of the head of its table. `session` is set up for it and its
    `layout`. Raises `LeftToDeltaError` if it is none."""
    leaf, *rest = plans.leaves(command.target())
    index = delta_index(plans, leaf.relation()) if kind(leaf) == "LogicalRelation" and not rest else None
    if index is None or not command.target().sameOutput(leaf):
        raise LeftToDeltaError("is changed through a view")
    with plans.active(session):
        transaction = index.deltaLog().startTransaction(command.catalogTable(), plans.nothing)
    snapshot = transaction.snapshot()
    require_same_schema(index.metadata(), snapshot.metadata())
    columns = plans.sequence(leaf.output())
    if [str(one.name()) for one in columns] != list(snapshot.schema().fieldNames()):
        raise LeftToDeltaError("is asked for more than its columns")
    table = table_of(plans, snapshot, layout)
    condition = plans.option(command.condition())
    if condition is not None:
        chosen = plans.logical.Filter(condition, leaf)
        if plans.asks(condition) or plans.asks_for_the_time(chosen) or not condition.deterministic():
            raise LeftToDeltaError("is changed by what may be another thing when it is asked again")
    if kind(command) == _UPDATE:
        new = plans.sequence(command.updateExpressions())
        require_keys_kept(table, [(str(old.name()), old, one) for old, one in zip(columns, new, strict=True)])
    elif condition is None or str(condition.sql()) == "true":
        raise LeftToDeltaError("loses all of its rows, which takes no reading")
    return RowsChange(plans, session, command, leaf, table, transaction)
