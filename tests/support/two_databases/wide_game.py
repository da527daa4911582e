"""One random change of many types on another database, and as its compiled steps would do it: what came of it.

A step is rehearsed (`rehearsal.py`), not run, so that thousands fit in minutes; what Delta itself makes of a step is
for `game.py`. PostgreSQL says which matches there are; which of several counts is chosen here, by the policy's words.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, tzinfo
from decimal import Decimal
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.values import Compiled, Dialect, MatchPolicy, MatchRule
from support.two_databases.game import Change, Outcome, Played
from support.two_databases.random_wide import WideChange, random_wide_change
from support.two_databases.random_wide_mysql import MysqlWideChange, random_wide_several_change
from support.two_databases.rehearsal import SeveralMatchesError, World, rehearsed
from support.two_databases.sides import Connection, Rows, Server
from support.two_databases.wide_tables import KINDS, SCHEMAS, created

__all__ = [
    "FAST",
    "Done",
    "asked",
    "create_wide",
    "filled",
    "held",
    "judged",
    "play_wide",
    "play_wide_several",
]

FAST: Final[Mapping[str, str]] = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation",
}
"""Settings with which Spark answers small queries at once, by its own operators, in a zone where an hour is there twice
in autumn and not at all in spring."""

_Rows = list[tuple[Any, ...]]
_Matches = Mapping[Any, Sequence[tuple[tuple[Any, ...], Any]]]


@dataclass(frozen=True, kw_only=True)
class Done:
    """What a side made of the tables that are changed, by their names; `error` if it refused."""

    tables: Mapping[str, _Rows]
    affected: int = 0
    error: str = ""

    def __str__(self) -> str:
        return self.error or f"{self.affected} rows, {dict(self.tables)}"


def create_wide(server: Server, connection: Connection) -> None:
    """Make the tables in the other database."""
    if server.dialect == Dialect.POSTGRES:
        connection.execute(f"SET TIME ZONE '{FAST['spark.sql.session.timeZone']}'".encode())
    for name in SCHEMAS:
        connection.execute(created(name, mysql=server.dialect == Dialect.MYSQL).encode())


def play_wide(
    spark: SparkSession,
    server: Server,
    connection: Connection,
    seed: int,
    made: Callable[[int], WideChange] = random_wide_change,
) -> Played:
    """Ask both sides. A row with several matches must be refused by us first, and then be chosen for alike."""
    change = made(seed)
    with filled(connection, change.rows):
        policy = MatchPolicy()
        try:
            matches = _matches(connection, change)
            several = bool(change.sets) and any(len(found) > 1 for found in matches.values())
            if several:
                last = MatchPolicy(rule=MatchRule.LAST, by=change.by.replace('"', "`"))
                policy = last if change.by and seed % 2 else MatchPolicy(rule=MatchRule.ANY)
                theirs = _chosen(server, connection, change, matches, policy)
            else:
                affected = connection.execute(change.text.encode()).rowcount
                theirs = Done(tables=held(connection, change.changed), affected=affected)
        except server.refusals as error:
            several, theirs = False, Done(tables={}, error=str(error))
        ours = _ours(spark, change, policy)
        if several and not isinstance(ours, UsageError) and not (ours.error and theirs.error):
            told = _ours(spark, change, MatchPolicy())
            if isinstance(told, UsageError) or not told.error.startswith(SeveralMatchesError.__name__):
                why = "nobody was told of several matches"
                return Played(seed=seed, change=change, outcome=Outcome.DIFFERENT, why=why)
            agreeing = _ours(spark, change, MatchPolicy(agreeing=True))
            agree = all(len({values for values, _ in found}) == 1 for found in matches.values())
            if isinstance(agreeing, UsageError) or agree != (agreeing == ours):
                why = f"matches that {'agree' if agree else 'differ'}: {agreeing}"
                return Played(seed=seed, change=change, outcome=Outcome.DIFFERENT, why=why)
        return judged(seed, change, ours, theirs, Outcome.CHOSEN if several else Outcome.SAME)


def play_wide_several(
    spark: SparkSession,
    server: Server,
    connection: Connection,
    seed: int,
    made: Callable[[int], MysqlWideChange] = random_wide_several_change,
) -> Played:
    """Ask both sides for a change of several tables. One with several matches of a row is refused by us, unless it
    deletes; how many rows it changes in all is not asked, as MySQL counts others."""
    change = made(seed)
    with filled(connection, change.rows):
        several = int(connection.execute(change.several.encode()).fetchone()[0])
        ours = _ours(spark, change, MatchPolicy())
        if not isinstance(ours, UsageError) and ours.error.startswith(SeveralMatchesError.__name__):
            outcome = Outcome.BOTH_REFUSED if several else Outcome.DIFFERENT
            return Played(seed=seed, change=change, outcome=outcome, why=ours.error)
        try:
            connection.execute(change.text.encode())
            affected = 0 if isinstance(ours, UsageError) else ours.affected
            theirs = Done(tables=held(connection, change.changed), affected=affected)
        except server.refusals as error:
            theirs = Done(tables={}, error=str(error))
        return judged(seed, change, ours, theirs, Outcome.SAME)


@contextmanager
def filled(connection: Connection, rows: Mapping[str, Rows]) -> Iterator[None]:
    """The tables with these rows, and without them again afterwards."""
    connection.execute(b"BEGIN")
    try:
        for name, each in rows.items():
            places = ", ".join(["%s"] * len(SCHEMAS[name]))
            with connection.cursor() as cursor:
                cursor.executemany(f"INSERT INTO {name} VALUES ({places})", each)
        yield
    finally:
        connection.execute(b"ROLLBACK")


def held(connection: Connection, tables: Iterable[str]) -> dict[str, _Rows]:
    """What the other database's tables hold."""
    return {
        name: _plain(name, connection.execute(f"SELECT * FROM {name}".encode()).fetchall(), UTC)
        for name in tables
    }


