"""Compiled changes of tables with something special: partitions, deletion vectors, mapped columns, rules, odd names."""

import uuid
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import lakewarden
from lakewarden.catalog.errors import PreconditionError, UsageError
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.usecases.init import initialise
from lakewarden.jobs.session.attached import Attached
from support.cases import mostly_long

pytestmark = pytest.mark.spark

KINDS = {
    "partitions": "(id INT, k INT, a INT) USING delta PARTITIONED BY (k)",
    "deletion vectors": "(id INT, k INT, a INT) USING delta "
    "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "mapped columns": "(id INT, k INT, a INT) USING delta "
    "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    "capital letters": "(Id INT, K INT, A INT) USING delta",
    "clusters": "(id INT, k INT, a INT) USING delta CLUSTER BY (k)",
    "change feed": "(id INT, k INT, a INT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
}


@pytest.fixture(scope="module")
def lw(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attached]:
    services = open_services(home=tmp_path_factory.mktemp("home"), flags={})
    initialise(services, services.user)
    database, before = f"k_{uuid.uuid4().hex[:10]}", spark.catalog.currentDatabase()
    spark.sql(f"CREATE DATABASE {database}")
    spark.catalog.setCurrentDatabase(database)
    spark.sql("CREATE TABLE s (k INT, b INT) USING delta")
    spark.sql("INSERT INTO s VALUES (1, 5), (2, 7), (NULL, 9)")
    with lakewarden.attach(spark, home=services.settings.home) as attached:
        yield attached
    spark.catalog.setCurrentDatabase(before)
    spark.sql(f"DROP DATABASE {database} CASCADE")


@pytest.mark.parametrize("kind", mostly_long(KINDS, ["deletion vectors"]))
def test_a_special_table_is_changed_like_any_other(spark: SparkSession, lw: Attached, kind: str) -> None:
    table = kind.replace(" ", "_")
    spark.sql(f"CREATE TABLE {table} {KINDS[kind]}")
    spark.sql(f"INSERT INTO {table} VALUES (1, 1, 10), (2, 2, 20), (3, NULL, 30), (4, 4, 40)")
    lw.sql(f"UPDATE {table} FROM s SET a = s.b, K = {table}.k + 10 WHERE {table}.k = s.k AND s.b > 5")
    lw.sql(f"DELETE FROM {table} WHERE id NOT IN (SELECT b - 4 FROM s WHERE b < 9) AND a > 30")
    rows = sorted(tuple(row) for row in spark.table(table).collect())
    assert rows == [(1, 1, 10), (2, 12, 7), (3, None, 30)]


@pytest.mark.long
def test_changes_are_in_the_change_feed_row_by_row(spark: SparkSession, lw: Attached) -> None:
    spark.sql(
        "CREATE TABLE fed (k INT, a INT) USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )
    spark.sql("INSERT INTO fed VALUES (1, 1), (2, 2), (3, 3)")
    lw.sql("UPDATE fed FROM s SET a = s.b WHERE fed.k = s.k AND s.b > 5")
    lw.sql("DELETE FROM fed WHERE k IN (SELECT k FROM s WHERE b = 5)")
    lw.sql("UPSERT INTO fed (k, a) ON (k) VALUES (3, 30), (4, 40)")
    fed = spark.sql("SELECT _change_type, k, a FROM table_changes('fed', 2)").collect()
    assert sorted(tuple(row) for row in fed) == [
        ("delete", 1, 1),
        ("insert", 4, 40),
        ("update_postimage", 2, 7),
        ("update_postimage", 3, 30),
        ("update_preimage", 2, 2),
        ("update_preimage", 3, 3),
    ]


def test_a_constraint_of_the_table_holds(spark: SparkSession, lw: Attached) -> None:
    spark.sql("CREATE TABLE checked (k INT, a INT) USING delta")
    spark.sql("ALTER TABLE checked ADD CONSTRAINT small CHECK (a < 6)")
    spark.sql("INSERT INTO checked VALUES (1, 1), (2, 2)")
    with pytest.raises(PreconditionError, match="^A row cannot be written: CHECK constraint small"):
        lw.sql("UPDATE checked FROM s SET a = s.b WHERE checked.k = s.k")
    assert sorted(tuple(row) for row in spark.table("checked").collect()) == [(1, 1), (2, 2)]


def test_hostile_names_and_texts_are_names_and_texts(spark: SparkSession, lw: Attached) -> None:
    spark.sql(
        "CREATE TABLE odd (`a ``'\"; x` STRING, `select` INT) USING delta"
        " TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
    )
    spark.sql("INSERT INTO odd VALUES ('old', 1)")
    spark.conf.set("lakewarden.dialect", "postgres")
    try:
        lw.sql(
            'UPDATE odd AS "x`; DROP TABLE s; --" SET "a `\'""; x" = \'it\'\'s; \\ -- ` "\''
            ' FROM s WHERE "x`; DROP TABLE s; --"."select" = s.k'
            ' AND "x`; DROP TABLE s; --"."a `\'""; x" <> \'\\\''
        )
    finally:
        spark.conf.unset("lakewarden.dialect")
    (row,) = spark.table("odd").collect()
    assert tuple(row) == ("it's; \\ -- ` \"", 1)
    assert spark.table("s").count() == 3


def test_an_unknown_dialect_or_policy_is_refused_before_anything_runs(
    spark: SparkSession, lw: Attached
) -> None:
    for key, value in (("lakewarden.dialect", "oracle"), ("lakewarden.matches", "first")):
        spark.conf.set(key, value)
        try:
            with pytest.raises(UsageError):
                lw.sql("DELETE FROM s USING s AS o WHERE s.k = o.k")
        finally:
            spark.conf.unset(key)
    assert spark.table("s").count() == 3
