"""What an expression of another dialect means in Spark, rule by rule: what passes, is said otherwise, or is refused."""

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.reading import draft_of, is_change
from lakewarden.jobs.sql.compile.values import ColumnType, Compiled, Dialect, TableName, policy_of

SCHEMAS = {
    TableName(parts=(table,)): tuple(ColumnType(name=name, type=kind) for name, kind in columns.items())
    for table, columns in {
        "t": {
            "k": "int", "a": "int", "s": "string", "d": "double", "price": "decimal(10,2)", "day": "date", "ok": "boolean",
            "at": "timestamp", "ntz": "timestamp_ntz", "big": "bigint", "many": "array<int>",
        },
        "s": {"k": "int", "b": "int", "c": "string", "n": "double"},
        "u": {"k": "int", "e": "int"},
    }.items()
}  # fmt: skip


def done(text: str, dialect: str | None = None, matches: str = "error") -> Compiled:
    draft = draft_of(text, Dialect(dialect) if dialect else None)
    assert draft is not None, "Spark runs it as it is"
    return compiled(draft, {table: SCHEMAS[table] for table in draft.tables}, policy_of(matches))


def sql(text: str, dialect: str | None = None) -> str:
    (step,) = done(text, dialect).steps
    return step.sql


def where(condition: str, dialect: str) -> str:
    return sql(f"DELETE FROM t WHERE {condition}", dialect).partition(" WHERE ")[2]


@pytest.mark.parametrize(
    ("dialects", "condition", "said"),
    [
        ("postgres mysql teradata tsql", "s = 1", "integer and text are compared"),
        ("postgres mysql teradata", "day < k", "date or time and integer are compared"),
        ("postgres mysql", "ok = k", "boolean and integer are compared"),
        ("postgres mysql", "(k = 1) < a", "boolean and integer are compared"),
        ("postgres mysql teradata tsql", "k BETWEEN s AND 3", "integer and text are compared"),
        ("postgres mysql teradata tsql", "k BETWEEN 1 AND s", "integer and text are compared"),
        ("postgres mysql teradata tsql", "k IN (1, s)", "integer and text are compared"),
        ("postgres mysql teradata tsql", "k IN (SELECT c FROM s)", "integer and text are compared"),
        ("postgres mysql teradata tsql", "coalesce(k, s) = 1", "integer and text are compared"),
        ("mysql", "k", "Spark takes no integer for a condition"),
        ("mysql", "NOT k", "Spark takes no integer for a condition"),
        ("mysql", "a = 1 AND d", "Spark takes no floating-point for a condition"),
        ("mysql", "price OR a = 1", "Spark takes no decimal for a condition"),
        ("postgres", "k < ANY (SELECT e FROM u)", "Of ANY and ALL only"),
        ("postgres", "k = ALL (SELECT e FROM u)", "Of ANY and ALL only"),
        ("postgres", "k <> ANY (SELECT e FROM u)", "Of ANY and ALL only"),
        ("postgres", "k = ANY (ARRAY[1, 2])", "ARRAY may mean something else"),
        ("postgres mysql teradata tsql", "s + 1 = 2", "Only numbers are added"),
        ("postgres mysql teradata tsql", "-s = 2", "Only numbers are added"),
        ("postgres", "day - day = 2", "Only numbers are added"),
        ("postgres", "abs(s) = 2", "Only numbers are added"),
        ("mysql", "k / 2 = 1", "divides by zero to NULL"),
        ("mysql", "k % 2 = 1", "divides by zero to NULL"),
        ("postgres teradata tsql", "price / 3 = 1", "another number of digits"),
        ("postgres teradata tsql", "k / price = 1", "another number of digits"),
        ("tsql", "d % 2 = 1", "another number of digits"),
        ("postgres", "d = 1e3", "is exact in postgres"),
        ("mysql", "s || s = 'xx'", "Spark takes no text for a condition"),
        ("tsql", "s || s = 'xx'", "joins texts alone"),
        ("postgres teradata", "k || s = '1x'", "joins texts alone"),
        ("mysql teradata tsql", "s LIKE 'x%'", "LIKE with such a pattern"),
        ("postgres", "s LIKE 'x\\%'", "LIKE with such a pattern"),
        ("postgres", "s LIKE s", "LIKE with such a pattern"),
        ("mysql teradata", "greatest(k, 1) = 1", "may mean something else in Spark than in"),
        ("mysql", "length(s) = 1", "may mean something else in Spark than in mysql"),
        ("postgres", "CAST(s AS INT) = 1", "This cast may give something else"),
        ("postgres", "CAST(d AS TEXT) = '1'", "This cast may give something else"),
        ("postgres", "CAST(s AS VARCHAR(1)) = 'x'", "This cast may give something else"),
        ("postgres", "CAST(k AS BOOLEAN)", "This cast may give something else"),
        ("teradata mysql", "CAST(price AS DECIMAL(6, 1)) = 1", "This cast may give something else"),
        ("mysql", "CAST(k AS CHAR) = '1'", "This cast may give something else"),
        ("mysql", "CAST(d AS SIGNED) = 1", "rounds it, Spark cuts it off"),
        ("tsql", "TRY_CAST(k AS DECIMAL(9, 1)) = 1", "This cast may give something else"),
        ("postgres", "k = (SELECT e FROM u LIMIT 1)", "LIMIT without ORDER BY"),
        ("postgres", "at = now() - interval '1 day'", "may mean something else|Only numbers"),
    ],
)  # fmt: skip
def test_what_would_be_computed_otherwise_is_refused(dialects: str, condition: str, said: str) -> None:
    for dialect in dialects.split():
        with pytest.raises(UsageError, match=said):
            where(condition, dialect)


