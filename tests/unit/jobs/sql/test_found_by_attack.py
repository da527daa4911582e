"""Statements that once gave another result than their database, each with what becomes of it now."""

import re

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.values import ColumnType, Compiled, Dialect

SCHEMAS = {
    table: tuple(ColumnType(name=name, type=kind) for name, kind in columns.items())
    for table, columns in {
        "t": {
            "k": "int", "a": "int", "s": "string", "d": "double", "f": "float", "m": "decimal(9,2)",
            "ok": "boolean", "day": "date", "at": "timestamp", "bytes": "binary", "local": "timestamp_ntz",
        },
        "u": {"k": "int", "e": "int"},
    }.items()
}  # fmt: skip


def done(text: str, dialect: str) -> Compiled:
    draft = draft_of(text, Dialect(dialect))
    assert draft is not None
    return compiled(draft, {table: SCHEMAS[table.parts[-1]] for table in draft.tables})


def sql(text: str, dialect: str) -> str:
    (step,) = done(text, dialect).steps
    return step.sql.replace("`", "")


@pytest.mark.parametrize(
    ("dialects", "change", "said"),
    [
        # Spark takes '240105' for the year 240105, and a number for seconds since 1970.
        ("mysql tsql teradata postgres", "day = s", "text becomes date or time"),
        ("mysql tsql teradata postgres", "a = s", "text becomes integer"),
        ("mysql tsql teradata postgres", "ok = s", "text becomes boolean"),
        ("mysql tsql teradata", "at = 20240105", "integer becomes date or time"),
        ("mysql tsql teradata", "a = at", "date or time becomes integer"),
        ("tsql", "a = GETDATE()", "date or time becomes integer"),
        ("mysql", "ok = a", "integer becomes boolean"),
        ("postgres", "s = bytes", "other becomes text"),
        # MySQL rounds half a second up to the next day, Teradata has time zones of its own.
        ("mysql teradata", "day = at", "another day of a time"),
        ("mysql", "ok = 'true'", "'true' may be another truth"),
        ("tsql", "ok = 'yes'", "'yes' may be another truth"),
        ("mysql", "a = CAST(a AS UNSIGNED)", "Spark has no UNSIGNED numbers"),
        ("mysql", "a = IF(s, 1, 2)", "Spark takes no text for a condition"),
        ("postgres", "at = CURRENT_TIMESTAMP(0)", "may mean something else"),
        ("postgres", "s = concat_ws(s, s, 'x')", "CONCAT_WS may mean something else"),
    ],
)  # fmt: skip
def test_a_value_that_would_become_another_one_is_refused(dialects: str, change: str, said: str) -> None:
    for dialect in dialects.split():
        with pytest.raises(UsageError, match=said):
            done(f"UPDATE t SET {change}", dialect)


@pytest.mark.parametrize(
    ("dialects", "condition", "said"),
    [
        # SQL Server compares and computes with the 32 bits of a REAL.
        ("tsql", "f = 0.1", "tsql makes a REAL of the number"),
        ("tsql", "f = 16777217", "tsql makes a REAL of the number"),
        ("tsql", "f + 0.1 = d", "tsql makes a REAL of the number"),
        ("teradata", "at > day", "the days alone of a date and a time"),
        ("mysql", "ok = 'true'", "'true' may be another truth"),
        ("mysql", "a IS TRUE", "Spark takes no integer for a condition"),
    ],
)
def test_a_comparison_by_other_rules_is_refused(dialects: str, condition: str, said: str) -> None:
    for dialect in dialects.split():
        with pytest.raises(UsageError, match=said):
            done(f"DELETE FROM t WHERE {condition}", dialect)


@pytest.mark.parametrize(
    ("dialect", "change", "wanted"),
    [
        (
            "postgres",
            "s = concat_ws(',', s, NULL, 'x')",
            "s = CONCAT_WS(',', t.s, CAST(NULL AS STRING), 'x')",
        ),
        ("mysql", "s = concat_ws(',', s, a)", "s = CONCAT_WS(',', t.s, CAST(t.a AS STRING))"),
        ("mysql", "d = f * f", "d = CAST(t.f AS DOUBLE) * CAST(t.f AS DOUBLE)"),
        ("postgres", "d = f * f", "d = t.f * t.f"),
        ("mysql", "at = NOW()", "at = DATE_TRUNC('SECOND', CURRENT_TIMESTAMP())"),
        ("mysql", "at = CURRENT_TIMESTAMP(6)", "at = CURRENT_TIMESTAMP()"),
        ("teradata", "at = CURRENT_TIMESTAMP(0)", "at = DATE_TRUNC('SECOND', CURRENT_TIMESTAMP())"),
        ("mysql", "a = k DIV 3 + k % -2", "a = t.k DIV 3 + t.k % -2"),
        ("tsql", "ok = 1", "ok = 1"),
    ],
)
def test_what_can_be_said_exactly_is(dialect: str, change: str, wanted: str) -> None:
    assert sql(f"UPDATE t SET {change}", dialect).endswith(f" SET {wanted}")


