"""Random statements of MySQL's over several tables, t and s; a seed makes one.

No new value depends on a column that the statement sets: there MySQL promises no order among the tables.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass

from support.two_databases.random_changes import random_rows
from support.two_databases.random_mysql import MysqlMaker
from support.two_databases.sides import Rows

__all__ = ["SeveralChange", "random_several_change"]


@dataclass(frozen=True, kw_only=True)
class SeveralChange:
    """A statement, the tables it is about, and the query that counts the rows with several matches."""

    rows: Mapping[str, Rows]
    text: str
    several: str


def random_several_change(seed: int) -> SeveralChange:
    """One statement over t and s."""
    chance = random.Random(seed)
    maker = MysqlMaker(chance)
    maker.adds_s()
    third = chance.choice(("", "", " JOIN u ON s.k = u.k", " LEFT JOIN u ON s.k = u.k AND u.e > 3"))
    tables = f"{chance.choice(('t JOIN s', 't LEFT JOIN s', 's LEFT JOIN t'))} ON {maker.link()}{third}"
    where = f" WHERE {maker.condition(2)}" if chance.random() < 0.7 else ""
    if chance.random() < 0.3:
        text = f"DELETE t, s FROM {tables}{where}"
    else:
        makers = {"t.a": maker.number, "t.k": maker.number, "t.s": maker.text, "t.d": maker.double}
        others = {"s.b": maker.number, "s.c": maker.text, "s.n": maker.double}
        set_ = [*chance.sample(sorted(makers), chance.randint(1, 2)), *chance.sample(sorted(others), 1)]
        chance.shuffle(set_)
        maker.forgets(set_)
        text = (
            f"UPDATE {tables} SET {', '.join(f'{one} = {(makers | others)[one](1)}' for one in set_)}{where}"
        )
    counted = (
        f"SELECT {name}.place FROM {tables}{where} GROUP BY {name}.place"
        f" HAVING {name}.place IS NOT NULL AND count(*) > 1"
        for name in ("t", "s")
    )
    return SeveralChange(
        rows=random_rows(chance),
        text=text,
        several=" + ".join(f"(SELECT count(*) FROM ({one}) AS q)" for one in counted).join(("SELECT ", "")),
    )
