"""The rows of a table as a MERGE leaves them: a plan that joins, and counts on its way.

What happens to a row is a number: it stays, is none of the table's, or has its clause.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, Final

from lakewarden.jobs.session.delta.merges.merge_work import LARGEST, ClauseAction, MergeWork
from lakewarden.jobs.session.delta.merges.plan_pieces import column, counted, metric, used
from lakewarden.jobs.session.plans import JavaPlan, Plans

__all__ = ["COUNTED", "JoinedRows", "holds"]

COUNTED: Final = ("asked", "read", "update", "delete", "insert", "copied", "left", "odd")
"""Rows of the source, rows of the table that were read, what was done to them, those that were copied, those that were
left where they are, and changes in buckets that were to stay as they are."""
_MATCH: Final = "__lakewarden_match"
_ROW: Final = "__lakewarden_row"
_ACTION: Final = "__lakewarden_action"
_KEPT, _NONE, _FIRST = 0, 1, 2


class JoinedRows:
    """What one MERGE makes of its table; its counts are known when its rows have been read."""

    def __init__(self, plans: Plans, session: Any, work: MergeWork, *, by_hash: bool = False) -> None:
        self._by_hash = by_hash
        self._plans, self._session, self._work = plans, session, work
        self._metrics = {name: metric(plans, name) for name in COUNTED}

    @property
    def counts(self) -> Mapping[str, int]:
        """By `COUNTED`."""
        return {name: int(one.value()) for name, one in self._metrics.items()}

    def whole(self, target: JavaPlan) -> Any:
        """The rows of a table that is read as `target`, a leaf in the place of the statement's own."""
        plans = self._plans
        read = plans.logical.Filter(counted(plans, self._metrics["read"]), target)
        made = self._merged(frozenset({0}), frozenset())
        return plans.frame(self._session, plans.replaced(made, [(self._work.target, read)]))

    @property
    def is_sound(self) -> bool:
        """Whether each row of the table came out of the join once: none has several matches."""
        counts = self.counts
        known = sum(counts[name] for name in ("update", "delete", "copied", "left"))
        return counts["read"] == known and not counts["odd"]

    def _left(self) -> JavaPlan:
        """The rows that no match takes away."""
        parts, plans = self._work, self._plans
        joined = self._joined("LeftAnti", parts.merge.target(), self._source(), parts.condition)
        left = plans.logical.Filter(counted(plans, self._metrics["copied"]), joined)
        return plans.logical.Project(plans.scala_sequence(old for _, old in parts.columns), left)

    def _merged(self, anew: frozenset[int], stay: frozenset[int]) -> JavaPlan:
        parts, plans, logical = self._work, self._plans, self._plans.logical
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
        plans, parts = self._plans, self._work
        expressions = plans.sql.catalyst.expressions
        of_match, of_new = (
            self._first(
                [
                    (holds(plans, one), plans.number(_FIRST + first + place))
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
        plans, parts = self._plans, self._work
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
        parts = self._work
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
        return self._plans.logical.Filter(counted(self._plans, self._metrics["asked"]), self._work.rows)

    def _joined(self, how: str, target: JavaPlan, source: JavaPlan, condition: Any) -> JavaPlan:
        plans = self._plans
        type_ = getattr(getattr(plans.sql.catalyst.plans, f"{how}$"), "MODULE$")
        return plans.logical.Join(target, source, type_, plans.optional(condition), self._hint(how))

    def _hint(self, how: str) -> Any:
        """How to join: by hash where that is said, which reads all rows of the source; and a small one, where Spark
        would sort both."""
        hints = self._plans.logical
        if not self._by_hash and (how != "FullOuter" or self._size() > LARGEST):
            return getattr(getattr(hints, "JoinHint$"), "MODULE$").NONE()
        by_hash = getattr(getattr(hints, "SHUFFLE_HASH$"), "MODULE$")
        told = self._plans.optional(hints.HintInfo(self._plans.optional(by_hash)))
        return hints.JoinHint(self._plans.nothing, told)

    def _size(self) -> int:
        rows = self._plans.frame(self._session, self._work.rows)
        return int(str(rows._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))


def holds(plans: Plans, action: ClauseAction) -> Any:
    """The condition of a clause."""
    return plans.always if action.condition is None else action.condition