def judged(seed: int, change: Change, ours: Done | UsageError, theirs: Done, same: Outcome) -> Played:
    """What came of a change that both sides were asked for."""
    if isinstance(ours, UsageError):
        outcome = Outcome.BOTH_REFUSED if theirs.error else Outcome.REFUSED
        return Played(seed=seed, change=change, outcome=outcome, why=str(ours))
    why = f"\n  ours:   {ours}\n  theirs: {theirs}"
    if ours.error and theirs.error:
        outcome = Outcome.BOTH_REFUSED
    elif ours.error or theirs.error or ours != theirs:
        outcome = Outcome.DIFFERENT
    else:
        outcome = same
    return Played(seed=seed, change=change, outcome=outcome, why=why)


def _matches(connection: Connection, change: WideChange) -> _Matches:
    """By the place of a row: the new values of each match, and what the policy goes by."""
    found: dict[Any, list[tuple[tuple[Any, ...], Any]]] = {}
    for place, *values, by in connection.execute(change.matches.encode()).fetchall():
        found.setdefault(place, []).append((tuple(values), by))
    return found


def _chosen(
    server: Server, connection: Connection, change: WideChange, matches: _Matches, policy: MatchPolicy
) -> Done:
    """The table after the match of each row that the policy's own words choose."""
    asked = f"SELECT {server.row_id}, t.* FROM t"
    rows = {place: row for place, *row in connection.execute(asked.encode()).fetchall()}
    names = [one.name for one in SCHEMAS["t"]]
    for place, found in matches.items():
        values = {one for one, _ in found}
        if policy.rule is MatchRule.LAST:
            top = max(_order(by) for _, by in found)
            values = {one for one, by in found if _order(by) == top}
            if len(values) > 1:
                return Done(tables={}, error="the last is there twice")
        best = min(values, key=lambda one: [_order(value) for value in one])
        for column, value in zip(change.sets, best, strict=True):
            rows[place][names.index(column)] = value
    return Done(tables={"t": _plain("t", map(tuple, rows.values()), UTC)}, affected=len(matches))


def _order(value: Any) -> tuple[bool, bool, Any]:
    """Where a value comes among others: NULL first, NaN last."""
    nan = value is not None and value != value  # noqa: PLR0124 - that is how NaN is told
    return value is not None, nan, 0 if nan or value is None else value


def _ours(spark: SparkSession, change: WideChange, policy: MatchPolicy) -> Done | UsageError:
    try:
        draft = draft_of(*change.asked)
        assert draft is not None
        schemas = {table: SCHEMAS[table.parts[-1]] for table in draft.tables}
        return asked(spark, compiled(draft, schemas, policy), change.rows)
    except UsageError as error:
        return error


def asked(spark: SparkSession, steps: Compiled, rows: Mapping[str, Rows]) -> Done:
    """What compiled steps would make of the tables that they change."""
    found: dict[str, _Rows] = {}
    affected = 0
    try:
        for step in steps.steps:
            done = rehearsed(spark, step, World(schemas=SCHEMAS, rows=rows))
            name = step.target.parts[-1]
            found[name] = _plain(name, done.rows, None)
            affected += done.affected
    except (
        SeveralMatchesError,
        PySparkException,
        Py4JJavaError,
    ) as error:  # the last where a broadcast fails
        return Done(tables={}, error=f"{type(error).__name__}: {str(error)[:400]}")
    return Done(tables=found, affected=affected)


def _plain(table: str, rows: Iterable[Sequence[Any]], zone: tzinfo | None) -> _Rows:
    """Rows in an order, with each value in a form that can be compared; moments without a zone are in this one, or in
    that of this process."""
    kinds = [KINDS[one.type] for one in SCHEMAS[table]]
    return sorted(
        (tuple(_form(value, kind, zone) for value, kind in zip(row, kinds, strict=True)) for row in rows),
        key=repr,
    )


def _form(value: Any, kind: str, zone: tzinfo | None) -> Any:
    match kind:
        case _ if value is None:
            return None
        case "flag":
            return bool(value)
        case "double" | "real":
            return repr(float(value))  # -0.0 is not 0.0, and NaN is NaN
        case "decimal":
            return str(value.quantize(Decimal("0.01")))
        case "instant":
            moment = value.replace(tzinfo=zone) if zone is not None and value.tzinfo is None else value
            return moment.astimezone(UTC).isoformat()
        case _:
            return value
