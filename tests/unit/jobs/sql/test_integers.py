"""Whole numbers are computed in the dialect's bits, and what is too large is found wherever it is computed."""

import pytest

from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.values import ColumnType, Dialect, TableName

COLUMNS = {"tiny": "tinyint", "small": "smallint", "id": "int", "big": "bigint", "n": "decimal(20,0)",
           "few": "decimal(5,2)"}  # fmt: skip
SCHEMAS = {TableName(parts=("t",)): tuple(ColumnType(name=name, type=kind) for name, kind in COLUMNS.items())}


def where(condition: str, dialect: str) -> str:
    draft = draft_of(f"DELETE FROM t WHERE {condition}", Dialect(dialect))
    assert draft is not None
    (step,) = compiled(draft, SCHEMAS).steps
    return step.sql.replace("`", "").replace("t.", "").partition(" WHERE ")[2]


@pytest.mark.parametrize(
    ("dialects", "condition", "found"),
    [
        ("mysql", "id * 2 > 3000000000", "CAST(id AS BIGINT) * 2 > 3000000000"),
        ("mysql", "small + small > 32767", "CAST(small AS BIGINT) + small > 32767"),
        ("mysql", "-id - 1 < big", "-CAST(id AS BIGINT) - 1 < big"),
        ("mysql", "big + id * id = 1", "big + CAST(id AS BIGINT) * id = 1"),
        ("mysql", "abs(id) = 1", "ABS(CAST(id AS BIGINT)) = 1"),
        ("mysql", "2147483647 + 1 = big", "CAST(2147483647 AS BIGINT) + 1 = big"),
        ("mysql", "id DIV 2 * 3 = 1", "id DIV 2 * 3 = 1"),
        ("teradata", "small + small > 32767", "CAST(small AS INT) + small > 32767"),
        ("teradata", "id + tiny = 1", "id + tiny = 1"),
        ("postgres tsql", "tiny + tiny = 1", "CAST(tiny AS SMALLINT) + tiny = 1"),
        ("postgres tsql", "small + small > 32767", "small + small > 32767"),
        ("postgres tsql", "small + 1 = id * big", "small + 1 = id * big"),
        ("postgres tsql", "id / 2 + 1 = 1", "CAST(id DIV 2 AS INT) + 1 = 1"),
        ("postgres tsql", "small / small = 1", "CAST(small DIV small AS SMALLINT) = 1"),
        ("postgres tsql", "id / -1 = 1", "CAST(id DIV -1 AS INT) = 1"),
        ("postgres tsql", "big / id = 1", "big DIV id = 1"),
    ],
)
def test_the_bits_of_a_dialect(dialects: str, condition: str, found: str) -> None:
    for dialect in dialects.split():
        assert where(condition, dialect) == found


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("id * 2 > 3000000000", "(CAST(id * 2 AS BIGINT) | 0) > 3000000000"),
        ("-3000000000 > (id * 2)", "-3000000000 > (CAST((id * 2) AS BIGINT) | 0)"),
        ("small + small > 40000", "(CAST(small + small AS BIGINT) | 0) > 40000"),
        ("id + 1 IN (1, 3000000000)", "(CAST(id + 1 AS BIGINT) | 0) IN (1, 3000000000)"),
        ("id + 1 BETWEEN 0 AND 3000000000", "(CAST(id + 1 AS BIGINT) | 0) BETWEEN 0 AND 3000000000"),
        ("CAST(big AS INT) = 3000000000", "(CAST(CAST(big AS INT) AS BIGINT) | 0) = 3000000000"),
        (
            "big + 1 > 9223372036854775808",
            "(CAST(big + 1 AS DECIMAL(20, 0)) + 0) > CAST(9223372036854775808 AS DECIMAL(19, 0))",
        ),
        # Nothing overflows here.
        ("id > 3000000000", "id > 3000000000"),
        ("id * 2 > 2147483647", "id * 2 > 2147483647"),
        ("big * 2 > 3000000000", "big * 2 > 3000000000"),
    ],
)
def test_what_is_compared_with_a_number_that_it_cannot_be_is_computed(condition: str, found: str) -> None:
    assert where(condition, "postgres") == found


@pytest.mark.parametrize(
    ("dialect", "condition", "found"),
    [
        ("tsql", "id * 2 > 3000000000", "(CAST(id * 2 AS BIGINT) | 0) > CAST(3000000000 AS DECIMAL(10, 0))"),
        ("teradata", "n = 3000000000", "n = CAST(3000000000 AS DECIMAL(10, 0))"),
        ("postgres", "n = 9223372036854775808", "n = CAST(9223372036854775808 AS DECIMAL(19, 0))"),
        ("postgres", "3000000001 / 2 = big", "3000000001 DIV 2 = big"),
    ],
)
def test_a_number_beyond_the_integers_of_a_dialect_is_a_decimal(
    dialect: str, condition: str, found: str
) -> None:
    assert where(condition, dialect) == found


