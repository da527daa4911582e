"""Rows compared with rows, and what binds tighter: what is written for Spark means there what the dialect means."""

import itertools
import operator
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import sqlglot
from hypothesis import given, reject
from hypothesis import strategies as st
from sqlglot import exp

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.merges.merge_drafts import merge_draft
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.values import ColumnType, Dialect, TableSchema


def schema(**columns: str) -> TableSchema:
    return tuple(ColumnType(name=name, type=kind) for name, kind in columns.items())


SCHEMAS = {
    "t": schema(k="int", a="int", s="string", f="boolean", g="boolean"),
    "u": schema(k="int", e="int", c="string"),
}


def condition(text: str, dialect: Dialect = Dialect.POSTGRES) -> str:
    """What becomes of the condition of a DELETE."""
    draft = draft_of(f"DELETE FROM t WHERE {text}", dialect)
    assert draft is not None, "Spark runs it as it is"
    (step,) = compiled(draft, {table: SCHEMAS[table.parts[-1]] for table in draft.tables}).steps
    return step.sql.partition(" WHERE ")[2].replace("`t`.", "").replace("`", "")


ROWS = {
    "(k, a) = (1, 2)": "k = 1 AND a = 2",
    "ROW(k, a) = ROW(1, NULL)": "k = 1 AND a = NULL",
    "(k, a) <> (1, 2)": "(k <> 1 OR a <> 2)",
    "NOT (k, a) = (1, 2)": "NOT (k = 1 AND a = 2)",
    "(k, a) IN ((1, NULL), (2, 3))": "((k = 1 AND a = NULL) OR (k = 2 AND a = 3))",
    "(k, a) NOT IN ((1, NULL), (2, 3))": "NOT ((k = 1 AND a = NULL) OR (k = 2 AND a = 3))",
    "(k, a) < (1, 2)": "(k < 1 OR (k = 1 AND a < 2))",
    "(k, a, s) >= (1, 2, 'x')": "(k > 1 OR (k = 1 AND (a > 2 OR (a = 2 AND s >= 'x'))))",
    "(k, a) BETWEEN (1, 2) AND (3, 4)": "(k > 1 OR (k = 1 AND a >= 2)) AND (k < 3 OR (k = 3 AND a <= 4))",
    "(k, a) IS DISTINCT FROM (1, 2)": "(k IS DISTINCT FROM 1 OR a IS DISTINCT FROM 2)",
    "(k, a) IS NOT DISTINCT FROM (1, 2)": "k IS NOT DISTINCT FROM 1 AND a IS NOT DISTINCT FROM 2",
}


@pytest.mark.parametrize(("text", "said"), ROWS.items())
def test_rows_are_compared_column_by_column(text: str, said: str) -> None:
    assert condition(text) == said


def truth(node: exp.Expr, row: dict[str, int | None]) -> bool | None:
    """SQL's value of a condition without rows."""
    match node:
        case exp.Paren():
            return truth(node.this, row)
        case exp.Not():
            found = truth(node.this, row)
            return None if found is None else not found
        case exp.And() | exp.Or():
            both = {truth(node.this, row), truth(node.expression, row)}
            ends = isinstance(node, exp.Or)
            return ends if ends in both else None if None in both else not ends
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            one, other = (
                row.get(side.name) if isinstance(side, exp.Column) else side.to_py()
                for side in (node.this, node.expression)
            )
            return None if one is None or other is None else KINDS[type(node)](one, other)
        case _:
            raise AssertionError(repr(node))


KINDS: Mapping[type[exp.Expr], Callable[[Any, Any], bool]] = {
    exp.EQ: operator.eq,
    exp.NEQ: operator.ne,
    exp.LT: operator.lt,
    exp.LTE: operator.le,
    exp.GT: operator.gt,
    exp.GTE: operator.ge,
}