@pytest.mark.parametrize(
    ("dialects", "condition", "sparks"),
    [
        ("postgres mysql teradata tsql", "s = 'x'", "`t`.`s` = 'x'"),
        ("postgres mysql teradata tsql", "day = '2024-02-29'", "`t`.`day` = '2024-02-29'"),
        ("postgres mysql teradata tsql", "k <= price AND price >= d", "`t`.`k` <= `t`.`price` AND `t`.`price` >= `t`.`d`"),
        ("postgres mysql teradata tsql", "k + price > -d", "`t`.`k` + `t`.`price` > -`t`.`d`"),
        ("postgres teradata tsql", "k / 2 = 1", "`t`.`k` DIV 2 = 1"),
        ("postgres teradata tsql", "k / (a - 1) = 1", "`t`.`k` DIV (`t`.`a` - 1) = 1"),
        ("postgres teradata tsql", "d / 2 = 1", "`t`.`d` / 2 = 1"),
        ("postgres teradata tsql", "k / d = 1", "`t`.`k` / `t`.`d` = 1"),
        ("postgres tsql", "k % 2 = 1 AND price % 2 = 0", "`t`.`k` % 2 = 1 AND `t`.`price` % 2 = 0"),
        ("postgres", "CAST(price AS INT) = 1", "CAST(ROUND(`t`.`price`) AS INT) = 1"),
        ("postgres", "CAST(d AS INT) = 1", "CAST(RINT(`t`.`d`) AS INT) = 1"),
        ("teradata tsql", "CAST(d AS INT) = 1", "CAST(`t`.`d` AS INT) = 1"),
        ("postgres tsql", "CAST(price AS DECIMAL(6, 1)) = 1", "CAST(`t`.`price` AS DECIMAL(6, 1)) = 1"),
        ("postgres", "CAST(k AS TEXT) = '1'", "CAST(`t`.`k` AS STRING) = '1'"),
        ("postgres mysql teradata tsql", "day = CAST('2024-02-29' AS DATE)", "`t`.`day` = CAST('2024-02-29' AS DATE)"),
        ("postgres mysql teradata tsql", "d = CAST(price AS FLOAT)", "`t`.`d` = CAST(`t`.`price` AS "),
        ("postgres teradata", "s || 'x' = 'xx'", "`t`.`s` || 'x' = 'xx'"),
        ("postgres", "s LIKE 'x%'", "`t`.`s` LIKE 'x%'"),
        ("postgres mysql teradata tsql", "upper(s) = lower('X')", "UPPER(`t`.`s`) = LOWER('X')"),
        ("postgres", "length(s) = greatest(k, 1)", "LENGTH(`t`.`s`) = GREATEST(`t`.`k`, 1)"),
        ("mysql", "k <=> a", "`t`.`k` IS NOT DISTINCT FROM `t`.`a`"),
        ("postgres", "k IS DISTINCT FROM a", "`t`.`k` IS DISTINCT FROM `t`.`a`"),
        ("postgres mysql", "ok AND NOT ok", "`t`.`ok` AND NOT `t`.`ok`"),
    ],
)  # fmt: skip
def test_what_means_the_same_passes_or_is_said_in_sparks_words(
    dialects: str, condition: str, sparks: str
) -> None:
    for dialect in dialects.split():
        assert where(condition, dialect).startswith(sparks), dialect


