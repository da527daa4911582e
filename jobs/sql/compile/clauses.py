"""What a MERGE says, clause by clause, and what an upsert does with its rows: one form each for all dialects. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from sqlglot import exp

from lakewarden.jobs.sql.compile.change import Assignment

__all__ = ["Clauses", "MergeClause", "Placement", "Seen"]


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


@dataclass(frozen=True, kw_only=True)
class Placement:
    """The rows of `source` go into `columns` of the target, all of its columns where none are named.

    A row that is there, by `keys` (none: those that the table itself names) or where `on` holds, is updated by
    `assignments` if `condition` holds. `replaces`: it gets all that the source has. Neither: it stays as it is.
    `alias` is what the source is called in assignments and conditions.
    """

    columns: tuple[str, ...]
    source: exp.Expr
    alias: str = "excluded"
    keys: tuple[str, ...] = ()
    on: exp.Expr | None = None
    assignments: tuple[Assignment, ...] = ()
    replaces: bool = False
    whole: bool = False
    condition: exp.Expr | None = None

    @property
    def is_one_row(self) -> bool:
        """Whether the source is one row of VALUES, which has no duplicates."""
        return isinstance(self.source, exp.Values) and len(self.source.expressions) == 1
