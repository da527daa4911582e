"""The source of an upsert in its session: evaluated once, kept while the upsert runs, and looked at."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row
from pyspark.sql.functions import expr
from pyspark.sql.types import DataType, StructType

from lakewarden.catalog.errors import PreconditionError, UsageError
from lakewarden.jobs.engines.spark.errors import unreadable
from lakewarden.jobs.session.conflicts.lost_rows import kept_rows
from lakewarden.jobs.session.frames import columns_in, struct_of
from lakewarden.jobs.session.plans import JavaPlan, Plans, kind
from lakewarden.jobs.session.read_plans.pins import Pinned
from lakewarden.jobs.session.writes import Upsert
from lakewarden.jobs.sql.compile.keyed_merge import lacks_key
from lakewarden.jobs.sql.compile.values import TableSchema, quoted
from lakewarden.jobs.upsert.changes import CODES, NO_ROW, TRUNCATED, UNKNOWN_CODE, Cdc, change_rows
from lakewarden.jobs.upsert.pruning import FEW, Ends, KeyFacts, bucket_of, fact_of, lies_close
from lakewarden.jobs.upsert.statement import SAME, UpsertPlan, prepared, settled, upsert_plan
from lakewarden.jobs.upsert.target_columns import Rules
from lakewarden.jobs.upsert.upsert_options import DuplicatesRule, NullKeys, UpsertOptions

__all__ = [
    "VIEW",
    "KeptSource",
    "UpsertSource",
    "facts_of",
    "kept",
    "plan_of_upsert",
    "require_one_row_each",
    "rows_of",
]

_RDD: Final = "LogicalRDD"
_ESCAPED: Final = "spark.sql.parser.escapedStringLiterals"
VIEW: Final = "__lakewarden_source"
"""The name of the prepared source in the session."""
_GIVEN: Final = "__lakewarden_given"
_SEEN: Final = "__lakewarden_seen"
_COUNT: Final = "__lakewarden_count"


@dataclass(frozen=True, kw_only=True)
class UpsertSource:
    """The given source with fixed versions, and its columns."""

    pinned: Pinned
    schema: TableSchema


def rows_of(request: Upsert) -> DataFrame:
    """The frame; of changes the rows that they say."""
    frame: DataFrame = request.frame
    options = request.options
    if options.cdc is None:
        return frame
    schema = struct_of(frame)
    is_envelope = options.cdc is Cdc.DEBEZIUM
    tie, in_row = _tie_of(schema, options.duplicates.then) if is_envelope else (None, False)
    if is_envelope:
        _require_same_fields(schema)
    said = change_rows(
        options.cdc,
        columns_in(schema),
        options.op,
        keys=_keys_of_both_sides(schema, options.keys),
        settles_order=options.duplicates.rule is DuplicatesRule.LAST,
        tie=tie,
        tie_in_row=in_row,
    )
    return frame.where(said.where).selectExpr(*said.columns).selectExpr(*said.unfolded)


def _keys_of_both_sides(schema: StructType, keys: Sequence[str]) -> Sequence[str]:
    """The keys, as an envelope calls them, where it has all of them before and after a change."""
    sides = [_row_of(schema, side) for side in ("before", "after")]
    if not all({*keys} <= side.keys() for side in sides):
        return ()
    return [sides[1][key] for key in keys]


def _row_of(schema: StructType, side: str) -> Mapping[str, str]:
    """The columns that an envelope has on one side, as it calls them, by their names in lower case."""
    row = next((one.dataType for one in schema if one.name.lower() == side), None)
    return {name.lower(): name for name in row.names} if isinstance(row, StructType) else {}


def _require_same_fields(schema: StructType) -> None:
    """Raise `UsageError` for an envelope whose sides are not rows of one table."""
    before, after = (
        next((one.dataType.simpleString() for one in schema if one.name.lower() == side), None)
        for side in ("before", "after")
    )
    if None not in (before, after) and before != after:
        raise UsageError(
            f"`before` is {before} and `after` is {after}: not rows of one table.",
            hint="Parse both with one schema, that of the table's rows.",
        )


def _tie_of(schema: StructType, named: str | None) -> tuple[str | None, bool]:
    """The tie-breaker among changes of one moment, as SQL, and whether it is a column of the row: a column or a field
    of the envelope (`source.lsn`), else a column of its rows. Raises `UsageError` if it is neither."""
    if named is None:
        return None, False
    field: DataType = schema
    path: list[str] = []
    for part in named.split("."):
        inside = field if isinstance(field, StructType) else StructType()
        found = next((one for one in inside if one.name.lower() == part), None)
        if found is None:
            break
        path.append(found.name)
        field = found.dataType
    else:
        return ".".join(map(quoted, path)), False
    row = _row_of(schema, "after")
    if named in row:
        return quoted(row[named]), True
    raise UsageError(
        f"Neither the envelope nor its rows have {named}, by which the last change is to be known.",
        hint=f"The envelope has: {', '.join(schema.names)}; its rows: {', '.join(row.values()) or 'nothing'}.",
    )


def plan_of_upsert(
    session: Any,
    request: Upsert,
    source: UpsertSource,
    facts: Sequence[KeyFacts],
    *,
    target: TableSchema,
    rules: Rules,
    name: str,
    partitions: Sequence[str] = (),
) -> UpsertPlan:
    """The statement for a source that is kept, on the table that SQL calls `name`."""
    return upsert_plan(
        request.options,
        source=source.schema,
        target=target,
        rules=rules,
        name=name,
        view=VIEW,
        facts=facts,
        partitions=partitions,
        escapes=str(session.conf().get(_ESCAPED, "false")).lower() != "true",
    )


@dataclass(frozen=True, kw_only=True)
class KeptSource:
    """A prepared source that was computed."""

    size: int
    """Bytes that it takes."""
    seen: Mapping[str, Any] | None
    """What was told of its keys as they went by: all that `_overview` asks; None where rows of one key were not brought
    together for it."""


@contextmanager
def kept(
    plans: Plans, session: Any, source: UpsertSource, options: UpsertOptions, emptied: frozenset[str]
) -> Iterator[KeptSource]:
    """The prepared source as the view `VIEW`. It is computed here, once: the rows that are looked at are the rows that
    are merged. An empty text in a key that is `emptied` is NULL."""
    if options.delete_when is not None:  # one expression, nothing behind it
        told = session.sessionState().sqlParser().parseExpression(options.delete_when)
        if plans.asks(told):
            raise UsageError(
                "`delete_when` takes no query: what it reads would be on no record.",
                hint="Join the values into the source as a column, and name that column.",
            )
    plans.frame(session, _together(plans, session, source.pinned.plan))._jdf.createOrReplaceTempView(_GIVEN)
    again = settled(options, source.schema, VIEW)
    with ExitStack() as stack:
        with _bad_source_explained():
            ready = prepared(options, source.schema, _GIVEN, emptied)
            held = stack.enter_context(_computed(plans, session, source, options, ready))
        if again is not None and held.seen is not None and (held.seen["most"] or 0) > 1:
            held = stack.enter_context(_computed(plans, session, source, options, again))
        yield held


@contextmanager
def _computed(
    plans: Plans, session: Any, source: UpsertSource, options: UpsertOptions, query: str
) -> Iterator[KeptSource]:
    """The rows of a query that makes the source ready, as the view `VIEW`."""
    ready = plans.frame(session, plans.composed(session, query))
    if options.duplicates.rule is not DuplicatesRule.ERROR:
        with plans.active(session):  # whose parser takes names as they are
            asked = [expr(one) for one in _overview(options, source, each="1", count=SAME)]
            ready = ready.observe(_SEEN, *asked).drop(SAME)
    # At once: what a first query computed would be computed again for the rest if an executor was lost meanwhile.
    held = ready._jdf.localCheckpoint(True).queryExecution().logical()
    with kept_rows(held.rdd()):
        size = plans.stored_bytes(held.rdd())
        plans.frame(session, plans.sized(session, held, size))._jdf.createOrReplaceTempView(VIEW)
        yield KeptSource(size=size, seen=_told(ready))


def _together(plans: Plans, session: Any, plan: JavaPlan) -> JavaPlan:
    """The plan; where all of its rows come from one task that reads an RDD, as a small batch of a stream does, it says
    so, and rows with one key are not exchanged to be together."""
    leaf, *rest = plans.leaves(plan)
    if rest or kind(leaf) != _RDD or leaf.isStreaming() or leaf.rdd().getNumPartitions() != 1:
        return plan
    none = plans.nothing
    made = leaf.copy(
        leaf.output(), leaf.rdd(), plans.single, leaf.outputOrdering(), False, none, session,
        plans.optional(leaf.stats()), none,
    )  # fmt: skip
    return plans.replaced(plan, [(leaf, made)])


@contextmanager
def _bad_source_explained() -> Iterator[None]:
    try:
        yield
    except Py4JJavaError as error:
        told = unreadable(error)
        if told is None:
            raise
        raise PreconditionError(
            f"The source cannot be read: {told}",
            hint="A vacuum has taken old versions and their change feed with it, or somebody has deleted a "
            "file. Read what is still there: a later version, or the whole table.",
        ) from error
    except PySparkException as error:
        lacks, code = NO_ROW.search(str(error)), UNKNOWN_CODE.search(str(error))
        if lacks is not None:
            raise PreconditionError(
                f"The source has a change with the code '{lacks[1]}' whose {lacks[2]} is NULL, "
                "where its row would be.",
                hint="Let the connector send it (in PostgreSQL: REPLICA IDENTITY), "
                "or leave such changes out.",
            ) from error
        if code is None:
            raise
        if code[1].strip().lower() == TRUNCATED:
            raise PreconditionError(
                f"The source has a TRUNCATE (code {code[1]}): all rows that were there before it are gone.",
                hint="Apply what comes before it, then delete the table's rows (DELETE FROM), then apply what comes "
                "after it. Left out, what it deleted would stay for ever.",
            ) from error
        raise PreconditionError(
            f"The source has a change with the code '{code[1]}', which is unknown.",
            hint=f"Codes are {', '.join(CODES)}, in any case. Leave other rows out.",
        ) from error


def _told(frame: DataFrame) -> Mapping[str, Any] | None:
    """What was told of rows as they went by."""
    found = frame._jdf.queryExecution().observedMetrics().get(_SEEN)
    if not found.isDefined():
        return None
    row = found.get()
    return {name: row.get(place) for place, name in enumerate(row.schema().fieldNames())}


def facts_of(
    plans: Plans, session: Any, source: UpsertSource, options: UpsertOptions, held: KeptSource
) -> tuple[KeyFacts, ...]:
    """What values the keys have. Raises `PreconditionError` for a key of several rows, or a NULL that is refused."""
    types = {one.name.lower(): one.type for one in source.schema}
    matches = options.null_keys is NullKeys.MATCH
    seen = require_one_row_each(plans, session, source, options, held)
    ends = {number: (seen[f"low{number}"], seen[f"high{number}"]) for number, _ in enumerate(options.keys)}
    distinct = {number: seen[f"distinct{number}"] for number in ends}
    found = _spread(plans, session, options, types, ends, distinct)
    return tuple(
        fact_of(
            key, types[key], ends[number], found.get(number), nulls=matches and seen[f"nulls{number}"] > 0
        )
        for number, key in enumerate(options.keys)
    )


def require_one_row_each(
    plans: Plans, session: Any, source: UpsertSource, options: UpsertOptions, held: KeptSource
) -> Mapping[str, Any]:
    """What is known of the keys. Raises as `facts_of`."""
    seen = held.seen
    if seen is None:
        (row,) = _asked(plans, session, _grouped_overview(options, source))
        seen = row.asDict()
    _require_sound(plans, session, options, seen)
    return seen


def _require_sound(plans: Plans, session: Any, options: UpsertOptions, seen: Mapping[str, Any]) -> None:
    if seen["missing"] and options.null_keys is NullKeys.REFUSE:
        raise PreconditionError(
            f"{seen['missing']} rows of the source have NULL in a key.",
            hint='Leave them out, or say what they mean: null_keys="insert" or "match".',
        )
    if (seen["most"] or 0) > 1:
        (twice,) = _asked(plans, session, _most_frequent(options))
        raise PreconditionError(
            f"{twice[_COUNT]} rows of the source have the key {_said(options, twice['example'])}.",
            hint='Make keys unique, or choose: duplicates="last by <column>" or "any".',
        )


def _lacking(options: UpsertOptions) -> str:
    """The condition of the rows that match nothing, because a key is NULL."""
    if options.null_keys is NullKeys.MATCH:
        return "FALSE"
    return lacks_key([quoted(key) for key in options.keys])


def _overview(options: UpsertOptions, source: UpsertSource, *, each: str, count: str) -> list[str]:
    """Of rows, or groups (`each` of so many), of which a column says how many (`count`) have its keys: how many lack a
    key, how many have one key, and by a key's number how many values, the smallest, the largest, how many NULLs."""
    types = {one.name.lower(): one.type for one in source.schema}
    lacks = _lacking(options)
    asked = [f"sum(IF({lacks}, {each}, 0)) AS missing", f"max(IF({lacks}, 0, {count})) AS most"]
    distinct = "count" if len(options.keys) == 1 else "approx_count_distinct"
    for number, name in enumerate(options.keys):
        counted = f"IF({lacks}, NULL, {quoted(name)})"
        low, high = (_as_text(f"{side}({counted})", types[name]) for side in ("min", "max"))
        asked += [
            f"{distinct}({counted}) AS distinct{number}",
            f"{low} AS low{number}",
            f"{high} AS high{number}",
            f"count_if({quoted(name)} IS NULL) AS nulls{number}",
        ]
    return asked


