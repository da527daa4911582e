"""Where Spark keeps a LIMIT for each outer row, and where it does not: what `meaning/limits.py` relies on."""

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

VALUES = (None, 0, 1, 2, 3)
Row = tuple[int | None, int | None, int]
ROWS: list[Row] = [
    (VALUES[i % 5], VALUES[(i // 5 + 1) % 5], i)
    for i in range(25)
]  # fmt: skip
KEPT: dict[str, Callable[[Row, Row], bool]] = {
    "u.k = t.k": lambda u, t: u[0] is not None and u[0] == t[0],
    "u.k <=> t.k": lambda u, t: u[0] == t[0],
    "u.k < t.k": lambda u, t: u[0] is not None and t[0] is not None and u[0] < t[0],
    "u.k <= t.big": lambda u, t: u[0] is not None and t[1] is not None and u[0] <= t[1],
    "u.k < t.k AND u.big = t.big": lambda u, t: (
        None not in (u[0], t[0], u[1]) and u[0] < t[0] and u[1] == t[1]  # type: ignore[operator]  # none is None
    ),
    "u.k = t.k AND u.big >= t.k": lambda u, t: (
        None not in (u[0], u[1]) and u[0] == t[0] and u[1] >= t[0]  # type: ignore[operator]  # none is None
    ),
}


@pytest.fixture(scope="module")
def asked(spark: SparkSession) -> SparkSession:
    for name in ("t", "u"):
        frame = spark.createDataFrame(ROWS, "k int, big bigint, i int")
        frame.createOrReplaceTempView(f"limits_of_{name}")
    return spark


def first_of_each(spark: SparkSession, condition: str) -> dict[int, int | None]:
    found = spark.sql(
        f"SELECT t.i, (SELECT u.i FROM limits_of_u AS u WHERE {condition} ORDER BY u.i DESC LIMIT 1) "
        "FROM limits_of_t AS t"
    )
    return {row[0]: row[1] for row in found.collect()}


@pytest.mark.parametrize("condition", KEPT)
def test_what_passes_finds_the_first_row_for_each(asked: SparkSession, condition: str) -> None:
    matches = KEPT[condition]
    assert first_of_each(asked, condition) == {
        t[2]: next((u[2] for u in reversed(ROWS) if matches(u, t)), None) for t in ROWS
    }


def test_what_is_refused_finds_nothing_for_most_rows_in_spark(asked: SparkSession) -> None:
    """Once this fails, Spark has mended it, and nothing has to be refused any more."""
    found = first_of_each(asked, "u.k = t.big")
    assert sum(one is not None for one in found.values()) < len([t for t in ROWS if t[1] is not None])
