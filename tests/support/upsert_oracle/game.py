"""Random tables and random batches of upserts, played on Spark and held against the oracle."""

import random
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from lakewarden.catalog.errors import PreconditionError
from lakewarden.jobs.session.attached import Attached
from support.upsert_oracle.oracle import (
    BY,
    Change,
    Words,
    changes_of_envelopes,
    changes_of_rows,
    expected,
)
from support.upsert_oracle.values import KINDS, TWICE, Value

__all__ = ["Tally", "play"]

Row = Mapping[str, Value]
Envelope = tuple[Row | None, Row | None, str | None, int, int]

_ZONES: Final = ("UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns")
_ZONE: Final = "spark.sql.session.timeZone"
_FEATURES: Final[tuple[Mapping[str, str], ...]] = (
    {"delta.enableDeletionVectors": "true"},
    {"delta.columnMapping.mode": "name"},
    {"delta.dataSkippingNumIndexedCols": "0"},
    {"delta.enableDeletionVectors": "true", "delta.columnMapping.mode": "name"},
    {},
)
_VALUES: Final = {"v": "string", "n": "int", "d": "double", BY: "int"}
"""The columns besides the keys."""
_PARTED: Final = ("bigint", "string", "date", "timestamp", "decimal(10,2)", "boolean")


@dataclass
class Tally:
    """What was played; `refused` among the batches, and those whose condition left out files."""

    batches: int = 0
    refused: int = 0
    pruned: int = 0
    envelopes: int = 0
    rows: int = 0
    kinds: set[str] = field(default_factory=set)


@dataclass(frozen=True, kw_only=True)
class _World:
    """A table, and what the oracle says that it holds."""

    chance: random.Random
    spark: SparkSession
    lw: Attached
    path: str
    words: Words
    parted: frozenset[str]

    @property
    def kinds(self) -> Mapping[str, str]:
        return self.words.kinds


def play(spark: SparkSession, lw: Attached, folder: str, seed: int, batches: int, tally: Tally) -> None:
    """A table of the seed's, and so many upserts. Raises `AssertionError` where the table is not what the docs say."""
    world = _made(random.Random(seed), spark, lw, f"{folder}/{uuid.uuid4().hex[:8]}")
    tally.kinds |= {world.kinds[key] for key in world.words.keys}
    held: list[Row] = []
    try:
        for number in range(batches):
            spark.conf.set(_ZONE, world.chance.choice(_ZONES))
            step = _enveloped if world.chance.random() < 0.3 else _plain
            held = _held_against(world, f"seed {seed}, batch {number}", held, *step(world), tally)
            if held and world.chance.random() < 0.3:
                held = _deleted_by_spark(world, held)
    finally:
        spark.conf.unset(_ZONE)


def _made(chance: random.Random, spark: SparkSession, lw: Attached, path: str) -> _World:
    keys = {f"k{number}": chance.choice(list(KINDS)) for number in range(chance.choice((1, 1, 2)))}
    kinds = {**keys, **_VALUES}
    could = [name for name, kind in keys.items() if kind in _PARTED]
    parted = could[:1] if could and chance.random() < 0.4 else []
    columns = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in chance.choice(_FEATURES).items())
    spark.sql(
        f"CREATE TABLE delta.`{path}` ({columns}) USING delta"
        + (f" PARTITIONED BY ({parted[0]})" if parted else "")
        + (f" TBLPROPERTIES ({properties})" if properties else "")
    )
    emptied = frozenset(name for name in parted if keys[name] == "string")
    words = Words(kinds=kinds, keys=tuple(keys), emptied=emptied)
    return _World(chance=chance, spark=spark, lw=lw, path=path, words=words, parted=frozenset(parted))


def _held_against(
    world: _World,
    where: str,
    held: Sequence[Row],
    source: DataFrame,
    changes: Sequence[Change],
    words: Words,
    options: Mapping[str, Any],
    tally: Tally,
) -> list[Row]:
    should = expected(held, changes, words)
    said = f"{where}: {words} {dict(options)} {world.path}"
    counts: tuple[int | None, ...] = (0, 0, 0)
    try:
        done = world.lw.upsert(source, world.path, keys=list(words.keys), **options)
        assert should.refused is None, f"{said}: {should.refused}"
        counts = (done.rows_inserted, done.rows_updated, done.rows_deleted)
        tally.pruned += bool(done.pruning)
    except PreconditionError as error:
        assert should.refused is not None, f"{said}: {error}"
        tally.refused += 1
    assert counts == (should.inserted, should.updated, should.deleted), f"{said}: {counts}, {should}"
    found = _read(world)
    assert found == _listed(should.rows, words), f"{said}"
    tally.batches += 1
    tally.envelopes += words.envelopes
    tally.rows += len(changes)
    return should.rows