def _grouped_overview(options: UpsertOptions, source: UpsertSource) -> str:
    """The same of the rows that are kept, of which nothing says how many have one key: of keys alone, which are
    moved for it."""
    keys = ", ".join(quoted(key) for key in options.keys)
    groups = f"SELECT {keys}, count(*) AS {_COUNT} FROM {VIEW} GROUP BY ALL"
    asked = _overview(options, source, each=_COUNT, count=_COUNT)
    return f"SELECT {', '.join(asked)} FROM ({groups})"


def _most_frequent(options: UpsertOptions) -> str:
    keys = ", ".join(quoted(key) for key in options.keys)
    example = ", ".join(f"CAST({quoted(key)} AS STRING)" for key in options.keys)
    return (
        f"SELECT count(*) AS {_COUNT}, array({example}) AS example FROM {VIEW} "
        f"WHERE NOT ({_lacking(options)}) GROUP BY {keys} ORDER BY 1 DESC, 2 LIMIT 1"
    )


def _spread(
    plans: Plans,
    session: Any,
    options: UpsertOptions,
    types: Mapping[str, str],
    ends: Mapping[int, Ends],
    distinct: Mapping[int, int],
) -> Mapping[int, Sequence[Ends]]:
    """By the number of a key: its values where they seem to be few, the ends of those in each bucket where they are
    many and lie at distances. One query for all keys of which more than the ends matters, none where these tell it."""
    whole = " AND ".join(f"{quoted(key)} IS NOT NULL" for key in options.keys)
    found: dict[int, list[Ends]] = {}
    queries = []
    for number, key in enumerate(options.keys):
        (lowest, highest), column, kind = ends[number], quoted(key), types[key]
        if lowest == highest:
            found[number] = [] if lowest is None else [ends[number]]
            continue
        if lies_close(kind, ends[number], distinct[number]):
            continue
        is_few = distinct[number] <= FEW
        counts = f"{column} IS NOT NULL" if options.null_keys is NullKeys.MATCH else whole
        low, high = (_as_text(f"{side}({column})", kind) for side in ("min", "max"))
        among = column if is_few else bucket_of(column, kind, ends[number])
        if among is not None:
            queries.append(
                f"SELECT {number} AS key, {low} AS low, {high} AS high FROM {VIEW} "
                f"WHERE {counts} GROUP BY {among}"
            )
    for row in _asked(plans, session, " UNION ALL ".join(queries)) if queries else ():
        found.setdefault(row["key"], []).append((row["low"], row["high"]))
    return found


def _as_text(expression: str, kind: str) -> str:
    return f"CAST({'unix_micros(' + expression + ')' if kind == 'timestamp' else expression} AS STRING)"


def _said(options: UpsertOptions, example: Sequence[str | None]) -> str:
    return ", ".join(f"{key}={value}" for key, value in zip(options.keys, example, strict=True))


def _asked(plans: Plans, session: Any, query: str) -> Sequence[Row]:
    return plans.frame(session, plans.composed(session, query)).collect()
