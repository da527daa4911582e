"""A judged MERGE of a bucketed table, done bucket by bucket: each task joins one bucket of the table with those of its
sources, and writes what comes out. One pass, no exchange of the table's rows, one commit on the very version that was
read.

First the source is asked which buckets it is about; of the others only the bucket columns are read, and checked. If
rows may be inserted, it is asked next in which of them something is changed: only those are written anew, and the
others get files with the new rows. Where rows are taken away by deletion vectors, no bucket is written anew: each gets
a file with its changed and new rows.

It is done by a transaction of Delta's own, whose writer minds constraints and statistics. Everything that is not known
to come out as Delta's MERGE would have it is left to that, and so is the judgement of rows with several matches.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from lakewarden.catalog.failpoints import reach
from lakewarden.catalog.model.bucket_layout import BucketLayout
from lakewarden.jobs.engines.delta.sessions.stamped_sessions import COMMIT_ATTEMPTS
from lakewarden.jobs.session.conflicts.lost_rows import kept_rows
from lakewarden.jobs.session.delta.buckets.bucketed_leaves import bucketed
from lakewarden.jobs.session.delta.buckets.merge_parts import MergeParts, merge_parts
from lakewarden.jobs.session.delta.buckets.merged_rows import MergedRows, source_leaf
from lakewarden.jobs.session.delta.buckets.reading import (
    WRONG_BUCKET,
    BucketedTable,
    checked,
)
from lakewarden.jobs.session.delta.buckets.row_places import MarkedRows, RowPlaces, marks_rows, taken_rows
from lakewarden.jobs.session.delta.delta_reads import delta_read
from lakewarden.jobs.session.delta.merges.merge_work import operation_of, require_source_read, told_of
from lakewarden.jobs.session.delta.merges.plan_pieces import Replacement, column, used
from lakewarden.jobs.session.plans import JavaPlan, Plans
from lakewarden.jobs.session.writes import Read

__all__ = ["BucketedChange", "bucketed_change", "settings_of"]


class BucketedChange:
    """A change that is not run yet, in a session that is set up for it."""

    def __init__(self, plans: Plans, session: Any, parts: MergeParts, transaction: Any) -> None:
        self._plans, self._session, self._parts = plans, session, parts
        self._files = Replacement(plans, session, parts.merge, transaction)
        self._transaction = transaction
        self._has_vectors = marks_rows(parts.merge, session, transaction, parts.table.every_file)
        self.told: Mapping[str, int] | None = None
        """What it did, as Delta's own MERGE says it; None where it was done before."""

    def require_in_place(self) -> None:
        """Return if the rows of the table are left where they are. Raises `LeftToDeltaError`; so does `run`, before it
        writes anything."""
        with self._plans.active(self._session):
            table, rows = self._parts.table, MergedRows(self._plans, self._session, self._parts)
            if self._has_vectors:
                rows.marked(table, RowPlaces.of(self._plans, table.every_file))
            else:
                rows.frame(table, _every(table))

    @property
    def reads(self) -> tuple[Read, ...]:
        """The source, if it was read bucket by bucket."""
        if self._parts.source is None:
            return ()
        leaf, table = self._parts.source
        return (delta_read(leaf.relation().location().path(), table.snapshot),)

    def run(self) -> DataFrame | None:
        """Do it; None, and nothing was changed, where the rows turn out not to be as they should: then Delta's MERGE
        says what is to be said. Raises `LeftToDeltaError` if nothing is written yet and Delta's MERGE should do it, and
        what Spark and Delta raise, also after a race that was lost."""
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
        with self._repeatable() as parts:
            return self._marked(parts) if self._has_vectors else self._changed(parts)

    @contextmanager
    def _repeatable(self) -> Iterator[MergeParts]:
        """The parts, with a source that has the same rows when it is read again: kept where it may not."""
        parts, plans, session = self._parts, self._plans, self._session
        if parts.is_repeatable:
            yield parts
            return
        held = plans.frame(session, parts.rows)._jdf.localCheckpoint(True).queryExecution().logical()
        with kept_rows(held.rdd()):
            yield replace(parts, rows=plans.sized(session, held, plans.stored_bytes(held.rdd())))

    def _changed(self, parts: MergeParts) -> bool:
        rows = MergedRows(self._plans, self._session, parts)
        table, asked, read = parts.table, *self._read(parts)
        anew = asked
        if parts.inserts:
            anew = rows.changed(read) if asked and parts.matched else frozenset()
        added = self._files.written(rows.frame(read, anew)) if asked else ()
        counts = rows.counts
        if parts.only_deletes:
            counts = {**counts, "delete": counts["read"] - counts["copied"]}
        elif not rows.is_sound:
            return False  # a row came out twice: it has several matches
        old = [one for number in anew for one in table.files[number]]
        is_changed = any(counts[name] for name in ("update", "delete", "insert"))
        if not is_changed:  # what was written is nobody's
            old, added, counts = [], (), {**counts, "copied": 0}
        self.told = told_of(counts, old, added)
        if is_changed or self._files.is_numbered:
            self._commit(parts, [one.remove() for one in old], added, self.told)
        self._files.recache()
        return True

    def _marked(self, parts: MergeParts) -> bool:
        """Take rows away by vectors, and write new ones beside them."""
        plans, session = self._plans, self._session
        rows = MergedRows(plans, session, parts)
        _, read = self._read(parts)
        places = RowPlaces.of(plans, read.every_file)
        marked = MarkedRows.of(plans, session, rows.marked(read, places))
        added = self._files.run(plans.frame(session, marked.rows), writes=rows.writes)
        taken, found = marked.found
        counts = rows.counts
        if taken != counts["update"] + counts["delete"] or not (parts.only_deletes or rows.is_sound):
            return False  # a row came out twice: it has several matches
        done = taken_rows(plans, session, self._transaction, places, found)
        self.told = {**told_of(counts, done.gone, added), **done.told("numTarget")}
        reach("buckets.marked")
        if taken or counts["insert"] or self._files.is_numbered:
            self._commit(parts, done.actions, added, self.told)
        self._files.recache()
        return True

    def _read(self, parts: MergeParts) -> tuple[frozenset[int], BucketedTable]:
        """The buckets that are joined, and the table with them alone; the others are looked at."""
        asked = self._asked(parts)
        others = _every(parts.table) - asked
        if others:
            self._check(parts.table.only(others))
        return asked, parts.table.only(asked)

    def _asked(self, parts: MergeParts) -> frozenset[int]:
        """The buckets that rows of the source may be about."""
        plans = self._plans
        logical = plans.logical
        spread = plans.sql.catalyst.plans.physical.HashPartitioning(
            plans.scala_sequence(parts.keys), parts.table.layout.count
        )
        chosen = reduce(lambda plan, part: logical.Filter(part, plan), parts.chosen, parts.rows)
        number = column(plans, "bucket", spread.partitionIdExpression())
        found = logical.Project(plans.scala_sequence((number,)), chosen)
        if parts.source is None or not parts.is_aligned:
            found = logical.Distinct(found)
        else:  # the first row of a task says which bucket it has
            needed = used(plans, plans.nodes(found))
            leaf = source_leaf(plans, self._session, parts, needed)
            found = logical.LocalLimit(plans.number(1), plans.replaced(found, [(parts.source[0], leaf)]))
        return frozenset(int(row[0]) for row in plans.frame(self._session, found).collect())

    def _check(self, table: BucketedTable) -> None:
        """Read the bucket columns of what is not joined: a row of another bucket might be meant."""
        needed = used(self._plans, ())
        plan = bucketed(self._plans, self._session, self._parts.target, table, needed)
        frame = self._plans.frame(self._session, checked(self._plans, self._session, plan, table.layout))
        frame.write.format("noop").mode("overwrite").save()

    def _commit(
        self, parts: MergeParts, actions: Sequence[Any], added: Sequence[Any], told: Mapping[str, int]
    ) -> None:
        self._files.commit(operation_of(self._plans, parts), actions, added, told)


