"""Changes compiled: what comes out, what is refused with which place, and that nothing slips through quotes."""

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from lakewarden.catalog.errors import LakewardenError, NotAllowedError, UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.values import (
    ColumnType,
    Compiled,
    Dialect,
    MatchPolicy,
    StepKind,
    TableName,
    TableSchema,
    dialect_of,
    policy_of,
)
from support.builders.warehouse_changes import CASES


def schema(**columns: str) -> TableSchema:
    return tuple(ColumnType(name=name, type=kind) for name, kind in columns.items())


SCHEMAS = {
    "t": schema(id="int", k="int", a="int", s="string", d="double", price="decimal(10,2)", p="struct<x:int>"),
    "s": schema(k="int", b="int", c="string", n="double"),
    "u": schema(k="int", e="int"),
}


def compile_one(text: str, dialect: Dialect | None = None, matches: str = "error") -> Compiled:
    draft = draft_of(text, dialect)
    assert draft is not None, "Spark runs it as it is"
    return compiled(draft, {table: SCHEMAS[table.parts[-1]] for table in draft.tables}, policy_of(matches))


PLAIN = {
    "UPDATE t FROM s SET a = s.b WHERE t.k = s.k": (
        "MERGE INTO `t` AS `t` USING `s` AS `s` ON `t`.`k` = `s`.`k`"
        " WHEN MATCHED THEN UPDATE SET `t`.`a` = `s`.`b`"
    ),
    "UPDATE db.t AS x SET a = 1, s = 'it''s' FROM db.s, u WHERE x.k = s.k OR x.k = u.k": (
        "MERGE INTO `db`.`t` AS `x` USING (SELECT `s`.`k` AS `c0`, `u`.`k` AS `c1` FROM `db`.`s` AS `s`, "
        "`u` AS `u`) AS `source` ON (`x`.`k` = `source`.`c0` OR `x`.`k` = `source`.`c1`)"
        " WHEN MATCHED THEN UPDATE SET `x`.`a` = 1, `x`.`s` = 'it\\'s'"
    ),
    "DELETE FROM t WHERE k NOT IN (SELECT k FROM u)": (
        "MERGE INTO `t` AS `target` USING (SELECT `t`.`k` AS `k0` FROM (SELECT DISTINCT `k` FROM `t`) AS `t`"
        " WHERE NOT `t`.`k` IN (SELECT `u`.`k` AS `k` FROM `u` AS `u`)) AS `source`"
        " ON `target`.`k` <=> `source`.`k0` WHEN MATCHED THEN DELETE"
    ),
    "DEL FROM t ALL": "DELETE FROM `t` AS `t`",
    "UPD t SET a = a / 2 WHERE k = 1": "UPDATE `t` AS `t` SET `a` = `t`.`a` DIV 2 WHERE `t`.`k` = 1",
}


@pytest.mark.parametrize(("text", "sql"), PLAIN.items())
def test_the_plain_statement(text: str, sql: str) -> None:
    (step,) = compile_one(text).steps
    assert step.sql == sql


@pytest.mark.parametrize("name", CASES)
def test_each_case_compiles_to_one_statement_that_spark_can_parse(name: str) -> None:
    done = compile_one(CASES[name][0], Dialect(name.partition(":")[0]))
    (step,) = done.steps
    kinds = {StepKind.MERGE: exp.Merge, StepKind.UPDATE: exp.Update, StepKind.DELETE: exp.Delete}
    assert [type(tree) for tree in sqlglot.parse(step.sql, dialect="spark")] == [kinds[step.kind]]
    assert done.target == TableName(parts=("t",))


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("UPDATE t FROM s SET a = s.b", "teradata"),
        ("UPD t SET a = 1", "teradata"),
        ("UPDATE t JOIN s ON t.k = s.k SET t.a = s.b", "mysql"),
        ("UPDATE t SET a = s.b FROM s", "postgres"),
        ("UPDATE t SET a = s.b FROM t JOIN s ON t.k = s.k", "tsql"),
        ("DELETE FROM t USING s WHERE t.k = s.k", "postgres"),
        ("DELETE FROM t USING t JOIN s ON t.k = s.k", "mysql"),
        ("DELETE FROM t WHERE k IN (SELECT k FROM s)", "spark"),
    ],
)
def test_the_form_says_whose_it_is(text: str, dialect: str) -> None:
    assert compile_one(text).dialect == dialect


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t SET a = 1 WHERE k = 2",
        'DELETE FROM db.t WHERE s = "it\'s"',
        "UPDATE t SET p.x = 1",
        "UPDATE t SET a = transform(array(1), x -> x + 1)[0]",
    ],
)
def test_what_spark_runs_as_it_is_is_left_alone(text: str) -> None:
    assert draft_of(text) is None
    assert draft_of(text, Dialect.SPARK) is None


