"""Whole numbers are computed in the dialect's bits, and what is too large is found wherever it is computed."""

import pytest

from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.values import ColumnType, Dialect, TableName

COLUMNS = {"tiny": "tinyint", "small": "smallint", "id": "int", "big": "bigint", "n": "decimal(20,0)"}
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
