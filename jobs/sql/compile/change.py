"""An UPDATE or DELETE in one form, whichever dialect it came from. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlglot import exp

from lakewarden.jobs.sql.compile.places import wrong_in
from lakewarden.jobs.sql.compile.values import TableName

__all__ = [
    "EXACT",
    "MAYBE_REAL",
    "Assignment",
    "Relation",
    "RowChange",
    "always_there",
    "assignments_of",
    "is_cte",
    "name_of",
    "refuse_default",
    "refuse_outer_rows",
    "tables_of",
    "with_joins",
]

EXACT: Final = "exact"
"""Marks the cast that tells sqlglot that 1.5 is a decimal: it takes it for floating-point."""
MAYBE_REAL: Final = "maybe real"
"""Marks a cast to FLOAT in a statement that says REAL somewhere, which most parsers take for FLOAT."""


@dataclass(frozen=True, kw_only=True)
class Relation:
    """One thing that is read: a table, a query in parentheses, or VALUES."""

    item: exp.Expr
    join: exp.Join | None = None
    """How it is joined to those before it, None for the first and after a comma."""

    @property
    def name(self) -> str:
        """What its columns are qualified with, in lower case."""
        return str(self.item.alias_or_name).lower()

    @property
    def inner(self) -> bool:
        """Whether the relation takes part by conditions alone: then its order does not matter."""
        if self.join is None:
            return True
        return not self.join.side and self.join.kind in ("", "INNER", "CROSS")


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """`column = value`."""

    column: exp.Column
    value: exp.Expr
    place: int | None = None
    """Where the value is a query of several columns, which of them."""


@dataclass(frozen=True, kw_only=True)
class RowChange:
    """Rows of a target, found among those that are read, are updated or deleted."""

    relations: tuple[Relation, ...]
    """What is read."""
    place: int
    """Which of the relations is the target."""
    assignments: tuple[Assignment, ...] = ()
    """None: the rows are deleted."""
    where: exp.Expr | None = None
    """Which rows."""
    ctes: tuple[exp.CTE, ...] = ()
    notes: tuple[str, ...] = ()
    """What was left out."""
    unowned: bool = False
    """Which of the relations is the target is told by the columns that they have (databases.py)."""

    @property
    def target(self) -> exp.Table:
        """The table that is changed."""
        item = self.relations[self.place].item
        assert isinstance(item, exp.Table)
        return item

    @property
    def stands_alone(self) -> bool:
        """Whether commas alone, no joins, are between the target and everything else."""
        after = self.relations[self.place + 1 : self.place + 2]
        return self.relations[self.place].join is None and all(one.join is None for one in after)

    @property
    def joins_inside(self) -> bool:
        """Whether all joins are inner ones."""
        return all(relation.inner for relation in self.relations)

    @property
    def is_plain(self) -> bool:
        """Whether nothing is read but the target itself."""
        return len(self.relations) == 1 and not self.ctes and not any(self.parts(exp.Query))

    def parts(self, *kinds: type[exp.Expr]) -> Iterator[exp.Expr]:
        """All nodes of these kinds, in the order in which they are written, roughly."""
        for cte in self.ctes:
            yield from cte.find_all(*kinds)
        for relation in self.relations:
            yield from relation.item.find_all(*kinds)
            on = relation.join and relation.join.args.get("on")
            if on:
                yield from on.find_all(*kinds)
        for assignment in self.assignments:
            yield from assignment.column.find_all(*kinds)
            yield from assignment.value.find_all(*kinds)
        if self.where is not None:
            yield from self.where.find_all(*kinds)


def with_joins(base: exp.Expr) -> Iterator[Relation]:
    """A FROM item and what is joined to it, one after the other. Takes the joins out of `base`."""
    joins = base.args.get("joins") or ()
    base.set("joins", None)
    yield from with_joins(base.this) if _is_join(base) else [Relation(item=base)]
    for join in joins:
        is_comma = not join.args.get("on") and not join.args.get("using") and not join.side and not join.kind
        one = Relation(item=join.this, join=None if is_comma and not join.method else join)
        yield from _together(one) if _is_join(join.this) or join.this.args.get("joins") else [one]


def _is_join(item: exp.Expr) -> bool:
    """Whether it is a join, or a table, in parentheses that have no name."""
    inside = isinstance(item, exp.Subquery) and isinstance(item.this, exp.Table | exp.Subquery)
    return inside and not any(value for key, value in item.args.items() if key not in ("this", "joins"))


def _together(joined: Relation) -> Iterator[Relation]:
    """A join that is joined as a whole: one after the other, with both conditions behind the last."""
    first, *more = with_joins(joined.item.this if _is_join(joined.item) else joined.item)
    if joined.join is None or not more:
        yield from (replace(first, join=joined.join), *more)
        return
    joins = [one.join for one in (joined, *more) if one.join is not None]
    if not all(one.inner for one in (joined, *more)) or any(
        one.method or one.args.get("using") for one in joins
    ):
        raise wrong_in(
            first.item,
            "A join that is joined as a whole is read here where all of it is JOIN with ON.",
            hint="Join one by one, or write it as a query: JOIN (SELECT ... FROM a JOIN b ON ...) AS q ON ...",
        )
    last = more[-1].join or exp.Join(kind="CROSS")
    asked = [one.args["on"].copy() for one in (last, joined.join) if one.args.get("on")]
    yield from (replace(first, join=exp.Join(kind="CROSS")), *more[:-1])
    yield replace(more[-1], join=exp.Join(on=exp.and_(*asked, copy=False)) if asked else last)


def always_there(relations: tuple[Relation, ...], place: int) -> tuple[Relation, ...]:
    """The same for the rows of the target: where it stands behind LEFT JOIN, rows without it do not matter."""
    target = relations[place]
    if target.join is None or target.join.side != "LEFT":
        return relations
    join = target.join.copy()
    join.set("side", None)
    join.set("kind", None)
    return (*relations[:place], replace(target, join=join), *relations[place + 1 :])


def refuse_outer_rows(change: RowChange) -> None:
    """Raise `UsageError` for a RIGHT or FULL JOIN with the target, which makes rows without it."""
    for relation in () if change.stands_alone else change.relations:
        if relation.join is not None and relation.join.side in ("RIGHT", "FULL"):
            raise wrong_in(
                relation.item,
                f"{relation.join.side} JOIN with the table that is changed makes rows without it.",
                hint="Write LEFT JOIN, or JOIN, beginning with the table that is changed.",
            )


def assignments_of(tree: exp.Expr) -> tuple[Assignment, ...]:
    """What a statement's SET says."""
    found: list[Assignment] = []
    for one in tree.expressions:
        if not isinstance(one, exp.EQ):
            raise wrong_in(one, "Expected an assignment.", hint="Write SET column = value.")
        match one.this, one.expression:
            case exp.Column() as column, value:
                found.append(Assignment(column=column, value=value))
            case (exp.Tuple() | exp.Paren()) as columns, value:
                found += _row_assignments(columns, value)
            case other, _:
                raise wrong_in(
                    other,
                    "Only whole columns are set.",
                    hint="Build the new value of the column: struct(...), array(...).",
                )
    return tuple(found)


