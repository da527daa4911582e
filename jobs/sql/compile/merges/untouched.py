"""Pairs of a row of the source and one of the target that no WHEN MATCHED is about: Delta counts each as a match, where
SQL counts none. Pure."""

from typing import Final

from sqlglot import exp

from lakewarden.jobs.sql.compile.clauses import Clauses, Seen

__all__ = ["KEY", "THERE", "without_untouched"]

KEY: Final = "lakewarden_t"
"""How the columns of the source begin by which it finds a row of the target again."""
THERE: Final = "lakewarden_there"
"""The column that each row of the target has."""
_TOUCHED: Final = "lakewarden_touched"
_NUMBER: Final = "lakewarden_number"
_PAIRS: Final = "lakewarden_pairs"


def without_untouched(select: exp.Select, target: str, clauses: Clauses) -> exp.Select:
    """The source, joined with the target, without such pairs. Where a clause is about rows without a match, a row of
    the target that has no other pair keeps one of these."""
    there = exp.column(THERE, table=target, quoted=True)
    touching = [one.condition for one in clauses.each if one.seen is Seen.BOTH]
    touched = exp.or_(
        there.is_(exp.null()), *(exp.true() if one is None else one.copy() for one in touching), copy=False
    )
    if all(clause.seen is not Seen.TARGET for clause in clauses.each):
        return select.where(touched)
    pairs = select.select(exp.alias_(there, THERE), exp.alias_(touched, _TOUCHED))
    keys = [exp.column(one.alias) for one in select.expressions if one.alias.startswith(KEY)]
    touched_first = exp.Ordered(this=exp.column(_TOUCHED), desc=True, nulls_first=False)
    number = exp.Window(
        this=exp.RowNumber(),
        partition_by=[*keys, exp.column(THERE)],
        order=exp.Order(expressions=[touched_first]),
    )
    numbered = exp.select("*", exp.alias_(number, _NUMBER)).from_(pairs.subquery(_PAIRS))
    kept = exp.or_(exp.column(_TOUCHED), exp.column(_NUMBER).eq(exp.Literal.number(1)))
    return exp.select("*").from_(numbered.subquery(_PAIRS)).where(kept)