def _read(world: _World) -> list[tuple[Value, ...]]:
    texts = [KINDS[kind].said.format(name) for name, kind in world.kinds.items()]
    rows = world.spark.read.format("delta").load(world.path).selectExpr(*texts).collect()
    return _sorted(tuple(row) for row in rows)


def _listed(rows: Sequence[Row], words: Words) -> list[tuple[Value, ...]]:
    return _sorted(tuple(row[name] for name in words.kinds) for row in rows)


def _sorted(rows: Iterator[tuple[Value, ...]]) -> list[tuple[Value, ...]]:
    return sorted((tuple("0.0" if one == "-0.0" else one for one in row) for row in rows), key=repr)


def _deleted_by_spark(world: _World, held: Sequence[Row]) -> list[Row]:
    """Somebody else deletes rows: where the table has deletion vectors, that makes some."""
    world.spark.sql(f"DELETE FROM delta.`{world.path}` WHERE n = 3")
    return [row for row in held if row["n"] != "3"]


def _row(world: _World, pool: Sequence[tuple[Value, ...]]) -> Row:
    chance = world.chance
    values = {
        "v": chance.choice(("x", "y", "", None)),
        "n": chance.choice(("-1", "0", "3", "8", None)),
        "d": chance.choice(("0.0", "NaN", "-1.5", None)),
        BY: chance.choice(("1", "2", "3", "4", "5", None)),
    }
    return {**dict(zip(world.words.keys, chance.choice(pool), strict=True)), **values}


def _pool(world: _World, *, nulls: float) -> list[tuple[Value, ...]]:
    chance = world.chance
    return [
        tuple(
            None if chance.random() < nulls else chance.choice(_values(world, key))
            for key in world.words.keys
        )
        for _ in range(chance.choice((3, 8, 30)))
    ]


def _values(world: _World, key: str) -> Sequence[str]:
    values = KINDS[world.kinds[key]].values
    return [one for one in values if one not in TWICE] if key in world.parted else values


def _plain(world: _World) -> tuple[DataFrame, list[Change], Words, dict[str, Any]]:
    """Rows, with or without a column of codes."""
    chance = world.chance
    duplicates = chance.choice(("error", "any", "last"))
    pool = _pool(world, nulls=chance.choice((0.0, 0.15)))
    rows = [_row(world, pool) for _ in range(chance.choice((0, 4, 12, 40)))]
    if duplicates != "any" and chance.random() < 0.7:
        rows = _once_each(rows, world.words)
    words = replace(
        world.words,
        duplicates=duplicates,
        newer=chance.random() < 0.4,
        null_keys=chance.choice(("insert", "insert", "match", "refuse")),
        partial=chance.choice(((), (), ("v",), ("n", "d"))),
    )
    options: dict[str, Any] = {"duplicates": f"last by {BY}" if duplicates == "last" else duplicates}
    options |= {"null_keys": words.null_keys}
    options |= {"when": f"newer by {BY}"} if words.newer else {}
    options |= {"partial": list(words.partial)} if words.partial else {}
    gone = [False] * len(rows)
    match chance.choice(("rows", "delete_when", "op")):
        case "delete_when":
            options["delete_when"] = "n < 0"
            gone = [row["n"] == "-1" for row in rows]
        case "op" if not words.partial:
            options |= {"cdc": "op", "op": "code"}
            gone = [chance.random() < 0.3 for _ in rows]
            codes = [
                chance.choice(("d", "D", "delete") if one else ("c", "u", "UPSERT", "r")) for one in gone
            ]
            frame = _frame(
                world, [{**row, "code": code} for row, code in zip(rows, codes, strict=True)], code=True
            )
            return frame, changes_of_rows(rows, gone), words, options
    return _frame(world, rows), changes_of_rows(rows, gone), words, options


