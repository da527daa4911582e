"""Days and months that are added to dates and times: by the manuals of SQL Server and Teradata, and what is refused.

What PostgreSQL and MariaDB make of them is compared in tests/integration/test_dates.py.
"""

import pytest

from lakewarden.catalog.errors import UsageError
from lakewarden.jobs.sql.compile.compiler import compiled
from lakewarden.jobs.sql.compile.reading import draft_of
from lakewarden.jobs.sql.compile.values import ColumnType, Dialect

TYPES = {"id": "int", "d": "date", "e": "date", "ts": "timestamp_ntz", "tz": "timestamp", "s": "string",
         "small": "smallint", "big": "bigint"}  # fmt: skip
SCHEMA = tuple(ColumnType(name=name, type=kind) for name, kind in TYPES.items())


def said(condition: str, dialect: str) -> str:
    draft = draft_of(f"DELETE FROM t WHERE {condition}", Dialect(dialect))
    assert draft is not None
    (step,) = compiled(draft, {draft.tables[0]: SCHEMA}).steps
    return step.sql.replace("`", "").partition(" WHERE ")[2].replace("t.", "")


@pytest.mark.parametrize(
    ("dialect", "condition", "found"),
    [
        ("postgres", "d < CURRENT_DATE - 30", "d < DATE_SUB(CURRENT_DATE, 30)"),
        ("postgres", "tz < now() - interval '90 days'", "tz < TIMESTAMPADD(DAY, -90, CURRENT_TIMESTAMP())"),
        ("postgres", "d < current_date - interval '1 year'",
         "d < TIMESTAMPADD(MONTH, -12, CAST(CURRENT_DATE AS TIMESTAMP_NTZ))"),
        ("mysql", "d < CURDATE() - INTERVAL 30 DAY", "d < DATE_ADD(CURRENT_DATE, -30)"),
        ("mysql", "ts < NOW() - INTERVAL 1 HOUR", ("ts < TIMESTAMPADD(SECOND, -3600, "
         "CAST(DATE_TRUNC('SECOND', CURRENT_TIMESTAMP()) AS TIMESTAMP_NTZ))")),
        ("tsql", "d < DATEADD(day, -30, d)", "d < DATE_ADD(d, -30)"),
        ("tsql", "ts < DATEADD(month, -1, GETDATE())",
         "ts < TIMESTAMPADD(MONTH, -1, CAST(CURRENT_TIMESTAMP() AS TIMESTAMP_NTZ))"),
        ("tsql", "d > EOMONTH(e)", "d > LAST_DAY(e)"),
        ("tsql", "DATEDIFF(day, d, ts) > 30", "DATEDIFF(ts, d) > 30"),
        ("tsql", "DATEDIFF(month, d, e) > 1", ("((EXTRACT(YEAR FROM e) - EXTRACT(YEAR FROM d)) * 12 + "
         "(EXTRACT(MONTH FROM e) - EXTRACT(MONTH FROM d))) > 1")),
        ("tsql", "DATETRUNC(month, d) = e", "CAST(DATE_TRUNC('MONTH', d) AS DATE) = e"),
        ("tsql", "CAST(ts AS DATE) = d", "CAST(ts AS DATE) = d"),
        ("teradata", "d < CURRENT_DATE - 30", "d < DATE_SUB(CURRENT_DATE, 30)"),
        ("teradata", "d < CURRENT_DATE - INTERVAL '30' DAY", "d < DATE_ADD(CURRENT_DATE, -30)"),
        ("teradata", "d < ADD_MONTHS(CURRENT_DATE, -1)", "d < ADD_MONTHS(CURRENT_DATE, -1)"),
        ("teradata", "d - e > 7", "DATEDIFF(d, e) > 7"),
        ("teradata", "LAST_DAY(d) = d", "LAST_DAY(d) = d"),
        ("teradata", "d + big > d", "DATE_ADD(d, CAST(big AS INT)) > d"),
        ("postgres", "d + small > d", "DATE_ADD(d, CAST(small AS INT)) > d"),
        ("postgres", "d + id / 2 > d", "DATE_ADD(d, CAST(CAST(id DIV 2 AS INT) AS INT)) > d"),
    ],
)  # fmt: skip
def test_it_means_the_same_in_sparks_words(dialect: str, condition: str, found: str) -> None:
    assert found in said(condition, dialect)


@pytest.mark.parametrize(
    ("dialect", "condition"),
    [
        ("postgres", "ts - ts > interval '1 day'"),
        ("postgres", "ts + 1 > ts"),
        ("postgres", "d + d > d"),
        ("postgres", "d + big > d"),
        ("postgres", "d - 3000000000 > d"),
        ("postgres", "d + (SELECT count(*) FROM t AS o) > d"),
        ("postgres", "d + (SELECT sum(id) FROM t AS o) > d"),
        ("postgres", "d < e + interval '1.5 days'"),
        ("postgres", "tz < tz + interval '48 hours'"),
        ("postgres", "d < e + interval '1 day' * 2"),
        ("mysql", "d + 1 > 20240101"),
        ("mysql", "s + INTERVAL 1 DAY > d"),
        ("mysql", "d < e + INTERVAL id DAY"),
        ("mysql", "d < e + INTERVAL '1:30' MINUTE_SECOND"),
        ("tsql", "d + 1 > e"),
        ("tsql", "d < DATEADD(hour, 1, e)"),
        ("tsql", "DATEDIFF(hour, d, ts) > 1"),
        ("tsql", "DATEDIFF(day, d, '2024-01-01') > 1"),
        ("teradata", "d < CURRENT_DATE - INTERVAL '1' MONTH"),
        ("teradata", "ts < ADD_MONTHS(ts, 1)"),
        ("teradata", "CAST(ts AS DATE) = d"),
    ],
)
def test_what_may_be_another_day_is_refused_with_the_place(dialect: str, condition: str) -> None:
    with pytest.raises(UsageError, match="Line 1, column") as caught:
        said(condition, dialect)
    assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    ["1 day 02:30:00", "1 day 12", "- 1 day", "1 day ago", "P1M", "1,5 days", "1 1 day", "1 month or so", "1 q",
     "1 quarter", "1.5 days", "02:30:00", "1 day, 2 hours"],
)  # fmt: skip
def test_an_interval_that_is_not_read_as_a_whole_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="interval|another date or time"):
        said(f"ts < ts + interval '{text}'", "postgres")


def test_an_interval_of_several_parts_counts_as_a_whole() -> None:
    moved = said("ts < e + interval '1 year 2 mons 3days -4 hours'".replace("mons", "months"), "postgres")
    assert "MONTH, 14" in moved and "DAY, 3" in moved and "SECOND, -14400" in moved


@pytest.mark.parametrize(
    ("dialect", "value"),
    [
        ("tsql", "DATEADD(w, 1, d)"),
        ("tsql", "DATEADD(y, 1, d)"),
        ("tsql", "DATETRUNC(week, d)"),
        ("teradata", "d + INTERVAL '1' WEEK"),
        ("teradata", "d + INTERVAL '100' DAY"),
    ],
)
def test_units_that_mean_something_else_or_nothing_there_are_refused(dialect: str, value: str) -> None:
    with pytest.raises(UsageError):
        said(f"e < {value}", dialect)
