"""From the text of a MERGE to a draft: Spark's own where queries keep Delta from running it, any of another dialect's
where one was chosen. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final

from sqlglot import exp

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.change import (
    Assignment,
    Relation,
    RowChange,
    assignments_of,
    refuse_default,
    with_joins,
)
from lakewarden.jobs.sql.compile.clauses import Clauses, MergeClause, Seen
from lakewarden.jobs.sql.compile.names.spelling import refuse_names_that_differ_in_case
from lakewarden.jobs.sql.compile.places import told_with_places, wrong_at, wrong_in, wrong_part
from lakewarden.jobs.sql.compile.precedence import refuse_unclear
from lakewarden.jobs.sql.compile.reading import (
    Draft,
    only_statement,
    outer_tokens,
    refuse_system,
    tables_read,
)
from lakewarden.jobs.sql.compile.shapes import RETURNING, leave_hints_out, refuse_item
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["is_merge", "merge_draft"]

_READ: Final = (Dialect.POSTGRES, Dialect.TSQL, Dialect.TERADATA)
"""Whose MERGE means something of its own; MySQL has none."""
_OF_CLAUSE: Final = frozenset({"matched", "source", "condition", "then", "this", "expression", "expressions"})
_ALONE: Final = frozenset({"this", "using", "on", "whens", "with_"})


def is_merge(text: str) -> bool:
    """Whether this is a MERGE, after a WITH or not."""
    words = [token.text.upper() for token in outer_tokens(text)]
    return bool(words) and (words[0] == "MERGE" or (words[0] == "WITH" and [")", "MERGE"] in _pairs(words)))


@told_with_places
def merge_draft(text: str, dialect: Dialect | None = None, *, always: bool = False) -> Draft | None:
    """Read it; None for what Spark runs as it is, with `always` only where nobody else can. Raises `UsageError`, with
    the place, for what another dialect has and that is not supported."""
    if not is_merge(text):
        return None
    if dialect not in _READ:
        return _draft(text, Dialect.SPARK, chosen=dialect is Dialect.SPARK, always=always)
    assert dialect is not None
    return _draft(text, dialect, chosen=True)


def _draft(text: str, dialect: Dialect, *, chosen: bool, always: bool = False) -> Draft | None:
    merge = _tree(text, dialect)
    if merge is None:
        return None
    own = dialect is Dialect.SPARK
    if own and not _is_supported(merge):
        return None
    for when in merge.args["whens"].expressions:
        _refuse_more(when)
    if own and not always and not _asks(merge):
        return None
    refuse_names_that_differ_in_case(merge, dialect)
    notes = leave_hints_out(merge)
    sources = tuple(with_joins(merge.args["using"]))
    if not own:
        _refuse(merge, sources)
    _refuse_unreachable(merge)
    each = sorted(
        _clauses(merge, text, sources), key=lambda one: list(Seen).index(one.seen)
    )  # as Spark wants them
    if not each:
        raise wrong_in(merge.args["whens"], "This MERGE does nothing.", hint="Say what becomes of the rows.")
    clauses = Clauses(on=merge.args["on"], each=tuple(each))
    refuse_unclear((node for part in clauses.parts() for node in part.find_all(exp.Binary, exp.In)), dialect)
    with_ = merge.args.get("with_")
    change = RowChange(
        relations=(Relation(item=merge.this), *sources),
        place=0,
        assignments=tuple(Assignment(column=exp.column("value"), value=part) for part in clauses.parts()),
        ctes=() if with_ is None else tuple(with_.expressions),
        notes=notes,
    )
    draft = Draft(
        text=text,
        dialects=(dialect,),
        change=change,
        tables=tables_read(change),
        merge=clauses,
        chosen=chosen,
    )
    refuse_system(draft)
    return draft


def _tree(text: str, dialect: Dialect) -> exp.Merge | None:
    """The MERGE; None for what Spark alone has to read."""
    try:
        tree = only_statement(text, dialect)
    except UsageError:
        if dialect is Dialect.SPARK:
            return None
        raise
    if isinstance(tree, exp.Merge):
        return tree
    if dialect is Dialect.SPARK:
        return None
    raise wrong_in(tree, f"{dialect} has no such MERGE.", hint="docs/sql.md has a table of the forms.")


def _asks(merge: exp.Merge) -> bool:
    """Whether a condition or a value holds a query, which Delta does not run."""
    return any(part.find(exp.Query) for part in (merge.args["on"], *merge.args["whens"].expressions))


def _is_supported(merge: exp.Merge) -> bool:
    """Whether a column more of the source is seen by nothing but the conditions and values that ask for it."""
    using = merge.args["using"]
    if not isinstance(using, exp.Table | exp.Subquery | exp.Values) or not using.alias_or_name:
        return False
    if not isinstance(merge.this, exp.Table) or set(_given(merge)) - _ALONE:
        return False
    with_ = merge.args.get("with_")
    if with_ is not None and with_.recursive:
        return False
    for when in merge.args["whens"].expressions:
        then = when.args["then"]
        if isinstance(then.this, exp.Star) or any(isinstance(one, exp.Star) for one in then.expressions):
            return False
        if isinstance(then, exp.Insert) and not isinstance(then.this, exp.Tuple):
            return False
        if when.args.get("source") and when.find(exp.Query) is not None:
            return False
    parts = (merge.args["on"], *merge.args["whens"].expressions)
    return not any(column.args.get("db") for part in parts for column in part.find_all(exp.Column))


def _given(merge: exp.Merge) -> list[str]:
    return [key for key, value in merge.args.items() if value]


def _refuse(merge: exp.Merge, sources: Sequence[Relation]) -> None:
    """Raise `UsageError` for clauses that Delta's MERGE has not."""
    if merge.args.get("returning"):
        raise wrong_in(
            merge.args["returning"], RETURNING, hint="Leave it out, and SELECT the rows afterwards."
        )
    target, with_ = merge.this, merge.args.get("with_")
    if not isinstance(target, exp.Table) or target.args.get("joins") or target.args.get("version"):
        raise wrong_in(target, "Only a table can be changed.", hint="Name the table itself.")
    for item in (source.item for source in sources):
        if isinstance(item, exp.Table) and not isinstance(item.this, exp.Identifier):
            hint = "Write USING (SELECT ...) AS s, or make a view of it."
            raise wrong_in(item, "A function is no table here.", hint=hint)
    for source in sources:
        refuse_item(source)
    if merge.args.get("on") is None or not isinstance(merge.args["on"], exp.Expr):
        raise wrong_in(
            sources[-1].item,
            "ON is missing behind it.",
            hint="Write ON; and JOIN u ON 1 = 1 for CROSS JOIN u.",
        )
    if with_ is not None and with_.recursive:
        raise wrong_in(
            with_,
            "WITH RECURSIVE is not supported in MERGE.",
            hint="Write its result to a table first.",
        )
    odd = next((key for key in _given(merge) if key not in _ALONE), None)
    if odd is not None:
        value = merge.args[odd]
        raise wrong_in(
            value if isinstance(value, exp.Expr) else None,
            "This clause of MERGE is not supported.",
            hint="Leave it out.",
        )
    for part in (merge.args["on"], *merge.args["whens"].expressions):
        long = next((column for column in part.find_all(exp.Column) if column.args.get("db")), None)
        if long is not None:
            raise wrong_in(
                long,
                "Columns of a MERGE are written without their database.",
                hint="Give the table an alias.",
            )


