"""Rows that are placed in a table, and what becomes of those that are there: one form for all dialects. Pure."""

from dataclasses import dataclass

from sqlglot import exp

from lakewarden.jobs.sql.compile.change import Assignment

__all__ = ["Placement"]


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
