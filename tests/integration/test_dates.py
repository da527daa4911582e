"""Dates and times of another dialect: the values that PostgreSQL and MariaDB compute."""

import pytest
from pyspark.sql import SparkSession

from lakewarden.jobs.sql.compile.values import Dialect
from support.servers.mariadb import MariadbServer
from support.servers.postgres import PostgresServer
from support.servers.spark import set_to
from support.two_databases.dated import dated_tables, ours_and_theirs
from support.two_databases.wide_game import FAST

pytestmark = pytest.mark.spark

NEW_YORK = "America/New_York"
POSTGRES = {
    "date": ["d + 1", "d - 30", "1 + d", "ts::date", "tz::date", "date '2024-02-28' + 2", "d - (e - d)"],
    "timestamp_ntz": [
        "d + interval '1 day'", "d - interval '1 month'", "d + interval '1 year'", "ts + interval '3 months'",
        "ts - interval '30 days'", "ts + interval '25 hours'", "d + interval '90 minutes'", "d::timestamp",
        "ts - interval '1 month 2 days 3 hours'", "date_trunc('month', ts)", "date_trunc('week', ts)",
        "d + interval '-1' month", "tz::timestamp", "d - interval '2 weeks'", "(d + 1) + interval '1 hour'",
    ],
    "timestamp": [
        "tz + interval '1 day'", "tz - interval '1 month'", "tz + interval '12 hours'", "date_trunc('day', tz)",
        "date_trunc('month', tz)", "date_trunc('quarter', d)", "tz - interval '7 days'",
    ],
    "int": ["d - e", "e - d + 1", "(d + 1) - e"],
}  # fmt: skip
MARIADB = {
    "date": [
        "DATE_SUB(d, INTERVAL 30 DAY)", "DATE_ADD(d, INTERVAL 1 MONTH)", "d + INTERVAL 1 YEAR", "LAST_DAY(d)",
        "d - INTERVAL 2 WEEK", "ADDDATE(d, 31)", "SUBDATE(d, 1)", "DATE(ts)", "DATE_ADD(d, INTERVAL 1 QUARTER)",
        "LAST_DAY(ts)", "DATE_SUB(d, INTERVAL -1 MONTH)", "INTERVAL 1 DAY + d",
    ],
    "timestamp_ntz": [
        "ts + INTERVAL 1 DAY", "DATE_SUB(ts, INTERVAL 1 MONTH)", "d + INTERVAL 2 HOUR", "ts - INTERVAL 30 HOUR",
        "DATE_ADD(d, INTERVAL 90 MINUTE)", "DATE_ADD(tz, INTERVAL 25 HOUR)", "tz + INTERVAL 1 MONTH",
    ],
    "int": ["DATEDIFF(d, e)", "DATEDIFF(ts, d)", "DAYOFWEEK(d)", "DAYOFYEAR(ts)", "WEEKDAY(d)", "YEAR(d) - YEAR(e)"],
}  # fmt: skip


@pytest.mark.postgres
def test_dates_of_postgresql(spark: SparkSession, postgres: PostgresServer) -> None:
    with set_to(spark, {**FAST, "spark.sql.session.timeZone": NEW_YORK}), postgres.connected() as connection:
        connection.execute(f"SET TIME ZONE '{NEW_YORK}'".encode())
        dated_tables(connection, "postgres")
        for kind, expressions in POSTGRES.items():
            ours, theirs = ours_and_theirs(spark, connection, Dialect.POSTGRES, expressions, kind)
            assert ours == theirs


@pytest.mark.mariadb
def test_dates_of_mariadb(spark: SparkSession, mariadb: MariadbServer) -> None:
    with set_to(spark, {**FAST, "spark.sql.session.timeZone": "UTC"}), mariadb.connected() as connection:
        connection.execute(b"SET time_zone = '+00:00'")
        dated_tables(connection, "mysql")
        for kind, expressions in MARIADB.items():
            ours, theirs = ours_and_theirs(spark, connection, Dialect.MYSQL, expressions, kind)
            assert ours == theirs
