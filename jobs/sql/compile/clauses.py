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
    """Rows are updated, added, or else deleted."""

    seen: Seen
    """Of which kind they are."""
    condition: exp.Expr | None = None
    """What they satisfy."""
    sets: tuple[Assignment, ...] = ()
    """By these they are updated."""
    inserts: tuple[Assignment, ...] = ()
    """With these they are added."""

    @property
    def assignments(self) -> tuple[Assignment, ...]:
        """What columns get."""
        return self.sets or self.inserts


@dataclass(frozen=True, kw_only=True)
class Clauses:
    """All of them, in their order."""

    on: exp.Expr
    """What stands before them."""
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
    """The rows of a source go into columns of the target. One that is there stays as it is where nothing says what it
    gets."""

    columns: tuple[str, ...]
    """All columns of the target where none are named."""
    source: exp.Expr
    alias: str = "excluded"
    """What the source is called in assignments and conditions."""
    keys: tuple[str, ...] = ()
    """By these a row is there; none: those that the table itself names."""
    on: exp.Expr | None = None
    """Or where this holds."""
    assignments: tuple[Assignment, ...] = ()
    """By these a row that is there is updated."""
    replaces: bool = False
    """It gets all that the source has."""
    whole: bool = False
    condition: exp.Expr | None = None
    """Where this holds."""

    @property
    def is_one_row(self) -> bool:
        """Whether the source is one row of VALUES, which has no duplicates."""
        return isinstance(self.source, exp.Values) and len(self.source.expressions) == 1
