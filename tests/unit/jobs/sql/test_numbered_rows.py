"""Rows that are chosen by their number in an order: MySQL's LIMIT of a change, SQL Server's query behind WITH."""

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.values import ColumnType, Compiled, Dialect, StepKind

TYPES = {"id": "int", "k": "int", "a": "int", "s": "string", "m": "decimal(9,2)"}
SCHEMA = tuple(ColumnType(name=name, type=kind) for name, kind in TYPES.items())
NUMBERED = "WITH c AS (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id) AS n FROM t) "
DIFFERS = "Rows that are alike in an order by which some of them are meant are an error, where {} takes any."


def done(text: str, dialect: str | None) -> Compiled:
    draft = draft_of(text, None if dialect is None else Dialect(dialect))
    assert draft is not None
    return compiled(draft, dict.fromkeys(draft.tables, SCHEMA))


def sql(text: str, dialect: str | None) -> str:
    (step,) = done(text, dialect).steps
    return step.sql.replace("`", "").replace("lakewarden_", "")


@pytest.mark.parametrize(
    ("dialect", "text", "said"),
    [
        (
            "mysql",
            "DELETE FROM t WHERE a > 1 ORDER BY m DESC, id LIMIT 3",
            (
                "CASE WHEN numbered.first <= 3 AND numbered.last > 3 THEN RAISE_ERROR(",
                "CAST(RANK() OVER (ORDER BY t.m DESC, t.id) AS BIGINT) AS first",
                "CAST(COUNT(*) OVER (ORDER BY t.m DESC, t.id) AS BIGINT) AS last",
                "FROM t AS t WHERE t.a > 1) AS numbered",
                "WHERE numbered.k0 IS NOT DISTINCT FROM t.m AND numbered.k1 IS NOT DISTINCT FROM t.id) <= 3",
            ),
        ),
        (
            "tsql",
            NUMBERED + "DELETE FROM c WHERE n > 1",
            ("numbered.first <= 1 AND numbered.last > 1 THEN", ") > 1"),
        ),
        (
            "tsql",
            NUMBERED + "DELETE FROM c WHERE 1 < n",
            ("numbered.first <= 1 AND numbered.last > 1 THEN", ") > 1"),
        ),
        (
            "tsql",
            NUMBERED + "DELETE c WHERE n >= 2",
            ("numbered.first < 2 AND numbered.last >= 2 THEN", ") >= 2"),
        ),
        (
            "tsql",
            NUMBERED + "DELETE c FROM c WHERE n = 1",
            ("numbered.first <= 1 AND numbered.last >= 1 AND numbered.first < numbered.last THEN", ") = 1"),
        ),
        (
            "tsql",
            NUMBERED + "UPDATE c SET a = n WHERE c.s = 'x'",
            ("CASE WHEN numbered.first < numbered.last THEN", "c.s = 'x'", "PARTITION BY t.k ORDER BY t.id"),
        ),
        (
            "tsql",
            "WITH c AS (SELECT TOP (5) * FROM t WHERE k > 0 ORDER BY id) DELETE FROM c",
            ("numbered.first <= 5 AND numbered.last > 5 THEN", "c.k > 0 AND (SELECT MAX(", ") <= 5"),
        ),
        (
            "tsql",
            "WITH c AS (SELECT TOP (2) id AS x, id FROM t ORDER BY x DESC) UPDATE c SET id = 0",
            ("RANK() OVER (ORDER BY t.id DESC)", "IS NOT DISTINCT FROM c.id"),
        ),
        (
            "tsql",
            "WITH c AS (SELECT TOP (2) -id AS id FROM t ORDER BY id) DELETE FROM c",
            ("RANK() OVER (ORDER BY -t.id)", "IS NOT DISTINCT FROM c.id"),
        ),
        (
            "tsql",
            "WITH c AS (SELECT RANK() OVER (ORDER BY x.a) r FROM t AS x WHERE x.a > 0) DELETE FROM c WHERE r % 2 = 1",
            ("SELECT RANK() OVER (ORDER BY x.a) AS value", "FROM t AS x WHERE x.a > 0", "c.a > 0 AND"),
        ),
    ],
)
def test_a_number_is_asked_for_by_the_values_of_the_order(
    dialect: str, text: str, said: tuple[str, ...]
) -> None:
    for chosen in (dialect, None):
        if chosen is None and dialect == "mysql":
            continue
        found = sql(text, chosen)
        assert [one for one in said if one not in found] == [], found


