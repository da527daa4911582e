"""From the text of an upsert, in whichever dialect has its form, to a draft. Pure.

What sqlglot does not read is put into words that it does, at the same places: errors point into the user's own text.
"""

from collections.abc import Sequence
from typing import Final

from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.change import Relation, RowChange, assignments_of, refuse_default
from lakewarden.jobs.sql.compile.clauses import Placement
from lakewarden.jobs.sql.compile.dialects import PARSERS
from lakewarden.jobs.sql.compile.names.spelling import refuse_names_that_differ_in_case
from lakewarden.jobs.sql.compile.places import told_with_places, wrong_at, wrong_in
from lakewarden.jobs.sql.compile.reading import (
    Draft,
    only_statement,
    outer_tokens,
    refuse_run_comments,
    refuse_system,
    refuse_unclear_order,
    tables_read,
    tokens_of_any,
)
from lakewarden.jobs.sql.compile.refusals import returning
from lakewarden.jobs.sql.compile.shapes import ForeignError, shapes_of
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["is_upsert", "upsert_draft"]

_SYNTAX: Final = "UPSERT INTO table [(columns)] [ON (keys)] SELECT or VALUES"
_EXCLUDED: Final = "excluded"
_NEW_VALUE: Final = "_VALUE"
"""What VALUES(column) is read as: a name as long as that."""


def is_upsert(text: str) -> bool:
    """Whether this is an UPSERT, a REPLACE INTO, an INSERT that says what becomes of rows that are there, or an UPDATE
    that inserts what is not."""
    words = [token.text.upper() for token in outer_tokens(text)]
    match words[:2]:
        case ["UPSERT", _] | ["INSERT", "IGNORE"]:
            return True
        case ["REPLACE", word]:
            return word != "TABLE"
        case ["INSERT" | "WITH", _]:
            return _conflict(words) is not None
        case ["UPDATE" | "UPD", _]:
            return _follow(words, "ELSE", ("INSERT", "INS")) is not None
        case _:
            return False


@told_with_places
def upsert_draft(text: str, dialect: Dialect | None = None) -> Draft:
    """Read it. Raises `UsageError` with the place for what nobody can read, and for what is not supported."""
    refuse_run_comments(text, dialect)
    tokens = outer_tokens(text)
    words = [token.text.upper() for token in tokens]
    if words[:2] == ["INSERT", "IGNORE"]:
        raise wrong_at(
            tokens[1].start,
            "IGNORE leaves rows out, or changes their values, where they cannot be written.",
            hint="Leave it out, and rows whose key is there by WHERE NOT EXISTS (SELECT ...).",
        )
    if words[0] == "UPSERT":
        return _upsert(text, tokens, dialect or Dialect.SPARK)
    if words[0] == "REPLACE":
        return _insert(text, _replaced(text, tokens[0], "INSERT"), _own(Dialect.MYSQL, dialect))
    place = _follow(words, "ELSE", ("INSERT", "INS"))
    if words[0] in ("UPDATE", "UPD") and place is not None:
        return _update_else(text, tokens[place], tokens[place + 1], _own(Dialect.TERADATA, dialect))
    if _conflict(words) == "CONFLICT":
        return _insert(text, text, _own(Dialect.POSTGRES, dialect))
    return _insert(text, _with_new_values(text), _own(Dialect.MYSQL, dialect))


def _upsert(text: str, tokens: Sequence[Token], dialect: Dialect) -> Draft:
    """Ours: an INSERT with ON (keys) before its query, which is blanked out."""
    plain = _replaced(text, tokens[0], "INSERT")
    words = [token.text.upper() for token in tokens]
    begins = next(
        (n for n, word in enumerate(words) if word in ("SELECT", "VALUES", "WITH", "TABLE")), len(words)
    )
    on = next((n for n in range(begins) if words[n] == "ON"), None)
    keys: tuple[str, ...] = ()
    if on is not None:
        if on + 1 >= len(words) or words[on + 1] != ")":
            raise wrong_at(tokens[on].start, "ON needs keys in parentheses.", hint=f"Write: {_SYNTAX}.")
        begin, end = tokens[on].start, tokens[on + 1].end + 1
        keys = _key_list(text, begin + len("ON"), end, dialect)
        plain = plain[:begin] + " " * (end - begin) + plain[end:]
    return _insert(text, plain, dialect, keys=keys, ours=True)