@pytest.mark.parametrize(
    ("dialects", "change", "sparks"),
    [
        ("postgres", "a = price", "`a` = ROUND(`t`.`price`)"),
        ("postgres", "a = d", "`a` = RINT(`t`.`d`)"),
        ("postgres", "a = 2.5", "`a` = ROUND(2.5)"),
        ("teradata tsql", "a = d", "`a` = `t`.`d`"),
        ("postgres mysql teradata tsql", "d = price", "`d` = `t`.`price`"),
        ("postgres tsql", "price = d", "`price` = `t`.`d`"),
        ("postgres mysql teradata tsql", "a = big", "`a` = `t`.`big`"),
        ("postgres mysql teradata tsql", "price = 1.5", "`price` = 1.5"),
        ("postgres mysql teradata tsql", "day = '2024-02-29'", "`day` = CAST('2024-02-29' AS DATE)"),
        ("postgres mysql teradata tsql", "a = '5'", "`a` = CAST('5' AS INT)"),
        ("postgres mysql teradata tsql", "s = '5'", "`s` = '5'"),
        ("postgres mysql teradata tsql", "s = k", "`s` = `t`.`k`"),
        ("postgres mysql teradata tsql", "a = NULL", "`a` = NULL"),
    ],
)  # fmt: skip
def test_a_value_is_stored_as_its_dialect_stores_it(dialects: str, change: str, sparks: str) -> None:
    for dialect in dialects.split():
        assert sql(f"UPDATE t SET {change}", dialect) == f"UPDATE `t` AS `t` SET {sparks}", dialect


@pytest.mark.parametrize(
    ("dialects", "change", "said"),
    [
        ("mysql", "a = d", "mysql rounds it, Spark cuts it off"),
        ("mysql", "a = price", "mysql rounds it, Spark cuts it off"),
        ("mysql teradata", "price = d", "rounds it in another way than Spark"),
        ("postgres mysql teradata tsql", "s = d", "written into text in another form"),
        ("postgres mysql teradata tsql", "s = day", "written into text in another form"),
        ("postgres mysql teradata tsql", "s = at", "written into text in another form"),
        ("postgres mysql teradata tsql", "s = ntz", "written into text in another form"),
    ],
)  # fmt: skip
def test_a_value_that_would_be_stored_otherwise_is_refused(dialects: str, change: str, said: str) -> None:
    for dialect in dialects.split():
        with pytest.raises(UsageError, match=said):
            sql(f"UPDATE t SET {change}", dialect)


def test_any_and_all_are_in_and_not_in() -> None:
    query = "`t`.`k` IN (SELECT `u`.`e` AS `e` FROM `u` AS `u`)"
    for condition in ("k = ANY (SELECT e FROM u)", "k IN (SELECT e FROM u)"):
        assert f"WHERE {query})" in sql(f"DELETE FROM t WHERE {condition}", "postgres")
    for condition in ("k <> ALL (SELECT e FROM u)", "k NOT IN (SELECT e FROM u)"):
        assert f"WHERE NOT {query})" in sql(f"DELETE FROM t WHERE {condition}", "postgres")


