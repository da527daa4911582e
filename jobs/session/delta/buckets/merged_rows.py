"""The rows of a bucketed table as a MERGE leaves them: a plan that joins bucket by bucket, and counts on its way.

What happens to a row is a number: it stays, is none of the table's, or has its clause. Buckets in which nothing is
changed are not written anew: of those only new rows come out.
"""

from collections.abc import Iterable
from functools import reduce
from typing import Any, Final

from lakewarden.jobs.session.delta.buckets.bucketed_leaves import bucketed
from lakewarden.jobs.session.delta.buckets.merge_parts import MergeParts
from lakewarden.jobs.session.delta.buckets.reading import BucketedTable, checked
from lakewarden.jobs.session.delta.buckets.row_places import RowPlaces
from lakewarden.jobs.session.delta.merges.joined_rows import JoinedRows, holds
from lakewarden.jobs.session.delta.merges.merge_work import LeftToDeltaError
from lakewarden.jobs.session.delta.merges.plan_pieces import counted, used
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind

__all__ = ["MergedRows"]

_EXCHANGE: Final = "ShuffleExchangeExec"
_READ_WHOLE: Final = ("BroadcastHashJoinExec", "ShuffledHashJoinExec")
"""Joins that keep the rows of the source in a hash table, all of them."""


class MergedRows(JoinedRows):
    """What one MERGE makes of its table; its counts are known when its rows have been read."""

    def __init__(self, plans: Plans, session: Any, parts: MergeParts) -> None:
        super().__init__(plans, session, parts, by_hash=parts.source is not None)
        self._parts = parts

    def frame(self, table: BucketedTable, anew: frozenset[int]) -> Any:
        """The rows of the buckets that are written `anew`, and the new ones of the others that the `table` has here.
        Raises `LeftToDeltaError` if rows of the table would be exchanged."""
        parts, plans = self._parts, self._plans
        stay = frozenset(number for number, files in enumerate(table.files) if files) - anew
        whole = self._left() if parts.only_deletes else self._merged(anew, stay)
        target = self._target(table, used(plans, plans.nodes(whole)))
        if stay:  # rows that do not come out are in their buckets, or might have been matched elsewhere
            target = checked(plans, self._session, target, table.layout)
        target = plans.logical.Filter(counted(plans, self._metrics["read"]), target)
        plan = plans.replaced(whole, self._instead(whole, target))
        frame = plans.frame(self._session, checked(plans, self._session, plan, table.layout))
        self._require_in_place(frame, is_whole=True)
        return frame

    def marked(self, table: BucketedTable, places: RowPlaces) -> Any:
        """The rows that are written where those that change are taken away by their `places`; what comes out is of no
        use where no clause writes any. Raises `LeftToDeltaError` if rows of the table would be exchanged."""
        plans = self._plans
        whole = self._marked(lambda plan: places.marked(plans, plan), (places.row, places.file))
        needed = used(plans, plans.nodes(whole))
        target = bucketed(plans, self._session, self._parts.target, table, needed, places)
        target = checked(plans, self._session, target, table.layout)
        target = plans.logical.Filter(counted(plans, self._metrics["read"]), target)
        plan = plans.replaced(whole, self._instead(whole, target))
        plan = checked(plans, self._session, plan, table.layout) if self.writes else plan
        frame = plans.frame(self._session, plan)
        self._require_in_place(frame, is_whole=True)
        return frame

    def changed(self, table: BucketedTable) -> frozenset[int]:
        """The buckets of a `table` in which a clause is for a match."""
        plans, parts = self._plans, self._parts
        expressions = plans.sql.catalyst.expressions
        either = reduce(expressions.Or, [holds(plans, one) for one in parts.matched])
        condition = expressions.And(parts.condition, either)
        joined = self._joined("LeftSemi", parts.merge.target(), parts.rows, condition)
        found = plans.logical.Project(
            plans.scala_sequence([one for _, one in parts.columns if used(plans, [joined]).contains(one)]),
            joined,
        )
        target = self._target(table, used(plans, plans.nodes(found)))
        plan = plans.logical.LocalLimit(plans.number(1), plans.replaced(found, self._instead(found, target)))
        frame = plans.frame(self._session, plan)
        self._require_in_place(frame, is_whole=False)
        return frozenset(int(row[0]) for row in frame.selectExpr("spark_partition_id()").collect())

    def _instead(self, whole: JavaPlan, target: JavaPlan) -> list[tuple[JavaPlan, JavaPlan]]:
        pairs = [(self._parts.target, target)]
        if self._parts.source is not None:
            needed = used(self._plans, self._plans.nodes(whole))
            pairs.append(
                (self._parts.source[0], source_leaf(self._plans, self._session, self._parts, needed))
            )
        return pairs

    def _target(self, table: BucketedTable, needed: Any) -> JavaPlan:
        return bucketed(self._plans, self._session, self._parts.target, table, needed)

    def _require_in_place(self, frame: Any, *, is_whole: bool) -> None:
        plans = self._plans
        nodes = list(plans.nodes(frame._jdf.queryExecution().executedPlan()))
        mine = [old for _, old in self._parts.columns]
        if any(kind(node) == _EXCHANGE and _has(node.outputSet(), mine) for node in nodes):
            raise LeftToDeltaError("is not joined by its bucket columns alone")
        whole = any(kind(node) in _READ_WHOLE for node in nodes)
        if is_whole and self._parts.source is not None and not whole:
            raise LeftToDeltaError("is joined in a way that does not read all rows of the source")


def source_leaf(plans: Plans, session: Any, parts: MergeParts, needed: Any) -> JavaPlan:
    """The leaf of a source that is read bucket by bucket, with what is needed of it."""
    if parts.source is None:
        raise TypeError("The source is not read bucket by bucket.")
    leaf, table = parts.source
    read = bucketed(plans, session, leaf, table, needed)
    return checked(plans, session, read, table.layout, table.split_from)


def _has(found: Any, attributes: Iterable[Any]) -> bool:
    return any(found.contains(one) for one in attributes)
