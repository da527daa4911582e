"""The source of an upsert in its session: evaluated once, kept while the upsert runs, and looked at."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row
from pyspark.sql.types import StructType

from lakewarden.catalog.errors import PreconditionError
from lakewarden.jobs.session.pins import Pinned
from lakewarden.jobs.session.plans import Plans
from lakewarden.jobs.session.writes import Upsert
from lakewarden.jobs.sql.compile.values import ColumnType, TableSchema, quoted
from lakewarden.jobs.upsert.changes import CODES, UNKNOWN_CODE, change_rows
from lakewarden.jobs.upsert.options import NullKeys, UpsertOptions
from lakewarden.jobs.upsert.pruning import FEW, KeyFacts, is_measured, ranges_of
from lakewarden.jobs.upsert.statement import prepared

__all__ = ["VIEW", "Source", "facts_of", "kept", "rows_of", "schema_of"]

VIEW: Final = "__lakewarden_source"
"""The name of the prepared source in the session."""
_GIVEN: Final = "__lakewarden_given"
_LACKING: Final = "__lakewarden_lacking"
_COUNT: Final = "__lakewarden_count"
_BUCKETS: Final = 1024
_SPAN: Final = 2**62
"""Keys that lie further apart are not put into ranges: differences would not fit into 64 bits."""
_DATE: Final = len("2026-11-22")
_EPOCH: Final = date(1970, 1, 1)
_NUMBERS: Final = {"date": "unix_date({})", "timestamp": "unix_micros({})"}


@dataclass(frozen=True, kw_only=True)
class Source:
    """What was given, its versions settled, and the columns that it has."""

    pinned: Pinned
    schema: TableSchema


def rows_of(request: Upsert) -> DataFrame:
    """The frame; of changes the rows that they say."""
    frame: DataFrame = request.frame
    if request.options.cdc is None:
        return frame
    said = change_rows(request.options.cdc, schema_of(frame), request.options.op)
    return frame.where(said.where).selectExpr(*said.columns).selectExpr(*said.unfolded)


def schema_of(frame: DataFrame) -> TableSchema:
    """The columns of a frame."""
    schema = StructType.fromJson(json.loads(frame._jdf.schema().json()))
    return tuple(ColumnType(name=field.name, type=field.dataType.simpleString()) for field in schema)


@contextmanager
def kept(
    plans: Plans, session: Any, source: Source, options: UpsertOptions, emptied: frozenset[str]
) -> Iterator[DataFrame]:
    """The prepared source as the view `VIEW`. It is computed here, once: what is looked at is what is merged, whatever
    files or functions it comes from. An empty text in a key that is `emptied` is NULL."""
    if options.delete_when is not None:
        session.sessionState().sqlParser().parseExpression(
            options.delete_when
        )  # one expression, nothing behind it
    plans.frame(session, source.pinned.plan)._jdf.createOrReplaceTempView(_GIVEN)
    ready = plans.frame(session, plans.composed(session, prepared(options, source.schema, _GIVEN, emptied)))
    with _unknown_changes_explained():
        held = ready._jdf.localCheckpoint(True)
    held.createOrReplaceTempView(VIEW)
    try:
        yield DataFrame(held, plans.spark)
    finally:
        held.queryExecution().logical().rdd().unpersist(False)


@contextmanager
def _unknown_changes_explained() -> Iterator[None]:
    try:
        yield
    except PySparkException as error:
        code = UNKNOWN_CODE.search(str(error))
        if code is None:
            raise
        raise PreconditionError(
            f"The source has a change with the code {code[1]}, which nobody knows.",
            hint=f"Codes are {', '.join(CODES)}, in any case. Leave other rows out.",
        ) from error


def facts_of(plans: Plans, session: Any, source: Source, options: UpsertOptions) -> tuple[KeyFacts, ...]:
    """What values the keys have. Raises `PreconditionError` for a key of several rows, or a NULL that is refused."""
    types = {one.name.lower(): one.type for one in source.schema}
    matches = options.null_keys is NullKeys.MATCH
    (seen,) = _asked(plans, session, _overview(options, types))
    if seen["missing"] and options.null_keys is NullKeys.REFUSE:
        raise PreconditionError(
            f"{seen['missing']} rows of the source have NULL in a key.",
            hint='Leave them out, or say what they mean: null_keys="insert" or "match".',
        )
    if (seen["most"] or 0) > 1:
        raise PreconditionError(
            f"{seen['most']} rows of the source have the key {_said(options, seen['example'])}.",
            hint='Make keys unique, or choose: duplicates="last by <column>" or "any".',
        )
    few = [number for number, _ in enumerate(options.keys) if seen[f"distinct{number}"] <= FEW]
    listed = _values(plans, session, options, types, few)
    return tuple(
        KeyFacts(
            column=key,
            values=listed.get(number),
            ranges=()
            if number in listed
            else _ranges(plans, session, key, types[key], seen[f"low{number}"], seen[f"high{number}"]),
            nulls=matches and seen[f"nulls{number}"] > 0,
        )
        for number, key in enumerate(options.keys)
    )


def _overview(options: UpsertOptions, types: Mapping[str, str]) -> str:
    keys = [quoted(key) for key in options.keys]
    lacking = (
        "FALSE" if options.null_keys is NullKeys.MATCH else " OR ".join(f"{key} IS NULL" for key in keys)
    )
    asked = [
        f"sum(IF({_LACKING}, {_COUNT}, 0)) AS missing",
        f"max(IF({_LACKING}, 0, {_COUNT})) AS most",
        f"max_by(array({', '.join(f'CAST({key} AS STRING)' for key in keys)}), IF({_LACKING}, 0, {_COUNT})) AS example",
    ]
    for number, (key, name) in enumerate(zip(keys, options.keys, strict=True)):
        counted = f"IF({_LACKING}, NULL, {key})"
        low, high = (_as_text(f"{side}({counted})", types[name]) for side in ("min", "max"))
        asked += [
            f"approx_count_distinct({counted}) AS distinct{number}",
            f"{low} AS low{number}",
            f"{high} AS high{number}",
            f"count_if({key} IS NULL) AS nulls{number}",
        ]
    groups = (
        f"SELECT {', '.join(keys)}, {lacking} AS {_LACKING}, count(*) AS {_COUNT} FROM {VIEW} GROUP BY ALL"
    )
    return f"SELECT {', '.join(asked)} FROM ({groups})"


def _values(
    plans: Plans, session: Any, options: UpsertOptions, types: Mapping[str, str], few: Sequence[int]
) -> Mapping[int, tuple[str, ...]]:
    """All values of those keys that seem to have few; without those that have more after all."""
    if not few:
        return {}
    asked = ", ".join(
        f"collect_set({_as_text(quoted(options.keys[number]), types[options.keys[number]])}) AS v{number}"
        for number in few
    )
    whole = (
        "TRUE"
        if options.null_keys is NullKeys.MATCH
        else " AND ".join(f"{quoted(key)} IS NOT NULL" for key in options.keys)
    )
    (row,) = _asked(plans, session, f"SELECT {asked} FROM {VIEW} WHERE {whole}")
    found = {number: tuple(sorted(row[f"v{number}"])) for number in few}
    return {number: values for number, values in found.items() if len(values) <= FEW}


def _ranges(
    plans: Plans, session: Any, key: str, kind: str, low: str | None, high: str | None
) -> tuple[tuple[str, str], ...]:
    """Ranges that hold all values of a key with many; one where nothing tells how far they are from one another."""
    if low is None or high is None:
        return ()
    if not is_measured(kind) or (kind == "date" and len(low) + len(high) != 2 * _DATE):
        return ((low, high),)  # or years of five digits
    first, last = (_number(text, kind) for text in (low, high))
    if last - first >= _SPAN:
        return ((low, high),)
    width = (last - first) // _BUCKETS + 1
    number = f"CAST({_NUMBERS.get(kind, '{}').format(quoted(key))} AS BIGINT)"
    rows = _asked(
        plans,
        session,
        f"SELECT min(n) AS low, max(n) AS high FROM (SELECT {number} AS n FROM {VIEW}) "
        f"WHERE n IS NOT NULL GROUP BY (n - ({first})) DIV {width}",
    )
    return tuple(
        (_text(begin, kind), _text(end, kind)) for begin, end in ranges_of([(row[0], row[1]) for row in rows])
    )


def _as_text(expression: str, kind: str) -> str:
    return f"CAST({'unix_micros(' + expression + ')' if kind == 'timestamp' else expression} AS STRING)"


def _number(text: str, kind: str) -> int:
    return (date.fromisoformat(text) - _EPOCH).days if kind == "date" else int(text)


def _text(number: int, kind: str) -> str:
    return (_EPOCH + timedelta(days=number)).isoformat() if kind == "date" else str(number)


def _said(options: UpsertOptions, example: Sequence[str | None]) -> str:
    return ", ".join(f"{key}={value}" for key, value in zip(options.keys, example, strict=True))


def _asked(plans: Plans, session: Any, query: str) -> Sequence[Row]:
    return plans.frame(session, plans.composed(session, query)).collect()
