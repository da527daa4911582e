"""USING and NATURAL by ON. Pure."""

from sqlglot import exp

from lakewarden.jobs.sql.compile.names.bindings import Bindings
from lakewarden.jobs.sql.compile.names.levels import Item, Level, Same
from lakewarden.jobs.sql.compile.places import wrong_in
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["is_comma", "say_using"]


def is_comma(join: exp.Expr) -> bool:
    """Whether it is just a comma."""
    return not any(join.args.get(key) for key in ("on", "using", "side", "kind", "method"))


def say_using(join: exp.Join, joined: Item, level: Level, bindings: Bindings, dialect: Dialect) -> None:
    """Write the ON of a join of `joined` with the last chain of a level: USING knows nothing of what is before a
    comma."""
    chain = level.chains[-1]
    names = [one.name for one in join.args.get("using") or ()]
    if join.method == "NATURAL":
        if len(level.items) > 1:
            hint = "Write JOIN ... ON."
            raise wrong_in(join.this, "NATURAL JOIN of several tables is not supported.", hint=hint)
        names = [name for name in chain[0].columns if name in joined.columns]
        join.set("method", None)
    if dialect is Dialect.MYSQL:
        names.sort(key=[name for item in chain for name in item.columns].index)
    joins = level.select.args["joins"]
    outer = any(one.side in ("RIGHT", "FULL") for one in joins[: joins.index(join)])
    conditions, made = [], []
    for name in names:
        owners = [item for item in chain if name in item.columns]
        same = level.same_as(name, owners[0]) if owners else ()
        if name not in joined.columns or not owners or any(one not in same for one in owners):
            hint = "Write ON with both names."
            raise wrong_in(join.this, f"Whose {name} USING means is not clear here.", hint=hint)
        left = bindings.column(name, same if outer else same[:1], level)
        conditions.append(exp.EQ(this=left, expression=bindings.column(name, (joined,), level)))
        made.append(Same(name=name, items=(*same, joined)))
    if names:
        join.set("using", None)
        join.set("on", exp.and_(*conditions, copy=False))
    level.same = [*made, *(one for one in level.same if one.name not in names or one.items[0] not in chain)]
