"""What a MERGE says, clause by clause: one form for all dialects. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from sqlglot import exp

from lakewarden.jobs.sql.compile.change import Assignment

__all__ = ["Clauses", "MergeClause", "Seen"]


class Seen(StrEnum):
    """Which rows a clause is about, and so whose columns it may name."""

    BOTH = "WHEN MATCHED"
    SOURCE = "WHEN NOT MATCHED"
    TARGET = "WHEN NOT MATCHED BY SOURCE"


@dataclass(frozen=True, kw_only=True)
class MergeClause:
    """Rows that are `seen` and satisfy `condition` are updated by `sets`, added with `inserts`, or else deleted."""

    seen: Seen
    condition: exp.Expr | None = None
    sets: tuple[Assignment, ...] = ()
    inserts: tuple[Assignment, ...] = ()

    @property
    def assignments(self) -> tuple[Assignment, ...]:
        """What columns get."""
        return self.sets or self.inserts


@dataclass(frozen=True, kw_only=True)
class Clauses:
    """All of them, in their order, behind `on`."""

    on: exp.Expr
    each: tuple[MergeClause, ...]

    def parts(self) -> Iterator[exp.Expr]:
        """Every condition and every value, in a fixed order."""
        yield self.on
        for clause in self.each:
            if clause.condition is not None:
                yield clause.condition
            for one in clause.assignments:
                yield one.value
