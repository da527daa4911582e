"""Joins behind a comma: in Spark a comma binds as tightly as a JOIN, everywhere else less. Pure."""

from sqlglot import exp

from lakewarden.jobs.sql.compile.names.joins import is_comma

__all__ = ["ask_in_where", "group_joins"]


def group_joins(query: exp.Select) -> None:
    """Write `a, b RIGHT JOIN c` as `a, (b RIGHT JOIN c)`, so that it keeps its meaning in Spark. Inner and left joins
    mean the same either way, and stay as they are."""
    joins = query.args.get("joins") or []
    grouped: list[exp.Expr] = []
    group: list[exp.Expr] = []
    for join in joins:
        if is_comma(join):
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


def _in_parentheses(group: list[exp.Expr]) -> list[exp.Expr]:
    """A comma with the joins behind it, as one thing that is read where its order matters."""
    if not any(join.args.get("side") in ("RIGHT", "FULL") for join in group):
        return group
    first, *others = group
    item = first.this.copy()
    item.set("joins", [join.copy() for join in others])
    return [exp.Join(this=exp.Subquery(this=item))]
