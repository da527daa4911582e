"""Random changes of one table one after the other, written in one way, on both sides: what came of them.

Deletes that a change has left beside the data files are there when the next one comes; compactions come in between.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql.types import DoubleType, IntegerType, StringType, StructField, StructType

from lakewarden.catalog.errors import LakewardenError, UsageError
from lakewarden.catalog.formats.port import Commit
from support.two_databases.game import Change, Outcome, Played, change_of, play
from support.two_databases.random_changes import TEXTS, random_rows
from support.two_databases.random_dialects import random_dialect_change
from support.two_databases.random_upserts import LEAVING, random_frame_upsert, random_sql_upsert
from support.two_databases.sides import COLUMNS, DOUBLE, INT, TEXT, Both, Rows
from support.two_databases.ways import Way, added_kinds, compacted, other_readings, reader_of

__all__ = ["Tally", "keyed", "play_sequence", "random_steps"]

_LARGE: Final = 1000
"""With larger numbers a statement may leave the limits of INT."""
_TYPES: Final = {INT: IntegerType(), TEXT: StringType(), DOUBLE: DoubleType()}
_FRAME: Final = StructType([StructField(name, _TYPES[kind]) for name, kind in COLUMNS["t"].items()])


@dataclass
class Tally:
    """What was done, and what came of it."""

    outcomes: Counter[str] = field(default_factory=Counter)
    """By `kind: outcome`."""
    left: Counter[str] = field(default_factory=Counter)
    """How many changes have left deletes of a kind."""
    different: list[str] = field(default_factory=list)
    readers: Counter[str] = field(default_factory=Counter)
    """How often who has read the table, beside plain Spark."""
    on_deletes: int = 0
    """How many changes came to a table with deletes beside its files."""


@dataclass(frozen=True)
class _Asked:
    """`Change`: what was asked of t."""

    text: str
    rows: Mapping[str, Rows]


def keyed(both: Both) -> None:
    """Let the other database keep the ids of t apart, which its upserts need. There are several NULLs."""
    _fill(both, [])
    both.connection.execute(b"CREATE UNIQUE INDEX t_ids ON t (id)")


def random_steps(seed: int, count: int) -> Sequence[str]:
    """Of each kind as often as it is worth."""
    return random.Random(f"steps {seed}").choices(list(_STEPS), (34, 26, 10, 16, 14), k=count)


def play_sequence(both: Both, way: Way, seed: int, steps: Sequence[str], tally: Tally) -> None:
    """Changes and compactions, by their kinds, of a table that begins with random rows. Ends with the first
    difference."""
    chance = random.Random(f"sequence {seed}")
    told = [f"sequence {seed}"]
    _fill(both, _begun(chance))
    has_deletes = False
    for step, does in enumerate(steps):
        before, at = both.theirs(), _newest(both).version
        tally.on_deletes += has_deletes
        try:
            run = _STEPS[does](both, way, f"{seed}.{step}", chance)
        except (LakewardenError, PySparkException, Py4JJavaError) as error:
            tally.different.append("\n  ".join([*told, f"{does} fails", f"before: {before}", str(error)]))
            return
        told.append(str(run.change.text))
        tally.outcomes[f"{does}: {run.outcome}"] += 1
        wrong = str(run) if run.outcome is Outcome.DIFFERENT else ""
        newest = _newest(both)
        if not wrong and newest.version != at:
            kinds = added_kinds(both)
            tally.left.update(kinds if does != "compaction" else ())
            has_deletes = bool(kinds) or (has_deletes and does != "compaction")
            wrong = "" if does == "compaction" else _other_way(way, does, newest, kinds)
        wrong = wrong or "".join(_misread(both, tally))
        if wrong:
            tally.different.append("\n  ".join([*told, f"before: {before}", wrong]))
            return
        if any(isinstance(one, int | float) and abs(one) > _LARGE for row in both.theirs() for one in row):
            _fill(both, _begun(chance))
            has_deletes = False


def _statement(both: Both, _: Way, seed: str, chance: random.Random) -> Played:
    number = chance.randrange(10**6)
    while not _is_known(both, number):
        number = chance.randrange(10**6)
    return play(both, number, anew=False)


def _is_known(both: Both, number: int) -> bool:
    """Whether the other database takes a statement: a NULL that is given a type by nothing is a text to PostgreSQL."""
    try:
        both.connection.execute(f"EXPLAIN {change_of(both.server, number).text}".encode())
    except both.server.refusals:
        return False
    return True


def _frame(both: Both, way: Way, seed: str, chance: random.Random) -> Played:
    asked = random_frame_upsert(seed)
    change = _Asked(asked.text, {})
    words: dict[str, Any] = {"delete_when": LEAVING} if asked.deletes else {}
    if both.write is not None:
        words["write"] = both.write
    frame = both.spark.createDataFrame(list(asked.rows), _FRAME)
    done = both.lw.upsert(frame, _name(both, way), ["id"], duplicates="any", **words)
    written, deleted = asked.done_by(both.connection, both.server.dialect)
    counts = f"{done.rows_written} and {done.rows_deleted} rows here, {written} and {deleted} there"
    found, wanted = both.ours(), both.theirs()
    same = found == wanted and done.rows_written == written and done.rows_deleted in (deleted, None)
    why = counts if same else f"{counts}\n  ours:   {found}\n  theirs: {wanted}"
    return Played(seed=0, change=change, outcome=Outcome.SAME if same else Outcome.DIFFERENT, why=why)


def _sql(both: Both, _: Way, seed: str, chance: random.Random) -> Played:
    asked = random_sql_upsert(seed, both.server.dialect)
    return _both_asked(both, asked.text, asked.text, asked.dialect)


def _compaction(both: Both, _: Way, seed: str, chance: random.Random) -> Played:
    purge, join = chance.random() < 0.6, chance.random() < 0.6
    change: Change = _Asked(f"compaction, purge {purge}, join {join}", {})
    report = compacted(both, f"run-{seed}", purge=purge, join=join)
    found, wanted = both.ours(), both.theirs()
    same = found == wanted
    why = report.message if same else f"{report.message}\n  ours:   {found}\n  theirs: {wanted}"
    return Played(seed=0, change=change, outcome=Outcome.SAME if same else Outcome.DIFFERENT, why=why)


def _dialect(both: Both, way: Way, seed: str, chance: random.Random) -> Played:
    """In another database's words; MariaDB could not be asked."""
    if both.server.dialect == "mysql":
        return _statement(both, way, seed, chance)
    asked, rows = random_dialect_change(seed), random_rows(chance)
    both.fill({name: rows[name] for name in ("s", "u")})
    return _both_asked(both, asked.text, asked.theirs, asked.dialect)


