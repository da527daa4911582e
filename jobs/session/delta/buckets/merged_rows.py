"""The rows of a bucketed table as a MERGE leaves them: a plan that joins bucket by bucket, and counts on its way.

What happens to a row is a number: it stays, is none of the table's, or has its clause. Buckets in which nothing is
changed are not written anew: of those only new rows come out.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, Final

from lakewarden.jobs.session.delta.buckets.merge_parts import LARGEST, ClauseAction, MergeParts
from lakewarden.jobs.session.delta.buckets.plan_pieces import bucketed, column, counted, metric, used
from lakewarden.jobs.session.delta.buckets.reading import BucketedTable, UnlikeBucketsError, checked
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind

__all__ = ["COUNTED", "MergedRows"]

COUNTED: Final = ("asked", "read", "update", "delete", "insert", "copied", "left", "odd")
"""Rows of the source, rows of the table that were read, what was done to them, those that were copied, those that were
left where they are, and changes in buckets that were to stay as they are."""
_MATCH: Final = "__lakewarden_match"
_ROW: Final = "__lakewarden_row"
_ACTION: Final = "__lakewarden_action"
_KEPT, _NONE, _FIRST = 0, 1, 2
_EXCHANGE: Final = "ShuffleExchangeExec"
_READ_WHOLE: Final = ("BroadcastHashJoinExec", "ShuffledHashJoinExec")
"""Joins that keep the rows of the source in a hash table, all of them."""


class MergedRows:
    """What one MERGE makes of its table; its counts are known when its rows have been read."""

    def __init__(self, plans: Plans, session: Any, parts: MergeParts) -> None:
        self._plans, self._session, self._parts = plans, session, parts
        self._metrics = {name: metric(plans, name) for name in COUNTED}

    @property
    def counts(self) -> Mapping[str, int]:
        """By `COUNTED`."""
        return {name: int(one.value()) for name, one in self._metrics.items()}

    def frame(self, table: BucketedTable, anew: frozenset[int]) -> Any:
        """The rows of the buckets that are written `anew`, and the new ones of the others that the `table` has here.
        Raises `UnlikeBucketsError` if rows of the table would be exchanged."""
        parts, plans = self._parts, self._plans
        stay = frozenset(number for number, files in enumerate(table.files) if files) - anew
        whole = self._left() if parts.only_deletes else self._merged(anew, stay)
        target = self._target(table, used(plans, plans.nodes(whole)))
        if stay:  # rows that do not come out are in their buckets, or might have been matched elsewhere
            target = checked(plans, self._session, target, table.layout)
        target = plans.logical.Filter(counted(plans, self._metrics["read"]), target)
        plan = plans.replaced(whole, self._places(whole, target))
        frame = plans.frame(self._session, checked(plans, self._session, plan, table.layout))
        self._require_in_place(frame, is_whole=True)
        return frame

    def changed(self, table: BucketedTable) -> frozenset[int]:
        """The buckets of a `table` in which a clause is for a match."""
        plans, parts = self._plans, self._parts
        expressions = plans.sql.catalyst.expressions
        either = reduce(expressions.Or, [_holds(plans, one) for one in parts.matched])
        condition = expressions.And(parts.condition, either)
        joined = self._joined("LeftSemi", parts.merge.target(), parts.rows, condition)
        found = plans.logical.Project(
            plans.scala_sequence([one for _, one in parts.columns if used(plans, [joined]).contains(one)]),
            joined,
        )
        target = self._target(table, used(plans, plans.nodes(found)))
        plan = plans.logical.LocalLimit(plans.number(1), plans.replaced(found, self._places(found, target)))
        frame = plans.frame(self._session, plan)
        self._require_in_place(frame, is_whole=False)
        return frozenset(int(row[0]) for row in frame.selectExpr("spark_partition_id()").collect())

    def _places(self, whole: JavaPlan, target: JavaPlan) -> list[tuple[JavaPlan, JavaPlan]]:
        places = [(self._parts.target, target)]
        if self._parts.source is not None:
            needed = used(self._plans, self._plans.nodes(whole))
            places.append(
                (self._parts.source[0], source_leaf(self._plans, self._session, self._parts, needed))
            )
        return places

    def _target(self, table: BucketedTable, needed: Any) -> JavaPlan:
        return bucketed(self._plans, self._session, self._parts.target, table, needed)

    def _left(self) -> JavaPlan:
        """The rows that no match takes away."""
        parts, plans = self._parts, self._plans
        joined = self._joined("LeftAnti", parts.merge.target(), self._source(), parts.condition)
        left = plans.logical.Filter(counted(plans, self._metrics["copied"]), joined)
        return plans.logical.Project(plans.scala_sequence(old for _, old in parts.columns), left)

    def _merged(self, anew: frozenset[int], stay: frozenset[int]) -> JavaPlan:
        parts, plans, logical = self._parts, self._plans, self._plans.logical
        actions = (*parts.matched, *parts.inserts)
        asked = [parts.condition, *(one.condition for one in actions if one.condition is not None)]
        needed = used(plans, [*asked, *(value for one in actions for value in one.values)])
        source = self._source()
        taken = [one for one in plans.sequence(source.output()) if needed.contains(one)]
        match, row = column(plans, _MATCH, plans.always), column(plans, _ROW, plans.always)
        mine = [old for _, old in parts.columns if anew or needed.contains(old)]
        joined = self._joined(
            "FullOuter" if parts.inserts else "LeftOuter",
            logical.Project(plans.scala_sequence((*mine, row)), parts.merge.target()),
            logical.Project(plans.scala_sequence((*taken, match)), source),
            parts.condition,
        )
        action = column(plans, _ACTION, self._action(row.toAttribute(), match.toAttribute()))
        acted = logical.Project(plans.scala_sequence((*mine, *taken, action)), joined)
        known = logical.Filter(self._told(action.toAttribute(), anew, stay), acted)
        values = [
            column(plans, name, self._value(place, old if anew else None, action.toAttribute()))
            for place, (name, old) in enumerate(parts.columns)
        ]
        return logical.Project(plans.scala_sequence(values), known)

    def _action(self, row: Any, match: Any) -> Any:
        """The number of what happens to a row of the join."""
        plans, parts = self._plans, self._parts
        expressions = plans.sql.catalyst.expressions
        of_match, of_new = (
            self._first(
                [
                    (_holds(plans, one), plans.number(_FIRST + first + place))
                    for place, one in enumerate(actions)
                ],
                plans.number(otherwise),
            )
            for actions, first, otherwise in (
                (parts.matched, 0, _KEPT),
                (parts.inserts, len(parts.matched), _NONE),
            )
        )
        of_row = expressions.If(expressions.IsNotNull(match), of_match, plans.number(_KEPT))
        return expressions.If(expressions.IsNotNull(row), of_row, of_new)

    def _told(self, action: Any, anew: frozenset[int], stay: frozenset[int]) -> Any:
        """Whether a row comes out, counted by what happens to it."""
        plans, parts = self._plans, self._parts
        expressions = plans.sql.catalyst.expressions
        never = expressions.Literal.FalseLiteral()
        comes = {"update": plans.always, "insert": plans.always, "delete": never}

        def where(here: Any, there: Any) -> Any:
            """One in the buckets that are written anew, another in those that stay."""
            if not stay:
                return here
            if not anew:
                return there
            numbers = plans.scala_sequence(plans.number(one) for one in sorted(anew))
            return expressions.If(expressions.In(expressions.SparkPartitionID(), numbers), here, there)

        def tells(what: Any, name: str) -> Any:
            return plans.sql.delta.metric.IncrementMetric(what, self._metrics[name])

        told = [(_KEPT, where(tells(plans.always, "copied"), tells(never, "left")))]
        for place, one in enumerate((*parts.matched, *parts.inserts)):
            here = tells(comes[one.does], one.does)
            told.append((_FIRST + place, here if one.does == "insert" else where(here, tells(never, "odd"))))
        return self._first([(self._is(action, number), what) for number, what in told], never)

    def _value(self, place: int, old: Any | None, action: Any) -> Any:
        """What is in one column; without an `old` value only new rows come out."""
        parts = self._parts
        new = [
            (self._is(action, _FIRST + number), one.values[place])
            for number, one in enumerate((*parts.matched, *parts.inserts))
            if one.values and (old is not None or one.does == "insert")
        ]
        return self._first(new, old) if old is not None else self._first(new[:-1], new[-1][1])

    def _is(self, action: Any, number: int) -> Any:
        return self._plans.sql.catalyst.expressions.EqualTo(action, self._plans.number(number))

    def _first(self, cases: Sequence[tuple[Any, Any]], otherwise: Any) -> Any:
        """The value of the first condition that holds."""
        if_ = self._plans.sql.catalyst.expressions.If
        return reduce(lambda rest, case: if_(case[0], case[1], rest), reversed(cases), otherwise)

    def _source(self) -> JavaPlan:
        return self._plans.logical.Filter(counted(self._plans, self._metrics["asked"]), self._parts.rows)

    def _joined(self, how: str, target: JavaPlan, source: JavaPlan, condition: Any) -> JavaPlan:
        plans = self._plans
        type_ = getattr(getattr(plans.sql.catalyst.plans, f"{how}$"), "MODULE$")
        return plans.logical.Join(target, source, type_, plans.optional(condition), self._hint(how))

    def _hint(self, how: str) -> Any:
        """How to join: a bucketed source by hash, which reads and checks all of its rows; and a small one, where Spark
        would sort both."""
        hints = self._plans.logical
        if self._parts.source is None and (how != "FullOuter" or self._size() > LARGEST):
            return getattr(getattr(hints, "JoinHint$"), "MODULE$").NONE()
        by_hash = getattr(getattr(hints, "SHUFFLE_HASH$"), "MODULE$")
        told = self._plans.optional(hints.HintInfo(self._plans.optional(by_hash)))
        return hints.JoinHint(self._plans.nothing, told)

    def _size(self) -> int:
        rows = self._plans.frame(self._session, self._parts.rows)
        return int(str(rows._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))

    def _require_in_place(self, frame: Any, *, is_whole: bool) -> None:
        plans = self._plans
        nodes = list(plans.nodes(frame._jdf.queryExecution().executedPlan()))
        mine = [old for _, old in self._parts.columns]
        if any(kind(node) == _EXCHANGE and _has(node.outputSet(), mine) for node in nodes):
            raise UnlikeBucketsError("is not joined by its bucket columns alone")
        whole = any(kind(node) in _READ_WHOLE for node in nodes)
        if is_whole and self._parts.source is not None and not whole:
            raise UnlikeBucketsError("is joined in a way that does not read all rows of the source")


def source_leaf(plans: Plans, session: Any, parts: MergeParts, needed: Any) -> JavaPlan:
    """The leaf of a source that is read bucket by bucket, with what is needed of it."""
    if parts.source is None:
        raise TypeError("The source is not read bucket by bucket.")
    leaf, table = parts.source
    read = bucketed(plans, session, leaf, table, needed)
    return checked(plans, session, read, table.layout, table.split_from)


def _holds(plans: Plans, action: ClauseAction) -> Any:
    return plans.always if action.condition is None else action.condition


def _has(found: Any, attributes: Iterable[Any]) -> bool:
    return any(found.contains(one) for one in attributes)
