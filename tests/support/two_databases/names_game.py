"""Conditions whose names collide, on Spark and on another database: the same rows.

Spark is asked about many at once.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import islice

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.values import Dialect
from support.two_databases.game import Outcome
from support.two_databases.random_names import NAMED_ROWS, NAMED_SCHEMAS, random_condition
from support.two_databases.rehearsal import parts_of
from support.two_databases.sides import Connection, Server

__all__ = ["Named", "named_tables", "play_names"]

_AT_ONCE = 40
_SIDE_BY_SIDE = 2
_Asked = tuple[int, str, list[int]]
"""A seed, its condition, and the rows that the database finds."""
_FULL_GROUPS = b"SET sql_mode = CONCAT(@@sql_mode, ',ONLY_FULL_GROUP_BY')"


@dataclass(frozen=True, kw_only=True)
class Named:
    """A condition that the database knows, and what came of it."""

    seed: int
    condition: str
    outcome: Outcome
    why: str = ""

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.outcome}: {self.condition}\n  {self.why}"


@contextmanager
def named_tables(spark: SparkSession, server: Server, connection: Connection) -> Iterator[None]:
    """The tables on both sides; in Spark as views, which go with the block."""
    if server.dialect == Dialect.MYSQL:
        connection.execute(_FULL_GROUPS)
    for table, schema in NAMED_SCHEMAS.items():
        names = [one.name for one in schema]
        rows = ", ".join(
            f"({', '.join('NULL' if one is None else str(one) for one in row)})"
            for row in NAMED_ROWS[str(table)]
        )
        connection.execute(f"CREATE TABLE {table} ({', '.join(f'{one} INT' for one in names)})".encode())
        connection.execute(f"INSERT INTO {table} VALUES {rows}".encode())
        spark.sql(f"SELECT * FROM VALUES {rows} AS r({', '.join(names)})").createOrReplaceTempView(str(table))
    try:
        yield
    finally:
        for table in NAMED_SCHEMAS:
            spark.catalog.dropTempView(str(table))


def play_names(
    spark: SparkSession,
    server: Server,
    connection: Connection,
    seeds: Iterable[int],
    count: int,
    *,
    capitals: bool = False,
) -> Iterator[Named]:
    """What comes of the first so many conditions that the database knows. Some are compiled and analysed while Spark
    looks for the rows of those before them."""
    known = islice(_known(server, connection, seeds, capitals=capitals), count)
    judging = deque[Future[list[Named]]]()
    with ThreadPoolExecutor(_SIDE_BY_SIDE) as pool:
        while asked := list(islice(known, _AT_ONCE)):
            judging.append(pool.submit(_judged, spark, Dialect(server.dialect), asked))
            if len(judging) > _SIDE_BY_SIDE:
                yield from judging.popleft().result()
        for one in judging:
            yield from one.result()


def _known(
    server: Server, connection: Connection, seeds: Iterable[int], *, capitals: bool
) -> Iterator[_Asked]:
    """The conditions that are SQL for the database, with the rows that it finds."""
    for seed in seeds:
        condition = random_condition(seed, Dialect(server.dialect), capitals=capitals)
        try:
            rows = connection.execute(f"SELECT id FROM t WHERE {condition}".encode()).fetchall()
        except server.refusals:
            continue
        yield seed, condition, sorted(row[0] for row in rows)


def _judged(spark: SparkSession, dialect: Dialect, asked: Sequence[_Asked]) -> list[Named]:
    return list(_each(spark, dialect, asked))


def _each(spark: SparkSession, dialect: Dialect, asked: Sequence[_Asked]) -> Iterator[Named]:
    frames: dict[int, DataFrame] = {}
    for seed, condition, _ in asked:
        try:
            frames[seed] = spark.sql(_query(seed, condition, dialect))
        except UsageError as error:
            yield Named(seed=seed, condition=condition, outcome=Outcome.REFUSED, why=str(error))
        except PySparkException as error:
            yield _unknown(seed, condition, error)
    found = _rows(frames)
    for seed, condition, wanted in asked:
        rows = found.get(seed)
        if isinstance(rows, Exception):
            yield _unknown(seed, condition, rows)
        elif rows is not None:
            yield Named(
                seed=seed,
                condition=condition,
                outcome=Outcome.SAME if sorted(rows) == wanted else Outcome.DIFFERENT,
                why=f"ours: {sorted(rows)}, theirs: {wanted}; {_query(seed, condition, dialect)}",
            )


def _unknown(seed: int, condition: str, error: Exception) -> Named:
    return Named(seed=seed, condition=condition, outcome=Outcome.UNKNOWN_TO_SPARK, why=str(error)[:300])


def _rows(frames: Mapping[int, DataFrame]) -> Mapping[int, list[int] | Exception]:
    """What each finds; each alone, where Spark fails at one of them."""
    try:
        listed = reduce(DataFrame.unionAll, frames.values()).collect() if frames else []
    except (PySparkException, Py4JJavaError) as error:
        if len(frames) == 1:
            return dict.fromkeys(frames, error)
        alone = [_rows({seed: frame}) for seed, frame in frames.items()]
        return {seed: rows for one in alone for seed, rows in one.items()}
    return {seed: [row for number, row in listed if number == seed] for seed in frames}


def _query(seed: int, condition: str, dialect: Dialect) -> str:
    """What finds the rows that the statement would delete."""
    draft = draft_of(f"DELETE FROM t WHERE {condition}", dialect)
    assert draft is not None
    (step,) = compiled(draft, NAMED_SCHEMAS).steps
    parts = parts_of(step.sql)
    row = f"SELECT {seed} AS seed, {parts.alias}.id FROM {parts.target}"
    return f"{row} LEFT SEMI JOIN {parts.source} ON {parts.on}"