def _both_asked(both: Both, text: str, theirs: str, dialect: str) -> Played:
    """A statement here and there, each in its words."""
    change = _Asked(f"{dialect}: {text}", {})
    both.spark.conf.set("lakewarden.dialect", dialect)
    both.spark.conf.set("lakewarden.matches", "error")
    try:
        (ours,) = both.sql(text).collect()
    except UsageError as error:
        return Played(seed=0, change=change, outcome=Outcome.REFUSED, why=str(error))
    wanted_count = both.connection.execute(theirs.encode()).rowcount
    counted = ours["num_affected_rows"]
    counts = f"{counted} rows here, {wanted_count} there"
    found, wanted = both.ours(), both.theirs()
    same = found == wanted and (counted == wanted_count or dialect == "mysql")  # which counts updates twice
    why = counts if same else f"{counts}\n  ours:   {found}\n  theirs: {wanted}"
    return Played(seed=0, change=change, outcome=Outcome.SAME if same else Outcome.DIFFERENT, why=why)


_STEPS: Final = {
    "statement": _statement,
    "frame": _frame,
    "sql": _sql,
    "compaction": _compaction,
    "dialect": _dialect,
}


def _other_way(way: Way, does: str, newest: Commit, kinds: set[str]) -> str:
    """What is wrong about the way that a change was written in, as its record and its files say."""
    wanted, leaves = (way.asked, way.asked) if does == "frame" else (way.own, way.of_statements)
    if newest.lineage is None or newest.lineage.rows_write != wanted:
        return f"written as {newest.lineage and newest.lineage.rows_write}, not as {wanted}"
    return f"left {kinds}, not {leaves}" if kinds - {leaves} else ""


def _misread(both: Both, tally: Tally) -> Iterator[str]:
    wanted = both.theirs()
    for reader, rows in other_readings(both).items():
        tally.readers[reader] += 1
        if rows != wanted:
            yield f"{reader}: {rows}\n  theirs: {wanted}\n"


def _newest(both: Both) -> Commit:
    (found,) = reader_of(both).newest(both.places["t"], count=1)
    return found


def _name(both: Both, way: Way) -> str:
    database = both.spark.catalog.currentDatabase()
    return f"{database}.t" if way.version is None else f"iceberg.{database}.t"


def _begun(chance: random.Random) -> Rows:
    """Each id once, or NULL."""
    more = [
        (number, chance.randint(0, 5), chance.randint(0, 9), chance.choice(TEXTS), number / 4)
        for number in range(4, 14)
    ]
    found: dict[object, tuple[object, ...]] = {}
    for row in (*random_rows(chance)["t"], *chance.sample(more, k=7)):
        found[object() if row[0] is None else row[0]] = row
    return list(found.values())


def _fill(both: Both, rows: Rows) -> None:
    both.fill({"t": rows})
