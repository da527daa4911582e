"""What Spark or Delta refuses, in our words and with the place: of statements that they get as they are by what is in
them, of compiled ones by the name of its condition. Pure."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from sqlglot import Token, exp
from sqlglot.errors import SqlglotError

from lakewarden.catalog.errors import LakewardenError, PreconditionError, RefusedError, UsageError
from lakewarden.jobs.sql.compile.dialects import PARSERS
from lakewarden.jobs.sql.compile.places import wrong_at, wrong_in
from lakewarden.jobs.sql.compile.reading import Draft, outer_tokens, tokens_of_any
from lakewarden.jobs.sql.compile.shapes import RETURNING
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["CONDITIONS", "Condition", "is_known", "query_in_merge", "returning", "told_in_our_words"]

Condition = tuple[str, Mapping[str, str]]
"""One of Spark's or Delta's by its name, and what it is about, by their names for that."""

_QUERIES: Final = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "FROM"})


def query_in_merge(text: str) -> UsageError | None:
    """The error for a query in ON, WHEN or SET of a MERGE; None where there is none."""
    outer = outer_tokens(text)
    on = next((token for token in outer if token.text.upper() == "ON"), None)
    if on is None or not any(token.text.upper() == "MERGE" for token in outer[: outer.index(on)]):
        return None
    place = _query_after(tokens_of_any(text), on.end)
    if place is None:
        return None
    return wrong_at(
        place,
        "Delta runs no query here, and a MERGE with *, BY SOURCE, WITH or db.t.column does "
        "not let it be asked before.",
        hint="Ask it in USING, and compare with its column: "
        "USING (SELECT s.*, (SELECT max(e) FROM u) AS m FROM s) AS s; "
        "for IN or EXISTS LEFT JOIN the table there.",
    ).of(text)


def returning(text: str) -> UsageError | None:
    """The error for PostgreSQL's RETURNING at the end of a statement that Spark cannot read; None without one."""
    place = next((token.start for token in outer_tokens(text) if token.text.upper() == "RETURNING"), None)
    if place is None:
        return None
    try:
        trees = PARSERS[Dialect.POSTGRES].parse(text)
    except SqlglotError:
        return None
    if not any(tree is not None and tree.args.get("returning") for tree in trees):
        return None
    return wrong_at(place, RETURNING, hint="Leave it out, and SELECT the rows afterwards.").of(text)


def _query_after(tokens: Sequence[Token], end: int) -> int | None:
    """Where the first query in parentheses begins behind a place."""
    for before, token in pairwise(tokens):
        if token.start > end and before.text == "(" and token.text.upper() in _QUERIES:
            return token.start
    return None


_SUFFIX: Final = re.compile(r"\b(\d+)(?:[SYLDF]|BD)\b")
"""What Spark writes behind a number for its type."""
_NOTHING: Final = "Nothing was changed."
_OURS: Final = "errorMessage"
"""What raise_error() was given, which compiled statements have in our words."""


@dataclass(frozen=True, kw_only=True)
class _Words:
    """What is said of a condition."""

    kind: type[LakewardenError]
    sentence: str
    hint: str = _NOTHING
    part: Callable[[Draft, Condition], exp.Expr | None] = lambda draft, said: None
    """Finds what it is about in the statement, None where nobody can tell."""


def is_known(found: Sequence[Condition]) -> bool:
    """Whether there are words for any of these conditions."""
    return any(_words(said) is not None for said in found)


def told_in_our_words(found: Sequence[Condition], draft: Draft, root: str) -> LakewardenError:
    """The error for what was found, from the outermost to the deepest; `root` is the deepest exception's own name."""
    for said in reversed(found):
        words = _words(said)
        if words is not None:
            sentence = words.sentence.format_map(_Bare(said[1]))
            where = wrong_in(words.part(draft, said), sentence, hint=words.hint).of(draft.text)
            return where if words.kind is UsageError else words.kind(str(where), hint=words.hint)
    name = found[-1][0] if found else root
    told = wrong_in(draft.change.target, f"Spark refused this ({name}).", hint=_NOTHING).of(draft.text)
    return RefusedError(str(told), hint=told.hint)


def _words(said: Condition) -> _Words | None:
    return next((one for name, one in CONDITIONS.items() if said[0].startswith(name)), None)