def _every(table: BucketedTable) -> frozenset[int]:
    return frozenset(range(table.layout.count))


def settings_of(layout: BucketLayout) -> Mapping[str, str]:
    """What a session has to set for a bucketed change: no exchange is worth its while, none is decided on while it
    runs, rows of vectors are told by their numbers in their files, and it commits on the version that it has read or
    fails."""
    return {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": str(layout.count),
        "spark.sql.requireAllClusterKeysForCoPartition": "false",
        "spark.sql.requireAllClusterKeysForDistribution": "false",
        "spark.databricks.delta.deletionVectors.useMetadataRowIndex": "true",
        COMMIT_ATTEMPTS: "0",
    }


def bucketed_change(
    plans: Plans,
    session: Any,
    merge: JavaPlan,
    layout: BucketLayout,
    *,
    is_kept: bool = False,
    source_read: int | None = None,
) -> BucketedChange:
    """An analysed and pinned MERGE as a bucketed change of the head of its target. `session` is set up for it and its
    `layout`; `is_kept`: the rows of the source are in Spark's stores, and were computed from the version `source_read`
    of the target if they were from its head. Raises `LeftToDeltaError` if it is none, `LostRaceError` if that version
    is not head any more."""
    with plans.active(session):
        log = merge.targetFileIndex().deltaLog()
        transaction = log.startTransaction(merge.catalogTable(), plans.nothing)
    require_source_read(transaction.snapshot(), source_read)
    parts = merge_parts(plans, merge, transaction.snapshot(), layout, is_kept=is_kept)
    return BucketedChange(plans, session, parts, transaction)
