"""Random upserts of t by its column id: as a frame for `lw.upsert`, and as a statement of SQL; a seed makes one."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from support.two_databases.random_changes import TEXTS
from support.two_databases.sides import COLUMNS, Connection

__all__ = ["LEAVING", "FrameUpsert", "SqlUpsert", "random_frame_upsert", "random_sql_upsert"]

_Row = tuple[Any, ...]
_NAMES: Final = tuple(COLUMNS["t"])
LEAVING: Final = "a > 6"
"""Rows of a frame for which this holds delete what has their key."""


@dataclass(frozen=True, kw_only=True)
class FrameUpsert:
    """Whole rows, several with one key among them: of these the smallest counts."""

    rows: Sequence[_Row]
    deletes: bool
    """Whether some of them delete."""

    @property
    def text(self) -> str:
        """What was asked."""
        return f"upsert {list(self.rows)}{f', those with {LEAVING} delete' if self.deletes else ''}"

    def done_by(self, connection: Connection, dialect: str) -> tuple[int, int]:
        """The same by another database, which needs each key once; how many rows it has written and deleted."""
        chosen = self._chosen()
        gone = [row for row in chosen if self.deletes and row[2] is not None and row[2] > 6]
        kept = [row for row in chosen if row not in gone]
        keys = [str(row[0]) for row in gone if row[0] is not None]
        deleted = 0
        if keys:
            deleted = connection.execute(f"DELETE FROM t WHERE id IN ({', '.join(keys)})".encode()).rowcount
        if kept:
            sets = {name: _new(name, dialect) for name in _NAMES[1:]}
            connection.execute(_inserted(kept, sets, dialect).encode())
        return len(kept), deleted

    def _chosen(self) -> list[_Row]:
        by_key: dict[object, _Row] = {}
        for row in self.rows:
            key = object() if row[0] is None else row[0]  # NULL is no key
            by_key[key] = min(by_key.get(key, row), row, key=_order)
        return list(by_key.values())


@dataclass(frozen=True, kw_only=True)
class SqlUpsert:
    """A statement of PostgreSQL or of MySQL, whose source has each key once."""

    rows: Sequence[_Row]
    sets: Mapping[str, str]
    """What a row that is there gets; none: it stays."""
    dialect: str

    @property
    def text(self) -> str:
        """As a person writes it."""
        return _inserted(self.rows, self.sets, self.dialect)


def random_frame_upsert(seed: str) -> FrameUpsert:
    """What a frame brings."""
    chance = random.Random(f"frame {seed}")
    rows = [_row(chance) for _ in range(chance.randint(1, 5))]
    return FrameUpsert(rows=rows, deletes=chance.random() < 0.4)


def random_sql_upsert(seed: str, dialect: str) -> SqlUpsert:
    """INSERT ... ON CONFLICT, or ON DUPLICATE KEY UPDATE."""
    chance = random.Random(f"sql {seed}")
    rows = {(object() if row[0] is None else row[0]): row for row in (_row(chance) for _ in range(4))}
    names = chance.sample(_NAMES[1:], k=chance.randint(1 if dialect == "mysql" else 0, 3))
    sets = {name: _new(name, dialect) for name in names}
    if "a" in sets and chance.random() < 0.5:
        sets["a"] = f"t.a + {sets['a']}"
    return SqlUpsert(rows=list(rows.values()), sets=sets, dialect=dialect)


def _row(chance: random.Random) -> _Row:
    def number(most: int) -> int | None:
        return None if chance.random() < 0.12 else chance.randint(0, most)

    double = None if chance.random() < 0.15 else chance.randint(-8, 8) / 4
    return number(14), number(5), number(9), chance.choice(TEXTS), double


def _new(name: str, dialect: str) -> str:
    return f"VALUES({name})" if dialect == "mysql" else f"excluded.{name}"


def _inserted(rows: Sequence[_Row], sets: Mapping[str, str], dialect: str) -> str:
    listed = ", ".join(f"({', '.join(map(_literal, row))})" for row in rows)
    told = ", ".join(f"{name} = {value}" for name, value in sets.items())
    does = f"UPDATE SET {told}" if sets else "NOTHING"
    end = f"ON DUPLICATE KEY UPDATE {told}" if dialect == "mysql" else f"ON CONFLICT (id) DO {does}"
    return f"INSERT INTO t ({', '.join(_NAMES)}) VALUES {listed} {end}"


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    return str(value) if not isinstance(value, str) else "'" + value.replace("'", "''") + "'"


def _order(row: _Row) -> list[tuple[bool, Any]]:
    """Where a row comes among others: NULL first."""
    return [(value is not None, 0 if value is None else value) for value in row]