@pytest.mark.parametrize(
    ("dialect", "condition", "wanted"),
    [
        (
            "postgres",
            "a > (SELECT avg(e) FROM u)",
            "CAST(CAST(SUM(u.e) AS DECIMAL(20, 0)) / NULLIF(COUNT(u.e), 0) AS DECIMAL(32, 18))",
        ),
        (
            "postgres",
            "m = (SELECT round(avg(m), 2) FROM t)",
            "ROUND(CAST(CAST(SUM(t.m) AS DECIMAL(22, 2)) / NULLIF(COUNT(t.m), 0) AS DECIMAL(32, 18)), 2)",
        ),
        (
            "tsql",
            "a > (SELECT AVG(e) FROM u)",
            "CAST(CAST(SUM(u.e) AS INT) DIV NULLIF(COUNT(u.e), 0) AS INT)",
        ),
        ("teradata", "a > (SELECT AVG(e) FROM u)", "CAST(SUM(u.e) AS DOUBLE) / NULLIF(COUNT(u.e), 0)"),
        ("mysql", "d > (SELECT avg(d) FROM t)", "AVG(t.d)"),
    ],
)
def test_an_average_is_as_exact_as_its_dialects(dialect: str, condition: str, wanted: str) -> None:
    assert f"(SELECT {wanted} AS " in sql(f"DELETE FROM t WHERE {condition}", dialect)


def test_a_query_that_selects_nothing_finds_rows_all_the_same() -> None:
    asked = sql("DELETE FROM t WHERE EXISTS (SELECT FROM u WHERE u.k = t.k)", "postgres")
    assert "EXISTS(SELECT 1 FROM u AS u WHERE u.k = t.k)" in asked


def test_letters_beyond_ascii_are_told() -> None:
    for change in ("s = upper(s)", "s = lower('ß')"):
        assert [note for note in done(f"UPDATE t SET {change}", "postgres").notes if "Unicode" in note]
    assert done("UPDATE t SET s = upper('x')", "postgres").notes == ()


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        # Spark evaluates no NULLIF, and asks no query, in an inline table.
        (
            "a = v.y FROM (VALUES (1, nullif(1, 2)), (2, (SELECT max(e) FROM u))) AS v(x, y) WHERE t.k = v.x",
            "(SELECT 1 AS x, NULLIF(1, 2) AS y UNION ALL SELECT 2 AS x, (SELECT MAX(u.e) AS _col_0 FROM u",
        ),
        (
            "a = v.y FROM (VALUES (1, -2), (2, 3.5)) AS v(x, y) WHERE t.k = v.x",
            "VALUES (1, -2), (2, 3.5) AS v(x, y)",
        ),
    ],
)
def test_values_of_more_than_constants_are_queries(change: str, wanted: str) -> None:
    assert f"FROM {wanted}" in sql(f"UPDATE t SET {change}", "postgres")


def test_a_join_asks_its_queries_in_where() -> None:
    change = "a = 1 FROM t JOIN u ON t.k = u.k AND t.a IN (SELECT e FROM u AS y WHERE y.k = u.e)"
    found = sql(f"UPDATE t SET {change} WHERE u.k > 1 OR u.e > 1", "tsql")
    assert "AS t CROSS JOIN u AS u WHERE (u.k > 1 OR u.e > 1) AND (t.k = u.k AND t.a IN (SELECT" in found
    outer = sql(f"UPDATE t SET {change.replace('JOIN', 'LEFT JOIN')}", "tsql")
    assert "AS t LEFT JOIN u AS u ON t.k = u.k AND t.a IN (SELECT" in outer


def test_a_local_time_that_is_there_twice_is_told() -> None:
    (note,) = done("DELETE FROM t WHERE at > local", "postgres").notes
    assert "Spark takes the first, postgres perhaps the second" in note
    assert done("DELETE FROM t WHERE at > at OR local > day", "postgres").notes == ()


def test_two_written_texts_are_compared_by_the_rules_of_texts() -> None:
    assert "Texts are compared exactly" in done("DELETE FROM t WHERE 'a' = 'a '", "tsql").notes[0]
    assert done("DELETE FROM t WHERE k = '1'", "tsql").notes == ()


@pytest.mark.parametrize(
    "function",
    [
        "to_char(a, '99')", "log10(d)", "log2(d)", "log(2, d)", "array_size(array(a))", "first(a, TRUE)",
        "parse_json(s)", "rand(3)",
        "trunc(day, s)", "date_trunc(s, at)", "to_number(s, '9')", "date_sub(day, 1)", "instr(s, 'a')",
        "named_struct('a', 1)",
        "array(1, 2)[0]", "map('a', 1)['a']", "split(s, ',')[0]", "unix_timestamp()", "signum(a)",
        "my_own(a, 'x')",
        "str_to_map(s)", "regexp_extract(s, '(a)', 1)", "substring(s, -2)", "transform(array(1), x -> x + 1)",
        "date_diff(day, at)", "timestampadd(DAY, 1, at)", "make_date(1, 2, 3)", "space(3)", "mod(a, 2)",
        "decode(s, 'a', 'b')",
    ],
)  # fmt: skip
def test_functions_of_sparks_own_statements_stay_as_they_are_written(function: str) -> None:
    text = f"UPDATE t SET s = (SELECT max(e) FROM u) WHERE s = {function}"
    if function.startswith("rand"):
        with pytest.raises(UsageError, match="random"):
            done(text, "spark")
        return

    def plain(words: str) -> str:
        """Without names of tables, and blanks."""
        return re.sub(r"\bt\.|\s", "", words).lower()

    assert plain(function) in plain(sql(text, "spark"))