def _key_list(text: str, begin: int, end: int, dialect: Dialect) -> tuple[str, ...]:
    blank = " " * (begin - len("SELECT"))
    try:
        listed = PARSERS[dialect].parse(f"{blank}SELECT{text[begin:end]}")[0]
    except SqlglotError:
        listed = None
    found = None if listed is None else listed.expressions[0].unnest()
    parts = found.expressions if isinstance(found, exp.Tuple) else [found]
    if not all(isinstance(part, exp.Column) and not part.table for part in parts):
        raise wrong_at(begin, "Keys are names of columns.", hint=f"Write: {_SYNTAX}.")
    return tuple(part.name for part in parts if part is not None)


def _insert(
    text: str, plain: str, dialect: Dialect, *, keys: tuple[str, ...] = (), ours: bool = False
) -> Draft:
    tree = only_statement(text, dialect, plain)
    if not isinstance(tree, exp.Insert):
        raise UsageError("Expected an INSERT.", hint="docs/sql.md has a table of the forms.")
    refuse_names_that_differ_in_case(tree, dialect)
    _refuse_clauses(tree, text)
    schema = tree.this
    target = schema.this if isinstance(schema, exp.Schema) else schema
    if not isinstance(target, exp.Table) or target.args.get("joins"):
        raise wrong_in(target, "This is no table.", hint="Name the table that the rows go into.")
    listed = schema.expressions if isinstance(schema, exp.Schema) else []
    odd = next((one for one in listed if not isinstance(one, exp.Identifier)), None)
    if odd is not None:
        raise wrong_in(odd, "Expected a column name.", hint="Write INSERT INTO t (k, a) ...")
    columns = tuple(one.name for one in listed)
    source, alias, names = _source(tree)
    conflict = tree.args.get("conflict")
    rows = source.expressions if isinstance(source, exp.Values) else ()
    for value in (one for row in rows for one in (row.expressions or [row])):
        refuse_default(value)
    if conflict is None:
        placed = Placement(
            columns=columns, source=source, alias=alias, keys=keys, replaces=True, whole=not ours
        )
        return _draft(text, dialect, target, placed, tree.args.get("with_"))
    if conflict.args.get("constraint") or conflict.args.get("index_predicate"):
        raise wrong_in(
            conflict, "The table has no constraints and no indexes.", hint="Write ON CONFLICT (keys)."
        )
    where = conflict.args.get("where")
    for one in assignments_of(conflict):
        refuse_default(one.value)
    if dialect is Dialect.MYSQL:
        _excluded_for_values(conflict, alias, columns, names)
        if isinstance(source, exp.Values):
            _as_targets(conflict, target)
    placed = Placement(
        columns=columns,
        source=source,
        alias=alias,
        keys=_conflict_keys(conflict),
        assignments=assignments_of(conflict),
        condition=None if where is None else where.this,
    )
    return _draft(text, dialect, target, placed, tree.args.get("with_"))


def _source(tree: exp.Insert) -> tuple[exp.Expr, str, tuple[str, ...]]:
    """The rows, what they are called in what follows, and the names of their columns there (MySQL's AS new(a, b))."""
    source = tree.expression
    if isinstance(source, exp.Subquery):
        source = source.unnest()
    if not isinstance(source, exp.Query | exp.Values):
        raise wrong_in(source, "Rows come from a query or from VALUES.", hint="Write SELECT or VALUES.")
    alias = source.args.get("alias") if isinstance(source, exp.Values) else None
    if alias is None:
        return source, _EXCLUDED, ()
    source.set("alias", None)
    return source, alias.name.lower(), tuple(one.name for one in alias.columns)


def _with_new_values(text: str) -> str:
    """MySQL's VALUES(column) by a name of its own: behind a parenthesis sqlglot takes it for rows."""
    tokens = tokens_of_any(text)
    words = [token.text.upper() for token in tokens]
    update = next(n for n in range(len(words)) if words[n : n + 3] == ["DUPLICATE", "KEY", "UPDATE"])
    for place in range(update, len(words) - 1):
        if words[place] == "VALUES" and tokens[place + 1].token_type is TokenType.L_PAREN:
            text = _replaced(text, tokens[place], _NEW_VALUE)
    return text


def _excluded_for_values(
    conflict: exp.Expr, alias: str, columns: tuple[str, ...], names: tuple[str, ...]
) -> None:
    """MySQL's VALUES(column), and its own names for columns of the new row."""
    for node in list(conflict.find_all(exp.Anonymous)):
        named = node.expressions[0] if len(node.expressions) == 1 else None
        if node.name.upper() == _NEW_VALUE and isinstance(named, exp.Column):
            node.replace(exp.column(named.this.copy(), table=alias))
    renamed = dict(zip((name.lower() for name in names), columns, strict=False))
    for column in conflict.find_all(exp.Column):
        if column.table.lower() == alias and column.name.lower() in renamed:
            column.this.set("this", renamed[column.name.lower()])