class _Bare(dict[str, str]):
    """What a condition is about without Spark's quotes; what is not said is a value, and what we say stays as it is."""

    def __getitem__(self, key: str) -> str:
        if key == _OURS and key in self:
            return super().__getitem__(key)
        said = super().__getitem__(key).strip("\"'`").replace("`", "") if key in self else "a value"
        return _SUFFIX.sub(r"\1", said)


def _table(draft: Draft, said: Condition) -> exp.Expr | None:
    name = _Bare(said[1])["relationName"].rpartition(".")[2].lower()
    return next((one for one in _parts(draft, exp.Table) if one.name.lower() == name), None)


def _routine(draft: Draft, said: Condition) -> exp.Expr | None:
    name = _Bare(said[1])["routineName"].rpartition(".")[2].upper()
    named = (one for one in _parts(draft, exp.Func) if name in (one.name.upper(), one.key.upper()))
    return next(named, None)


def _column_set(draft: Draft, said: Condition) -> exp.Expr | None:
    name = _Bare(said[1])["columnName"].lower()
    changes = (draft.change, *draft.others)
    set_ = (one.column for change in changes for one in change.assignments)
    return next((column for column in set_ if column.name.lower() == name), None)


def _deepest_column(draft: Draft, said: Condition) -> exp.Expr | None:
    name = _Bare(said[1])["objectName"].rpartition(".")[2].lower()
    named = [one for one in _parts(draft, exp.Column) if one.name.lower() == name]
    return max(named, key=lambda one: one.depth, default=None)


def _only_value_asked(draft: Draft, said: Condition) -> exp.Expr | None:
    asked = [
        one
        for one in _parts(draft, exp.Subquery)
        if not isinstance(one.parent, exp.From | exp.Join | exp.In | exp.Exists | exp.Any | exp.All)
        and all(one is not relation.item for relation in draft.change.relations)
    ]
    return asked[0] if len(asked) == 1 else None


def _target(draft: Draft, said: Condition) -> exp.Expr | None:
    return draft.change.target


def _parts(draft: Draft, kind: type[exp.Expr]) -> list[exp.Expr]:
    return [one for change in (draft.change, *draft.others) for one in change.parts(kind)]