@pytest.mark.parametrize(
    "text",
    [
        "DELETE t FROM t JOIN s ON t.k = s.k WHERE t.a / 2 > 1",
        "UPDATE t SET a = x.a FROM t AS x JOIN s ON x.k = s.k",
        "UPDATE t SET a = s.n FROM s WHERE t.k = s.k",
        'DELETE t FROM t JOIN s ON t.k = s.k WHERE s.c = "x"',
    ],
)
def test_what_dialects_read_differently_is_refused_until_one_is_chosen(text: str) -> None:
    with pytest.raises(UsageError, match="one thing in") as caught:
        compile_one(text)
    assert "SET lakewarden.dialect" in caught.value.hint


@pytest.mark.parametrize(
    ("text", "said", "caret"),
    [
        ("UPDATE t SET a = s.b,\n  zz = 1 FROM s", "t has no column zz. Line 2, column 3",
            "  zz = 1 FROM s\n    ^"),
        ("UPDATE t SET a = k FROM s", "k is not clear here: t, s have such a column. Line 1, column 18",
            None),
        ("UPDATE t FROM s SET a = s.zz",
            "There is no column zz in s. Line 1, column 27", None),
        ("WITH q AS (SELECT k, e AS a FROM u) UPDATE t SET d = a FROM q", "a is not clear here", None),
        ("UPDATE t SET a = q.b FROM s", "There is no column b in q. Line 1, column 20", None),
        ("UPDATE t SET a = 1, A = 2 FROM s", "A is set twice", None),
        ("UPDATE t SET a = FROM s", "Line 1, column 18", None),
        ("UPDATE t SET s = md5(s.c) FROM s", "MD5 may mean something else in Spark than in postgres. Line 1",
            None),
        ("UPDATE t SET s = f(s.c) FROM s", "F may mean something else in Spark than in postgres. Line 1",
            None),
        ("UPDATE t SET a = 1 FROM s WHERE s.c = 5", "integer and text are compared by other rules", None),
        ("UPDATE t SET s = t.price / 3 FROM s", "last digits of a quotient", None),
        ("UPDATE t SET a = 1 FROM s RETURNING a", "RETURNING", None),
        ("UPDATE t SET a = rand() FROM s", "random", None),
        ("UPDATE t, s SET k = 1", "Several of the tables before SET have a column k", None),
        ("UPDATE t SET a = s.b FROM t RIGHT JOIN s ON t.k = s.k", "RIGHT JOIN with the table that is changed",
            None),
        ("UPDATE t SET a = (SELECT e FROM u LIMIT 1) FROM s", "LIMIT without ORDER BY", None),
        ("UPDATE t SET p.x = 1 FROM s", "is not the table that is changed", None),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place(text: str, said: str, caret: str | None) -> None:
    with pytest.raises(UsageError) as caught:
        compile_one(text)
    assert said in str(caught.value)
    assert caught.value.hint
    assert caret is None or str(caught.value).endswith(caret)


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t SET a = 1 FROM s; DROP TABLE t",
        "DELETE FROM t USING s; DELETE FROM t",
        "UPD t SET a = 1; UPD t SET a = 2",
    ],
)
def test_several_statements_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="several statements"):
        draft_of(text)


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t SET a = 1 FROM lakewarden.tables s",
        "DELETE FROM lakewarden.tables USING s WHERE row = 1",
        "DELETE FROM t WHERE k IN (SELECT row FROM `LakeWarden`.tables)",
    ],
)
def test_system_tables_stay_out(text: str) -> None:
    with pytest.raises(NotAllowedError):
        draft_of(text)


def test_mysql_assigns_from_left_to_right_and_is_asked_to_say_it_otherwise() -> None:
    text = "UPDATE t SET a = a + 1, d = a"
    with pytest.raises(UsageError, match="mysql takes the new value of a"):
        compile_one(text, Dialect.MYSQL)
    assert compile_one(text, Dialect.POSTGRES).steps[0].kind is StepKind.UPDATE


def test_in_as_a_value_is_made_of_conditions_which_leave_it_null() -> None:
    (step,) = compile_one("DELETE FROM t WHERE (k IN (SELECT k FROM u)) IS NULL").steps
    query = "`t`.`k` IN (SELECT `u`.`k` AS `k` FROM `u` AS `u`)"
    assert f"WHERE (CASE WHEN {query} THEN TRUE WHEN NOT {query} THEN FALSE END) IS NULL" in step.sql


