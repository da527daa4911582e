"""Types that dialects give their expressions, and Spark does not: sums, digits, CHAR, texts in the place of values."""

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.values import ColumnType, Compiled, Dialect

_COLUMNS = {
    "k": "int", "a": "int", "big": "bigint", "s": "string", "vc": "varchar(5)", "ch": "char(5)",
    "ch9": "char(9)", "d": "double",
    "r": "float", "price": "decimal(10,2)", "huge": "decimal(38,18)", "day": "date", "at": "timestamp",
    "ok": "boolean", "raw": "binary",
}  # fmt: skip
_SCHEMA = tuple(ColumnType(name=name, type=kind) for name, kind in _COLUMNS.items())
ALL = "postgres mysql teradata tsql"


def done(text: str, dialect: str | None = None) -> Compiled:
    draft = draft_of(text, Dialect(dialect) if dialect else None)
    assert draft is not None, "Spark runs it as it is"
    return compiled(draft, dict.fromkeys(draft.tables, _SCHEMA))


def sql(text: str, dialect: str | None = None) -> str:
    (step,) = done(text, dialect).steps
    return step.sql


@pytest.mark.parametrize(
    ("dialects", "change", "said"),
    [
        ("postgres", "a = (SELECT sum(big) / 2 FROM t AS o)", "another number of digits"),
        ("postgres", "a = (SELECT sum(big) % 2 / 2 FROM t AS o)", "another number of digits"),
        ("postgres", "a = (SELECT sum(a + 3000000000) / 2 FROM t AS o)", "another number of digits"),
        ("postgres",
            ("a = (SELECT max(n) / 2 FROM (SELECT sum(c) AS n FROM (SELECT count(*) AS c "
            "FROM t AS o) AS p) AS q)"), "another number"),
        ("postgres", "d = (SELECT sum(r) FROM t AS o)", "sums up REAL in 32 bits"),
        ("mysql", "a = (SELECT avg(a) / 2 FROM t AS o)", "AVG of this gives other digits"),
        ("postgres", "a = (SELECT avg(a) / 2 FROM t AS o)", "the last digits of an average would matter"),
        ("postgres", "d = (SELECT avg(a) FROM t AS o)", "the last digits of an average would matter"),
        ("postgres", "a = (SELECT sum(y) FROM (SELECT avg(a) AS y FROM t AS o GROUP BY k) AS q)",
            "last digits of an average"),
        ("postgres", "a = (SELECT a FROM t AS o GROUP BY a HAVING avg(k) = avg(a))",
            "last digits of an average"),
        ("postgres mysql tsql teradata", "a = (SELECT avg(DISTINCT a) FROM t AS o)",
            "AVG of this gives other digits"),
        ("mysql tsql teradata", "a = (SELECT avg(price) FROM t AS o)", "AVG of this gives other digits"),
        (ALL, "price = d", "other digits of a floating-point number"),
        (ALL, "price = r", "other digits of a floating-point number"),
        (ALL, "s = coalesce(price, 0)", "written into text in another form"),
        ("postgres mysql tsql", "s = round(price, 5)", "written into text in another form"),
        (ALL, "s = CASE WHEN a = 1 THEN 1.5 ELSE 2 END", "written into text in another form"),
        ("postgres", "s = (SELECT v.y FROM (VALUES (1, 1.5), (2, 2)) AS v(x, y) WHERE v.x = k)",
            "written into text in another form"),
        ("postgres",
            ("s = (SELECT max(y) FROM (SELECT price AS y FROM t AS o UNION ALL "
            "SELECT 1.125 FROM t AS p) AS q)"), "into text in another form"),
        ("teradata", "s = price", "written into text in another form"),
        ("mysql teradata tsql", "s = ok", "written into text in another form"),
        ("mysql", "s = (k = 1)", "written into text in another form"),
        (ALL, "huge = huge * huge", "no room for all of its digits"),
        (ALL, "huge = huge + huge", "no room for all of its digits"),
        (ALL, "huge = coalesce(huge, (SELECT sum(price * price * price) FROM t AS o))",
            "no room for all of (its|their) digits"),
        (ALL, "day = '240105'", "may be another day"),
        (ALL, "day = '2024-01-05 10:00'", "may be another day"),
        (ALL, "day = CAST('20240105' AS DATE)", "may be another day"),
        (ALL, "at = '20240105'", "may be another time"),
        ("postgres teradata", "at = CAST('2024-01-05 10:00:00.25' AS TIMESTAMP(1))", "rounds its fraction"),
        (ALL, "at = '2024-01-05 10:00+02'", "may be another time"),
        (ALL, "a = '1_0'", "may be another number"),
        (ALL, "d = 'NaN'", "may be another number"),
        ("postgres tsql teradata", "raw = '\\x00'", "may be other bytes"),
        (ALL, "s = CASE WHEN k = 1 THEN '1' ELSE a END", "are not of one type in Spark"),
        (ALL, "a = CASE k WHEN '1_0' THEN 1 END", "may be another number"),
        (ALL, "a = CASE day WHEN k THEN 1 END", "date or time and integer are compared"),
        (ALL, "k = NULLIF(k, s)", "integer and text are compared"),
        ("postgres", "d = coalesce(r, 0.1)", "REAL beside another number"),
        ("mysql", "d = if(k = 1, d, 'x')", "are not of one type in Spark"),
        ("tsql mysql", "d = CAST(price AS REAL)", "REAL is not told from FLOAT"),
        ("postgres", "s = concat(ch, 'x')", "CONCAT may mean something else"),
        ("tsql teradata", "s = nullif(ch, 'x')", "NULLIF of a CHAR counts blanks"),
        ("tsql teradata", "s = coalesce(ch, ch9)", "pads the shorter text"),
        ("postgres", "ok = 1", "integer becomes boolean by other rules"),
        ("postgres", "a = ok", "boolean becomes integer by other rules"),
        ("postgres", "price = (k = 1)", "boolean becomes decimal by other rules"),
        ("postgres", "ok = CASE WHEN k = 1 THEN 1 ELSE 0 END", "integer becomes boolean by other rules"),
        ("postgres tsql", "ok = (SELECT max(ok) FROM t AS o)", "takes no boolean here"),
    ],
)  # fmt: skip
def test_a_value_of_another_type_than_sparks_is_refused(dialects: str, change: str, said: str) -> None:
    for dialect in dialects.split():
        with pytest.raises(UsageError, match=said):
            sql(f"UPDATE t SET {change}", dialect)