def _clauses(merge: exp.Merge, text: str, sources: Sequence[Relation]) -> Iterator[MergeClause]:
    left_alone: dict[Seen, list[exp.Expr]] = {seen: [] for seen in Seen}
    for when in merge.args["whens"].expressions:
        seen = Seen.BOTH if when.args["matched"] else Seen.TARGET if when.args.get("source") else Seen.SOURCE
        condition, then = _but_not(left_alone[seen], when.args.get("condition")), when.args["then"]
        found = MergeClause(seen=seen, condition=condition)
        if isinstance(then, exp.Update):
            found = MergeClause(seen=seen, condition=condition, sets=_sets(then))
        elif isinstance(then, exp.Insert):
            found = MergeClause(seen=seen, condition=condition, inserts=_inserts(then))
        elif then.name.upper() == "DO NOTHING":
            left_alone[seen].append(when.args.get("condition") or exp.true())
            continue
        elif then.name.upper() != "DELETE":
            raise wrong_at(
                _place_of(text, then.name),
                f"{then.name} is not supported here.",
                hint="Say it in the conditions of the clauses behind it: WHEN MATCHED AND NOT (...) THEN ...",
            )
        owners = {Seen.SOURCE: [one.item for one in sources], Seen.TARGET: [merge.this]}.get(seen, [])
        if len(owners) == 1:
            _say_whose(found, owners[0].alias_or_name)
        yield found