def test_such_a_number_is_not_divided_as_an_integer() -> None:
    assert where("3000000001 / 2 = big", "tsql").startswith(
        "CAST(CAST(3000000001 AS DECIMAL(10, 0)) AS DECIMAL(16, 6)) / 2 = "
    )
    assert where("3000000001 / 2 = big", "teradata").startswith(
        "BROUND(CAST(CAST(3000000001 AS DECIMAL(10, 0)) AS DECIMAL(10, 0)) / 2, 0) = "
    )


@pytest.mark.parametrize(
    ("dialect", "value", "found"),
    [
        ("tsql", "sum(o.id)", "CAST(SUM(o.id) AS INT)"),
        ("teradata", "sum(o.small)", "CAST(SUM(o.small) AS INT)"),
        ("tsql", "sum(o.big)", "SUM(o.big)"),
        ("teradata", "sum(o.id) * 2", "CAST(SUM(o.id) AS INT) * 2"),
        ("tsql", "sum(o.id) / 2 * 2", "CAST(CAST(SUM(o.id) AS INT) DIV 2 AS INT) * 2"),
        ("tsql", "count(*) * 1000000", "CAST(COUNT(*) AS INT) * 1000000"),
        ("tsql", "count_big(*) * 1000000", "COUNT(*) * 1000000"),
        ("teradata", "(count(*)) + 1", "(CAST(COUNT(*) AS INT)) + 1"),
        ("tsql", "count(*)", "COUNT(*)"),
        ("tsql", "avg(o.small) * 2",
         "CAST(CAST(SUM(o.small) AS INT) DIV NULLIF(COUNT(o.small), 0) AS INT) * 2"),
        ("tsql", "avg(o.big)", "CAST(CAST(SUM(o.big) AS BIGINT) DIV NULLIF(COUNT(o.big), 0) AS BIGINT)"),
        ("postgres", "sum(o.id) * 2", "SUM(o.id) * 2"),
    ],
)  # fmt: skip
def test_what_is_summed_up_has_the_bits_that_it_has_there(dialect: str, value: str, found: str) -> None:
    assert f"SELECT {found} AS " in where(f"big = (SELECT {value} FROM t AS o)", dialect)


def test_a_sum_keeps_these_bits_outside_of_its_query_and_over_a_window() -> None:
    inner = "SELECT {} AS n FROM t AS o"
    summed = where(f"big < (SELECT max(q.n * 2) FROM ({inner.format('sum(o.id)')}) AS q)", "tsql")
    assert "CAST(SUM(o.id) AS INT) AS n" in summed
    asked = f"EXISTS (SELECT 1 FROM ({inner.format('sum(o.id)')}) AS q WHERE q.n * 2 > 3000000000)"
    assert "(CAST(q.n * 2 AS BIGINT) | 0) > CAST(3000000000" in where(asked, "tsql")
    over = where(f"id IN (SELECT n FROM ({inner.format('sum(o.id) OVER (ORDER BY o.big)')}) AS q)", "tsql")
    assert "CAST(SUM(o.id) OVER (ORDER BY o.big) AS INT) AS n" in over


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("ISNULL(small, 40000)", "COALESCE(small, CAST(40000 AS SMALLINT))"),
        ("ISNULL(tiny, id)", "COALESCE(tiny, CAST(id AS TINYINT))"),
        ("ISNULL(small + small, big)", "COALESCE(small + small, CAST(big AS SMALLINT))"),
        ("ISNULL(id, small)", "COALESCE(id, small)"),
        ("ISNULL(few, 123456.5)", "COALESCE(few, CAST(123456.5 AS DECIMAL(5, 2)))"),
        ("ISNULL(few, id)", "COALESCE(few, CAST(id AS DECIMAL(5, 2)))"),
        ("ISNULL(few, 12.5)", "COALESCE(few, 12.5)"),
        ("ISNULL(n, 1)", "COALESCE(n, 1)"),
    ],
)
def test_isnull_is_a_number_of_the_type_of_its_first_value(value: str, found: str) -> None:
    assert where(f"{value} = 1", "tsql").startswith(f"{found} = 1")


def test_what_is_computed_of_isnull_has_the_bits_of_its_first_value() -> None:
    condition = "ISNULL(small, 1) + small > 40000"
    assert where(condition, "tsql") == (
        "(CAST(COALESCE(small, CAST(1 AS SMALLINT)) + small AS BIGINT) | 0) > 40000"
    )
