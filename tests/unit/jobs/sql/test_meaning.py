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
            "k": "int", "a": "int", "s": "string", "d": "double", "price": "decimal(10,2)", "day": "date",
            "ok": "boolean", "at": "timestamp", "ntz": "timestamp_ntz", "big": "bigint", "many": "array<int>",
            "tags": "map<string,int>",
        },
        "s": {"k": "int", "b": "int", "c": "string", "n": "double", "tags": "map<string,int>"},
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
        ("postgres", "k = ANY (ARRAY[1, 2])", "This may mean something else"),
        ("postgres mysql", "k < ANY (SELECT c FROM s)", "integer and text are compared"),
        ("postgres mysql teradata tsql", "s + 1 = 2", "Only numbers are added"),
        ("postgres mysql teradata tsql", "-s = 2", "Only numbers are added"),
        ("postgres", "abs(s) = 2", "Only numbers are added"),
        ("mysql", "k % k = 1", "divides by zero to NULL"),
        ("mysql", "k % 0 = 1", "divides by zero to NULL"),
        ("tsql", "d % 2 = 1", "A remainder of such numbers"),
        ("postgres", "d = 1e3", "is exact in postgres"),
        ("mysql", "s || s = 'xx'", "Spark takes no text for a condition"),
        ("tsql", "s || s = 'xx'", "joins texts, and in postgres"),
        ("teradata", "k || s = '1x'", "joins texts, and in postgres"),
        ("postgres", "s LIKE 'x\\%'", "LIKE with such a pattern"),
        ("postgres", "s LIKE s", "LIKE with such a pattern"),
        ("tsql", "s LIKE '[ab]%'", "LIKE with such a pattern"),
        ("postgres mysql tsql", "concat(s, d) = 'x'", "CONCAT may mean something else"),
        ("teradata", "concat(s, k) = 'x1'", "CONCAT may mean something else"),
        ("postgres", "trim(both 'x' from s) = 'x'", "TRIM may mean something else"),
        ("postgres mysql", "substring(s, 0, 2) = 'x'", "SUBSTRING may mean something else"),
        ("postgres mysql", "substring(s, 1, k) = 'x'", "SUBSTRING may mean something else"),
        ("postgres", "left(s, -1) = 'x'", "LEFT may mean something else"),
        ("postgres mysql", "replace(s, '', 'x') = 'x'", "REPLACE may mean something else"),
        ("mysql", "instr(s, 'x') = 1", "may mean something else"),
        ("postgres", "strpos(s, '') = 1", "may mean something else"),
        ("teradata", "lpad(s, 2, 'x') = 'x'", "LPAD may mean something else"),
        ("teradata", "round(price, 1) = 1", "ROUND may mean something else"),
        ("mysql tsql", "round(d, 1) = 1", "ROUND may mean something else"),
        ("postgres", "round(k) / 2 = 1", "ROUND may mean something else"),
        ("mysql", "round(price, -1) = 1", "ROUND may mean something else"),
        ("tsql", "round(price, 1, 1) = 1", "ROUND may mean something else"),
        ("postgres", "floor(d) = 1", "FLOOR may mean something else"),
        ("postgres", "extract(hour from day) = 1", "EXTRACT may mean something else"),
        ("postgres", "extract(week from day) = 1", "EXTRACT may mean something else"),
        ("postgres", "extract(second from at) = 1", "EXTRACT may mean something else"),
        ("mysql", "year(s) = 1", "may mean something else"),
        ("postgres", "rank() OVER (ORDER BY k) = 1", "This may mean something else"),
        ("postgres", "k IN (SELECT ntile(2) OVER (ORDER BY k) FROM s)", "NTILE may mean something else"),
        ("postgres", "k IN (SELECT lag(b, -1) OVER (ORDER BY k) FROM s)", "LAG may mean something else"),
        ("postgres", "k IN (SELECT lag(b, 1, c) OVER (ORDER BY k) FROM s)", "LAG may mean something else"),
        (
            "postgres",
            "k IN (SELECT sum(b) OVER (ORDER BY k RANGE BETWEEN 2 PRECEDING AND CURRENT ROW) FROM s)",
            "This may mean something else",
        ),
        ("postgres teradata tsql", "CAST(s AS CHAR(5)) = 'x'", "This cast may give something else"),
        ("mysql", "zeroifnull(k) = 1", "ZEROIFNULL may mean something else"),
        ("teradata", "zeroifnull(s) = 1", "ZEROIFNULL may mean something else"),
        ("teradata", "greatest(k, 1) = 1", "may mean something else in Spark than in"),
        ("postgres", "CAST(d AS TEXT) = '1'", "This cast may give something else"),
        ("postgres", "CAST(k AS BOOLEAN)", "This cast may give something else"),
        ("postgres teradata", "CAST(price AS DECIMAL) = 1", "is not rounded to whole ones"),
        ("postgres", "price::numeric = 1", "is not rounded to whole ones"),
        ("postgres", "CAST('1.245' AS NUMERIC) = 1", "is not rounded to whole ones"),
        ("postgres", "k = (SELECT e FROM u LIMIT 1)", "LIMIT without ORDER BY"),
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
        ("postgres mysql teradata tsql", "k <= price AND price >= d",
            "`t`.`k` <= `t`.`price` AND `t`.`price` >= `t`.`d`"),
        ("postgres mysql teradata tsql", "k + price > -d", "`t`.`k` + `t`.`price` > -`t`.`d`"),
        ("postgres teradata tsql", "k / 2 = 1", "`t`.`k` DIV 2 = 1"),
        ("postgres teradata tsql", "k / (a - 1) = 1", "CAST(`t`.`k` DIV (`t`.`a` - 1) AS INT) = 1"),
        ("postgres teradata tsql", "d / 2 = 1", "`t`.`d` / 2 = 1"),
        ("postgres teradata tsql", "k / d = 1", "`t`.`k` / `t`.`d` = 1"),
        ("postgres tsql", "k % 2 = 1 AND price % 2 = 0", "`t`.`k` % 2 = 1 AND `t`.`price` % 2 = 0"),
        ("postgres", "CAST(price AS INT) = 1", "CAST(ROUND(`t`.`price`) AS INT) = 1"),
        ("postgres", "CAST(d AS INT) = 1", "CAST(RINT(`t`.`d`) AS INT) = 1"),
        ("teradata tsql", "CAST(d AS INT) = 1", "CAST(`t`.`d` AS INT) = 1"),
        ("postgres tsql mysql", "CAST(price AS DECIMAL(6, 1)) = 1", "CAST(`t`.`price` AS DECIMAL(6, 1)) = 1"),
        ("teradata", "CAST(price AS DECIMAL(6, 1)) = 1", "CAST(BROUND(`t`.`price`, 1) AS DECIMAL(6, 1)) = 1"),
        ("mysql", "k / 2 = 1", "CAST(`t`.`k` AS DECIMAL(16, 6)) / 2 = 1"),
        ("mysql", "d / 2 = 1", "`t`.`d` / 2 = 1"),
        ("postgres tsql", "price / 3 = 1", "CAST(`t`.`price` AS DECIMAL(14, 6)) / 3 = 1"),
        ("postgres tsql", "k / price = 1", "CAST(`t`.`k` AS DECIMAL(16, 6)) / CAST(`t`.`price` AS DECIMAL(10, 2)) = 1"),
        ("teradata", "price / 3 = 1", "BROUND(CAST(`t`.`price` AS DECIMAL(10, 2)) / 3, 2) = 1"),
        ("postgres", "floor(price) / 2 = 1", "CAST(FLOOR(`t`.`price`) AS DECIMAL(15, 6)) / 2 = 1"),
        ("mysql", "CAST(d AS SIGNED) = 1", "CAST(RINT(`t`.`d`) AS BIGINT) = 1"),
        ("postgres", "CAST(k AS VARCHAR(5)) = '1'", "LEFT(CAST(`t`.`k` AS STRING), 5) = '1'"),
        ("postgres", "CAST(k AS TEXT) = '1'", "CAST(`t`.`k` AS STRING) = '1'"),
        ("postgres mysql teradata tsql", "day = CAST('2024-02-29' AS DATE)",
            "`t`.`day` = CAST('2024-02-29' AS DATE)"),
        ("postgres mysql teradata tsql", "d = CAST(price AS FLOAT)", "`t`.`d` = CAST(`t`.`price` AS "),
        ("postgres teradata", "s || 'x' = 'xx'", "`t`.`s` || 'x' = 'xx'"),
        ("postgres", "s LIKE 'x%'", "`t`.`s` LIKE 'x%'"),
        ("postgres mysql teradata tsql", "upper(s) = lower('X')", "UPPER(`t`.`s`) = LOWER('X')"),
        ("mysql teradata tsql", "s LIKE 'x%'", "`t`.`s` LIKE 'x%'"),
        ("mysql", "concat(s, '-', k) = 'x'", "CONCAT(`t`.`s`, '-', CAST(`t`.`k` AS STRING)) = 'x'"),
        ("teradata", "concat(s, '-') = 'x'", "CONCAT(`t`.`s`, '-') = 'x'"),
        ("postgres tsql", "concat(s, k) = 'x'",
            "CONCAT(COALESCE(`t`.`s`, ''), COALESCE(CAST(`t`.`k` AS STRING), '')) = 'x'"),
        ("tsql", "s + 'x' + s = 'x'", "`t`.`s` || 'x' || `t`.`s` = 'x'"),
        ("postgres mysql teradata tsql", "trim(s) = 'x'", "TRIM(`t`.`s`) = 'x'"),
        ("postgres mysql teradata", "trim(trailing from s) = 'x'", "RTRIM(`t`.`s`) = 'x'"),
        ("postgres mysql teradata tsql", "substring(s, 2, 3) = 'x'", "SUBSTRING(`t`.`s`, 2, 3) = 'x'"),
        ("postgres mysql", "left(s, 2) = right(s, 0)", "LEFT(`t`.`s`, 2) = RIGHT(`t`.`s`, 0)"),
        ("mysql", "length(s) = char_length(s)", "OCTET_LENGTH(`t`.`s`) = LENGTH(`t`.`s`)"),
        ("tsql", "len(s) = 1", "LENGTH(RTRIM(CAST(`t`.`s` AS STRING))) = 1"),
        ("teradata", "characters(s) = 1", "LENGTH(`t`.`s`) = 1"),
        ("teradata", "zeroifnull(k) = nullifzero(d)", "COALESCE(`t`.`k`, 0) = NULLIF(`t`.`d`, 0)"),
        ("teradata", "nullifzero(k) - 6 > zeroifnull(a) + 1",
            "NULLIF(`t`.`k`, 0) - 6 > COALESCE(`t`.`a`, 0) + 1"),
        ("postgres mysql", "replace(s, 'x', s) = 'x'", "REPLACE(`t`.`s`, 'x', `t`.`s`) = 'x'"),
        ("postgres", "position('x' in s) = 1", "LOCATE('x', `t`.`s`) = 1"),
        ("postgres mysql", "lpad(s, 3, '0') = rpad(s, 3, '0')",
            "LPAD(`t`.`s`, 3, '0') = RPAD(`t`.`s`, 3, '0')"),
        ("postgres mysql tsql", "round(price, 1) = 1", "ROUND(`t`.`price`, 1) = 1"),
        ("postgres", "round(d) = 1", "RINT(`t`.`d`) = 1"),
        ("postgres mysql teradata tsql", "floor(price) = 1", "FLOOR(`t`.`price`) = 1"),
        ("postgres mysql teradata", "extract(month from day) = 1", "EXTRACT(MONTH FROM `t`.`day`) = 1"),
        ("mysql tsql", "year(at) = 2024", "EXTRACT(YEAR FROM `t`.`at`) = 2024"),
        ("tsql", "datepart(hour, ntz) = 2", "EXTRACT(HOUR FROM `t`.`ntz`) = 2"),
        ("postgres teradata", "CAST(s AS VARCHAR(2)) = 'x'", "LEFT(`t`.`s`, 2) = 'x'"),
        ("tsql", "CAST(s AS VARCHAR) = CAST(k AS NVARCHAR(20))",
            "LEFT(`t`.`s`, 30) = CAST(`t`.`k` AS STRING)"),
        ("mysql", "CAST(k AS CHAR) = '1'", "CAST(`t`.`k` AS STRING) = '1'"),
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
        ("postgres mysql", "a = price", "`a` = ROUND(`t`.`price`)"),
        ("postgres mysql", "a = d", "`a` = RINT(`t`.`d`)"),
        ("postgres", "a = 2.5", "`a` = ROUND(2.5)"),
        ("teradata tsql", "a = d", "`a` = `t`.`d`"),
        ("postgres mysql teradata tsql", "d = price", "`d` = `t`.`price`"),
        ("postgres mysql teradata tsql", "a = big", "`a` = `t`.`big`"),
        ("postgres mysql teradata tsql", "price = 1.5", "`price` = 1.5"),
        ("postgres mysql teradata tsql", "day = '2024-02-29'", "`day` = CAST('2024-02-29' AS DATE)"),
        ("postgres mysql teradata tsql", "a = '5'", "`a` = CAST('5' AS INT)"),
        ("postgres mysql teradata tsql", "s = '5'", "`s` = '5'"),
        ("postgres mysql tsql", "s = k", "`s` = `t`.`k`"),
        ("postgres mysql teradata tsql", "a = NULL", "`a` = NULL"),
    ],
)  # fmt: skip
def test_a_value_is_stored_as_its_dialect_stores_it(dialects: str, change: str, sparks: str) -> None:
    for dialect in dialects.split():
        assert sql(f"UPDATE t SET {change}", dialect) == f"UPDATE `t` AS `t` SET {sparks}", dialect


