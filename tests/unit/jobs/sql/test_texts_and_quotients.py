"""Texts that are read as other values, and quotients, in the dialects whose servers are not there: by their manuals."""

import re

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.values import ColumnType, Compiled, Dialect

TYPES = {"id": "int", "big": "bigint", "s": "string", "m": "decimal(10,2)", "n": "decimal(9,4)",
         "long": "decimal(38,2)", "d": "date", "ts": "timestamp_ntz", "x": "decimal(18,6)"}  # fmt: skip
SCHEMA = tuple(ColumnType(name=name, type=kind) for name, kind in TYPES.items())


def done(change: str, dialect: str) -> Compiled:
    draft = draft_of(f"UPDATE t SET {change}", Dialect(dialect))
    assert draft is not None
    return compiled(draft, {draft.tables[0]: SCHEMA})


def said(change: str, dialect: str) -> str:
    (step,) = done(change, dialect).steps
    return step.sql.replace("`", "").partition(" = ")[2].replace("t.", "")


def forms(change: str, dialect: str) -> list[str]:
    return [
        one.replace(r"\\p{Cntrl}", r"\x00-\x1f").replace(r"\\p{Sc}", "$")
        for one in re.findall("RLIKE '([^']*)'", said(change, dialect))
    ]


@pytest.mark.parametrize(
    ("dialect", "change", "read", "unread"),
    [
        ("mysql", "big = CAST(s AS SIGNED)", "12| -5|+7|007", "12 |1.5|1e3|x||- 5|12\n"),
        ("mysql", "big = CONVERT(s, SIGNED)", "12", "12x"),
        (
            "mysql",
            "d = CAST(s AS DATE)",
            "2024-01-05|2024-1-5",
            "2024|20240105|24-01-05|0000-01-01|2024-01-05 10:00",
        ),
        (
            "mysql",
            "ts = CAST(s AS DATETIME)",
            "2024-01-05 1:02:03|2024-01-05",
            "2024-01-05 10:00:00.5|10:00:00",
        ),
        ("mysql", "ts = CAST(s AS DATETIME(2))", "2024-01-05 10:00:00.25", "2024-01-05 10:00:00.255"),
        ("postgres", "m = s::numeric(10, 2)", "1.5| -1.005 |2.", "1e3|NaN|.5|x"),
        ("tsql", "m = CAST(s AS DECIMAL(10, 2))", "1.5|-1.25 |2", "1.255|1e3|$1|1,000"),
        ("tsql", "d = CAST(s AS DATE)", "2024-01-05", "2024-1-5|20240105|05.01.2024|"),
        ("tsql", "ts = CONVERT(DATETIME2, s)", "2024-01-05 10:00:00.5|2024-01-05", "2024-01-05T10:00:00"),
        ("teradata", "id = CAST(s AS INTEGER)", "12| -5 ", "12.5||x"),
        ("teradata", "d = CAST(s AS DATE)", "2024-01-05", "24/01/05|2024-1-5|2024-01-05\n"),
        ("teradata", "d = CAST(s AS DATE FORMAT 'YYYY-MM-DD')", "2024-01-05", "2024-1-5"),
        (
            "teradata",
            "ts = CAST(s AS TIMESTAMP(0))",
            "2024-01-05 10:00:00",
            "2024-01-05|2024-01-05 10:00:00.5",
        ),
    ],
)
def test_a_text_is_read_in_the_form_that_every_database_reads_alike(
    dialect: str, change: str, read: str, unread: str
) -> None:
    (form,) = forms(change, dialect)
    assert [one for one in read.split("|") if not re.match(form, one)] == []
    assert [one for one in unread.split("|") if re.match(form, one)] == []
    assert done(change, dialect).notes[0].endswith(f" is an error here, where {dialect} may read it.")
    assert "RAISE_ERROR(CONCAT('\\'', s, '\\' is not read as " in said(change, dialect)