@pytest.mark.parametrize(
    ("dialects", "condition", "said"),
    [
        (ALL, "day < '2024-01-05 10:00'", "may be another day"),
        (ALL, "'240105' = day", "may be another day"),
        (ALL, "day BETWEEN '240105' AND '240106'", "may be another day"),
        (ALL, "day IN ('2024-01-05', '240106')", "may be another day"),
        (ALL, "day = (SELECT max(CAST('240105' AS DATE)) FROM t AS o)", "may be another day"),
        (ALL, "k = '5.5'", "may be another number"),
        (ALL, "huge = '0.1'", "may be another number"),
        ("tsql teradata", "price = '1.555'", "may be another number"),
        (ALL, "huge = huge * 10", "no room for all of its digits"),
        (ALL, "huge BETWEEN price * price * price AND 1", "no room for all of their digits"),
        ("postgres tsql teradata", "ch LIKE 'a%'", "LIKE counts the blanks"),
        (ALL, "ch = 'x '", "may not count the blanks"),
        ("tsql teradata", "s IN (SELECT ch FROM t AS o)", "does not count the blanks"),
        (ALL, "ok = 1", "boolean and integer are compared"),
        (ALL, "ok IN (0, 1)", "boolean and integer are compared"),
        (ALL, "ok BETWEEN 0 AND 1", "boolean and integer are compared"),
        (ALL, "CASE ok WHEN 1 THEN 2 END = 2", "boolean and integer are compared"),
        ("postgres teradata", "k LIKE '1%'", "LIKE is for texts here, and this is integer"),
        (ALL, "day LIKE '2024%'", "LIKE is for texts here, and this is date or time"),
        (ALL, "price LIKE '1%'", "LIKE is for texts here, and this is decimal"),
    ],
)  # fmt: skip
def test_a_comparison_by_other_rules_is_refused(dialects: str, condition: str, said: str) -> None:
    for dialect in dialects.split():
        with pytest.raises(UsageError, match=said):
            sql(f"DELETE FROM t WHERE {condition}", dialect)


