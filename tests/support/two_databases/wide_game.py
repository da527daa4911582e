"""One random change of many types on PostgreSQL, and as its compiled step would do it: what came of it.

The step is rehearsed (`rehearsal.py`), not run, so that thousands fit in minutes; what Delta itself makes of a step is
for `game.py`. PostgreSQL says which matches there are; which of several counts is chosen here, by the policy's words.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.values import MatchPolicy, MatchRule
from support.two_databases.game import Outcome, Played
from support.two_databases.random_wide import WideChange, random_wide_change
from support.two_databases.rehearsal import Rehearsed, SeveralMatchesError, World, rehearsed
from support.two_databases.sides import Connection, Server
from support.two_databases.wide_tables import SCHEMAS, created

__all__ = ["FAST", "create_wide", "play_wide"]

FAST: Final[Mapping[str, str]] = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
}
"""Settings with which Spark answers small queries at once, by its own operators."""

_Rows = list[tuple[Any, ...]]
_Matches = Mapping[Any, Sequence[tuple[tuple[Any, ...], Any]]]


@dataclass(frozen=True, kw_only=True)
class _Done:
    """What a side made of the table; `error` if it refused."""

    rows: _Rows
    affected: int = 0
    error: str = ""


def create_wide(connection: Connection) -> None:
    """Make the tables in PostgreSQL."""
    for name in SCHEMAS:
        connection.execute(created(name).encode())


def play_wide(
    spark: SparkSession,
    server: Server,
    connection: Connection,
    seed: int,
    made: Callable[[int], WideChange] = random_wide_change,
) -> Played:
    """Ask both sides. A row with several matches must be refused by us first, and then be chosen for alike."""
    change = made(seed)
    connection.execute(b"BEGIN")
    try:
        return _played(spark, server, connection, seed, change)
    finally:
        connection.execute(b"ROLLBACK")


def _played(
    spark: SparkSession, server: Server, connection: Connection, seed: int, change: WideChange
) -> Played:
    _fill(connection, change)
    policy = MatchPolicy()
    try:
        matches = _matches(connection, change)
        several = bool(change.sets) and any(len(found) > 1 for found in matches.values())
        if several:
            last = MatchPolicy(rule=MatchRule.LAST, by=change.by.replace('"', "`"))
            policy = last if change.by and seed % 2 else MatchPolicy(rule=MatchRule.ANY)
            theirs = _chosen(connection, change, matches, policy)
        else:
            affected = connection.execute(change.text.encode()).rowcount
            theirs = _Done(rows=connection.execute(b"SELECT * FROM t").fetchall(), affected=affected)
    except server.refusals as error:
        several, theirs = False, _Done(rows=[], error=str(error))
    ours = _ours(spark, change, policy)
    if isinstance(ours, UsageError):
        outcome = Outcome.BOTH_REFUSED if theirs.error else Outcome.REFUSED
        return Played(seed=seed, change=change, outcome=outcome, why=str(ours))
    why = f"{policy}\n  ours:   {_shown(ours, theirs)}\n  theirs: {_shown(theirs, ours)}"
    if ours.error and theirs.error:
        return Played(seed=seed, change=change, outcome=Outcome.BOTH_REFUSED, why=why)
    if several and not _is_told(spark, change):
        return Played(
            seed=seed, change=change, outcome=Outcome.DIFFERENT, why="nobody was told of several matches"
        )
    same = not ours.error and not theirs.error and ours.affected == theirs.affected
    if not same or _sorted(ours.rows) != _sorted(theirs.rows):
        return Played(seed=seed, change=change, outcome=Outcome.DIFFERENT, why=why)
    return Played(seed=seed, change=change, outcome=Outcome.CHOSEN if several else Outcome.SAME, why=why)


def _fill(connection: Connection, change: WideChange) -> None:
    for name, rows in change.rows.items():
        places = ", ".join(["%s"] * len(SCHEMAS[name]))
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {name} VALUES ({places})", rows)


def _matches(connection: Connection, change: WideChange) -> _Matches:
    """By the place of a row: the new values of each match, and what the policy goes by."""
    found: dict[Any, list[tuple[tuple[Any, ...], Any]]] = {}
    for place, *values, by in connection.execute(change.matches.encode()).fetchall():
        found.setdefault(place, []).append((tuple(values), by))
    return found


def _chosen(connection: Connection, change: WideChange, matches: _Matches, policy: MatchPolicy) -> _Done:
    """The table after the match of each row that the policy's own words choose."""
    rows = {place: row for place, *row in connection.execute(b"SELECT ctid, * FROM t").fetchall()}
    names = [one.name for one in SCHEMAS["t"]]
    for place, found in matches.items():
        values = {one for one, _ in found}
        if policy.rule is MatchRule.LAST:
            top = max(((by is not None, by) for _, by in found if by is not None), default=(False, None))
            values = {one for one, by in found if (by is not None, by) == top}
            if len(values) > 1:
                return _Done(rows=[], error="the last is there twice")
        best = min(values, key=lambda one: [(value is not None, value) for value in one])
        for column, value in zip(change.sets, best, strict=True):
            rows[place][names.index(column)] = value
    return _Done(rows=[tuple(row) for row in rows.values()], affected=len(matches))


def _ours(spark: SparkSession, change: WideChange, policy: MatchPolicy) -> _Done | UsageError:
    try:
        found = _rehearsed(spark, change, policy)
    except UsageError as error:
        return error
    except (SeveralMatchesError, PySparkException) as error:
        return _Done(rows=[], error=f"{type(error).__name__}: {str(error)[:400]}")
    return _Done(rows=[tuple(row) for row in found.rows], affected=found.affected)


def _is_told(spark: SparkSession, change: WideChange) -> bool:
    """Whether several matches are an error as long as nobody chooses."""
    try:
        _rehearsed(spark, change, MatchPolicy())
    except SeveralMatchesError:
        return True
    return False


def _rehearsed(spark: SparkSession, change: WideChange, policy: MatchPolicy) -> Rehearsed:
    draft = draft_of(*change.asked)
    assert draft is not None
    (step,) = compiled(draft, {table: SCHEMAS[table.parts[-1]] for table in draft.tables}, policy).steps
    return rehearsed(spark, step, World(schemas=SCHEMAS, rows=change.rows))


def _sorted(rows: _Rows) -> _Rows:
    return sorted(rows, key=repr)


def _shown(one: _Done, other: _Done) -> str:
    return one.error or f"{one.affected} rows, {sorted(set(one.rows) - set(other.rows), key=repr)}"