@pytest.mark.parametrize(
    ("condition", "is_condition"),
    [
        ("k IN (SELECT k FROM u)", True),
        ("NOT (a = 1 OR k IN (SELECT k FROM u))", True),
        ("CASE WHEN k IN (SELECT k FROM u) THEN a = 1 ELSE a = 2 END", True),
        ("CASE WHEN a = 1 THEN k IN (SELECT k FROM u) ELSE a = 2 END", False),
        ("(k IN (SELECT k FROM u)) = ok", False),
        ("coalesce(k IN (SELECT k FROM u), ok)", False),
    ],
)
def test_in_keeps_its_null_where_it_is_a_value(condition: str, *, is_condition: bool) -> None:
    made = "CASE WHEN `t`.`k` IN (SELECT `u`.`k` AS `k` FROM `u` AS `u`) THEN TRUE WHEN NOT `t`.`k` IN"
    assert (made in sql(f"DELETE FROM t WHERE {condition}", "postgres")) != is_condition


def test_notes_say_how_texts_are_compared_and_ordered() -> None:
    exactly = "Texts are compared exactly, where {} may ignore case and blanks at the end."
    by_bytes = 'Texts are ordered by their bytes, as postgres does with COLLATE "C".'
    for condition in ("s = 'x'", "s IN ('x')", "s < 'x'", "s BETWEEN 'a' AND 'b'"):
        for dialect in ("mysql", "teradata", "tsql"):
            assert exactly.format(dialect) in done(f"DELETE FROM t WHERE {condition}", dialect).notes
        ordered = condition in ("s < 'x'", "s BETWEEN 'a' AND 'b'")
        assert (by_bytes in done(f"DELETE FROM t WHERE {condition}", "postgres").notes) == ordered
    assert by_bytes in done("DELETE FROM t WHERE s = (SELECT max(c) FROM s)", "postgres").notes
    asked = "DELETE FROM t WHERE s = (SELECT c FROM s ORDER BY c LIMIT 1)"
    assert by_bytes in done(asked, "postgres").notes
    assert done("DELETE FROM t WHERE k < 3", "postgres").notes == ()


@pytest.mark.parametrize(
    ("text", "matches", "reasons"),
    [
        ("UPDATE t SET a = 1 WHERE k IN (SELECT k FROM u)", "error", ("no queries in the conditions",)),
        ("UPDATE t LEFT JOIN s ON t.k = s.k SET t.a = s.b", "error", ("takes part in an outer join",)),
        ("UPDATE t FROM s SET a = s.b WHERE t.k = s.k", "error", ("Delta refuses a second match",)),
        ("UPDATE t FROM s SET a = s.b WHERE t.k = s.k", "any", ("one is chosen: any",)),
        ("UPDATE t FROM s SET a = s.b WHERE t.k = s.k", "last by s.n", ("one is chosen: last by s.n",)),
        ("DELETE t FROM s WHERE t.k = s.k", "any", ("is deleted once",)),
        ("DEL FROM t WHERE k = 1", "error", ("Nothing but the target is read",)),
        (
            "UPDATE t LEFT JOIN s ON t.k = s.k SET t.a = s.b WHERE t.k IN (SELECT k FROM u)",
            "any",
            ("no queries in the conditions", "takes part in an outer join", "one is chosen"),
        ),
    ],
)
def test_a_step_says_why_it_has_its_form(text: str, matches: str, reasons: tuple[str, ...]) -> None:
    known = (
        "no queries in",
        "takes part in an outer",
        "second match",
        "one is chosen",
        "deleted once",
        "Nothing but",
    )
    because = done(text, matches=matches).steps[0].because
    assert all(reason in because for reason in reasons)
    assert sum(one in because for one in known) == len(reasons)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("UPDATE t SET a = 1 FROM (s JOIN u ON s.k = u.k) WHERE t.k = s.k", "This is no table, query or VALUES"),
        ("UPDATE t SET a = 1 FROM s NATURAL JOIN u WHERE t.k = s.k", "NATURAL JOIN is not supported"),
        ("UPDATE t SET a = 1 FROM s TABLESAMPLE SYSTEM (10) WHERE t.k = s.k", "Line 1, column"),
        ("UPDATE t SET a = 1 FROM generate_series(1, 3) AS g WHERE t.k = g", "Line 1, column"),
        ("UPDATE t SET a = 1 FROM (SELECT 1 AS x) WHERE t.k = 1", "needs a name"),
        ("UPDATE t SET (a, k) = (1, 2, 3) FROM s", "not as many values as columns"),
        ("UPDATE t SET (a, k) = (SELECT 1) FROM s", "not as many values as columns"),
        ("WITH RECURSIVE q AS (SELECT 1 AS k) UPDATE t SET a = 1 FROM q WHERE t.k = q.k", "WITH RECURSIVE"),
    ],
)  # fmt: skip
def test_forms_that_are_not_supported_are_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        done(text, "postgres")


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("WITH q AS (SELECT 1) UPDATE t SET a = 1", True),
        ("WITH q AS (SELECT 1), r AS (SELECT 2) DELETE FROM t", True),
        ("WITH q(a) AS (SELECT 1) DELETE FROM t", True),
        ("WITH q AS (SELECT 1) SELECT * FROM q", False),
        ("WITH q AS (SELECT 1) INSERT INTO t SELECT * FROM q", False),
        ("upd t set a = 1", True),
        ("DEL FROM t ALL", True),
        ("SELECT 'UPDATE'", False),
        ("'", False),
        ("", False),
    ],
)
def test_a_change_is_known_by_its_words(text: str, *, is_one: bool) -> None:
    assert is_change(text) == is_one


