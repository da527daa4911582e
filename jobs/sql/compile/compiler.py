"""One UPDATE or DELETE and the schemas of its tables: the plain statements that do it, one for each table that it
changes. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from lakewarden.catalog.errors import UsageError
from lakewarden.catalog.system.nested import nested_within_reason
from lakewarden.jobs.sql.compile.ambiguities import read_otherwise
from lakewarden.jobs.sql.compile.databases import with_owner
from lakewarden.jobs.sql.compile.emission import step_of
from lakewarden.jobs.sql.compile.meaning.conditions import with_conditions
from lakewarden.jobs.sql.compile.meaning.expressions import translated
from lakewarden.jobs.sql.compile.meaning.functions import numbers_by_chance
from lakewarden.jobs.sql.compile.meaning.nondeterminism import chances, with_distinct_on
from lakewarden.jobs.sql.compile.meaning.storing import assigned
from lakewarden.jobs.sql.compile.merges.compiling import merge_compiled
from lakewarden.jobs.sql.compile.numbered.row_numbers import refused_where_alike
from lakewarden.jobs.sql.compile.places import placed, wrong_in
from lakewarden.jobs.sql.compile.reading import Draft, ambiguous, tables_read
from lakewarden.jobs.sql.compile.resolving import Resolved, SetColumn, resolved
from lakewarden.jobs.sql.compile.upserts.merging import upsert_compiled
from lakewarden.jobs.sql.compile.values import (
    DIALECT_KEY,
    Compiled,
    Dialect,
    MatchPolicy,
    MatchRule,
    SqlStep,
    TableName,
    TableSchema,
)

__all__ = ["compiled"]

_MOMENTS = (exp.CurrentTimestamp, exp.CurrentDate, exp.CurrentTime, exp.CurrentDatetime, exp.Localtimestamp)
_CHANCE = (exp.Rand, exp.Randn, exp.Uuid, exp.Randstr)
_ALL_OR_NONE = (
    "All of the tables are changed, or none: what was done is taken back if the statement is cut off. "
    "Until it ends, readers may see some of them changed before the others."
)
_NO_ORDER = (
    "Every new value is computed from what was there before the statement. MySQL promises no order among "
    "several tables, and may use a new value here."
)
_CHANCE_NAMES = frozenset(
    {
        "RAND",
        "RANDN",
        "RANDOM",
        "RANDSTR",
        "UUID",
        "SHUFFLE",
        "MONOTONICALLY_INCREASING_ID",
        "UNIFORM",
        "NEWID",
    }
)


@nested_within_reason()
def compiled(
    draft: Draft,
    schemas: Mapping[TableName, TableSchema],
    policy: MatchPolicy | None = None,
    table_keys: Sequence[str] = (),
) -> Compiled:
    """The steps. `schemas` has those of all of the draft's tables, `table_keys` the keys that its target names. Raises
    `UsageError` for names that are not there, and for whatever would mean something else in Spark than in the
    statement's dialect.

    Several dialects that read the statement alike must also mean the same by it.
    """
    with placed(draft.text):
        if draft.change.unowned:
            change = with_owner(draft.change, schemas)
            draft = replace(draft, change=change, tables=tables_read(change))
        return _compiled_by_kind(draft, schemas, policy or MatchPolicy(), table_keys)


def _compiled_by_kind(
    draft: Draft,
    schemas: Mapping[TableName, TableSchema],
    policy: MatchPolicy,
    table_keys: Sequence[str],
) -> Compiled:
    if draft.merge is not None:
        return merge_compiled(draft, schemas, policy)
    if draft.placement is not None:
        _refuse_order_of_assignments(draft)
        return upsert_compiled(draft, schemas, policy, table_keys)
    if not draft.others:
        return _compiled(draft, schemas, policy)
    _refuse_one_table_twice(draft)
    done = [_compiled(one, schemas, policy, several=True) for one in draft.each]
    return replace(
        done[0],
        steps=tuple(step for one in done for step in one.steps),
        notes=tuple(dict.fromkeys((*(note for one in done for note in one.notes), *_said_of_several(draft)))),
    )


def _compiled(
    draft: Draft,
    schemas: Mapping[TableName, TableSchema],
    policy: MatchPolicy,
    *,
    several: bool = False,
) -> Compiled:
    """The step for a draft that changes one table, or one of `several`."""
    found = resolved(draft, schemas, policy)
    _refuse_chance(found, draft)
    if any(map(_has_no_order, found.values)):
        _refuse_choice_of_maps(found, draft, policy)
        policy = replace(policy, agreeing=False)
    if several:
        _refuse_moments(found, draft)
    _refuse_order_of_assignments(draft)
    results: dict[Dialect, tuple[SqlStep, tuple[str, ...]]] = {}
    refusals: list[UsageError] = []
    for dialect in draft.dialects:
        try:
            results[dialect] = _in_dialect(draft, found, policy, dialect)
        except UsageError as error:
            refusals.append(error)
    if not results:
        raise refusals[0]
    if refusals:
        raise ambiguous(draft.dialects, refusals[0])
    steps = {step.sql for step, _ in results.values()}
    if len(steps) > 1:
        raise ambiguous(draft.dialects, "They round, divide or compare differently.")
    step, _ = results[draft.dialects[0]]
    notes = _of_the_choice(draft, {dialect: notes for dialect, (_, notes) in results.items()})
    return Compiled(
        dialect=draft.dialects[0],
        target=draft.tables[0],
        matches=policy,
        steps=(step,),
        notes=(*draft.change.notes, *notes, *_said(draft, policy)),
    )


def _in_dialect(
    draft: Draft, found: Resolved, policy: MatchPolicy, dialect: Dialect
) -> tuple[SqlStep, tuple[str, ...]]:
    query = with_distinct_on(found.query.copy())
    query, notes = translated(query, dialect)
    mine = replace(found, query=with_conditions(refused_where_alike(query)))
    values = tuple(replace(one, value=assigned(one.value, one.type, dialect)) for one in mine.values)
    told = dict.fromkeys((*notes, *(note for _, note in chances(found.query, dialect))))
    return step_of(draft.change, mine, values, policy), tuple(told)


def _of_the_choice(draft: Draft, notes: Mapping[Dialect, tuple[str, ...]]) -> tuple[str, ...]:
    """The notes of the first dialect, and what would be another thing if the statement were somebody else's."""
    first, *others = draft.dialects
    if first is Dialect.SPARK and not draft.chosen:
        return (*notes[first], *read_otherwise(draft.text))
    differ = [other for other in others if not set(notes[other]) <= set(notes[first])]
    if not differ:
        return notes[first]
    told = dict.fromkeys((*notes[first], *(note for other in differ for note in notes[other])))
    choice = f"It was read as {first}, and may be {' or '.join(differ)}: SET {DIALECT_KEY} says whose it is."
    return (*told, choice)