def _row_assignments(columns: exp.Expr, value: exp.Expr) -> list[Assignment]:
    """`(a, b) = (x, y)` and `(a, b) = (SELECT x, y ...)`, which is asked once for all of its columns."""
    names = columns.expressions if isinstance(columns, exp.Tuple) else [columns.this]
    inner = value.unnest() if isinstance(value, exp.Paren | exp.Subquery) else value
    is_row = isinstance(inner, exp.Tuple) or (
        isinstance(inner, exp.Anonymous) and inner.name.upper() == "ROW"
    )
    asked = isinstance(inner, exp.Select) and len(names) > 1
    values: list[exp.Expr]
    if isinstance(inner, exp.Select) and inner.is_star:
        raise wrong_in(
            inner.expressions[0],
            "How many columns * gives is not known here.",
            hint="Name them: SET (a, b) = (SELECT x, y FROM ...).",
        )
    if isinstance(inner, exp.Select):
        values = [exp.Subquery(this=inner)] * len(inner.expressions)
    else:
        values = list(inner.expressions) if is_row else [inner]
    if len(values) != len(names) or not all(isinstance(name, exp.Column) for name in names):
        raise wrong_in(
            columns, "There are not as many values as columns.", hint="Give each column one value."
        )
    return [
        Assignment(column=name, value=one, place=place if asked else None)
        for place, (name, one) in enumerate(zip(names, values, strict=True))
        if isinstance(name, exp.Column)
    ]


def refuse_default(value: exp.Expr) -> None:
    """Raise `UsageError` for the word DEFAULT in the place of a value."""
    name = value.this if isinstance(value, exp.Column) and not value.table else value
    quoted = name.args.get("quoted")
    if isinstance(name, exp.Identifier | exp.Var) and not quoted and name.name.upper() == "DEFAULT":
        raise wrong_in(
            name,
            "A column's default is not known here.",
            hint="Write the value itself, which DESCRIBE TABLE EXTENDED shows; where rows are added, leave "
            "the column out.",
        )


def name_of(table: exp.Table) -> TableName:
    """The table's name as it is written."""
    return TableName(parts=tuple(part.name for part in table.parts))


def tables_of(change: RowChange) -> tuple[exp.Table, ...]:
    """All tables that are named, without the names of common table expressions."""
    known = [cte.alias.lower() for cte in change.ctes]
    found: list[exp.Table] = []
    for place, cte in enumerate(change.ctes):
        found += _tables_in(cte, known[:place])
    for part in replace(change, ctes=()).parts(exp.Table):
        found += _tables_in(part, known)
    return tuple(found)


def is_cte(table: exp.Table) -> bool:
    """Whether it is a common table expression that is named: one of a WITH around it, of those before its own."""
    below: exp.Expr = table
    above = table.parent
    while above is not None and not table.db:
        inside = isinstance(above, exp.With)
        with_ = above if inside else above.args.get("with_")
        if with_ is not None and with_ is not below:
            ctes = with_.expressions
            before = ctes[: ctes.index(below)] if inside and not with_.args.get("recursive") else ctes
            if table.name.lower() in [cte.alias.lower() for cte in before]:
                return True
        below, above = above, above.parent
    return False


def _tables_in(part: exp.Expr, known: Sequence[str]) -> list[exp.Table]:
    return [
        table
        for table in part.find_all(exp.Table)
        if isinstance(table, exp.Table)
        and (table.db or table.name.lower() not in known)
        and not is_cte(table)
    ]
