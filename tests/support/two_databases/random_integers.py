"""Whole numbers at the limits of their types, in random sums, products and comparisons: the value or the error that
another database has."""

import random
from dataclasses import dataclass
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.values import ColumnType, Dialect
from support.two_databases.game import Outcome
from support.two_databases.rehearsal import World, rehearsed
from support.two_databases.sides import Connection, Server

__all__ = ["Reckoned", "play_integers"]

_BITS: Final = {"sm": 16, "sn": 16, "i": 32, "j": 32, "b": 64, "c": 64}
_KINDS: Final = {16: "smallint", 32: "int", 64: "bigint"}
_SCHEMA: Final = (*(ColumnType(name=name, type=_KINDS[bits]) for name, bits in _BITS.items()),
                  ColumnType(name="r", type="bigint"))  # fmt: skip
_ERROR: Final = "an error"


@dataclass(frozen=True, kw_only=True)
class Reckoned:
    """A statement and its row, and what came of it."""

    seed: int
    text: str
    outcome: Outcome
    why: str

    def __str__(self) -> str:
        return f"seed {self.seed}: {self.outcome}: {self.text}\n  {self.why}"


def play_integers(spark: SparkSession, server: Server, connection: Connection, seed: int) -> Reckoned:
    """Ask both sides for one row."""
    chance = random.Random(f"integers {seed}")
    row = [_at_a_limit(chance, bits) for bits in _BITS.values()]
    text = (
        f"UPDATE n SET r = {_sum(chance, 2)}"
        if chance.random() < 0.5
        else f"DELETE FROM n WHERE {_asked(chance)}"
    )
    try:
        ours = _ours(spark, text, Dialect(server.dialect), row)
    except UsageError as error:
        return Reckoned(seed=seed, text=text, outcome=Outcome.REFUSED, why=str(error))
    theirs = _theirs(server, connection, text, row)
    outcome = Outcome.SAME if ours == theirs else Outcome.DIFFERENT
    return Reckoned(seed=seed, text=text, outcome=outcome, why=f"{row}: ours {ours}, theirs {theirs}")


def _at_a_limit(chance: random.Random, bits: int) -> int:
    most: int = 2 ** (chance.choice([size for size in (16, 32, 64) if size <= bits]) - 1)
    return chance.choice([most - 1, -most, most // 2, 1, -1, 0, most - 2])


def _sum(chance: random.Random, depth: int) -> str:
    if depth == 0:
        written = (*_BITS, *_BITS, "1", "-1", "2", "32767", "2147483647", "2147483648", "9223372036854775807")
        return chance.choice(written)
    left, right = _sum(chance, depth - 1), _sum(chance, chance.randrange(depth))
    return chance.choice([f"({left}) {chance.choice('+-*')} ({right})", f"-({left})", f"abs({left})", left])


def _asked(chance: random.Random) -> str:
    sign = chance.choice(["=", "<", ">", "<=", "<>"])
    return chance.choice(
        [
            f"{_sum(chance, 2)} {sign} {_sum(chance, 1)}",
            f"{_sum(chance, 1)} BETWEEN {_sum(chance, 0)} AND {_sum(chance, 1)}",
            f"{_sum(chance, 1)} IN ({_sum(chance, 0)}, {_sum(chance, 1)})",
        ]
    )


def _ours(spark: SparkSession, text: str, dialect: Dialect, row: list[int]) -> Any:
    draft = draft_of(text, dialect)
    assert draft is not None
    (step,) = compiled(draft, {draft.tables[0]: _SCHEMA}).steps
    try:
        done = rehearsed(spark, step, World(schemas={"n": _SCHEMA}, rows={"n": [(*row, None)]}))
    except (PySparkException, Py4JJavaError):
        return _ERROR
    return [one[-1] for one in done.rows]


def _theirs(server: Server, connection: Connection, text: str, row: list[int]) -> Any:
    connection.execute(b"BEGIN")
    try:
        columns = ", ".join(f"{name} {_KINDS[bits]}" for name, bits in _BITS.items())
        connection.execute(f"CREATE TEMPORARY TABLE n ({columns}, r bigint)".encode())
        connection.execute(f"INSERT INTO n VALUES ({', '.join(map(str, row))}, NULL)".encode())
        connection.execute(text.encode())
        return [one[0] for one in connection.execute(b"SELECT r FROM n").fetchall()]
    except server.refusals:
        return _ERROR
    finally:
        connection.execute(b"ROLLBACK")
        connection.execute(b"DROP TABLE IF EXISTS n")