def _but_not(left_alone: Sequence[exp.Expr], condition: exp.Expr | None) -> exp.Expr | None:
    """A clause's condition behind clauses that do nothing: for rows that none of them is about."""
    beyond: list[exp.Expr] = [
        exp.not_(exp.Coalesce(this=exp.paren(one.copy()), expressions=[exp.false()])) for one in left_alone
    ]
    parts = [*beyond, *([] if condition is None else [exp.paren(condition.copy())])]
    return exp.and_(*parts, copy=False) if beyond else condition


def _refuse_unreachable(merge: exp.Merge) -> None:
    """Raise `UsageError` for a clause behind one of its kind that has no condition."""
    ended: set[tuple[object, bool]] = set()
    for when in merge.args["whens"].expressions:
        kind = (when.args["matched"], bool(when.args.get("source")))
        if kind in ended:
            raise wrong_in(
                when,
                "A clause before this one is for all of its rows: it has no condition.",
                hint="Give that one a condition, WHEN MATCHED AND ..., or leave this one out.",
            )
        if when.args.get("condition") is None:
            ended.add(kind)


def _refuse_more(when: exp.When) -> None:
    """Raise `UsageError` for a part of a clause that nothing here reads, such as Oracle's WHERE."""
    for part in (when, when.args["then"]):
        odd = next((key for key, value in part.args.items() if value and key not in _OF_CLAUSE), None)
        if odd is not None:
            raise wrong_part(
                part,
                odd,
                f"{odd.strip('_').upper()} behind THEN is not supported.",
                hint="Say it before THEN: WHEN MATCHED AND ... THEN ..., WHEN NOT MATCHED AND ... THEN ...",
            )


def _sets(then: exp.Update) -> tuple[Assignment, ...]:
    found = assignments_of(then)
    for one in found:
        if one.place is not None:
            raise wrong_in(
                one.value,
                "A query of several columns is not asked in a MERGE.",
                hint="Ask it in USING, and name its columns.",
            )
        refuse_default(one.value)
    return found


def _inserts(then: exp.Insert) -> tuple[Assignment, ...]:
    """Values by column; without names of columns they are numbered, and named when the table's are known."""
    given = then.expression
    if not isinstance(given, exp.Tuple):
        raise wrong_in(
            then,
            "INSERT in a MERGE has columns and VALUES here.",
            hint="Write INSERT (k, a) VALUES (s.k, s.a): a column that is left out has its default.",
        )
    for value in given.expressions:
        refuse_default(value)
    names = then.this.expressions if isinstance(then.this, exp.Tuple) else None
    if names is None:
        names = [exp.column("", table=str(number)) for number in range(len(given.expressions))]
    if len(names) != len(given.expressions) or not all(isinstance(name, exp.Column) for name in names):
        raise wrong_in(given, "There are not as many values as columns.", hint="Give each column one value.")
    return tuple(
        Assignment(column=name, value=value) for name, value in zip(names, given.expressions, strict=True)
    )


def _say_whose(clause: MergeClause, owner: str) -> None:
    """Only one of the two tables is seen in such a clause: columns without a table's name are its own."""
    parts = [clause.condition, *(one.value for one in clause.assignments)]
    for column in (one for part in parts if part is not None for one in part.find_all(exp.Column)):
        if not column.table and column.find_ancestor(exp.Query) is None:
            column.set("table", exp.to_identifier(owner))


def _place_of(text: str, words: str) -> int | None:
    first = words.split(" ", maxsplit=1)[0].upper()
    return next((token.start for token in outer_tokens(text) if token.text.upper() == first), None)


def _pairs(words: list[str]) -> list[list[str]]:
    return [words[place : place + 2] for place in range(len(words) - 1)]
