"""Changes compiled in a Spark session: it knows the columns of tables and views, and its settings the policy.

What is compiled runs in clones of the user's session, so what is set for it there reaches nobody else.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import ParseException, PySparkException
from pyspark.sql.types import StructField, StructType

from lakewarden.catalog.errors import (
    LakewardenError,
    PreconditionError,
    RefusedError,
    UsageError,
)
from lakewarden.jobs.engines.spark.errors import (
    conditions_of,
    refusal_of_delta,
    root_of,
    trouble_of,
    violation,
)
from lakewarden.jobs.engines.spark.names import quoted
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.names.spelling import refuse_where_case_counts
from lakewarden.jobs.sql.compile.places import WrongPartError, placed, wrong_at
from lakewarden.jobs.sql.compile.reading import Draft, tokens_of_any
from lakewarden.jobs.sql.compile.refusals import is_known, query_in_merge, returning, told_in_our_words
from lakewarden.jobs.sql.compile.values import (
    MATCHES_KEY,
    ColumnType,
    Compiled,
    Dialect,
    TableName,
    TableSchema,
    keys_in,
    policy_of,
)

__all__ = [
    "SeveralMatchesError",
    "compile_change",
    "mean_what_is_written",
    "refusals_explained",
    "require_own_words",
    "wrong_rows_explained",
]

_QUERIES: Final = ("DELTA_UNSUPPORTED_SUBQUERY", "UNSUPPORTED_SUBQUERY_EXPRESSION_CATEGORY")
"""What Delta and Spark call queries in places where a command has none."""
_OWN_TYPE: Final = "__CHAR_VARCHAR_TYPE_STRING"
_LOST_COLUMN: Final = "DELTA_MERGE_RESOLVED_ATTRIBUTE_MISSING_FROM_INPUT"
_SEVERAL: Final = (
    "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
    "MERGE_CARDINALITY_VIOLATION",  # Spark's own MERGE, of other formats
)
_CONSTRAINTS: Final = ("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",)
"""Whose sentences name what the owner of the table has written."""
_ESCAPED: Final = "spark.sql.parser.escapedStringLiterals"
_JOINED: Final = "spark.sql.legacy.consecutiveStringLiterals.enabled"
_ANSI: Final = "spark.sql.ansi.enabled"
_CASE: Final = "spark.sql.caseSensitive"
_QUOTES: Final = "spark.sql.ansi.doubleQuotedIdentifiers"
_AS_PRINTED: Final[Mapping[str, str]] = {
    _ESCAPED: "false",
    _JOINED: "false",
    _QUOTES: "false",
    "spark.sql.ansi.relationPrecedence": "false",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.parser.quotedRegexColumnNames": "false",
    _CASE: "false",
}
"""How our SQL is to be read, whoever's the statement was."""
_AS_MEANT: Final[Mapping[str, str]] = {
    _ANSI: "true",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "false",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.legacy.charVarcharAsString": "false",
}
"""How expressions of other dialects are computed: what overflows or cannot be cast is an error in all of these. Spark's
own keep what the user set."""


def compile_change(session: Any, draft: Draft, *, agreeing: bool = False) -> Compiled:
    """The plain statements, by what a session (in the JVM) knows, `agreeing` as the policy says it.

    Raises `UsageError`, or Spark's own error for a
    table that is not there."""
    _require_read_alike(session, draft)
    schemas = {table: _schema(session, table) for table in draft.tables}
    if draft.dialects == (Dialect.SPARK,) and _is_on(session, _CASE):
        with placed(draft.text):
            refuse_where_case_counts(draft.identifiers, schemas, _CASE)
    keys = _keys(session, draft.tables[0]) if draft.placement is not None else ()
    policy = replace(policy_of(session.conf().get(MATCHES_KEY, "")), agreeing=agreeing)
    return compiled(draft, schemas, policy, keys)


def mean_what_is_written(session: Any, dialect: Dialect) -> None:
    """Have a session (in the JVM), a clone for one statement alone, read and compute compiled SQL as it is meant."""
    wanted = _AS_PRINTED if dialect is Dialect.SPARK else {**_AS_PRINTED, **_AS_MEANT}
    for key, value in wanted.items():
        session.conf().set(key, value)


def require_own_words(draft: Draft) -> None:
    """Raise `UsageError` for what only Delta tables understand: Spark would read it by other rules, or not at all."""
    if draft.placement is not None or Dialect.SPARK not in draft.dialects:
        raise UsageError(
            f"{draft.tables[0]} is not a Delta table: only these are changed like this.",
            hint="Convert it (CONVERT TO DELTA), or write Spark's own SQL.",
        )