def row_truth(sign: str, one: tuple[int | None, ...], other: tuple[int | None, ...]) -> bool | None:
    """What SQL's standard says of two rows."""
    pairs = list(zip(one, other, strict=True))
    if sign in ("=", "<>"):
        unequal = any(None not in pair and pair[0] != pair[1] for pair in pairs)
        unknown = any(None in pair for pair in pairs)
        return (sign == "<>") if unequal else None if unknown else sign == "="
    for a, b in pairs:
        if a is None or b is None:
            return None
        if a != b:
            return (a < b) == (sign[0] == "<")
    return sign in ("<=", ">=")


@pytest.mark.parametrize("sign", ["=", "<>", "<", "<=", ">", ">="])
def test_a_comparison_of_rows_has_the_value_that_sql_gives_it_with_nulls_too(sign: str) -> None:
    values = (None, 1, 2)
    for k, a, x, y in itertools.product(values, repeat=4):
        right = ", ".join("NULL" if one is None else str(one) for one in (x, y))
        said = sqlglot.parse_one(condition(f"(k, a) {sign} ({right})"), dialect="spark")
        assert truth(said, {"k": k, "a": a}) is row_truth(sign, (k, a), (x, y)), (k, a, x, y)


def test_in_of_rows_and_a_query_is_left_to_spark() -> None:
    assert "WHERE (`t`.`k`, `t`.`a`) IN (SELECT" in step("DELETE FROM t WHERE (k, a) IN (SELECT k, e FROM u)")
    assert "(`t`.`k`, `t`.`a`) IN (SELECT" in step("DELETE FROM t WHERE (k, a) = ANY (SELECT k, e FROM u)")


def step(text: str, dialect: Dialect = Dialect.POSTGRES) -> str:
    draft = draft_of(text, dialect)
    assert draft is not None
    return compiled(draft, {table: SCHEMAS[table.parts[-1]] for table in draft.tables}).steps[0].sql


@pytest.mark.parametrize(
    ("dialect", "text", "said", "column"),
    [
        ("postgres", "(k, a) IS NULL", "whole rows", 22),
        ("postgres", "(k, a) IS NOT NULL", "whole rows", 22),
        ("postgres", "CASE (k, a) WHEN (1, 2) THEN true END", "whole rows", 27),
        ("postgres", "k IN (SELECT count((k, e)) FROM u)", "whole rows", 41),
        ("postgres", "(k, a) = 1", "with another row", 30),
        ("postgres", "(k, a) = (1, 2, 3)", "different numbers of columns", 22),
        ("postgres", "(k, (a, s)) = (1, (2, 'x'))", "row in a row", 26),
        ("postgres", "(k, a) = (SELECT k, e FROM u)", "a query's", 38),
        ("postgres", "(k, a) < ANY (SELECT k, e FROM u)", "= ANY and <> ALL", 22),
        ("postgres", "(k, s) = (1, 2)", "integer and text", 25),
        ("mysql", "(k, s) IN (SELECT c, k FROM u)", "integer and text", 22),
        ("tsql", "(k, a) < (1, 2)", "no order of rows", 22),
        ("postgres", "k = ANY('{1,2}')", "take a query", 21),
    ],
)
def test_other_uses_of_rows_are_refused_with_the_place(
    dialect: str, text: str, said: str, column: int
) -> None:
    with pytest.raises(UsageError, match=f"{said}.*\\. Line 1, column {column}:"):
        condition(text, Dialect(dialect))


def test_sparks_own_rows_are_what_they_are_in_spark() -> None:
    text = "DELETE FROM t WHERE (k, a) = (1, 2) AND k IN (SELECT k FROM u)"
    assert "(`t`.`k`, `t`.`a`) = (1, 2)" in step(text, Dialect.SPARK)


@pytest.mark.parametrize(
    ("dialect", "text", "said"),
    [
        ("postgres", "f = g IN (true, false)", "f = (g IN (TRUE, FALSE))"),
        ("mysql", "f = g IN (true, false)", "f = (g IN (TRUE, FALSE))"),
        ("postgres", "f = s LIKE 'a%'", "f = (s LIKE 'a%')"),
        ("postgres", "f <> s NOT LIKE 'a%'", "f <> (s NOT LIKE 'a%')"),
        ("postgres", "f = k BETWEEN 1 AND 2", "f = (k BETWEEN 1 AND 2)"),
        ("postgres", "k = a IS NULL", "(k = a) IS NULL"),
        ("postgres", "f IS DISTINCT FROM k = 1", "f IS DISTINCT FROM (k = 1)"),
        ("postgres", "k IN (1) = f", "(k IN (1)) = f"),
        ("postgres", "NOT k = 1 AND f", "NOT k = 1 AND f"),
    ],
)
def test_what_binds_tighter_in_spark_has_parentheses(dialect: str, text: str, said: str) -> None:
    assert condition(text, Dialect(dialect)) == said