@pytest.mark.parametrize(
    ("dialects", "change", "sparks"),
    [
        ("postgres", "a = (SELECT sum(k) / 2 FROM t AS o)", "SUM(`o`.`k`) DIV 2"),
        ("teradata tsql", "a = (SELECT sum(k) / 2 FROM t AS o)", "CAST(SUM(`o`.`k`) AS INT) DIV 2"),
        ("teradata tsql", "a = (SELECT sum(big) / 2 FROM t AS o)", "SUM(`o`.`big`) DIV 2"),
        ("postgres", "a = (SELECT sum(k / 2) / 2 FROM t AS o)", "SUM(`o`.`k` DIV 2) DIV 2"),
        ("postgres", "a = (SELECT max(y) / 2 FROM (SELECT extract(year from day) AS y FROM t AS o) AS q)",
            "CAST(MAX(`q`.`y`) AS DECIMAL(16, 6)) / 2"),
        ("postgres", "a = (SELECT sum(big) FROM t AS o)", "SET `target`.`a` = `source`.`v0`"),
        ("postgres mysql tsql", "s = price", "`s` = `t`.`price`"),
        ("postgres mysql tsql", "s = price + price * 2", "`s` = `t`.`price` + `t`.`price` * 2"),
        ("postgres tsql", "s = CAST(coalesce(price, 0) AS DECIMAL(12, 2))",
            "`s` = CAST(COALESCE(`t`.`price`, 0) AS DECIMAL(12, 2))"),
        ("postgres", "s = ok", "`s` = `t`.`ok`"),
        ("teradata", "s = CAST(k AS VARCHAR(20))", "`s` = CAST(`t`.`k` AS STRING)"),
        ("postgres mysql tsql", "price = price * price", "`price` = `t`.`price` * `t`.`price`"),
        (ALL, "day = '2024-1-5', at = '2024-01-05 10:00:00.5'",
            "CAST('2024-1-5' AS DATE), `at` = CAST('2024-01-05 10:00:00.5' AS TIMESTAMP)"),
        (ALL, "a = ' -5 ', d = '1.5e3'", "`a` = CAST(' -5 ' AS INT), `d` = CAST('1.5e3' AS DOUBLE)"),
        ("postgres", "day = coalesce(day, '2024-01-05')", "COALESCE(`t`.`day`, '2024-01-05')"),
        ("teradata tsql postgres", "d = CAST(price AS FLOAT)", "CAST(`t`.`price` AS DOUBLE)"),
        ("tsql", "d = CAST(price AS FLOAT(24))", "CAST(`t`.`price` AS FLOAT)"),
        ("postgres", "d = CAST(price AS REAL)", "CAST(`t`.`price` AS FLOAT)"),
        ("postgres mysql", "s = ch", "`s` = RTRIM(`t`.`ch`)"),
        ("tsql teradata", "s = ch", "`s` = `t`.`ch`"),
        ("postgres mysql", "a = character_length(ch)", "LENGTH(RTRIM(`t`.`ch`))"),
        ("teradata", "a = character_length(ch)", "LENGTH(`t`.`ch`)"),
        ("postgres", "s = ch || 'x'", "RTRIM(`t`.`ch`) || 'x'"),
        ("teradata", "s = ch || 'x'", "`t`.`ch` || 'x'"),
    ],
)  # fmt: skip
def test_a_value_is_said_in_sparks_words_by_its_type(dialects: str, change: str, sparks: str) -> None:
    for dialect in dialects.split():
        assert sparks in sql(f"UPDATE t SET {change}", dialect), dialect


