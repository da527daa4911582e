"""Names that differ only in case: one for Spark, several for PostgreSQL (in quotes) and MySQL (of tables). Pure.

All names are compared without case further on, so what a dialect tells apart that way is refused before.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from sqlglot import exp

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.places import wrong_in
from lakewarden.jobs.sql.compile.values import Dialect, TableName, TableSchema

__all__ = [
    "differ_in_case",
    "refuse_names_that_differ_in_case",
    "refuse_unclear_columns",
    "refuse_where_case_counts",
]

_DOT_ABOVE: Final = "\u0307"
_READ_BY: Final = (exp.From, exp.Join, exp.CTE, exp.Merge, exp.Insert, exp.Delete, exp.Update, exp.Lateral)
"""Around a query whose columns others read."""
_AFTER: Final = frozenset({"order", "group", "having", "qualify", "distinct"})
"""Parts of a query that see what it gives."""
_LONGEST: Final = 63
"""Bytes of a name in PostgreSQL."""
_HINT: Final = "Write them alike if they are one, else give one of them another name."
_HINT_OF_COLUMNS: Final = (
    "Write them alike if they are one, else say whose each is (t.k), or give one of them another name."
)


@dataclass(frozen=True, kw_only=True)
class _Spelled:
    """A name of one part or of several, as it is written."""

    parts: tuple[exp.Identifier, ...]
    key: tuple[str, ...]
    """The same for all that Spark may take for one."""
    seen: tuple[str, ...]
    """The same for all that the dialect takes for one."""

    def __str__(self) -> str:
        return ".".join(_written(part) for part in self.parts)


def refuse_names_that_differ_in_case(tree: exp.Expr, dialect: Dialect) -> None:
    """Raise `UsageError`, with the place, for two names of a statement that differ only in case, and are two names in
    its dialect: of tables and queries, and of columns where one is a result of a query."""
    for found, hint in (
        (differ_in_case(tree, dialect), _HINT),
        (_columns_that_differ(tree, dialect), _HINT_OF_COLUMNS),
    ):
        if found is not None:
            raise _refusal(found, dialect, hint)
    if dialect is Dialect.POSTGRES:
        _refuse_names_cut_alike(tree)


def differ_in_case(tree: exp.Expr, dialect: Dialect) -> tuple[_Spelled, _Spelled] | None:
    """Two names of tables or queries that differ only in case, and are two names in the dialect."""
    seen = [_of((name,), dialect, tables=True) for name in _visible(tree)]
    found = next(_pairs(seen), None)
    if found is not None:
        return found
    named = (
        tuple(part for part in one.parts if isinstance(part, exp.Identifier))
        for one in tree.find_all(exp.Table)
    )
    tables = [_of(parts, dialect, tables=True) for parts in named if parts]
    queries = [_of((cte.args["alias"].this,), dialect, tables=True) for cte in tree.find_all(exp.CTE)]
    plain = [*queries, *(one for one in tables if len(one.parts) == 1)]
    return next(_pairs(plain), None) or next(_pairs(tables), None)


def refuse_unclear_columns(
    tree: exp.Expr, schemas: Mapping[TableName, TableSchema], dialect: Dialect
) -> None:
    """Raise `UsageError` for a column in quotes, without its table, that tables and queries spell in several ways:
    PostgreSQL knows it by its case."""
    if dialect is not Dialect.POSTGRES:
        return
    spelled: dict[str, set[str]] = {}
    made = (_seen(name, dialect, tables=False) for name, _ in _results(tree))
    for name in {*made, *(one.name for schema in schemas.values() for one in schema)}:
        spelled.setdefault(_key(name), set()).add(name)
    natural = next((join for join in tree.find_all(exp.Join) if join.method == "NATURAL"), None)
    unclear = next((names for names in spelled.values() if len(names) > 1), ())
    if natural is not None and unclear:
        raise wrong_in(
            natural.this,
            f"NATURAL JOIN goes by names, and {' and '.join(sorted(unclear))} differ in nothing but case.",
            hint="Write JOIN ... ON.",
        )
    for column in _without_table(tree):
        if _seen(column, dialect, tables=False) == column.name.lower():
            continue
        several = sorted(spelled.get(_key(column.name), ()))
        if len(several) > 1 and not _is_of_its_tables(column, schemas):
            raise wrong_in(
                column,
                f"{_written(column)} is one of {' and '.join(several)}, which differ in nothing but case.",
                hint="Write whose it is, t.k, or give the result of the query another name.",
            )


def refuse_where_case_counts(
    names: Iterable[exp.Identifier], schemas: Mapping[TableName, TableSchema], setting: str
) -> None:
    """Raise `UsageError` for a name of a statement that differs in nothing but case from another one or from a column:
    Spark tells them apart, as `setting` is set."""
    spelled: dict[str, set[str]] = {}
    listed = list(names)
    columns = (one.name for schema in schemas.values() for one in schema)
    for text in (*(one.name for one in listed), *columns):
        spelled.setdefault(_key(text), set()).add(text)
    for name in listed:
        several = sorted(spelled[_key(name.name)])
        if len(several) > 1:
            raise wrong_in(
                name,
                f"{' and '.join(several)} differ in nothing but case: they are two names here, as {setting} is set.",
                hint=f"SET {setting} = false, or write them alike.",
            )


def _refuse_names_cut_alike(tree: exp.Expr) -> None:
    """PostgreSQL leaves out what a name has beyond its longest."""
    begun: dict[bytes, str] = {}
    for name in tree.find_all(exp.Identifier):
        text = _seen(name, Dialect.POSTGRES, tables=True)
        cut = text.encode()[:_LONGEST]
        if begun.setdefault(cut, text) != text and len(cut) == _LONGEST:
            raise wrong_in(
                name,
                f"Another name begins with the same {_LONGEST} bytes: they are one in postgres.",
                hint="Give one of them a shorter name.",
            )


def _columns_that_differ(tree: exp.Expr, dialect: Dialect) -> tuple[_Spelled, _Spelled] | None:
    """A result of a query, and a column without its table that sees it: it may be another one."""
    read: dict[str, list[exp.Identifier]] = {}
    for one in _without_table(tree):
        read.setdefault(_key(one.name), []).append(one)
    for name, query in _results(tree):
        for one in read.get(_key(name.name), ()):
            if query is not None and not _sees(one, query):
                continue
            given, asked = (_of((each,), dialect, tables=False) for each in (name, one))
            if given.seen != asked.seen:
                return given, asked
    return None


def _results(tree: exp.Expr) -> list[tuple[exp.Identifier, exp.Select | None]]:
    """The names that queries give their columns, and the query; None for names that rows are given from outside."""
    found: list[tuple[exp.Identifier, exp.Select | None]] = []
    for query in tree.find_all(exp.Select):
        for one in query.expressions:
            name = one.args.get("alias") if isinstance(one, exp.Alias) else one.this
            if isinstance(one, exp.Alias | exp.Column) and isinstance(name, exp.Identifier):
                found.append((name, query))
    named = (name for one in tree.find_all(exp.TableAlias) for name in one.columns)
    return [*found, *((name, None) for name in named if isinstance(name, exp.Identifier))]


def _is_read(query: exp.Select) -> bool:
    """Whether columns of a query are columns of others: not where its values or rows are only compared."""
    above = query.parent
    while isinstance(above, exp.Subquery | exp.SetOperation | exp.Paren | exp.Table):
        above = above.parent
    return above is None or isinstance(above, _READ_BY)


def _sees(column: exp.Identifier, query: exp.Select) -> bool:
    """Whether a column may be a result of a query: it reads what the query gives, or sorts or groups its rows."""
    node: exp.Expr | None = column
    while node is not None and node.parent is not query:
        node = node.parent
    return _is_read(query) if node is None else node.arg_key in _AFTER


def _is_of_its_tables(column: exp.Identifier, schemas: Mapping[TableName, TableSchema]) -> bool:
    """Whether the query in which a column stands reads tables alone, which spell it as it is written here."""
    query = column.find_ancestor(exp.Select)
    if query is None or isinstance(column.parent, exp.Join):
        return False
    root = query.root()
    queries = {_key(cte.alias) for cte in root.find_all(exp.CTE)}
    begun = query.args.get("from_")
    read = [*([] if begun is None else [begun.this]), *(join.this for join in query.args.get("joins") or ())]
    spelled = set[str]()
    for table in read:
        if not isinstance(table, exp.Table) or _key(table.name) in queries:
            return False
        schema = schemas.get(TableName(parts=tuple(part.name for part in table.parts)))
        if schema is None:
            return False
        spelled.update(one.name for one in schema if _key(one.name) == _key(column.name))
    return spelled == {_seen(column, Dialect.POSTGRES, tables=False)}


def _without_table(tree: exp.Expr) -> list[exp.Identifier]:
    """Columns that do not say whose they are."""
    names = [one.this for one in tree.find_all(exp.Column) if not one.table]
    names += [name for join in tree.find_all(exp.Join) for name in join.args.get("using") or ()]
    return [one for one in names if isinstance(one, exp.Identifier)]


def _visible(tree: exp.Expr) -> Iterator[exp.Identifier]:
    """What columns are qualified with: aliases, and names of tables that have none."""
    for node in tree.find_all(exp.Table, exp.TableAlias):
        if isinstance(node, exp.TableAlias):
            name = None if isinstance(node.parent, exp.CTE) else node.this
        else:
            name = None if node.alias else node.this
        if isinstance(name, exp.Identifier):
            yield name


def _pairs(names: list[_Spelled]) -> Iterator[tuple[_Spelled, _Spelled]]:
    """Names that Spark may take for one and the dialect does not, where one may leave out what the other begins
    with."""
    each = {(one.seen, one.key): one for one in reversed(names)}
    groups: dict[str, list[_Spelled]] = {}
    for spelled in reversed(each.values()):
        groups.setdefault(spelled.key[-1], []).append(spelled)
    for group in groups.values():
        for one, other in combinations(group, 2):
            length = min(len(one.parts), len(other.parts))
            if one.key[-length:] == other.key[-length:] and one.seen[-length:] != other.seen[-length:]:
                yield one, other


def _of(parts: tuple[exp.Identifier, ...], dialect: Dialect, *, tables: bool) -> _Spelled:
    return _Spelled(
        parts=parts,
        key=tuple(_key(part.name) for part in parts),
        seen=tuple(_seen(part, dialect, tables=tables) for part in parts),
    )


def _seen(name: exp.Identifier, dialect: Dialect, *, tables: bool) -> str:
    """The same for names that are one in the dialect. MySQL's tables are files; PostgreSQL knows no case of letters
    beyond ASCII."""
    text = name.name
    match dialect:
        case Dialect.SPARK:
            return _key(text)
        case Dialect.POSTGRES if name.args.get("quoted"):
            return text
        case Dialect.POSTGRES:
            return "".join(one.lower() if one.isascii() else one for one in text)
        case Dialect.MYSQL if tables:
            return text
        case _:
            return text.lower()


def _key(text: str) -> str:
    """The same for names that are one for Java, which compares letters as capitals, then as small ones: i is one with
    an i without its dot, k with the sign for kelvin."""
    capitals = (one.upper() if len(one.upper()) == 1 else one for one in text)
    return "".join(one.lower() for one in capitals).replace(_DOT_ABOVE, "")


def _written(name: exp.Identifier) -> str:
    return f'"{name.name}"' if name.args.get("quoted") else str(name.name)


def _refusal(names: tuple[_Spelled, _Spelled], dialect: Dialect, hint: str) -> UsageError:
    one, other = sorted(names, key=lambda name: name.parts[-1].meta.get("start", 0))
    return wrong_in(
        other.parts[-1],
        f"{one} and {other} differ in nothing but case: they are two names in {dialect}, and one in Spark.",
        hint=hint,
    )