@pytest.mark.parametrize(
    ("dialect", "text"),
    [
        ("mysql", "DELETE FROM t WHERE f = k < a"),
        ("postgres", "DELETE FROM t WHERE f = k < a"),
        ("spark", "DELETE FROM t WHERE f = k IN (SELECT k FROM u)"),
        ("spark", "DELETE FROM t WHERE f = k NOT IN (SELECT k FROM u)"),
        ("mysql", "DELETE FROM t WHERE k BETWEEN 1 AND a IN (1, 2)"),
    ],
)
def test_an_order_that_dialects_have_each_of_their_own_is_refused(dialect: str, text: str) -> None:
    with pytest.raises(UsageError, match="another order") as caught:
        draft_of(text, Dialect(dialect))
    assert "parentheses" in caught.value.hint


def test_an_order_of_their_own_is_refused_in_a_merge_with_queries_too() -> None:
    text = "MERGE INTO t USING u ON t.k = u.k WHEN MATCHED AND f = u.k IN (SELECT e FROM u) THEN DELETE"
    with pytest.raises(UsageError, match="another order"):
        merge_draft(text)
    assert merge_draft(text.replace("= u.k IN (SELECT e FROM u) THEN", "= (u.k IN (SELECT e FROM u)) THEN"))


ATOMS = (
    "k IN (1, 2)",
    "s LIKE 'a%'",
    "s NOT LIKE 'b'",
    "k BETWEEN 1 AND 2",
    "a NOT BETWEEN 1 AND 2",
    "k IS NULL",
    "a IS NOT NULL",
    "a < 3",
    "k = a",
)


@st.composite
def conditions(draw: st.DrawFn, depth: int = 3) -> str:
    shape = draw(st.integers(0, 5)) if depth else 0
    if shape == 0:
        return draw(st.sampled_from(ATOMS))
    side = draw(conditions(depth - 1))
    grouped = f"({side})" if draw(st.booleans()) else side
    match shape:
        case 1:
            return f"{draw(st.sampled_from('fg'))} {draw(st.sampled_from(('=', '<>')))} {grouped}"
        case 2:
            return f"{grouped} {draw(st.sampled_from(('AND', 'OR')))} {draw(conditions(depth - 1))}"
        case 3:
            return f"NOT {grouped}"
        case 4:
            return f"({side}) IS NULL"
        case _:
            return f"({side}) IS DISTINCT FROM g"


@pytest.mark.heavy
@given(conditions())
def test_no_condition_is_an_operand_without_parentheses(text: str) -> None:
    """So Spark's order cannot matter, whatever it is; and without them it is the tree that was read."""
    try:
        said = condition(text)
    except UsageError:
        reject()
    tree = sqlglot.parse_one(said, dialect="spark")
    for node in tree.find_all(
        exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.In, exp.Like, exp.Between
    ):
        for operand in (node.this, node.args.get("expression")):
            assert not isinstance(operand, exp.Predicate | exp.Connector | exp.Not)
    assert flat(tree) == flat(sqlglot.parse_one(text, dialect="postgres"))


def flat(condition: exp.Expr) -> str:
    """Without parentheses, and without the two spellings of NOT LIKE and IS NOT NULL."""
    tree = exp.Not(this=condition.copy())
    for node in list(tree.find_all(exp.Paren)):
        node.replace(node.this)
    for negated in [one for one in tree.find_all(exp.Predicate) if one.args.get("negate")]:
        negated.set("negate", None)
        negated.replace(exp.Not(this=negated.copy()))
    return repr(tree)