@pytest.mark.parametrize(
    ("change", "read", "none", "unclear"),
    [
        ("id = TRY_CAST(s AS INT)", "12| -5 |99999999999", "x|1.5|$1|1,000|12a", "|-|- 5|+|1\t"),
        ("id = TRY_CONVERT(INT, s)", "12", "x", ""),
        (
            "d = TRY_CAST(s AS DATE)",
            "2024-01-05|2024-02-30",
            "x|n/a|not known",
            "|  |20240105|5.1.2024|5 Jan",
        ),
        (
            "m = TRY_CAST(s AS DECIMAL(10, 2))",
            "1.5| -12 |99999999999",
            "x|1.5f|NaN|12a|1_0",
            "|1.255|1e3|$1|1,000|.5",
        ),
        (
            "ts = TRY_CONVERT(DATETIME2, s)",
            "2024-01-05 10:00:00|2024-01-05",
            "x|noon",
            "|10:00|2024-01-05T10:00:00",
        ),
    ],
)
def test_try_cast_is_null_for_what_is_surely_none_and_an_error_where_that_is_not_clear(
    change: str, read: str, none: str, unclear: str
) -> None:
    surely_none, form = forms(change, "tsql")
    assert all(re.search(form, one) for one in read.split("|"))
    assert all(re.search(surely_none, one) for one in none.split("|"))
    assert [one for one in unclear.split("|") if re.search(form, one) or re.search(surely_none, one)] == []
    assert re.match(
        r"TRY_CAST\(CASE WHEN \(s RLIKE '.*'\) THEN NULL WHEN NOT \(s RLIKE ", said(change, "tsql")
    )


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("id = TRY_CAST(big AS INT)", "TRY_CAST(big AS INT)"),
        ("id = TRY_CAST(m AS SMALLINT)", "TRY_CAST(m AS SMALLINT)"),
        ("m = TRY_CAST(big AS DECIMAL(5, 2))", "TRY_CAST(big AS DECIMAL(5, 2))"),
        ("m = TRY_CAST(x AS DECIMAL(5, 2))", "TRY_CAST(x AS DECIMAL(5, 2))"),
        ("s = TRY_CAST(id AS VARCHAR(11))", "CAST(id AS STRING)"),
        ("s = TRY_CAST(s AS VARCHAR(3))", "LEFT(s, 3)"),
        ("d = TRY_CAST(ts AS DATE)", "TRY_CAST(ts AS DATE)"),
    ],
)
def test_try_cast_of_other_values_is_null_where_there_is_no_room(change: str, found: str) -> None:
    assert said(change, "tsql") == found


