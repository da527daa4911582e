"""Which column is of which item, kept while the statement is resolved: what is copied stays bound. Pure."""

from sqlglot import exp

from lakewarden.jobs.sql.compile.names.levels import CommonTable, Item, Level, Use

__all__ = ["Bindings"]


class Bindings:
    """By the identity of nodes, which all are parts of the statement."""

    def __init__(self) -> None:
        self.uses: dict[int, Use] = {}
        self.items: dict[int, Item] = {}
        self.named: dict[int, CommonTable] = {}

    def with_query(self, node: exp.CTE, columns: tuple[str, ...]) -> CommonTable:
        """A query behind WITH."""
        found = CommonTable(nodes=[node], columns=columns)
        self.named[id(node)] = found
        return found

    def item(self, node: exp.Expr, name: str, columns: tuple[str, ...]) -> Item:
        """What FROM reads at a node."""
        found = Item(name=name, columns=columns, nodes=[node])
        self.items[id(node)] = found
        return found

    def bind(self, column: exp.Column, item: Item, level: Level) -> exp.Column:
        """Say whose a column is that stands in the query of a level."""
        table = column.args.get("table") or exp.Identifier()  # whose place is the column's
        table.set("this", item.name)
        table.set("quoted", True)
        column.set("table", table)
        self.uses[id(column)] = Use(column=column, item=item, level=level)
        return column

    def column(self, name: str, items: tuple[Item, ...], level: Level) -> exp.Expr:
        """A new column of an item; of several that USING has made one, whichever has it."""
        found = [self.bind(exp.column(name, quoted=True), item, level) for item in items]
        return found[0] if len(found) == 1 else exp.Coalesce(this=found[0], expressions=list(found[1:]))

    def copied(self, expression: exp.Expr) -> exp.Expr:
        """A copy whose columns are of the same items."""
        copy = expression.copy()
        for old, new in zip(list(expression.walk()), list(copy.walk()), strict=True):
            use = self.uses.get(id(old))
            if use is not None and isinstance(new, exp.Column):
                self.uses[id(new)] = Use(column=new, item=use.item, level=use.level)
            for held in (self.items.get(id(old)), self.named.get(id(old))):
                if held is not None:
                    held.nodes.append(new)
        return copy
