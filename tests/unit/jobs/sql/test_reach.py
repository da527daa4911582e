"""A column two queries further out: the query between reads it, as Spark looks into the next query alone."""

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.values import ColumnType, Dialect

SCHEMAS = {
    table: tuple(ColumnType(name=name, type="double" if name == "d" else "int") for name in columns)
    for table, columns in {"t": ("id", "k", "a", "d"), "s": ("k", "b"), "u": ("k", "e")}.items()
}


def sql(text: str) -> str:
    draft = draft_of(text, Dialect.POSTGRES)
    assert draft is not None
    (step,) = compiled(draft, {table: SCHEMAS[table.parts[-1]] for table in draft.tables}).steps
    return step.sql.replace("`", "")


def test_the_query_between_keeps_the_value_of_its_own_row() -> None:
    found = sql("DELETE FROM t WHERE EXISTS (SELECT 1 FROM u WHERE e IN (SELECT b FROM s WHERE s.k = t.a))")
    assert (
        "EXISTS(SELECT 1 AS 1 FROM u AS u CROSS JOIN (SELECT DISTINCT t.a FROM t AS t) AS lakewarden_held0 "
        "WHERE u.e IN (SELECT s.b AS b FROM s AS s WHERE s.k = lakewarden_held0.a) "
        "AND lakewarden_held0.a IS NOT DISTINCT FROM t.a)"
    ) in found


def test_what_is_nearer_is_left_alone() -> None:
    near = "DELETE FROM t WHERE EXISTS (SELECT 1 FROM (SELECT k FROM u WHERE u.e = t.a) AS q WHERE q.k = t.k)"
    assert "lakewarden_held" not in sql(near)


@pytest.mark.parametrize(
    "value",
    [
        "SELECT max(e + (SELECT count(*) FROM s WHERE s.k = t.k)) FROM u",
        "SELECT max(e) FROM u GROUP BY u.k HAVING EXISTS (SELECT 1 FROM s WHERE s.k = t.k)",
        "SELECT max(e) FROM u JOIN s v ON EXISTS (SELECT 1 FROM s WHERE s.k = t.k)",
        "SELECT max(e) FROM u WHERE EXISTS (SELECT 1 FROM s WHERE s.k = t.d)",
    ],
    ids=["aggregate", "having", "on", "signs of zeros"],
)
def test_where_it_cannot_the_statement_is_refused_with_the_place(value: str) -> None:
    with pytest.raises(UsageError, match="two queries further out") as caught:
        sql(f"UPDATE t SET a = ({value})")
    shown, caret = str(caught.value).splitlines()[1:]
    assert shown[caret.index("^") :].startswith(("k", "t.k", "d", "t.d"))
    assert "in the query between" in caught.value.hint


@pytest.mark.parametrize(
    "condition",
    [
        "k NOT IN (SELECT k FROM s AS q WHERE t.id NOT IN (SELECT e FROM u WHERE q.k > 0))",
        "k NOT IN (SELECT k FROM s AS q WHERE NOT (t.a + 1 IN (SELECT e FROM u AS x WHERE x.k > q.k)))",
        "EXISTS (SELECT 1 FROM s AS q WHERE q.k IS NULL AND t.id NOT IN (SELECT e FROM u WHERE q.k > 0))",
    ],
)
def test_a_not_in_of_a_value_from_outside_that_depends_on_the_query_between_is_refused(
    condition: str,
) -> None:
    with pytest.raises(UsageError, match="Spark finds other rows where it is NOT IN") as caught:
        sql(f"DELETE FROM t WHERE {condition}")
    assert "NOT EXISTS" in caught.value.hint


@pytest.mark.parametrize(
    "condition",
    [
        "k NOT IN (SELECT k FROM s AS q WHERE q.b NOT IN (SELECT e FROM u WHERE q.k > 0))",
        "k NOT IN (SELECT k FROM s AS q WHERE t.id NOT IN (SELECT e FROM u WHERE u.k > 0))",
    ],
)
def test_other_not_ins_are_taken(condition: str) -> None:
    assert "NOT" in sql(f"DELETE FROM t WHERE {condition}")
