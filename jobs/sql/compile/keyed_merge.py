"""A MERGE as a value, and the choice among several rows with one key: every form of a keyed change becomes SQL here.
Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lakewarden.jobs.sql.compile.clauses import Seen

__all__ = ["KeyedMerge", "MergeAction", "lacks_key", "rank"]


@dataclass(frozen=True, kw_only=True, slots=True)
class MergeAction:
    """What one clause does; all of it is SQL."""

    seen: Seen
    condition: str = ""
    sets: Sequence[tuple[str, str]] = ()
    """Columns and their values; without them the rows are deleted."""

    def sql(self) -> str:
        """The clause."""
        when = f"{self.seen} AND {self.condition}" if self.condition else self.seen.value
        if not self.sets:
            return f"{when} THEN DELETE"
        if self.seen is Seen.SOURCE:
            columns, values = (", ".join(part) for part in zip(*self.sets, strict=True))
            return f"{when} THEN INSERT ({columns}) VALUES ({values})"
        return f"{when} THEN UPDATE SET {', '.join(f'{column} = {value}' for column, value in self.sets)}"


@dataclass(frozen=True, kw_only=True, slots=True)
class KeyedMerge:
    """A MERGE; all of it is SQL."""

    target: str
    """The table and its alias."""
    source: str
    """A table or a query in parentheses, and its alias."""
    matches: Sequence[str]
    """Conditions that all hold for a match; none: every row of the source matches every row of the target."""
    actions: Sequence[MergeAction]
    """In Spark's order: matched, not matched, not matched by the source."""
    evolves: bool = False
    """The table gets columns that it lacks, and wider types."""

    def sql(self) -> str:
        """The statement."""
        evolving = " WITH SCHEMA EVOLUTION" if self.evolves else ""
        actions = " ".join(action.sql() for action in self.actions)
        on = " AND ".join(self.matches) or "TRUE"
        return f"MERGE{evolving} INTO {self.target} USING {self.source} ON {on} {actions}"


def rank(keys: Sequence[str], *, last_by: str | None = None, smallest: Sequence[str] = ()) -> str:
    """1 for the rows that count among those with the same keys, all of it SQL: those with the largest `last_by`, which
    may be several; or the one with the `smallest` values."""
    within = f"PARTITION BY {', '.join(keys)} " if keys else ""
    if last_by is not None:
        return f"RANK() OVER ({within}ORDER BY {last_by} DESC NULLS LAST)"
    return f"ROW_NUMBER() OVER ({within}ORDER BY {', '.join(smallest)})"


def lacks_key(keys: Sequence[str]) -> str:
    """Whether a row has NULL in one of the keys (SQL), and so matches nothing in an SQL comparison."""
    return " OR ".join(f"{key} IS NULL" for key in keys)
