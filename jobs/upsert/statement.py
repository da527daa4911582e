"""An upsert as plain Spark SQL: how its source is made ready, and the one MERGE that does it. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from lakewarden.jobs.sql.compile.clauses import Seen
from lakewarden.jobs.sql.compile.keyed_merge import KeyedMerge, MergeAction, lacks_key, rank
from lakewarden.jobs.sql.compile.values import TableSchema, quoted
from lakewarden.jobs.upsert.changes import ORDERED, TIE, Cdc
from lakewarden.jobs.upsert.pruning import KeyFacts, pruning_of
from lakewarden.jobs.upsert.target_columns import Columns, Rules, columns_of
from lakewarden.jobs.upsert.upsert_options import DuplicatesRule, NullKeys, UpsertOptions

__all__ = ["DELETED", "SAME", "UpsertPlan", "prepared", "settled", "upsert_plan"]

DELETED: Final = "__lakewarden_deleted"
"""The column of the prepared source that says that a row is to go."""
SAME: Final = "__lakewarden_same"
"""The column of the prepared source that says how many of its rows have the keys of a row."""
_RANK: Final = "__lakewarden_rank"
_COPY: Final = "__lakewarden_copy"
_TIE_RANK: Final = "__lakewarden_tie_rank"
_UNTOLD: Final = "__lakewarden_untold"
_WHOLE: Final = (
    "'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSSXXX', 'timestampNTZFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS'"
)
"""Moments as text, to the microsecond: Spark's own formats end at milliseconds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class UpsertPlan:
    """How an upsert is run."""

    columns: Columns
    pruning: str
    """One condition of the MERGE; empty if every file has to be asked."""
    statement: str
    """The MERGE."""


def prepared(
    options: UpsertOptions, source: TableSchema, view: str, emptied: frozenset[str] = frozenset()
) -> str:
    """The query that makes the source ready: of rows with one key those that count, and which of them are to go.

    What may match nothing (a NULL in its key) stays as it is. Keys that are `emptied` (in lower case) are NULL where
    they are an empty text. Where rows of one key are looked at anyway, it says how many are left of them (`SAME`);
    where these are several, `settled` looks again.
    """
    condition = "FALSE" if options.delete_when is None else f"coalesce((\n{options.delete_when}\n), FALSE)"
    given = ", ".join(
        f"nullif({name}, '') AS {name}" if one.name.lower() in emptied else name
        for one, name in ((one, quoted(one.name)) for one in source)
    )
    rows = f"SELECT {given if emptied else '*'}, {condition} AS {quoted(DELETED)} FROM {quoted(view)}"
    keys = [quoted(key) for key in options.keys]
    match options.duplicates.rule:
        case DuplicatesRule.ERROR:
            return rows
        case DuplicatesRule.ANY:
            smallest = [_comparable(one.name, one.type) for one in source]
            chosen = rank(keys, smallest=smallest)
        case DuplicatesRule.LAST:
            chosen = rank(keys, last_by=quoted(str(options.duplicates.by)))
    return _left_of(options, source, f"({rows})", f"{chosen} AS {_RANK}", f"{_RANK} = 1")


def settled(options: UpsertOptions, source: TableSchema, view: str) -> str | None:
    """The query that makes of a prepared `view` with several last rows of one key what is left: equal rows are there
    once, and of the others those that a tie-breaker names. None where several rows can never be last."""
    if options.duplicates.rule is not DuplicatesRule.LAST:
        return None
    keys, by = [quoted(key) for key in options.keys], quoted(str(options.duplicates.by))
    everything = [_comparable(one.name, one.type) for one in source]
    ranks, chosen = f"{rank([*keys, *everything], smallest=[by])} AS {_COPY}", f"{_COPY} = 1"
    if options.duplicates.then is not None:
        then = quoted(TIE if options.cdc is Cdc.DEBEZIUM else options.duplicates.then)
        tied = [*keys, by]
        ranks += (
            f", {rank(tied, last_by=then)} AS {_TIE_RANK}, "
            f"max({then} IS NULL) OVER (PARTITION BY {', '.join(tied)}) AS {_UNTOLD}"
        )
        chosen += f" AND ({_TIE_RANK} = 1 OR {_UNTOLD})"  # NULL tells nothing: then all of them are left
    return _left_of(options, source, view, ranks, chosen)


