"""What a query sees: what its FROM reads, the results of its SELECT list, and the queries around it. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from lakewarden.jobs.sql.compile.names.rules import QueryClause

__all__ = ["CommonTable", "Item", "Level", "Same", "Use"]


@dataclass(kw_only=True, eq=False)
class Item:
    """A table, a query or VALUES in FROM, under its name there."""

    name: str
    columns: tuple[str, ...]
    nodes: list[exp.Expr]
    """Where it stands, several times where an expression was copied."""


@dataclass(kw_only=True, eq=False)
class CommonTable:
    """A query behind WITH: where it stands, its columns, and what reads it."""

    nodes: list[exp.Expr]
    columns: tuple[str, ...]
    readers: list[Item] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, eq=False)
class Same:
    """Columns of one name that USING has made one."""

    name: str
    items: tuple[Item, ...]


@dataclass(kw_only=True, eq=False)
class Level:
    """A query, as far as its names are known by now."""

    select: exp.Select
    outer: "Level | None" = None
    clause: QueryClause = QueryClause.LIST
    """Where its own names are looked up."""
    chains: list[list[Item]] = field(default_factory=list)
    """What its FROM reads, a list for what stands between two commas."""
    same: list[Same] = field(default_factory=list)
    results: dict[str, list[exp.Expr]] = field(default_factory=dict)
    """What the SELECT list gives under which name."""

    @property
    def items(self) -> list[Item]:
        """All that FROM reads."""
        return [item for chain in self.chains for item in chain]

    def having(self, column: str) -> list[Item]:
        """The items with such a column, once for each time; of those that USING has made one the first."""
        found = [item for item in self.items for name in item.columns if name == column]
        return [item for item in found if self.same_as(column, item)[0] is item]

    def same_as(self, column: str, item: Item) -> tuple[Item, ...]:
        """The items whose column USING has made one with that of an item: the item alone, if there are no others."""
        made = (one.items for one in self.same if one.name == column and item in one.items)
        return next(made, (item,))

    def called(self, name: str) -> list[Item]:
        """The items of this name."""
        return [item for item in self.items if item.name == name]

    def selected(self) -> Iterator[tuple[str, tuple[Item, ...]]]:
        """What * stands for: of each chain what USING has made one, then the other columns of each item."""
        for chain in self.chains:
            yield from ((one.name, one.items) for one in self.same if one.items[0] in chain)
            for item in chain:
                yield from ((name, (item,)) for name in item.columns if len(self.same_as(name, item)) == 1)


@dataclass(kw_only=True, eq=False)
class Use:
    """A column that is qualified: of which item, and in which query it stands."""

    column: exp.Column
    item: Item
    level: Level
