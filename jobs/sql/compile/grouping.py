"""Joins behind a comma: in Spark, and for sqlglot, a comma binds as tightly as a JOIN, everywhere else less. Pure."""

from collections.abc import Collection, Mapping, Sequence

from sqlglot import exp

from lakewarden.jobs.sql.compile.change import is_cte
from lakewarden.jobs.sql.compile.places import wrong_in

__all__ = ["ask_in_where", "group_joins", "say_using"]


def group_joins(query: exp.Select) -> None:
    """Write `a, b RIGHT JOIN c` as `a, (b RIGHT JOIN c)`, so that it keeps its meaning in Spark. Inner and left joins
    mean the same either way, and stay as they are."""
    joins = query.args.get("joins") or []
    grouped: list[exp.Expr] = []
    group: list[exp.Expr] = []
    for join in joins:
        if _is_comma(join):
            grouped += _in_parentheses(group)
            group = [join]
        elif group:
            group.append(join)
        else:
            grouped.append(join)
    query.set("joins", [*grouped, *_in_parentheses(group)])


def ask_in_where(query: exp.Select) -> None:
    """Put what asks queries from ON of inner joins to WHERE, where it means the same: Spark runs no query there that
    depends on both sides."""
    joins = query.args.get("joins") or []
    for place, join in enumerate(joins):
        on = join.args.get("on")
        if on is None or on.find(exp.Query) is None or join.side or join.kind not in ("", "INNER"):
            continue
        if all(later.side not in ("RIGHT", "FULL") for later in joins[place + 1 :]):
            join.set("on", None)
            join.set("kind", "CROSS")
            query.where(on.copy(), copy=False)


def say_using(query: exp.Select, known: Mapping[str, Collection[str]], text: str) -> None:
    """Write `a, b JOIN c USING (k)` as `a, b JOIN c ON b.k = c.k` wherever it stands: USING knows nothing of what is
    before the comma. `known` are the columns of the tables. Raises `UsageError` where several tables have the column.

    Without a comma sqlglot does it.
    """
    for select in list(query.find_all(exp.Select)):
        joins = select.args.get("joins") or []
        before = [select.args["from_"].this] if joins else []
        chain, same = before, dict[str, list[exp.Expr]]()
        for join in joins:
            if _is_comma(join):
                chain, same = [], {}
            elif join.method == "NATURAL" and len(before) > 1:
                hint = "Write JOIN ... ON."
                raise wrong_in(text, join.this, "NATURAL JOIN of several tables is not supported.", hint=hint)
            conditions = []
            for name in join.args.get("using") or ():
                outer = any(one.side in ("RIGHT", "FULL") for one in joins[: joins.index(join)])
                owner = _owner(name, chain, {} if outer else same, known, text)
                same.setdefault(name.name, [owner]).append(join.this)
                conditions.append(_alike(owner, join.this, name))
                if any(map(_is_comma, joins)):
                    others = [select.args["from_"].this, *(one.this for one in joins)]
                    _say_whose(
                        name,
                        select,
                        join,
                        owner,
                        [one for one in others if one not in same[name.name]],
                        known,
                    )
            if conditions and any(map(_is_comma, joins)):
                if join.side == "FULL" or select.is_star:
                    hint = "Write ON with both names, and the names of columns."
                    raise wrong_in(text, join.this, "USING beside a comma is not supported here.", hint=hint)
                join.set("using", None)
                join.set("on", exp.and_(*conditions, copy=False))
            before.append(join.this)
            if chain is not before:
                chain.append(join.this)


def _owner(
    name: exp.Expr,
    chain: Sequence[exp.Expr],
    same: Mapping[str, Sequence[exp.Expr]],
    known: Mapping[str, Collection[str]],
    text: str,
) -> exp.Expr:
    """The table of a chain of joins whose column USING means; the first where USING has made several the same."""
    owners = [one for one in chain if len(chain) == 1 or name.name in _columns_of(one, known, name.name)]
    made = same.get(name.name, ())
    if not owners or (len(owners) > 1 and any(one not in made for one in owners)):
        hint = "Write ON with both names."
        raise wrong_in(text, name, f"Whose {name.name} USING means is not clear here.", hint=hint)
    return owners[0]


def _alike(one: exp.Expr, other: exp.Expr, name: exp.Expr) -> exp.Expr:
    sides = [exp.column(name.name, table=side.alias_or_name) for side in (one, other)]
    return exp.EQ(this=sides[0], expression=sides[1])


def _say_whose(
    name: exp.Expr,
    select: exp.Select,
    join: exp.Join,
    owner: exp.Expr,
    others: Sequence[exp.Expr],
    known: Mapping[str, Collection[str]],
) -> None:
    """Write the column with its table where it stands without one, unless another table has it, too."""
    if any(name.name in _columns_of(one, known, name.name) for one in others):
        return
    side = join.this if join.side == "RIGHT" else owner
    for column in select.find_all(exp.Column):
        if not column.table and column.name == name.name and column.find_ancestor(exp.Select) is select:
            column.set("table", exp.to_identifier(side.alias_or_name))


def _columns_of(item: exp.Expr, known: Mapping[str, Collection[str]], wanted: str) -> Collection[str]:
    """The columns of what is joined, in lower case; what cannot be known may have the one that is wanted."""
    names = [name.name.lower() for name in item.args["alias"].columns] if item.args.get("alias") else []
    if names:
        return names
    if isinstance(item, exp.Table) and not is_cte(item):
        return known.get(item.name, (wanted,))
    if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Query) and not item.this.is_star:
        return [name.lower() for name in item.this.named_selects]
    return (wanted,)


def _in_parentheses(group: list[exp.Expr]) -> list[exp.Expr]:
    """A comma with the joins behind it, as one thing that is read where its order matters."""
    if not any(join.args.get("side") in ("RIGHT", "FULL") for join in group):
        return group
    first, *others = group
    item = first.this.copy()
    item.set("joins", [join.copy() for join in others])
    return [exp.Join(this=exp.Subquery(this=item))]


def _is_comma(join: exp.Expr) -> bool:
    return not any(join.args.get(key) for key in ("on", "using", "side", "kind", "method"))