@pytest.mark.parametrize(
    ("dialect", "change", "found"),
    [
        ("mysql", "id = CAST(s AS UNSIGNED)", "no UNSIGNED numbers"),
        ("tsql", "ts = CAST(s AS DATETIME)", "may give something else"),
        (
            "tsql",
            "x = TRY_CAST(s AS FLOAT)",
            "TRY_CAST reads texts as whole numbers, decimals, days and times",
        ),
        ("teradata", "id = TRYCAST(s AS INTEGER)", "may"),
        ("teradata", "d = CAST(s AS DATE FORMAT 'DD/MM/YYYY')", "YYYY-MM-DD"),
        ("tsql", "s = CAST(id AS VARCHAR(5))", "may give something else"),
        ("mysql", "x = CAST(s AS FLOAT)", "may give something else"),
        ("teradata", "s = CAST(m AS VARCHAR(20))", "may give something else"),
        ("tsql", "m = long / long", "another number of digits"),
        ("postgres", "m = long / n", "another number of digits"),
        ("teradata", "m = FLOOR(m) / 3", "another number of digits"),
    ],
)
def test_what_may_be_another_value_is_refused(dialect: str, change: str, found: str) -> None:
    with pytest.raises(UsageError) as caught:
        done(change, dialect)
    assert found in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize(
    ("dialect", "change", "found"),
    [
        ("tsql", "m = m / 3", "CAST(m AS DECIMAL(14, 6)) / 3"),
        ("tsql", "m = m / n", "CAST(m AS DECIMAL(14, 6)) / CAST(n AS DECIMAL(9, 4))"),
        ("tsql", "id = m / 2", "CAST(m AS DECIMAL(14, 6)) / 2"),
        ("teradata", "m = m / 3", "BROUND(CAST(m AS DECIMAL(10, 2)) / 3, 2)"),
        (
            "teradata",
            "m = m / n",
            "BROUND(BROUND(CAST(m AS DECIMAL(12, 4)) / CAST(n AS DECIMAL(9, 4)), 4), 2)",
        ),
        ("teradata", "m = m * 1.1", "BROUND(m * 1.1, 2)"),
        ("teradata", "m = CAST(x AS DECIMAL(10, 2))", "CAST(BROUND(x, 2) AS DECIMAL(10, 2))"),
        ("mysql", "m = m / 3", "CAST(m AS DECIMAL(14, 6)) / 3"),
        ("mysql", "id = m", "ROUND(m)"),
        ("tsql", "s = CAST(id AS VARCHAR(11))", "CAST(id AS STRING)"),
        ("tsql", "s = CAST(d AS VARCHAR(10))", "CAST(d AS STRING)"),
        ("tsql", "s = CAST(m AS VARCHAR(13))", "CAST(m AS STRING)"),
        ("postgres", "s = id::varchar(5)", "LEFT(CAST(id AS STRING), 5)"),
    ],
)
def test_it_is_said_in_sparks_words(dialect: str, change: str, found: str) -> None:
    assert said(change, dialect) == found


@pytest.mark.parametrize(
    "value",
    [
        "CASE WHEN id = 1 THEN m / 3 ELSE m END",
        "CASE WHEN id = 1 THEN m / 3 END",
        "coalesce(m / 3, 0)",
        "nullif(m / 3, 0)",
        "greatest(m / 3, 1)",
        "abs(m / 3)",
        "m / 3 / 7",
        "round(coalesce(m / 3, 0), 2)",
        "(SELECT max(m / 3) FROM t AS o)",
        "(SELECT sum(m / 3) FROM t AS o)",
        "(SELECT y FROM (SELECT m / 3 AS y, id FROM t AS o) AS q WHERE q.id = t.id)",
        "(SELECT y FROM (SELECT lag(m / 3) OVER (ORDER BY id) AS y, id FROM t AS o) AS q WHERE q.id = t.id)",
        "(SELECT y FROM (SELECT first_value(m / 3) OVER (ORDER BY id) AS y FROM t AS o) AS q WHERE y > 1)",
        "(SELECT max(y) FROM (SELECT m / 3 AS y FROM t AS o UNION ALL SELECT m FROM t AS p) AS q)",
        "(SELECT max(m) FROM t AS o GROUP BY m / 3)",
        "(SELECT max(m) OVER (PARTITION BY m / 3) FROM t AS o WHERE o.id = t.id)",
        "(SELECT o.m FROM t AS o WHERE o.id = t.id ORDER BY m / 3 LIMIT 1)",
        "(SELECT o.m FROM t AS o WHERE o.m / 3 IN (SELECT p.m / 3 FROM t AS p))",
    ],
)
def test_a_quotient_is_rounded_before_anything_else_is_done_with_it(value: str) -> None:
    with pytest.raises(UsageError, match="the last digits of a quotient would matter"):
        done(f"m = {value}", "postgres")


def test_that_mysql_may_find_null_for_a_division_by_zero_is_told() -> None:
    told = "To divide by zero is an error here, where mysql may find NULL."
    assert done("m = m / 3", "mysql").notes == ()
    assert done("m = m / CAST(id AS DECIMAL(2, 0))", "mysql").notes == (told,)
