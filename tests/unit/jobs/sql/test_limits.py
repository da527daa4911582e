"""LIMIT in a query that depends on an outer row: only where Spark keeps it for each of them."""

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.values import ColumnType, Dialect

SCHEMA = (
    ColumnType(name="k", type="int"),
    ColumnType(name="a", type="int"),
    ColumnType(name="big", type="bigint"),
)


def sql(query: str, dialect: str) -> str:
    draft = draft_of(f"UPDATE t SET a = ({query})", Dialect(dialect))
    assert draft is not None
    (step,) = compiled(draft, dict.fromkeys(draft.tables, SCHEMA)).steps
    return step.sql


@pytest.mark.parametrize("dialect", ["postgres", "mysql", "spark"])
@pytest.mark.parametrize(
    "where",
    [
        "u.k = t.k",
        "t.k = u.k AND u.a > 1",
        "(u.k = t.k)",
        "u.k < t.k AND u.big = t.big",
        "u.k <= t.big",
        "u.k = 1",
    ],
)
def test_columns_of_one_type_may_be_compared(where: str, dialect: str) -> None:
    assert "LIMIT 1" in sql(f"SELECT u.a FROM u WHERE {where} ORDER BY u.a LIMIT 1", dialect)


@pytest.mark.parametrize("dialect", ["postgres", "mysql", "spark"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT u.a FROM u WHERE u.k = t.big ORDER BY u.a LIMIT 1",
        "SELECT u.a FROM u WHERE u.k = t.k + 1 ORDER BY u.a LIMIT 1",
        "SELECT u.a FROM u WHERE u.k = t.k AND u.big = t.a ORDER BY u.a LIMIT 1",
        "SELECT u.a FROM u WHERE NOT u.k <> t.k ORDER BY u.a LIMIT 1",
        "SELECT u.a FROM u WHERE u.k IN (t.k) ORDER BY u.a LIMIT 1",
        "SELECT u.a + t.k FROM u ORDER BY u.a LIMIT 1",
        "SELECT q.a FROM (SELECT u.a FROM u WHERE u.k = t.big ORDER BY u.a LIMIT 1) AS q",
        "SELECT q.a FROM (SELECT u.a FROM u WHERE u.k = t.k) AS q ORDER BY q.a LIMIT 1",
    ],
)
def test_what_spark_would_take_for_all_rows_together_is_refused(query: str, dialect: str) -> None:
    with pytest.raises(UsageError, match=r"take the LIMIT of this query for all rows.*Line 1, column \d+"):
        sql(query, dialect)


def test_top_of_teradata_and_sql_server_is_a_limit() -> None:
    for dialect, rest in (("teradata", ""), ("tsql", " FROM t")):
        draft = draft_of(
            f"UPDATE t SET a = (SELECT TOP 1 u.a FROM u WHERE u.k = t.big ORDER BY u.a){rest}",
            Dialect(dialect),
        )
        assert draft is not None
        with pytest.raises(UsageError, match="take the LIMIT"):
            compiled(draft, dict.fromkeys(draft.tables, SCHEMA))