@pytest.mark.parametrize(
    ("dialects", "condition", "sparks"),
    [
        (ALL, "ch = 'AB'", "RTRIM(`t`.`ch`) = 'AB'"),
        (ALL, "'AB' = ch", "'AB' = RTRIM(`t`.`ch`)"),
        (ALL, "s = ch", "`t`.`s` = RTRIM(`t`.`ch`)"),
        (ALL, "ch < ch9", "RTRIM(`t`.`ch`) < RTRIM(`t`.`ch9`)"),
        (ALL, "ch IN ('A', 'B')", "RTRIM(`t`.`ch`) IN ('A', 'B')"),
        (ALL, "ch BETWEEN 'A' AND ch9", "RTRIM(`t`.`ch`) BETWEEN 'A' AND RTRIM(`t`.`ch9`)"),
        (ALL, "CASE ch WHEN 'x' THEN 1 END = 1", "CASE RTRIM(`t`.`ch`) WHEN 'x' THEN 1 END = 1"),
        ("postgres mysql", "s IN (SELECT ch FROM t AS o)", "IN (SELECT RTRIM(`o`.`ch`) AS `ch` FROM"),
        (ALL, "price = '1.55' AND k = '5'", "`t`.`price` = '1.55' AND `t`.`k` = '5'"),
        (ALL, "at < '2024-01-05 10:00'", "`t`.`at` < '2024-01-05 10:00'"),
        ("postgres mysql teradata", "at < TIMESTAMP '2024-01-05 10:00:00'",
            "`t`.`at` < CAST('2024-01-05 10:00:00' AS TIMESTAMP_NTZ)"),
        ("postgres", "at < CAST('2024-01-05 10:00:00' AS TIMESTAMP WITH TIME ZONE)",
            "`t`.`at` < CAST('2024-01-05 10:00:00' AS TIMESTAMP)"),
        ("postgres teradata", "at = CAST('2024-01-05 10:00:00.5' AS TIMESTAMP(1))",
            "`t`.`at` = CAST('2024-01-05 10:00:00.5' AS TIMESTAMP_NTZ)"),
    ],
)  # fmt: skip
def test_a_condition_is_said_in_sparks_words_by_its_types(dialects: str, condition: str, sparks: str) -> None:
    for dialect in dialects.split():
        assert sparks in sql(f"DELETE FROM t WHERE {condition}", dialect), dialect


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ("ISNULL(price, 1.555)", False), ("ISNULL(price, 1.5)", True),
        ("ISNULL(price, price * price)", False), ("ISNULL(k, 1.5)", False), ("ISNULL(k, 1)", True),
        ("ISNULL(d, 1)", True),
        ("ISNULL(price, k)", True), ("ISNULL(price, 123456789.5)", True),
        ("ISNULL(vc, 'abcdefgh')", False), ("ISNULL(vc, 'abc')", True),
        ("ISNULL(vc, s)", False), ("ISNULL(s, vc)", True),
        ("ISNULL(UPPER(vc), 'abc')", False), ("ISNULL(UPPER(vc), '-')", True), ("ISNULL(ch, 'x')", False),
        ("ISNULL(day, at)", False), ("ISNULL(day, day)", True),
    ],
)  # fmt: skip
def test_isnull_takes_the_type_of_its_first_value(value: str, *, fits: bool) -> None:
    text = f"DELETE FROM t WHERE {value} IS NULL"
    if fits:
        assert "COALESCE(" in sql(text, "tsql")
    else:
        with pytest.raises(UsageError, match="ISNULL takes the type of its first value"):
            sql(text, "tsql")


@pytest.mark.parametrize(
    "condition",
    [
        "NULLIF(s, 'x') IS NULL",
        "CASE s WHEN 'x' THEN 1 END = 1",
        "k IN (SELECT count(*) FROM t AS o GROUP BY s)",
        "k IN (SELECT q.k FROM (SELECT DISTINCT k, s FROM t AS o) AS q)",
        "k IN (SELECT count(DISTINCT s) FROM t AS o)",
        "k IN (SELECT q.k FROM (SELECT k, s FROM t AS o UNION SELECT k, vc FROM t AS p) AS q)",
        "k IN (SELECT rank() OVER (PARTITION BY s ORDER BY k) FROM t AS o)",
        "s IN ('x', 'y')",
        "s = ANY (SELECT vc FROM t AS o)",
        "'x' = s",
    ],
)
def test_wherever_texts_are_told_apart_a_note_says_by_what(condition: str) -> None:
    for dialect in ("mysql", "teradata", "tsql"):
        notes = done(f"DELETE FROM t WHERE {condition}", dialect).notes
        assert notes == (
            f"Texts are compared exactly, where {dialect} may ignore case and blanks at the end.",
        )
    assert done(f"DELETE FROM t WHERE {condition}", "postgres").notes == ()


def test_what_is_no_text_has_no_note_of_texts() -> None:
    for condition in ("NULLIF(k, 1) = 1", "at < '2024-01-05'", "k IN (SELECT k FROM t AS o GROUP BY k)"):
        assert done(f"DELETE FROM t WHERE {condition}", "tsql").notes == ()


def test_a_char_of_a_source_comes_from_a_query_which_deltas_merge_can_look_at() -> None:
    for dialect in ("postgres", "tsql"):
        text = sql("UPDATE t SET s = o.s FROM o WHERE o.ch = 'x' AND t.k = o.k", dialect)
        assert "USING (SELECT `o`.`" in text and "`o`.`ch` AS `c" in text and " ON RTRIM(`source`.`c" in text
        assert "USING `o` AS `o`" in sql("UPDATE t SET s = o.s FROM o WHERE t.k = o.k", dialect)