def _left_of(options: UpsertOptions, source: TableSchema, rows: str, ranks: str, chosen: str) -> str:
    """The chosen ones of prepared rows, and how many of them have the keys of each."""
    keys = [quoted(key) for key in options.keys]
    if options.null_keys is not NullKeys.MATCH:
        chosen = f"({chosen}) OR {lacks_key(keys)}"
    listed = ", ".join(quoted(name) for name in (*(one.name for one in source), DELETED))
    is_once = options.duplicates.rule is DuplicatesRule.ANY
    same = "1" if is_once else f"count(*) OVER (PARTITION BY {', '.join(keys)})"
    return f"SELECT {listed}, {same} AS {SAME} FROM (SELECT *, {ranks} FROM {rows}) WHERE {chosen}"


def upsert_plan(
    options: UpsertOptions,
    *,
    source: TableSchema,
    target: TableSchema,
    rules: Rules,
    name: str,
    view: str,
    facts: Sequence[KeyFacts] = (),
    partitions: Sequence[str] = (),
    escapes: bool = True,
) -> UpsertPlan:
    """The MERGE of the prepared `view` into `name` (both as SQL). The target is partitioned by `partitions`.
    Raises like `columns_of`."""
    columns = columns_of(options, source, target, rules)
    equals = "<=>" if options.null_keys is NullKeys.MATCH else "="
    pruning = pruning_of(facts, source, target, partitions=partitions, escapes=escapes)
    conditions = [f"{_target(key)} {equals} {_source(columns, key)}" for key in columns.keys]
    conditions += [pruning] if pruning else []
    merge = KeyedMerge(
        target=f"{name} AS target",
        source=f"{view} AS source",
        matches=conditions,
        actions=_actions(options, columns),
        evolves=columns.evolves,
    )
    return UpsertPlan(columns=columns, pruning=pruning, statement=merge.sql())


def _actions(options: UpsertOptions, columns: Columns) -> list[MergeAction]:
    deletes = options.delete_when is not None
    gone = f"source.{quoted(DELETED)}"
    newer = _newer(options.newer_by, ">")
    # Change data has in a deletion the row as it was: an equal value is that very row.
    newer_or_same = _newer(options.newer_by, ">=" if options.cdc in ORDERED else ">")
    actions = []
    if deletes:
        goes = f"{gone} AND {newer_or_same}" if newer_or_same else gone
        actions.append(MergeAction(seen=Seen.BOTH, condition=goes))
    if columns.updated:
        actions.append(MergeAction(seen=Seen.BOTH, condition=newer, sets=_sets(columns, columns.updated)))
    stays = f"NOT {gone}" if deletes else ""
    actions.append(MergeAction(seen=Seen.SOURCE, condition=stays, sets=_sets(columns, columns.inserted)))
    return actions


def _sets(columns: Columns, names: Sequence[str]) -> list[tuple[str, str]]:
    return [(quoted(name), _source(columns, name)) for name in names]


def _newer(by: str | None, compared: str) -> str:
    """A row of the source is newer by a larger value (`compared` with >), or by any value where the target has none.
    NULL never is. Nothing where it does not matter."""
    if by is None:
        return ""
    ours, theirs = f"source.{quoted(by)}", f"target.{quoted(by)}"
    return f"({ours} {compared} {theirs} OR ({theirs} IS NULL AND {ours} IS NOT NULL))"


def _target(name: str) -> str:
    return f"target.{quoted(name)}"


def _source(columns: Columns, name: str) -> str:
    return f"source.{quoted(columns.source[name])}"


def _comparable(name: str, kind: str) -> str:
    """A column as something that has an order: maps and variants have none."""
    unordered = "map<" in kind or "variant" in kind
    return f"to_json(struct({quoted(name)}), map({_WHOLE}))" if unordered else quoted(name)
