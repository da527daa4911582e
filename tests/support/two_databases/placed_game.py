"""One random upsert or MERGE on another database, and as its compiled step would do it: what came of it."""

from collections.abc import Callable

from pyspark.sql import SparkSession

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.merges.merge_drafts import merge_draft
from lakewarden.jobs.sql.compile.upserts.upsert_drafts import is_upsert, upsert_draft
from lakewarden.jobs.sql.compile.values import MatchPolicy, MatchRule
from support.two_databases.game import Outcome, Played
from support.two_databases.random_placed import PlacedChange
from support.two_databases.sides import Connection, Server
from support.two_databases.wide_game import Done, asked, filled, held, judged
from support.two_databases.wide_tables import SCHEMAS

__all__ = ["play_placed"]


def play_placed(
    spark: SparkSession,
    server: Server,
    connection: Connection,
    seed: int,
    made: Callable[[int], PlacedChange],
) -> Played:
    """Ask both sides. Several rows of a source with one key must be refused by us first, then be chosen from alike."""
    change = made(seed)
    with filled(connection, change.rows):
        try:
            several = change.several and connection.execute(change.several.encode()).fetchone()[0]
            if several and change.chosen:
                told = _ours(spark, change, MatchPolicy())
                if isinstance(told, UsageError):
                    return Played(seed=seed, change=change, outcome=Outcome.REFUSED, why=str(told))
                if not told.error:
                    why = f"nobody was told of {several} keys with several rows"
                    return Played(seed=seed, change=change, outcome=Outcome.DIFFERENT, why=why)
            theirs = _theirs(connection, change, chosen=bool(several))
        except server.refusals as error:
            several, theirs = 0, Done(tables={}, error=str(error))
        ours = _ours(spark, change, MatchPolicy(rule=MatchRule.ANY if several else MatchRule.ERROR))
        if not change.counted and isinstance(ours, Done) and not theirs.error:
            theirs = Done(tables=theirs.tables, affected=ours.affected)
        return judged(seed, change, ours, theirs, Outcome.CHOSEN if several else Outcome.SAME)


def _theirs(connection: Connection, change: PlacedChange, *, chosen: bool) -> Done:
    affected = 0
    for statement in [change.chosen] if chosen else change.theirs:
        affected = connection.execute(statement.encode()).rowcount
        if affected:
            break
    return Done(tables=held(connection, [change.table]), affected=affected)


def _ours(spark: SparkSession, change: PlacedChange, policy: MatchPolicy) -> Done | UsageError:
    text, dialect = change.asked
    try:
        draft = upsert_draft(text, dialect) if is_upsert(text) else merge_draft(text, dialect)
        assert draft is not None
        schemas = {table: SCHEMAS[table.parts[-1]] for table in draft.tables}
        return asked(spark, compiled(draft, schemas, policy, change.keys), change.rows)
    except UsageError as error:
        return error