@contextmanager
def refusals_explained(text: str) -> Iterator[None]:
    """Say in our words, with the place, what Spark or Delta refuses of a statement that they got as it is."""
    try:
        yield
    except Py4JJavaError as error:
        if _LOST_COLUMN not in str(error):
            raise
        raise _lost_column() from error
    except PySparkException as error:
        told: UsageError | None = None
        if isinstance(error, ParseException):
            told = returning(text)
        elif (error.getCondition() or "").startswith(_QUERIES):
            told = query_in_merge(text)
        if told is None:
            raise
        raise told from error


class SeveralMatchesError(PreconditionError):
    """A row of the target has several matches."""


@contextmanager
def wrong_rows_explained(draft: Draft | None = None, *, merges: bool = False) -> Iterator[None]:
    """Explain several matches of a row of the target, a row that the table does not take, and what Delta refuses; of a
    compiled statement, the `draft`, whatever Spark and Delta refuse of it. `merges`: of what the user wrote as a MERGE,
    for which no match is chosen."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        if not any(one in str(error) for one in _SEVERAL):
            if draft is not None:
                raise _of_compiled(error, draft) from error
            if not isinstance(error, Py4JJavaError):
                raise
            told = violation(error)
            if told is None:
                refusal = refusal_of_delta(error)
                if refusal is None:
                    raise
                raise RefusedError(
                    f"Delta does not do that: {refusal}", hint="Nothing was changed."
                ) from error
            raise PreconditionError(
                f"A row cannot be written: {told}", hint="Nothing was changed."
            ) from error
        raise SeveralMatchesError(
            "A row of the table that is changed has several matches, and they may say different things.",
            hint="Make the rows of the source unique by what they are matched by."
            if merges
            else f"Make the matches unique, or choose: SET {MATCHES_KEY} = any, or last by <column>.",
        ) from error


def _lost_column() -> UsageError:
    return UsageError(
        "A MERGE of this Delta cannot look at a CHAR column of its table.",
        hint="Make it VARCHAR or STRING, or compare what is stored, blanks and all: "
        "SET spark.sql.readSideCharPadding = false.",
    )


def _of_compiled(error: PySparkException | Py4JJavaError, draft: Draft) -> LakewardenError:
    """What is said of an exception that came while a compiled statement was analysed or ran."""
    if isinstance(error, Py4JJavaError) and _LOST_COLUMN in str(error):
        return _lost_column()
    told = violation(error, _CONSTRAINTS)
    if told is not None:
        return PreconditionError(f"A row cannot be written: {told}", hint="Nothing was changed.")
    found = conditions_of(error)
    if not is_known(found):
        world = trouble_of(error, "run the statement")
        if world is not None:
            return world
        refusal = refusal_of_delta(error) if isinstance(error, Py4JJavaError) else None
        if refusal is not None:
            return RefusedError(f"Delta does not do that: {refusal}", hint="Nothing was changed.")
    return told_in_our_words(found, draft, root_of(error))


def _keys(session: Any, table: TableName) -> tuple[str, ...]:
    """The keys that the table itself names."""
    name = ".".join(quoted(part) for part in table.parts)
    told = {row.getString(0): row.getString(1) for row in session.sql(f"SHOW TBLPROPERTIES {name}").collect()}
    return keys_in(told)


def _schema(session: Any, table: TableName) -> TableSchema:
    name = ".".join(quoted(part) for part in table.parts)
    schema = StructType.fromJson(json.loads(session.table(name).schema().json()))
    return tuple(ColumnType(name=field.name, type=_type(field)) for field in schema)


def _type(field: StructField) -> str:
    """A column's type by Spark's name: CHAR and VARCHAR are what its metadata says, and STRING in the schema."""
    kind = field.dataType.simpleString()
    return str((field.metadata or {}).get(_OWN_TYPE, kind)) if kind == "string" else kind


def _require_read_alike(session: Any, draft: Draft) -> None:
    """Raise `UsageError` for what Spark, as this session is set, would read otherwise than the compiler did."""
    if draft.dialects != (Dialect.SPARK,):
        return
    if _is_on(session, _ESCAPED):
        _refuse(draft, "\\", "A backslash means itself here", _ESCAPED)
    if _is_on(session, _JOINED):
        _refuse(draft, "''", "Two quotes end one text and begin another here", _JOINED)
    if _is_on(session, _ANSI) and _is_on(session, _QUOTES):
        _refuse(draft, '"', "Double quotes are around a name here", _QUOTES)


def _refuse(draft: Draft, sign: str, means: str, key: str) -> None:
    for token in tokens_of_any(draft.text):
        if sign in draft.text[token.start : token.end + 1]:
            raise _unlike(token.start, f"{means}, as {key} is set, and is read otherwise.", key).of(
                draft.text
            )


def _unlike(place: int, message: str, key: str) -> WrongPartError:
    return wrong_at(place, message, hint=f"SET {key} = false, or write it without that sign.")


def _is_on(session: Any, key: str) -> bool:
    return str(session.conf().get(key, "false")).lower() == "true"