def test_that_it_is_an_error_where_chance_would_decide_is_told() -> None:
    assert DIFFERS.format("mysql") in done("DELETE FROM t ORDER BY id LIMIT 3", "mysql").notes
    assert DIFFERS.format("tsql") in done(NUMBERED + "DELETE FROM c WHERE n > 1", "tsql").notes


def test_an_order_without_a_limit_is_left_out_and_that_is_told() -> None:
    found = done("DELETE FROM t ORDER BY id", "mysql")
    assert found.steps[0].sql.replace("`", "") == "DELETE FROM t AS t"
    assert found.notes == ("ORDER BY without LIMIT is left out: it changes no result.",)


def test_a_query_of_one_table_without_windows_is_a_plain_change_of_it() -> None:
    text = "WITH c AS (SELECT id, k AS a FROM t AS x WHERE x.a > 1 OR x.k = 2) UPDATE c SET a = 0 WHERE a = 3"
    (step,) = done(text, "tsql").steps
    assert step.kind is StepKind.UPDATE
    assert step.sql.replace("`", "") == "UPDATE t AS c SET k = 0 WHERE (c.a > 1 OR c.k = 2) AND c.k = 3"


@pytest.mark.parametrize(
    ("dialect", "text", "said", "at"),
    [
        ("mysql", "DELETE FROM t LIMIT 3", "chooses rows by chance", "3"),
        ("mysql", "DELETE FROM t ORDER BY 1 LIMIT 3", "chooses rows by chance", "3"),
        ("mysql", "UPDATE t SET a = 1 ORDER BY (SELECT 1) LIMIT 3", "chooses rows by chance", "3"),
        ("mysql", "DELETE FROM t ORDER BY id LIMIT 2, 3", "a number that is written", "3"),
        (
            "mysql",
            "UPDATE t JOIN s ON t.k = s.k SET t.a = 1 ORDER BY t.k LIMIT 2",
            "a change of one table",
            "2",
        ),
        ("tsql", NUMBERED + "DELETE c FROM c JOIN s ON c.k = s.k WHERE n > 1", "is read here, too", "c JOIN"),
        (
            "tsql",
            NUMBERED + "DELETE FROM c WHERE k IN (SELECT k FROM c WHERE n > 1)",
            "is read here, too",
            "c WHERE",
        ),
        ("tsql", NUMBERED + "UPDATE c SET n = 1", "n is computed", "n = 1"),
        (
            "tsql",
            NUMBERED + "DELETE FROM c WHERE EXISTS (SELECT 1 FROM s WHERE k = n)",
            "Whose n is meant",
            "n)",
        ),
        (
            "tsql",
            NUMBERED + "DELETE FROM c WHERE EXISTS (SELECT 1 FROM s WHERE s.k = c.n)",
            "n is computed",
            "c.n",
        ),
        ("tsql", "WITH c AS (SELECT k FROM t) DELETE FROM c WHERE a = 1", "c has no column a", "a = 1"),
        ("tsql", "WITH c AS (SELECT DISTINCT k FROM t) DELETE FROM c", "not those of one table", "k FROM t)"),
        (
            "tsql",
            "WITH c AS (SELECT k FROM t GROUP BY k) DELETE FROM c",
            "not those of one table",
            "k FROM t G",
        ),
        (
            "tsql",
            "WITH c AS (SELECT t.k FROM t JOIN s ON t.k = s.k) DELETE FROM c",
            "not those of one table",
            "",
        ),
        ("tsql", "WITH b AS (SELECT k FROM t), c AS (SELECT k FROM b) DELETE FROM c", "another query", "b)"),
        ("tsql", "WITH c AS (SELECT TOP (5) * FROM t) DELETE FROM c", "takes rows by chance", ""),
        (
            "tsql",
            "WITH c AS (SELECT TOP (2) *, ROW_NUMBER() OVER (ORDER BY a) AS n FROM t ORDER BY n) DELETE FROM c",
            "is not computed from one row alone",
            "n) DELETE",
        ),
        (
            "tsql",
            NUMBERED.replace("ORDER BY id", "ORDER BY (SELECT NULL)") + "DELETE FROM c WHERE n > 1",
            "numbered by columns of the table",
            "ROW_NUMBER()",
        ),
        (
            "tsql",
            "WITH c AS (SELECT *, LAG(a) OVER (ORDER BY id) AS p FROM t) DELETE FROM c WHERE p = a",
            "rows of equal order by chance",
            "",
        ),
    ],
)
def test_what_chance_would_decide_or_is_of_no_single_table_is_refused(
    dialect: str, text: str, said: str, at: str
) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        done(text, dialect)
    assert caught.value.hint
    shown = str(caught.value).splitlines()
    assert not at or shown[1][shown[2].index("^") :].startswith(at), shown
