"""Rows that are meant by their number: each comparison on Spark, judged by all orders of rows that are alike."""

import operator
from collections.abc import Callable, Mapping
from itertools import groupby, product

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lakewarden.jobs.sql.compile.values import ColumnType, Dialect
from support.servers.spark import set_to
from support.two_databases.meaning import meaning
from support.two_databases.rehearsal import World
from support.two_databases.wide_game import FAST

pytestmark = pytest.mark.spark

Row = tuple[int, int | None, int | None]
SCHEMA = tuple(ColumnType(name=name, type="int") for name in ("id", "k", "x"))
ROWS: list[Row] = [
    (1, 1, 5),
    (2, 1, 5),
    (3, 1, 7),
    (4, None, None),
    (5, None, None),
    (6, None, 2),
    (7, 2, 1),
    (8, 1, 9),
]
WORLD = World(schemas={"t": SCHEMA}, rows={"t": ROWS})
COMPARISONS: Mapping[str, Callable[[int, int], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "=": operator.eq,
    "<>": operator.ne,
}
GRID = [*product(COMPARISONS, (0, 1, 2, 3, 4))]
FEW = {(">", 1), ("<=", 3), ("=", 3)}


def by_number(rows: list[Row], decides: Callable[[int], bool]) -> list[Row] | None:
    """The rows, in their order, whose numbers decide for them; None where that depends on how alike rows stand."""
    chosen, first = list[Row](), 1
    for _, alike in groupby(rows, key=lambda row: (row[2] is not None, row[2])):
        several = list(alike)
        decided = {decides(number) for number in range(first, first + len(several))}
        if len(decided) > 1:
            return None
        chosen += several if decided.pop() else []
        first += len(several)
    return chosen


def ordered(rows: list[Row]) -> list[Row]:
    """NULL before all, as in SQL Server and MySQL."""
    return sorted(rows, key=lambda row: (row[2] is not None, row[2] or 0))


def kept(spark: SparkSession, statement: str, dialect: Dialect) -> list[Row] | None:
    """What is left behind a DELETE; None where it is an error."""
    try:
        rows = meaning(spark, statement, dialect, world=WORLD).tables["t"]
    except (PySparkException, Py4JJavaError) as error:
        assert "are on both sides of a limit" in str(error)
        return None
    return sorted((row[0], row[1], row[2]) for row in rows)  # type: ignore[misc]  # three columns


@pytest.mark.parametrize(
    ("comparison", "number"),
    [one if one in FEW else pytest.param(*one, marks=pytest.mark.long) for one in GRID],
)
def test_row_numbers_decide_as_in_sql_server(spark: SparkSession, comparison: str, number: int) -> None:
    holds = COMPARISONS[comparison]
    parts = [
        by_number(ordered([row for row in ROWS if row[1] == k]), lambda n: holds(n, number))
        for k in (1, 2, None)
    ]
    gone = None if None in parts else [row for part in parts for row in part or []]
    text = (
        "WITH c AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY x) AS n FROM t) DELETE FROM c WHERE "
    )
    with set_to(spark, FAST):
        for condition in (f"n {comparison} {number}", f"{number} {MIRRORED.get(comparison, comparison)} n"):
            found = kept(spark, text + condition, Dialect.TSQL)
            assert found == (None if gone is None else sorted(set(ROWS) - set(gone), key=lambda row: row[0]))


MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}


@pytest.mark.parametrize(
    "most", [3, *(pytest.param(most, marks=pytest.mark.long) for most in (0, 1, 2, 4, 5, 8, 9))]
)
def test_a_limit_decides_as_in_mysql(spark: SparkSession, most: int) -> None:
    gone = by_number(ordered([row for row in ROWS if row[0] != 3]), lambda number: number <= most)
    with set_to(spark, FAST):
        found = kept(spark, f"DELETE FROM t WHERE id <> 3 ORDER BY x LIMIT {most}", Dialect.MYSQL)
    assert found == (None if gone is None else sorted(set(ROWS) - set(gone), key=lambda row: row[0]))