def _as_targets(node: exp.Expr, target: exp.Table) -> None:
    """Columns without a table's name are the target's."""
    for column in node.find_all(exp.Column):
        if not column.table:
            column.set("table", exp.to_identifier(target.alias_or_name))


def _conflict_keys(conflict: exp.Expr) -> tuple[str, ...]:
    keys = [
        one.this if isinstance(one, exp.Ordered) else one for one in conflict.args.get("conflict_keys") or ()
    ]
    odd = next((key for key in keys if not isinstance(key, exp.Column)), None)
    if odd is not None:
        raise wrong_in(odd, "Keys are names of columns.", hint="Write ON CONFLICT (k).")
    return tuple(key.name for key in keys)


def _update_else(text: str, else_: Token, insert: Token, dialect: Dialect) -> Draft:
    """Teradata's: rows that the WHERE finds are updated; if it finds none, one row is inserted."""
    try:
        (update,) = shapes_of(only_statement(text, dialect, text[: else_.start]), dialect)
    except ForeignError as error:
        raise wrong_at(0, "Teradata has no such UPDATE.", hint="Write UPDATE t SET ... WHERE ...") from error
    plain = " " * (insert.end + 1 - len("INSERT")) + "INSERT" + text[insert.end + 1 :]
    inserted = _insert(text, plain, dialect)
    placed, into = inserted.placement, inserted.change.target
    assert placed is not None
    if [part.name.lower() for part in into.parts] != [part.name.lower() for part in update.target.parts]:
        raise wrong_in(
            into,
            f"{into.sql()} is not the table that is updated.",
            hint=f"Write INSERT INTO {update.target.this.sql()}, or two statements.",
        )
    if len(update.relations) > 1 or update.where is None or not placed.is_one_row:
        raise wrong_at(
            else_.start,
            "UPDATE ... ELSE INSERT names one table, has a WHERE, and inserts one row of VALUES.",
            hint="For rows of another table write UPSERT INTO t ON (keys) SELECT ...",
        )
    target = update.target
    for node in (update.where, *(one.value for one in update.assignments)):
        _as_targets(node, target)
    item = Placement(
        columns=placed.columns,
        source=placed.source,
        on=update.where,
        assignments=update.assignments,
    )
    return _draft(text, dialect, target, item, None)


def _draft(
    text: str, dialect: Dialect, target: exp.Table, placed: Placement, with_: exp.With | None
) -> Draft:
    ctes = [
        cte for one in (with_, placed.source.args.get("with_")) if one is not None for cte in one.expressions
    ]
    placed.source.set("with_", None)
    source = placed.source if isinstance(placed.source, exp.Values) else exp.Subquery(this=placed.source)
    change = RowChange(
        relations=(Relation(item=target), Relation(item=source)),
        place=0,
        assignments=placed.assignments,
        where=placed.condition or placed.on,
        ctes=tuple(ctes),
    )
    draft = Draft(text=text, dialects=(dialect,), change=change, tables=tables_read(change), placement=placed)
    refuse_system(draft)
    refuse_unclear_order(draft)
    return draft


def _own(dialect: Dialect, chosen: Dialect | None) -> Dialect:
    if chosen not in (None, dialect):
        raise UsageError(
            f"This form is one of {dialect}, and the session reads {chosen}.",
            hint=f"{_SYNTAX} is there in every dialect.",
        )
    return dialect


def _refuse_clauses(tree: exp.Insert, text: str) -> None:
    told = returning(text) if tree.args.get("returning") else None
    if told is not None:
        raise told
    known = ("this", "expression", "conflict", "with_", "into")
    odd = next((value for key, value in tree.args.items() if value and key not in known), None)
    if odd is not None:
        raise wrong_in(
            odd if isinstance(odd, exp.Expr) else None,
            "This clause is not supported here.",
            hint="Leave it out.",
        )


def _replaced(text: str, token: Token, word: str) -> str:
    return text[: token.start] + word.ljust(len(token.text)) + text[token.end + 1 :]


def _conflict(words: Sequence[str]) -> str | None:
    """What an INSERT calls a row that is there: CONFLICT or DUPLICATE; a column of such a name is neither."""
    places = (n for n in range(len(words) - 2) if words[n] == "ON")
    known = {"CONFLICT": (")", "DO", "ON"), "DUPLICATE": ("KEY",)}
    return next((words[n + 1] for n in places if words[n + 2] in known.get(words[n + 1], ())), None)


def _follow(words: Sequence[str], first: str, second: Sequence[str]) -> int | None:
    """Where two words stand one after the other."""
    return next((n for n in range(len(words) - 1) if words[n] == first and words[n + 1] in second), None)