@pytest.mark.parametrize(
    ("text", "dialect", "said"),
    [
        ("DELETE t FROM s WHERE k = 1", "mysql", "FROM has no table t"),
        ("DELETE t FROM s WHERE k = 1", "tsql", "FROM has no table t"),
        (
            "DELETE t AS x FROM t AS x JOIN s ON x.k = s.k",
            "mysql",
            "Line 1|No UPDATE or DELETE has this form",
        ),
        ("DELETE d.t FROM d.t AS x JOIN s ON x.k = s.k", "mysql", "another reading of it"),
        ("UPDATE t SET a = 1 FROM t AS x JOIN t AS y ON x.k = y.k", "tsql", "another reading of it"),
        ("UPDATE t JOIN (s CROSS JOIN u) ON t.k = s.k SET t.a = 1", "mysql", "Line 1, column"),
    ],
)
def test_what_is_changed_has_to_be_told(text: str, dialect: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        done(text, dialect)


def test_teradata_names_its_target_outside_from() -> None:
    assert sql("DELETE t FROM s WHERE t.k = s.k", "teradata").startswith("MERGE INTO `t` AS `t` USING `s`")
    assert sql("DELETE x FROM t AS x JOIN s ON x.k = s.k", "tsql").startswith("MERGE INTO `t` AS `x` USING")
    assert sql("DELETE t FROM s LEFT JOIN t ON t.k = s.k WHERE s.b = 1", "mysql").endswith("THEN DELETE")


def test_only_what_is_read_elsewhere_is_looked_up_for_a_row() -> None:
    near = sql("UPDATE t SET a = a + 1, d = (SELECT max(n) FROM s) WHERE k IN (SELECT k FROM u)", "postgres")
    assert near.endswith("SET `target`.`a` = `target`.`a` + 1, `target`.`d` = `source`.`v1`")
    assert "AS `v0`" not in near


def test_the_column_that_tells_the_last_match_is_looked_up_with_it() -> None:
    (step,) = done("UPDATE t FROM s SET a = s.b WHERE t.k = s.k", matches="last by s.n").steps
    assert "`s`.`b` AS `v0`, `s`.`n` AS `by`" in step.sql
    assert "RANK() OVER (PARTITION BY `k0` ORDER BY `by` DESC NULLS LAST)" in step.sql
    (step,) = done("UPDATE t FROM s SET a = s.b WHERE t.k = s.k", matches="any").steps
    assert "`by`" not in step.sql and "ROW_NUMBER() OVER (PARTITION BY `k0` ORDER BY `v0`)" in step.sql
    (step,) = done("DELETE t FROM s WHERE t.k = s.k", matches="last by s.n").steps
    assert "RANK" not in step.sql


def test_each_dialect_of_several_has_to_allow_what_is_said() -> None:
    with pytest.raises(UsageError, match="may mean something else in Spark than in"):
        done("DELETE t FROM t JOIN s ON t.k = s.k WHERE md5(t.s) = s.c")