def test_isnull_of_sql_server_takes_the_type_of_its_first_argument() -> None:
    with pytest.raises(UsageError, match="ISNULL takes the type of its first value"):
        compile_one("UPDATE t SET d = ISNULL(s.b, 1.5) FROM t JOIN s ON t.k = s.k")
    done = compile_one("UPDATE t SET d = ISNULL(s.b, 1) FROM t JOIN s ON t.k = s.k")
    assert done.steps[0].sql.endswith("SET `t`.`d` = COALESCE(`s`.`b`, 1)")


def test_notes_say_where_the_dialect_matters() -> None:
    done = compile_one("DELETE x FROM t AS x JOIN s ON x.s = s.c", Dialect.TSQL)
    assert done.notes == ("Texts are compared exactly, where tsql may ignore case and blanks at the end.",)


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        (None, "error"),
        ("", "error"),
        ("ANY", "any"),
        ("last by s.changed", "last by s.changed"),
        ("'Last  By ts'", "last by ts"),
    ],
)
def test_policies_are_read(text: str | None, policy: str) -> None:
    assert str(policy_of(text)) == policy


@pytest.mark.parametrize("text", ["first", "last", "last by", "last by a, b", "last by a desc"])
def test_other_policies_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        policy_of(text)


def test_dialects_are_read() -> None:
    assert (dialect_of(None), dialect_of(" "), dialect_of("'TSQL'")) == (None, None, Dialect.TSQL)
    with pytest.raises(UsageError, match="no dialect"):
        dialect_of("oracle")


NASTY = st.text(alphabet=st.sampled_from("abt'\"`\\;-/*[]$%_ \n\té☃(),.="), min_size=1, max_size=12)


@pytest.mark.heavy
@given(name=NASTY, literal=NASTY)
def test_hostile_names_and_literals_come_out_as_they_went_in(name: str, literal: str) -> None:
    quoted, text = name.replace('"', '""'), literal.replace("'", "''")
    statement = (
        f"UPDATE \"{quoted}\" AS x SET \"{quoted}\" = '{text}' FROM s WHERE x.k = s.k AND s.c <> '{text}'"
    )
    draft = draft_of(statement, Dialect.POSTGRES)
    assert draft is not None
    schemas = dict(zip(draft.tables, (schema(k="int", **{name: "string"}), SCHEMAS["s"]), strict=True))
    (step,) = compiled(draft, schemas, MatchPolicy()).steps
    (merge,) = sqlglot.parse(step.sql, dialect="spark")
    assert isinstance(merge, exp.Merge) and isinstance(merge.this, exp.Table)
    assert merge.this.name == name
    assert {one.name for one in merge.find_all(exp.Literal) if one.is_string} == {literal}
    (update,) = merge.find_all(exp.Update)
    assert [one.this.name for one in update.expressions] == [name]


@pytest.mark.heavy
@given(
    text=st.text(
        alphabet=st.sampled_from("UPDATE t SET a=1 FROM s DELETE USING WHERE();'\"`\\-/*,.\n"), max_size=80
    )
)
def test_whatever_is_written_is_read_or_refused_in_our_words(text: str) -> None:
    for beginning in ("UPDATE t SET ", "DELETE FROM t ", "UPD t FROM ", "DELETE t "):
        try:
            draft = draft_of(beginning + text)
            if draft is not None and all(table.parts[-1] in SCHEMAS for table in draft.tables):
                compile_one(beginning + text)
        except LakewardenError as error:
            assert error.hint


def test_a_query_that_is_set_is_rounded_without_the_name_it_was_looked_up_by() -> None:
    (step,) = compile_one("UPDATE t SET a = (SELECT min(price) FROM t)", Dialect.POSTGRES).steps
    assert "ROUND((SELECT MIN(`t`.`price`) AS `_col_0` FROM `t` AS `t`)) AS `v0`" in step.sql


def test_a_query_of_a_with_may_have_the_name_of_the_table_it_reads() -> None:
    text = "WITH u AS (SELECT k, max(e) AS e FROM u GROUP BY k) DELETE FROM t USING u WHERE t.k = u.k"
    draft = draft_of(text)
    assert draft is not None and [str(table) for table in draft.tables] == ["t", "u"]
    (step,) = compile_one(text).steps
    assert "(WITH `u_` AS (SELECT `u`.`k` AS `k`, MAX(`u`.`e`) AS `e` FROM `u` AS `u` GROUP BY" in step.sql


def test_a_query_of_a_with_knows_those_before_it_and_no_others() -> None:
    text = "WITH q AS (SELECT k FROM u), u AS (SELECT k FROM q) DELETE FROM t USING u WHERE t.k = u.k"
    draft = draft_of(text)
    assert draft is not None and [str(table) for table in draft.tables] == ["t", "u"]


