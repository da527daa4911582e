"""The rows of a table as a MERGE leaves them: a plan that joins, and counts on its way.

What happens to a row is a number: it stays, is none of the table's, or has its clause.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from functools import reduce
from typing import Any, Final

from lakewarden.jobs.session.delta.merges.merge_work import LARGEST, ClauseAction, MergeWork
from lakewarden.jobs.session.delta.merges.plan_pieces import column, counted, metric, used
from lakewarden.jobs.session.plans import JavaPlan, Plans

__all__ = ["COUNTED", "JoinedRows", "holds"]

COUNTED: Final = ("asked", "read", "update", "delete", "insert", "none", "copied", "left", "odd")
"""Rows of the source, rows of the table that were read, what was done to them, rows of the source that match none and
are not inserted, rows that were copied, those that were left where they are, and changes in buckets that were to stay
as they are."""
_MATCH: Final = "__lakewarden_match"
_ROW: Final = "__lakewarden_row"
_ACTION: Final = "__lakewarden_action"
_WRITE: Final = ("update", "insert")
"""What clauses do that write rows."""
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

    @property
    def has_matches(self) -> bool:
        """Whether a row of the source has one."""
        counts = self.counts
        return counts["asked"] != counts["insert"] + counts["none"]

    def _left(self) -> JavaPlan:
        """The rows that no match takes away."""
        parts, plans = self._work, self._plans
        joined = self._joined("LeftAnti", parts.merge.target(), self._source(), parts.condition)
        left = plans.logical.Filter(counted(plans, self._metrics["copied"]), joined)
        return plans.logical.Project(plans.scala_sequence(old for _, old in parts.columns), left)

    def _merged(self, anew: frozenset[int], stay: frozenset[int]) -> JavaPlan:
        needed = self._needed()
        acted, action = self._acted([old for _, old in self._work.columns if anew or needed.contains(old)])
        told = self._plans.logical.Filter(self._told(action, anew, stay), acted)
        if anew:
            return self._values(told, action, _WRITE, copies=True)
        return self._values(told, action, ["insert"])  # only new rows come out

    def _marked(self, mark: Callable[[JavaPlan], JavaPlan], places: Sequence[Any]) -> JavaPlan:
        """The rows that are written where no row is copied: each that changes is marked by a node that is put above it
        and knows where it was by these columns of the table."""
        parts, plans, logical = self._work, self._plans, self._plans.logical
        if parts.only_deletes:
            joined = self._joined("LeftSemi", parts.merge.target(), self._source(), parts.condition)
            gone = logical.Filter(counted(plans, self._metrics["delete"]), joined)
            return mark(logical.Project(plans.scala_sequence(places), gone))
        needed = self._needed()
        acted, action = self._acted([*(old for _, old in parts.columns if needed.contains(old)), *places])
        told = self._told(action, frozenset({0}), frozenset(), is_marked=True)
        marked = mark(logical.Filter(told, acted))
        if not self.writes:
            return marked
        gone = [place for place, one in enumerate(parts.matched) if one.does == "delete"]
        if gone:
            numbers = plans.scala_sequence(plans.number(_FIRST + place) for place in gone)
            expressions = plans.sql.catalyst.expressions
            marked = logical.Filter(expressions.Not(expressions.In(action, numbers)), marked)
        return self._values(marked, action, _WRITE)

    @property
    def writes(self) -> bool:
        """Whether a clause writes rows."""
        return any(one.does in _WRITE for one in (*self._work.matched, *self._work.inserts))

    def _needed(self) -> Any:
        """What is asked of the columns, and of the source."""
        actions = (*self._work.matched, *self._work.inserts)
        asked = [self._work.condition, *(one.condition for one in actions if one.condition is not None)]
        return used(self._plans, [*asked, *(value for one in actions for value in one.values)])

    def _acted(self, mine: Sequence[Any]) -> tuple[JavaPlan, Any]:
        """The rows of the join with these columns of the table, and the column that says what happens to each."""
        parts, plans, logical = self._work, self._plans, self._plans.logical
        source, needed = self._source(), self._needed()
        taken = [one for one in plans.sequence(source.output()) if needed.contains(one)]
        match, row = column(plans, _MATCH, plans.always), column(plans, _ROW, plans.always)
        joined = self._joined(
            "FullOuter" if parts.inserts else "LeftOuter",
            logical.Project(plans.scala_sequence((*mine, row)), parts.merge.target()),
            logical.Project(plans.scala_sequence((*taken, match)), source),
            parts.condition,
        )
        action = column(plans, _ACTION, self._action(row.toAttribute(), match.toAttribute()))
        acted = logical.Project(plans.scala_sequence((*mine, *taken, action)), joined)
        return acted, action.toAttribute()

    def _values(self, plan: JavaPlan, action: Any, does: Container[str], *, copies: bool = False) -> JavaPlan:
        """What is in the columns of the rows that come out, by the clauses that do one of these; others, if there are
        any, are `copies` of rows of the table."""
        plans, parts = self._plans, self._work
        clauses = [
            (self._is(action, _FIRST + number), one.values)
            for number, one in enumerate((*parts.matched, *parts.inserts))
            if one.does in does
        ]
        values = [
            column(
                plans,
                name,
                self._value([(told, new[place]) for told, new in clauses], old if copies else None),
            )
            for place, (name, old) in enumerate(parts.columns)
        ]
        return plans.logical.Project(plans.scala_sequence(values), plan)

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

    def _told(
        self, action: Any, anew: frozenset[int], stay: frozenset[int], *, is_marked: bool = False
    ) -> Any:
        """Whether a row comes out, counted by what happens to it. Where those that change are marked, they come out to
        be so, also those that go, and the others stay where they are."""
        plans, parts = self._plans, self._work
        expressions = plans.sql.catalyst.expressions
        never = expressions.Literal.FalseLiteral()
        goes = plans.always if is_marked else never
        comes = {"update": plans.always, "insert": plans.always, "delete": goes}

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

        left = tells(never, "left")
        told = [
            (_KEPT, left if is_marked else where(tells(plans.always, "copied"), left)),
            (_NONE, tells(never, "none")),
        ]
        for place, one in enumerate((*parts.matched, *parts.inserts)):
            here = tells(comes[one.does], one.does)
            told.append((_FIRST + place, here if one.does == "insert" else where(here, tells(never, "odd"))))
        return self._first([(self._is(action, number), what) for number, what in told], never)

    def _value(self, cases: Sequence[tuple[Any, Any]], old: Any | None) -> Any:
        return self._first(cases[:-1], cases[-1][1]) if old is None else self._first(cases, old)

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
