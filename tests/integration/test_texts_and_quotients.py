"""Texts that become numbers and days, and quotients of decimals: values and errors of PostgreSQL and MariaDB."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from random import Random

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.values import ColumnType, Dialect
from support.servers.mariadb import MariadbServer
from support.servers.postgres import PostgresServer
from support.servers.spark import set_to
from support.two_databases.meaning import meaning, theirs
from support.two_databases.rehearsal import World
from support.two_databases.sides import Connection, Server
from support.two_databases.wide_game import FAST

pytestmark = pytest.mark.spark

TEXTS = {"id": "int", "kind": "string", "s": "string", "n": "bigint", "m": "decimal(10,2)", "f": "double",
         "d": "date", "ts": "timestamp_ntz", "v": "string"}  # fmt: skip
READ: Sequence[tuple[str, str | None]] = [
    *(("n", one) for one in ("12", " -5", "+7", "007", "9223372036854775807", None)),
    *(("m", one) for one in ("1.5", "-0.005", "1.005", "2", "1.", " -3.14159")),
    *(("f", one) for one in ("1e3", "-1.5", "2.5E-3", "7")),
    *(("d", one) for one in ("2024-01-05", "2024-2-9", "1600-03-01", "9999-12-31")),
    *(("ts", one) for one in ("2024-01-05 10:00:00", "2024-1-5 9:08:07", "2024-03-10")),
]
READ_THERE = {"postgres": (), "mysql": ("9223372036854775808", "0000-00-00")}
"""What MariaDB reads as a negative number, and as a day that no calendar has: here both are errors."""
UNREAD = {
    "n": ("x", "", "12 x", "1.5", "--1", "9223372036854775808"),
    "m": ("x", "1.5x", "123456789.00"),
    "d": ("x", "2024-13-01", "2024-02-30", "0000-00-00"),
    "ts": ("2024-01-05 25:00:00", "yesterday or so"),
}
CASTS: Mapping[str, Mapping[str, str]] = {
    "postgres": {"n": "s::bigint", "m": "s::numeric(10, 2)", "f": "s::float8", "d": "s::date",
                 "ts": "s::timestamp"},
    "mysql": {"n": "CAST(s AS SIGNED)", "m": "CAST(s AS DECIMAL(10, 2))", "f": "CAST(s AS DOUBLE)",
              "d": "CAST(s AS DATE)", "ts": "CONVERT(s, DATETIME)"},
}  # fmt: skip
NUMBERS = {"id": "int", "a": "int", "b": "int", "m": "decimal(10,2)", "n": "decimal(9,4)", "d": "double",
           "r": "decimal(14,2)", "x": "decimal(18,6)", "i": "int", "v": "string"}  # fmt: skip
QUOTIENTS = {
    "postgres": (
        "UPDATE q SET r = m / 3, x = m / 7, i = m / 2",
        "UPDATE q SET r = m / b, x = n / m, i = n / b",
        "UPDATE q SET r = -m / (b + 1), i = m * 1.5, x = m * 1.1",
        "UPDATE q SET r = round(m / b, 1), x = CAST(a / n AS NUMERIC(12, 1)), i = floor(m / b)",
        "DELETE FROM q WHERE m / b > 1.25 OR m / 3 = 0.11",
        "UPDATE q SET v = m::text || '/' || n::varchar(12) || '/' || a::varchar(2)",
    ),
    "mysql": (
        "UPDATE q SET r = m / 3, i = m / 2",
        "UPDATE q SET r = ROUND(m / 100, 1), i = a / 8",
        "UPDATE q SET r = m / -7, i = m, x = m * 1.1",
        "UPDATE q SET i = d, a = CAST(d AS SIGNED), r = CAST(m / 12 AS DECIMAL(8, 1))",
        "DELETE FROM q WHERE m / 4 > 1.25 OR a / 2 = 1.5",
        "UPDATE q SET v = CONCAT(CAST(m AS CHAR), CAST(a AS CHAR(11)))",
    ),
}
"""Statements, and what their columns hold afterwards."""


def schema(types: Mapping[str, str]) -> tuple[ColumnType, ...]:
    return tuple(ColumnType(name=name, type=kind) for name, kind in types.items())


def kinds(types: Mapping[str, str], dialect: str) -> str:
    said = {"string": "TEXT", "double": "DOUBLE PRECISION", "timestamp_ntz": "TIMESTAMP"}
    if dialect == "mysql":
        said |= {"timestamp_ntz": "DATETIME", "double": "DOUBLE"}
    return ", ".join(f"{name} {said.get(kind, kind)}" for name, kind in types.items())


@contextmanager
def filled(
    server: Server, name: str, types: Mapping[str, str], rows: Sequence[tuple[object, ...]]
) -> Iterator[tuple[Connection, World]]:
    with server.connected() as connection:
        connection.execute(f"CREATE TABLE {name} ({kinds(types, server.dialect)})".encode())
        places = ", ".join(["%s"] * len(types))
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {name} VALUES ({places})", rows)
        yield connection, World(schemas={name: schema(types)}, rows={name: rows})


def texts() -> list[tuple[object, ...]]:
    return [(number, kind, said, *[None] * 6) for number, (kind, said) in enumerate(READ)]


@pytest.mark.postgres
def test_what_postgresql_reads_is_read_alike(spark: SparkSession, postgres: PostgresServer) -> None:
    read_alike(spark, postgres)


@pytest.mark.mariadb
def test_what_mariadb_reads_is_read_alike(spark: SparkSession, mariadb: MariadbServer) -> None:
    read_alike(spark, mariadb)


def read_alike(spark: SparkSession, server: Server) -> None:
    with set_to(spark, FAST), filled(server, "texts", TEXTS, texts()) as (connection, world):
        for column, cast in CASTS[server.dialect].items():
            statement = f"UPDATE texts SET {column} = {cast} WHERE kind = '{column}'"
            ours = meaning(spark, statement, Dialect(server.dialect), world=world)
            assert ours == theirs(connection, statement, "texts"), statement


@pytest.mark.postgres
def test_what_postgresql_does_not_read_is_an_error(spark: SparkSession, postgres: PostgresServer) -> None:
    an_error_there_and_here(spark, postgres)


@pytest.mark.mariadb
def test_what_mariadb_does_not_read_is_an_error(spark: SparkSession, mariadb: MariadbServer) -> None:
    an_error_there_and_here(spark, mariadb)


def an_error_there_and_here(spark: SparkSession, server: Server) -> None:
    said = [(column, one) for column, several in UNREAD.items() for one in several]
    rows = [(number, column, one, *[None] * 6) for number, (column, one) in enumerate(said)]
    with set_to(spark, FAST), filled(server, "texts", TEXTS, rows) as (connection, world):
        for number, (column, one) in enumerate(said):
            statement = f"UPDATE texts SET {column} = {CASTS[server.dialect][column]} WHERE id = {number}"
            if one not in READ_THERE[server.dialect]:
                with pytest.raises(server.refusals):
                    pytest.fail(f"{one}: {theirs(connection, statement, 'texts')}")
            alone = World(schemas=world.schemas, rows={"texts": [rows[number]]})
            with pytest.raises(PySparkException):
                pytest.fail(f"{one}: {meaning(spark, statement, Dialect(server.dialect), world=alone)}")


def numbers(count: int, seed: int) -> list[tuple[object, ...]]:
    """Dividends and divisors: of every other row, the quotient is about half way between two numbers of two digits."""
    chance = Random(seed)
    found = list[tuple[object, ...]]()
    for number in range(count):
        b = chance.choice((1, 2, 3, 7, 8, 16, 125, 4096, -6, chance.randint(1, 2 * 10**9)))
        n = Decimal(chance.choice((chance.randint(1, 999), chance.randint(-(10**8), -1)))) / 10000
        m = Decimal(chance.choice((chance.randint(-999, 999), chance.randint(-(10**8), 10**8)))) / 100
        if number % 2:
            divisor = chance.choice((Decimal(b), n, Decimal(3), Decimal(7)))
            half = Decimal(2 * chance.randint(-(10**4), 10**4) + 1) / 200 * divisor
            m = half.quantize(Decimal("0.01")) + Decimal(chance.randint(-1, 1)) / 100
            m = m if abs(m) < 10**8 else Decimal("0.05")
        m = m or Decimal("0.01")
        halves = chance.randint(-9, 9) + 0.5
        found.append((number, chance.randint(-(10**6), 10**6), b, m, n, halves, *[None] * 4))
    return found


OF_EACH = pytest.mark.parametrize(
    "count", [300, pytest.param(20_000, marks=pytest.mark.long)], ids=["few", "many"]
)


@OF_EACH
@pytest.mark.postgres
def test_quotients_are_postgresqls(spark: SparkSession, postgres: PostgresServer, count: int) -> None:
    divided_alike(spark, postgres, count)


@OF_EACH
@pytest.mark.mariadb
def test_quotients_are_mariadbs(spark: SparkSession, mariadb: MariadbServer, count: int) -> None:
    divided_alike(spark, mariadb, count)


def divided_alike(spark: SparkSession, server: Server, count: int) -> None:
    rows = numbers(count, seed=1)
    with set_to(spark, FAST), filled(server, "q", NUMBERS, rows) as (connection, world):
        for statement in QUOTIENTS[server.dialect]:
            ours = meaning(spark, statement, Dialect(server.dialect), world=world)
            assert ours == theirs(connection, statement, "q"), statement


def test_try_cast_finds_null_for_what_is_none_and_an_error_where_that_is_not_clear(
    spark: SparkSession,
) -> None:
    said = ("12", " -7 ", "x", "1.5", "99999999999999999999", "2024-01-05", "2024-02-30", "n/a")
    rows = [(number, "n", one, *[None] * 6) for number, one in enumerate(said)]
    world = World(schemas={"texts": schema(TEXTS)}, rows={"texts": rows})
    with set_to(spark, FAST):
        whole = meaning(
            spark, "UPDATE texts SET n = TRY_CAST(s AS BIGINT) WHERE id < 5", Dialect.TSQL, world=world
        )
        found = whole.tables["texts"]
        assert [row[3] for row in found] == [12, -7, *[None] * 6]
        days = meaning(
            spark, "UPDATE texts SET d = TRY_CONVERT(DATE, s) WHERE id > 4", Dialect.TSQL, world=world
        )
        assert [str(row[6]) for row in days.tables["texts"][5:]] == ["2024-01-05", "None", "None"]
        decimals = meaning(
            spark, "UPDATE texts SET m = TRY_CAST(s AS DECIMAL(4, 1)) WHERE id < 4", Dialect.TSQL, world=world
        )
        assert [str(row[4]) for row in decimals.tables["texts"][:4]] == ["12.00", "-7.00", "None", "1.50"]
        with pytest.raises(PySparkException, match="'12' is not read as DATE alike"):
            meaning(spark, "UPDATE texts SET d = TRY_CAST(s AS DATE) WHERE id = 0", Dialect.TSQL, world=world)


@pytest.mark.parametrize(
    ("dialect", "change"),
    [
        ("postgres", "d = m / 3"),
        ("postgres", "x = m / 3 * 3"),
        ("postgres", "v = m / 3"),
        ("postgres", "r = coalesce(m / 3, 0)"),
        ("postgres", "i = (SELECT max(n / 3) FROM q AS o)"),
        ("mysql", "r = m / b"),
        ("mysql", "x = m / 3"),
        ("tsql", "x = m / 3 + 1"),
    ],
)
def test_where_the_last_digits_of_a_quotient_matter_it_is_refused(
    spark: SparkSession, dialect: str, change: str
) -> None:
    world = World(schemas={"q": schema(NUMBERS)}, rows={"q": []})
    with pytest.raises(UsageError, match="last digits of a quotient|another number of digits|other form"):
        meaning(spark, f"UPDATE q SET {change}", Dialect(dialect), world=world)