@pytest.mark.parametrize(("alias", "column"), [("", 34), ("AS x ", 34)])
def test_a_with_of_the_targets_own_name_is_refused(alias: str, column: int) -> None:
    name = "x" if alias else "t"
    said = "WITH has a query of the name x, too" if alias else "t is a query behind WITH, and no table"
    with pytest.raises(UsageError, match=f"{said}. Line 1, column {column}"):
        compile_one(
            f"WITH {name} AS (SELECT 1 AS k) UPDATE t {alias}SET a = 1 WHERE k IN (SELECT k FROM {name})"
        )


def test_no_name_of_the_statement_is_taken_for_one_of_the_compilers_own() -> None:
    text = "WITH _t0 AS (SELECT k FROM u) UPDATE t SET a = 1 FROM _t0 WHERE t.k = _t0.k"
    (step,) = compile_one(text).steps
    assert "SELECT `_t0`.`k` AS `c0` FROM `_t0` AS `_t0`" in step.sql


@pytest.mark.parametrize("side", ["RIGHT", "FULL"])
def test_a_comma_binds_less_than_a_join(side: str) -> None:
    text = f"UPDATE t SET a = 1 FROM u AS q, s {side} JOIN u ON s.k = u.k WHERE t.k = q.k"
    (step,) = compile_one(text, Dialect.POSTGRES).steps
    assert f"FROM `u` AS `q`, (`s` AS `s` {side} JOIN `u` AS `u` ON `s`.`k` = `u`.`k`)" in step.sql
    text = f"UPDATE t SET a = (SELECT max(e) FROM u) FROM s {side} JOIN u ON s.k = u.k WHERE t.k = s.k"
    (step,) = compile_one(text, Dialect.POSTGRES).steps
    assert f"FROM `t`) AS `t`, (`s` AS `s` {side} JOIN `u` AS `u` ON `s`.`k` = `u`.`k`)" in step.sql
    text = f"DELETE FROM t WHERE k IN (SELECT q.k FROM u AS q, s {side} JOIN u ON s.k = u.k)"
    (step,) = compile_one(text, Dialect.POSTGRES).steps
    assert f"FROM `u` AS `q`, (`s` AS `s` {side} JOIN `u` AS `u` ON `s`.`k` = `u`.`k`)" in step.sql
    (step,) = compile_one(text, Dialect.SPARK).steps
    assert f"FROM `u` AS `q` CROSS JOIN `s` AS `s` {side} JOIN `u`" in step.sql, "Spark's own stays as it is"


def test_a_target_called_like_a_column_is_renamed_where_a_query_asks_about_it() -> None:
    text = "DELETE FROM t AS s WHERE NOT EXISTS (SELECT 1 FROM t AS y WHERE y.k = s.k)"
    (step,) = compile_one(text, Dialect.POSTGRES).steps
    assert step.sql == (
        "MERGE INTO `t` AS `target` USING (SELECT `s_`.`k` AS `k0` FROM (SELECT DISTINCT `k` "
        "FROM `t`) AS `s_` WHERE NOT EXISTS(SELECT 1 AS `1` FROM `t` AS `y` WHERE `y`.`k` = `s_`.`k`)) "
        "AS `source` ON `target`.`k` <=> `source`.`k0` WHEN MATCHED THEN DELETE"
    )


@pytest.mark.parametrize(
    "value",
    [
        "nullif(d * price, d)",
        "coalesce(price, d)",
        "CASE WHEN k = 1 THEN price ELSE d END",
        "greatest(price, d)",
        "d * price",
    ],
)
def test_a_decimal_beside_a_floating_point_number_makes_one(value: str) -> None:
    (step,) = compile_one(
        f"UPDATE t SET a = q.v FROM (SELECT k, {value} AS v FROM t) AS q WHERE t.k = q.k", Dialect.POSTGRES
    ).steps
    assert "`a` = RINT(" in step.sql
    (step,) = compile_one(f"UPDATE t SET a = {value}", Dialect.POSTGRES).steps
    assert "`a` = RINT(" in step.sql


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ("price + 1.5", True), ("price + k", True), ("coalesce(price, k, NULL)", True), ("-price - 2", True),
        ("(price)", True), ("NULL", True), ("price + 1.255", False),
        ("price * price", False), ("1.255", False), ("coalesce(price, 0.001)", False),
    ],
)  # fmt: skip
def test_what_has_more_digits_than_its_column_is_rounded_to_even_for_teradata(
    value: str, *, fits: bool
) -> None:
    (step,) = compile_one(f"UPD t SET price = {value}", Dialect.TERADATA).steps
    assert ("BROUND(" in step.sql) is not fits
