"""A judged MERGE that updates or deletes, done bucket by bucket: each task joins one bucket of the table with those of
its sources and writes that bucket anew. One pass, no exchange of the table's rows, one commit on the very version that
was read.

First the source is asked which buckets it is about; of the others only the bucket columns are read, and checked.

It is done by a transaction of Delta's own, whose writer minds constraints and statistics. Everything that is not known
to come out as Delta's MERGE would have it is left to that, and so is the judgement of rows with several matches.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from lakewarden.catalog.model.bucket_layout import BucketLayout
from lakewarden.jobs.engines.spark.session import COMMIT_ATTEMPTS
from lakewarden.jobs.session.buckets.merge_parts import MergeParts, merge_parts, nodes_of
from lakewarden.jobs.session.buckets.plan_pieces import (
    Replacement,
    bucketed,
    column,
    counted,
    metric,
    used,
)
from lakewarden.jobs.session.buckets.reading import (
    WRONG_BUCKET,
    BucketedTable,
    UnlikeBucketsError,
    checked,
)
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind
from lakewarden.jobs.session.reads import delta_read
from lakewarden.jobs.session.writes import Read

__all__ = ["BucketedChange", "bucketed_change", "settings_of"]

_MATCH: Final = "__lakewarden_match"
_COUNTED: Final = (
    "operationNumSourceRows",
    "numTargetRowsRead",
    "numTargetRowsUpdated",
    "numTargetRowsCopied",
)
_EXCHANGE: Final = "ShuffleExchangeExec"
_READ_WHOLE: Final = ("BroadcastHashJoinExec", "ShuffledHashJoinExec")
"""Joins that keep the rows of the source in a hash table, all of them."""


class BucketedChange:
    """A change that is not run yet, in a session that is set up for it. Raises `UnlikeBucketsError` if the rows of its
    table would not be left where they are."""

    def __init__(self, plans: Plans, session: Any, parts: MergeParts, transaction: Any) -> None:
        self._plans, self._session, self._parts = plans, session, parts
        self._files = Replacement(plans, session, parts.merge, transaction)
        self._asked, self._read, self._matched, self._kept = (metric(plans, name) for name in _COUNTED)
        with plans.active(session):
            self._whole = self._frame(parts.table)

    @property
    def reads(self) -> tuple[Read, ...]:
        """The source, if it was read bucket by bucket."""
        if self._parts.source is None:
            return ()
        leaf, table = self._parts.source
        return (delta_read(leaf.relation().location().path(), table.snapshot),)

    def run(self) -> DataFrame | None:
        """Do it; None, and nothing was changed, where the rows turn out not to be as they should: then Delta's MERGE
        says what is to be said. Raises what Spark and Delta raise, also after a race that was lost."""
        with self._plans.active(self._session):
            try:
                done = self._run()
            except (PySparkException, Py4JJavaError) as error:
                if WRONG_BUCKET in str(error):
                    return None
                raise
        return self._plans.spark.range(0) if done else None

    def _run(self) -> bool:
        table = self._parts.table
        if self._files.is_done:
            return True
        touched = self._touched()
        others = frozenset(range(table.layout.count)) - touched
        if others:
            self._check(table.only(others))
        if not touched:
            return True
        changed = table.only(touched)
        frame = self._frame(changed) if others else self._whole
        added = self._files.written(frame)
        read, matched, kept = (int(one.value()) for one in (self._read, self._matched, self._kept))
        if self._parts.deletes:
            matched = read - kept
        if read != matched + kept:
            return False  # a row came out twice: it has several matches
        if matched:
            self._commit(changed, added, matched, kept)
        self._files.recache()
        return True

    def _touched(self) -> frozenset[int]:
        """The buckets that rows of the source may be about."""
        plans, parts = self._plans, self._parts
        logical = plans.logical
        spread = plans.sql.catalyst.plans.physical.HashPartitioning(
            plans.scala_sequence(parts.keys), parts.table.layout.count
        )
        chosen = reduce(lambda plan, part: logical.Filter(part, plan), parts.chosen, parts.merge.source())
        number = column(self._plans, "bucket", spread.partitionIdExpression())
        found = logical.Project(plans.scala_sequence((number,)), chosen)
        if parts.source is None or not parts.is_aligned:
            found = logical.Distinct(found)
        else:  # the first row of a task says which bucket it has
            leaf, table = parts.source
            needed = used(plans, nodes_of(plans, found))
            plan = plans.replaced(found, [(leaf, self._source_leaf(leaf, table, needed))])
            found = logical.LocalLimit(self._plans.number(1), plan)
        return frozenset(int(row[0]) for row in plans.frame(self._session, found).collect())

    def _check(self, table: BucketedTable) -> None:
        """Read the bucket columns of what is not written anew: a row of another bucket might be meant."""
        needed = used(self._plans, ())
        plan = bucketed(self._plans, self._session, self._parts.target, table, needed)
        frame = self._plans.frame(self._session, checked(self._plans, self._session, plan, table.layout))
        frame.write.format("noop").mode("overwrite").save()

    def _frame(self, table: BucketedTable) -> DataFrame:
        """The rows of these buckets as they will be. Raises `UnlikeBucketsError` if they would be exchanged."""
        plans, parts = self._plans, self._parts
        whole = self._left() if parts.deletes else self._updated()
        needed = used(plans, nodes_of(plans, whole))
        target = plans.logical.Filter(
            counted(self._plans, self._read),
            bucketed(self._plans, self._session, parts.target, table, needed),
        )
        places = [(parts.target, target)]
        if parts.source is not None:
            places.append((parts.source[0], self._source_leaf(*parts.source, needed)))
        plan = checked(plans, self._session, plans.replaced(whole, places), table.layout)
        frame = plans.frame(self._session, plan)
        self._require_in_place(frame._jdf.queryExecution().executedPlan())
        return frame

    def _left(self) -> JavaPlan:
        joined = self._joined("LeftAnti", self._source())
        left = self._plans.logical.Filter(counted(self._plans, self._kept), joined)
        return self._plans.logical.Project(
            self._plans.scala_sequence(old for _, old, _ in self._parts.values), left
        )

    def _updated(self) -> JavaPlan:
        plans, parts = self._plans, self._parts
        expressions, logical = plans.sql.catalyst.expressions, plans.logical
        needed = used(plans, (parts.condition, *(new for _, _, new in parts.values)))
        source = self._source()
        taken = [one for one in plans.sequence(source.output()) if needed.contains(one)]
        marked = column(self._plans, _MATCH, plans.always)
        match = expressions.IsNotNull(marked.toAttribute())
        joined = self._joined("LeftOuter", logical.Project(plans.scala_sequence((*taken, marked)), source))
        known = logical.Filter(
            expressions.If(match, counted(self._plans, self._matched), counted(self._plans, self._kept)),
            joined,
        )
        columns = [
            column(self._plans, name, expressions.If(match, new, old)) for name, old, new in parts.values
        ]
        return logical.Project(plans.scala_sequence(columns), known)

    def _source(self) -> JavaPlan:
        return self._plans.logical.Filter(counted(self._plans, self._asked), self._parts.merge.source())

    def _joined(self, how: str, source: JavaPlan) -> JavaPlan:
        type_ = getattr(getattr(self._plans.sql.catalyst.plans, f"{how}$"), "MODULE$")
        condition = self._plans.optional(self._parts.condition)
        return self._plans.logical.Join(self._parts.merge.target(), source, type_, condition, self._hint())

    def _source_leaf(self, leaf: JavaPlan, table: BucketedTable, needed: Any) -> JavaPlan:
        return checked(
            self._plans,
            self._session,
            bucketed(self._plans, self._session, leaf, table, needed),
            table.layout,
        )

    def _hint(self) -> Any:
        """How to join: a bucketed source by hash, which reads and checks all of its rows."""
        hints = self._plans.logical
        if self._parts.source is None:
            return getattr(getattr(hints, "JoinHint$"), "MODULE$").NONE()
        by_hash = getattr(getattr(hints, "SHUFFLE_HASH$"), "MODULE$")
        told = self._plans.optional(hints.HintInfo(self._plans.optional(by_hash)))
        return hints.JoinHint(self._plans.nothing, told)

    def _require_in_place(self, plan: Any) -> None:
        nodes = list(nodes_of(self._plans, plan))
        mine = self._parts.values[0][1]
        if any(kind(node) == _EXCHANGE and node.outputSet().contains(mine) for node in nodes):
            raise UnlikeBucketsError("is not joined by its bucket columns alone")
        if self._parts.source is not None and not any(kind(node) in _READ_WHOLE for node in nodes):
            raise UnlikeBucketsError("is joined in a way that does not read all rows of the source")

    def _commit(self, changed: BucketedTable, added: Sequence[Any], matched: int, kept: int) -> None:
        """Put the new files in the place of the old ones."""
        plans, operations, merge = self._plans, self._plans.sql.delta, self._parts.merge
        old = [one for bucket in changed.files for one in bucket]
        (clause,) = plans.sequence(merge.matchedClauses())
        condition = plans.option(clause.condition())
        said = plans.optional(None if condition is None else str(condition.sql()))
        done = getattr(operations, "DeltaOperations$MergePredicate")(
            said, "delete" if self._parts.deletes else "update"
        )
        none, nothing = plans.nothing, plans.scala_sequence(())
        operation = getattr(operations, "DeltaOperations$Merge")(
            plans.optional(merge.condition()),
            none,
            none,
            none,
            plans.scala_sequence((done,)),
            nothing,
            nothing,
        )
        self._files.commit(operation, old, added, self._told(added, old, matched, kept))

    def _told(self, added: Sequence[Any], old: Sequence[Any], matched: int, kept: int) -> Mapping[str, int]:
        """What Delta's own MERGE says of itself."""
        deletes = self._parts.deletes
        updated, deleted = (0, matched) if deletes else (matched, 0)
        return {
            _COUNTED[0]: int(self._asked.value()),
            "numTargetRowsUpdated": updated,
            "numTargetRowsMatchedUpdated": updated,
            "numTargetRowsDeleted": deleted,
            "numTargetRowsMatchedDeleted": deleted,
            "numTargetRowsCopied": kept,
            "numTargetRowsInserted": 0,
            "numOutputRows": updated + kept,
            "numTargetFilesAdded": len(added),
            "numTargetFilesRemoved": len(old),
            "numTargetBytesAdded": sum(int(one.size()) for one in added),
            "numTargetBytesRemoved": sum(int(one.size()) for one in old),
        }


def settings_of(layout: BucketLayout) -> Mapping[str, str]:
    """What a session has to set for a bucketed change: no exchange is worth its while, none is decided on while it
    runs, and it commits on the version that it has read or fails."""
    return {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": str(layout.count),
        "spark.sql.requireAllClusterKeysForCoPartition": "false",
        COMMIT_ATTEMPTS: "0",
    }


def bucketed_change(plans: Plans, session: Any, merge: JavaPlan, layout: BucketLayout) -> BucketedChange:
    """An analysed and pinned MERGE as a bucketed change of the head of its target. `session` is set up for it and its
    `layout`. Raises `UnlikeBucketsError` if it is none."""
    with plans.active(session):
        log = merge.targetFileIndex().deltaLog()
        transaction = log.startTransaction(merge.catalogTable(), plans.nothing)
    parts = merge_parts(plans, merge, transaction.snapshot(), layout)
    return BucketedChange(plans, session, parts, transaction)