def _once_each(rows: Sequence[Row], words: Words) -> list[Row]:
    """One row of each key, zeros below zero being zeros and empty texts what they are stored as."""
    found: dict[tuple[Value, ...], Row] = {}
    for row in rows:
        key = tuple(
            None if row[one] == "" and one in words.emptied else "0.0" if row[one] == "-0.0" else row[one]
            for one in words.keys
        )
        found[key] = row
    return list(found.values())


def _frame(world: _World, rows: Sequence[Row], *, code: bool = False) -> DataFrame:
    names = [*world.kinds, *(["code"] if code else [])]
    texts = [tuple(row[name] for name in names) for row in rows]
    frame = world.spark.createDataFrame(texts, ", ".join(f"{name} string" for name in names))
    made = [f"{KINDS[kind].made.format(name)} AS {name}" for name, kind in world.kinds.items()]
    return frame.selectExpr(*made, *(["code"] if code else []))


def _enveloped(world: _World) -> tuple[DataFrame, list[Change], Words, dict[str, Any]]:
    """Debezium's envelopes: histories of some keys, several changes in a millisecond, in any order."""
    chance = world.chance
    envelopes = list(_history(world))
    chance.shuffle(envelopes)
    words = replace(world.words, envelopes=True, lsn=chance.random() < 0.8, newer=chance.random() < 0.2)
    options: dict[str, Any] = {"cdc": "debezium"}
    options |= {"duplicates": "last by source.lsn"} if words.lsn else {}
    options |= {"when": f"newer by {BY}"} if words.newer else {}
    return _envelopes(world, envelopes), changes_of_envelopes(envelopes, words), words, options


def _history(world: _World) -> Iterator[Envelope]:
    chance, words = world.chance, world.words
    pool = _once_each(
        [_row(world, _pool(world, nulls=0.0)) for _ in range(10)], replace(words, emptied=frozenset())
    )
    keys = [
        {key: row[key] for key in words.keys} for row in pool if "" not in (row[key] for key in words.keys)
    ]
    there: dict[int, Row] = {}
    for lsn in range(chance.choice((0, 5, 25)) if keys else 0):
        place, at = chance.randrange(len(keys)), 1_000 + lsn // chance.choice((1, 3))
        after = {**_row(world, [tuple(keys[place].values())])}
        if place not in there:
            yield None, after, chance.choice("cr"), at, lsn
            there[place] = after
        elif chance.random() < 0.4:
            before = there.pop(place)
            only_keys = {name: before[name] if name in words.keys else None for name in words.kinds}
            yield only_keys if chance.random() < 0.5 else before, None, "d", at, lsn
            if chance.random() < 0.5:
                yield None, None, None, at, lsn
        else:
            moved = chance.randrange(len(keys))
            if moved not in there and chance.random() < 0.5:
                after = {**after, **keys[moved]}
                before = there.pop(place)
            else:
                moved, before = place, there[place]
            yield before, after, "u", at, lsn
            there[moved] = after


def _envelopes(world: _World, envelopes: Sequence[Envelope]) -> DataFrame:
    names = list(world.kinds)
    texts = [
        (
            *(_side(before, names)), before is not None, *(_side(after, names)), after is not None, op,
            None if op is None else at, lsn,
        )
        for before, after, op, at, lsn in envelopes
    ]  # fmt: skip
    columns = [f"{side}_{name} string" for side in "ba" for name in names]
    columns.insert(len(names), "b_there boolean")
    schema = ", ".join([*columns, "a_there boolean", "op string", "ts_ms bigint", "lsn bigint"])
    frame = world.spark.createDataFrame(texts, schema)
    sides = [
        f"IF({letter}_there, named_struct("
        + ", ".join(
            f"'{name}', {KINDS[kind].made.format(f'{letter}_{name}')}" for name, kind in world.kinds.items()
        )
        + f"), NULL) AS {side}"
        for letter, side in (("b", "before"), ("a", "after"))
    ]
    return frame.selectExpr(*sides, "op", "ts_ms", "named_struct('lsn', lsn) AS source")


def _side(row: Row | None, names: Sequence[str]) -> list[Value]:
    return [None if row is None else row[name] for name in names]