_TOO_LARGE: Final = (
    "Compute in a larger type: CAST(... AS BIGINT), or make the column wider. Nothing was changed."
)
_IN_WHERE: Final = (
    "Such columns stand in the WHERE of the query, without aggregates; or join its tables by FROM."
)
_NO_TEXT: Final = "Find such rows by a query, and leave them out. Nothing was changed."
CONDITIONS: Final[Mapping[str, _Words]] = {
    "SCALAR_SUBQUERY_TOO_MANY_ROWS": _Words(
        kind=PreconditionError,
        sentence="A query that stands for one value found several rows.",
        hint="Have it find one: MAX or MIN, or ORDER BY and LIMIT 1. Nothing was changed.",
        part=_only_value_asked,
    ),
    "CAST_OVERFLOW_IN_TABLE_INSERT": _Words(
        kind=PreconditionError,
        sentence="A value is too large for {columnName}, whose type is {targetType}.",
        hint=_TOO_LARGE,
        part=_column_set,
    ),
    "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE": _Words(
        kind=PreconditionError,
        sentence="A value is too large for {columnName}, whose type is {targetType}.",
        hint=_TOO_LARGE,
        part=_column_set,
    ),
    "CAST_OVERFLOW": _Words(
        kind=PreconditionError, sentence="{value} is too large for {targetType}.", hint=_TOO_LARGE
    ),
    "NUMERIC_VALUE_OUT_OF_RANGE": _Words(
        kind=PreconditionError,
        sentence="{value} is too large for DECIMAL({precision}, {scale}).",
        hint=_TOO_LARGE,
    ),
    "ARITHMETIC_OVERFLOW": _Words(
        kind=PreconditionError, sentence="A number becomes too large for its type.", hint=_TOO_LARGE
    ),
    "BINARY_ARITHMETIC_OVERFLOW": _Words(
        kind=PreconditionError,
        sentence="{value1} {symbol} {value2} is too large for the type of these numbers.",
        hint=_TOO_LARGE,
    ),
    "DIVIDE_BY_ZERO": _Words(
        kind=PreconditionError,
        sentence="Something is divided by zero.",
        hint="Divide by NULLIF(..., 0), which gives NULL then. Nothing was changed.",
    ),
    "REMAINDER_BY_ZERO": _Words(
        kind=PreconditionError,
        sentence="Something is divided by zero.",
        hint="Divide by NULLIF(..., 0), which gives NULL then. Nothing was changed.",
    ),
    "CAST_INVALID_INPUT": _Words(
        kind=PreconditionError, sentence="'{expression}' is no {targetType}.", hint=_NO_TEXT
    ),
    "DATETIME_OVERFLOW": _Words(kind=PreconditionError, sentence="A date or time is out of range."),
    "INVALID_DATETIME": _Words(kind=PreconditionError, sentence="A date or time is not there."),
    "CANNOT_PARSE_TIMESTAMP": _Words(
        kind=PreconditionError, sentence="A text is no date or time.", hint=_NO_TEXT
    ),
    "EXCEED_LIMIT_LENGTH": _Words(
        kind=PreconditionError, sentence="A text is longer than the {limit} characters of its column."
    ),
    "DELTA_EXCEED_CHAR_VARCHAR_LIMIT": _Words(
        kind=PreconditionError, sentence="'{value}' is longer than its column."
    ),
    "DELTA_NOT_NULL_CONSTRAINT_VIOLATED": _Words(
        kind=PreconditionError, sentence="NULL is written into a column that takes none."
    ),
    "TABLE_OR_VIEW_NOT_FOUND": _Words(
        kind=UsageError,
        sentence="There is no table {relationName}.",
        hint="Write its database, too: db.table. SHOW TABLES lists those that there are.",
        part=_table,
    ),
    "UNRESOLVED_ROUTINE": _Words(
        kind=UsageError,
        sentence="There is no function {routineName}.",
        hint="SHOW FUNCTIONS lists those that there are.",
        part=_routine,
    ),
    "DELTA_UNSUPPORTED_SOURCE": _Words(
        kind=UsageError,
        sentence="This is a view, or no Delta table.",
        hint="Change the table that the view reads: SHOW CREATE TABLE shows which.",
        part=_target,
    ),
    "EXPECT_TABLE_NOT_VIEW": _Words(
        kind=UsageError,
        sentence="This is a view.",
        hint="Change the table that it reads: SHOW CREATE TABLE shows which.",
        part=_target,
    ),
    "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY": _Words(
        kind=UsageError,
        sentence="Spark does not run a query that depends on a row outside of it in this way.",
        hint=_IN_WHERE,
    ),
    "UNRESOLVED_COLUMN": _Words(
        kind=UsageError,
        sentence="Spark does not find this column of a query around it.",
        hint=_IN_WHERE,
        part=_deepest_column,
    ),
    "INVALID_EXTRACT_BASE_FIELD_TYPE": _Words(
        kind=UsageError,
        sentence="Spark takes a column of a query around for a field of {base}.",
        hint=_IN_WHERE,
    ),
    "MISSING_AGGREGATION": _Words(
        kind=UsageError,
        sentence="{expression} is neither grouped by nor an aggregate.",
        hint="Add it to GROUP BY, or write MIN or MAX.",
    ),
    "MISSING_GROUP_BY": _Words(
        kind=UsageError,
        sentence="A column stands beside an aggregate without GROUP BY.",
        hint="Group by it, or write MIN or MAX.",
    ),
    "DATATYPE_MISMATCH": _Words(
        kind=UsageError, sentence="The types of {sqlExpr} do not go together.", hint="Cast one side."
    ),
    "INCOMPATIBLE_DATA_FOR_TABLE": _Words(
        kind=UsageError, sentence="A value has another type than its column.", hint="Cast it."
    ),
    "UNSUPPORTED_EXPR_FOR_OPERATOR": _Words(
        kind=UsageError,
        sentence="An aggregate, a window or a generator does not stand in SET or WHERE.",
        hint="Ask a query for it: (SELECT max(a) FROM t).",
    ),
    "USER_RAISED_EXCEPTION": _Words(kind=PreconditionError, sentence="{errorMessage}"),
    "NUM_COLUMNS_MISMATCH": _Words(
        kind=UsageError,
        sentence="The parts of a UNION have different numbers of columns.",
        hint="Give each part the same columns.",
    ),
}
"""Spark's sentences speak of the statement that was compiled, of plans, and of settings that compiled statements fix.
By how a condition's name begins, longer names before shorter ones that they begin with."""