def _said(draft: Draft, policy: MatchPolicy) -> tuple[str, ...]:
    """What is worth saying of the policy: nothing where each row can match but once."""
    if len(draft.change.relations) == 1 or not draft.change.assignments:
        return ()
    match policy.rule:
        case MatchRule.ERROR:
            return ("A row with several matches is an error; SET lakewarden.matches = any chooses one.",)
        case MatchRule.ANY:
            return ("Of several matches of a row the one with the smallest values is taken.",)
        case MatchRule.LAST:
            return (f"Of several matches of a row the one with the largest {policy.by} is taken.",)


def _said_of_several(draft: Draft) -> tuple[str, ...]:
    """What is worth saying of a statement that changes several tables."""
    if not _reads_what_is_set_elsewhere(draft):
        return (_ALL_OR_NONE,)
    return (_ALL_OR_NONE, _NO_ORDER)


def _reads_what_is_set_elsewhere(draft: Draft) -> bool:
    """Whether a new value depends on a column that the statement sets in another table."""
    parts = draft.each
    for mine in parts:
        elsewhere = {
            assignment.column.name.lower()
            for other in parts
            if other is not mine
            for assignment in other.change.assignments
        }
        own = mine.change.relations[mine.change.place].name
        for assignment in mine.change.assignments:
            for column in assignment.value.find_all(exp.Column):
                if column.table.lower() != own and column.name.lower() in elsewhere:
                    return True
    return False


def _refuse_one_table_twice(draft: Draft) -> None:
    seen: set[str] = set()
    for one in draft.each:
        name = str(one.tables[0]).lower()
        if name in seen:
            raise wrong_in(
                one.change.target,
                f"{one.tables[0]} is changed under two names at once.",
                hint="Write one statement after the other.",
            )
        seen.add(name)


def _refuse_chance(found: Resolved, draft: Draft) -> None:
    if draft.change.is_plain:
        return
    for node in found.query.find_all(exp.Func):
        if isinstance(node, _CHANCE) or (
            isinstance(node, exp.Anonymous) and node.name.upper() in _CHANCE_NAMES
        ):
            raise wrong_in(
                node,
                "What is random cannot be looked up twice.",
                hint="Write the random values to a table first.",
            )


def _refuse_choice_of_maps(found: Resolved, draft: Draft, policy: MatchPolicy) -> None:
    if policy.rule is MatchRule.ERROR or len(draft.change.relations) == 1:
        return
    for one in found.values:
        if _has_no_order(one):
            raise wrong_in(
                one.value,
                f"{one.column} is a {one.type.this.name.lower()}, which has no order: "
                "no match can be chosen by it.",
                hint="Make the matches unique, and SET lakewarden.matches = error.",
            )


def _has_no_order(value: SetColumn) -> bool:
    return any(kind.is_type("map", "variant") for kind in value.type.find_all(exp.DataType))


def _refuse_moments(found: Resolved, draft: Draft) -> None:
    for node in found.query.find_all(*_MOMENTS):
        raise wrong_in(
            node,
            "Each table of the statement is changed at another moment.",
            hint="Write the moment itself: TIMESTAMP '2026-11-23 08:00:00'.",
        )
    for choice, _ in chances(found.query, draft.dialects[0]):
        raise wrong_in(
            choice,
            "Each table of the statement may be changed by another choice of rows that are alike.",
            hint="Order them by more columns, or write what is chosen to a table first.",
        )
    for window in found.query.find_all(exp.Window):
        if numbers_by_chance(window):
            raise wrong_in(
                window,
                "Each table of the statement may be changed by another order of rows that are alike.",
                hint="Use RANK, or write what is numbered to a table first.",
            )


def _refuse_order_of_assignments(draft: Draft) -> None:
    """MySQL assigns from left to right and uses what it has just assigned; the others use what was there before."""
    if Dialect.MYSQL not in draft.dialects:
        return
    done: set[str] = set()
    own = ("", draft.change.relations[draft.change.place].name)
    for assignment in draft.change.assignments:
        for column in assignment.value.find_all(exp.Column):
            if column.name.lower() in done and column.table.lower() in own:
                raise wrong_in(
                    column,
                    f"mysql takes the new value of {column.name} here, all others the old one.",
                    hint="Set this column before the other one, or write two statements.",
                )
        done.add(assignment.column.name.lower())