@pytest.mark.parametrize(
    ("dialects", "change", "said"),
    [
        ("postgres mysql teradata tsql", "price = d", "makes other digits of a floating-point number"),
        ("teradata", "s = k", "written into text in another form"),
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


def test_other_comparisons_with_any_and_all_are_told_by_exists() -> None:
    rows = "EXISTS(SELECT 1 FROM (SELECT `u`.`e` AS `e` FROM `u` AS `u`) AS `compared`(`value`) WHERE "
    less, key = "`t`.`k` < `compared`.`value`", "k < ANY (SELECT e FROM u)"
    assert f" WHERE {rows}{less})) AS `source`" in sql(f"DELETE FROM t WHERE {key}", "postgres")
    all_ = sql("DELETE FROM t WHERE k < ALL (SELECT e FROM u)", "mysql")
    assert f" WHERE NOT {rows}NOT COALESCE({less}, FALSE))) AS `source`" in all_
    exactly = f"CASE WHEN {rows}{less}) THEN TRUE WHEN NOT {rows}COALESCE({less}, TRUE)) THEN FALSE END"
    for condition in (f"NOT ({key})", f"({key}) IS NULL", f"coalesce({key}, ok)"):
        assert exactly in sql(f"DELETE FROM t WHERE {condition}", "postgres"), condition
    assert "`compared_`(`value`)" in sql(
        "DELETE FROM t AS compared WHERE k > ANY (SELECT e FROM u)", "postgres"
    )


def test_an_in_within_an_any_is_settled_too() -> None:
    said = sql(
        "DELETE FROM t WHERE k < ANY (SELECT e FROM u WHERE (e IN (SELECT b FROM s)) IS NULL)", "postgres"
    )
    assert "CASE WHEN `u`.`e` IN (SELECT" in said


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


_LATEST = (
    "SELECT k, b FROM (SELECT k, b, {} OVER (PARTITION BY k ORDER BY b DESC) AS n FROM s) AS z WHERE n = 1"
)


def test_a_window_orders_nulls_as_its_dialect_does() -> None:
    change = f"UPDATE t SET a = q.b FROM ({_LATEST.format('rank()')}) AS q WHERE q.k = t.k"
    assert "RANK() OVER (PARTITION BY `s`.`k` ORDER BY `s`.`b` DESC NULLS FIRST)" in sql(change, "postgres")
    assert "RANK() OVER (PARTITION BY `s`.`k` ORDER BY `s`.`b` DESC)" in sql(change, "tsql")


def test_qualify_is_a_query_more() -> None:
    said = sql(
        "UPDATE t FROM (SELECT k, b FROM s QUALIFY RANK() OVER (PARTITION BY k ORDER BY b) = 1) AS q "
        "SET a = q.b WHERE q.k = t.k",
        "teradata",
    )
    assert "QUALIFY" not in said
    assert "RANK() OVER (PARTITION BY `s`.`k` ORDER BY `s`.`b`) = 1 AS `lakewarden_kept`" in said


def test_what_numbers_rows_of_equal_order_says_so_and_changes_one_table_alone() -> None:
    change = "UPDATE t SET a = q.b FROM ({}) AS q WHERE q.k = t.k"
    told = "ROW_NUMBER takes rows of equal order by chance; order them by more columns if that matters."
    assert told in done(change.format(_LATEST.format("row_number()")), "postgres").notes
    assert not any(
        "by chance" in one for one in done(change.format(_LATEST.format("rank()")), "postgres").notes
    )
    both = "UPDATE t JOIN s ON t.k = s.k JOIN ({}) AS q ON q.k = t.k SET t.a = q.b, s.b = q.b"
    assert len(done(both.format(_LATEST.format("rank()")), "mysql").steps) == 2
    with pytest.raises(UsageError, match="another order of rows that are alike"):
        done(both.format(_LATEST.format("row_number()")), "mysql")


def test_tsql_is_told_how_characters_count() -> None:
    told = "Characters beyond U+FFFF count as one, where tsql may count two."
    assert told in done("UPDATE t SET s = substring(s, 1, 2)", "tsql").notes
    assert told not in done("UPDATE t SET s = substring(s, 1, 2)", "mysql").notes


@pytest.mark.parametrize("dialect", ["spark", "postgres"])
def test_zero_is_one_value_whatever_its_sign(dialect: str) -> None:
    zero = "CAST(0 AS DOUBLE)"
    said = sql("DELETE FROM t WHERE d NOT IN (SELECT n FROM s UNION SELECT b FROM s)", dialect)
    assert f"NOT (`t`.`d`) + {zero} IN (SELECT (`s`.`n`) + {zero} AS `n`" in said
    assert f"UNION SELECT (`s`.`b`) + {zero} AS `b`" in said
    assert zero not in sql("DELETE FROM t WHERE k NOT IN (SELECT b FROM s)", dialect)
    assert zero not in sql("DELETE FROM t WHERE (d, k) NOT IN (SELECT n, k FROM s)", dialect)


def test_rows_whose_zeros_a_text_tells_apart_are_found_again_by_texts() -> None:
    said = sql("DELETE FROM t WHERE CAST(d AS STRING) = '-0.0' AND k IN (SELECT k FROM s)", "spark")
    assert (
        "(SELECT CAST(`d` AS DOUBLE) AS `d`, `k` FROM (SELECT DISTINCT CAST(`d` AS STRING) AS `d`, `k` "
        "FROM `t`)" in said
    )
    assert "ON CAST(`target`.`d` AS STRING) <=> `source`.`k0` AND `target`.`k` <=> `source`.`k1`" in said
    plain = sql(
        "DELETE FROM t WHERE coalesce(d, 0) / 2 > 1 AND CAST(d AS INT) = 1 AND k IN (SELECT k FROM s)",
        "spark",
    )
    assert "ON `target`.`d` <=> `source`.`k0`" in plain and "DOUBLE" not in plain


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
        ("UPDATE t SET a = 1 FROM (s JOIN u ON s.k = u.k) AS q WHERE t.k = q.k",
            "Expected a table, a query or VALUES"),
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
        ("UPDATE t LEFT JOIN (s CROSS JOIN u) ON t.k = s.k SET t.a = 1", "mysql", "Line 1, column"),
    ],
)
def test_what_is_changed_has_to_be_told(text: str, dialect: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        done(text, dialect)


def test_backticks_in_anothers_form_are_explained() -> None:
    with pytest.raises(UsageError) as caught:
        sql("UPDATE t SET `a` = s.b FROM s WHERE s.k = t.k")
    assert (
        caught.value.hint
        == 'Only Spark and MySQL quote names with backticks; in the forms of the others write "name".'
    )
    assert sql('UPDATE t SET "a" = s.b FROM s WHERE s.k = t.k').startswith("MERGE INTO `t`")


def test_a_map_is_chosen_by_nobody() -> None:
    change = "UPDATE t SET tags = s.tags FROM s WHERE s.k = t.k"
    for matches in ("any", "last by b"):
        with pytest.raises(UsageError, match="tags is a map, which has no order") as caught:
            done(change, matches=matches)
        assert "Line 1, column" in str(caught.value)
    assert done(change).steps


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


@pytest.mark.parametrize(
    ("dialect", "made"),
    [("tsql", "CAST(`t`.`price` AS DECIMAL(18, 0))"), ("mysql", "CAST('1.5' AS DECIMAL(10, 0))")],
)
def test_a_decimal_that_does_not_say_its_digits_has_those_of_its_dialect(dialect: str, made: str) -> None:
    condition = "CAST(price AS DECIMAL) = 1" if dialect == "tsql" else "CAST('1.5' AS DECIMAL) = price"
    assert made in where(condition, dialect)
