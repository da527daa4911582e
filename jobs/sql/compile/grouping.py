"""Joins behind a comma, in parentheses: in Spark a comma binds as tightly as a JOIN, everywhere else less. Pure."""

from sqlglot import exp

__all__ = ["group_joins"]


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
