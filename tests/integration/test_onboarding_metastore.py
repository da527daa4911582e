"""Whole databases of a real Hive metastore come under management by a pattern of names."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lakewarden.catalog.storage.file_store import canonical
from support.processes.commands import Cli

pytestmark = [pytest.mark.spark, pytest.mark.metastore]


@pytest.fixture(scope="module", autouse=True)
def databases(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two databases: managed and external Delta tables, and what is none."""
    outside = tmp_path_factory.mktemp("outside") / "a b"
    for statement in (
        "CREATE DATABASE onboard",
        "CREATE DATABASE onboard_other",
        "CREATE TABLE onboard.orders (id INT) USING delta",
        f"CREATE TABLE onboard.events (id INT) USING delta LOCATION '{outside}'",
        f"CREATE TABLE onboard.percent (id INT) USING delta LOCATION '{outside.parent}/50%20off'",
        "CREATE TABLE onboard.raw (id INT) USING parquet",
        "CREATE TABLE onboard.hive_rows (id INT) STORED AS PARQUET",
        "CREATE VIEW onboard.seen AS SELECT * FROM onboard.orders",
        "CREATE TABLE onboard_other.orders (id INT) USING delta",
    ):
        spark.sql(statement)
    return outside


def test_a_pattern_of_names_means_the_delta_tables_of_a_database(metastore_cli: Cli, databases: Path) -> None:
    said = metastore_cli("tables", "register", "onboard.*", "-o", "json")
    assert said.code == 0, said.err
    assert {row["name"]: row["outcome"] for row in said.json} == {
        "onboard.events": "registered",
        "onboard.orders": "registered",
        "onboard.percent": "registered",
    }
    places = {row["name"]: row["location"] for row in said.json}
    assert places["onboard.events"] == canonical(str(databases))
    assert places["onboard.percent"] == canonical(str(databases.parent / "50%20off"))
    assert all(row["state"] == "active" and row["version"] == 0 for row in said.json)
    again = metastore_cli("tables", "register", "Onboard.O*", str(databases), "-o", "json")
    assert [(row["name"], row["outcome"]) for row in again.json] == [
        ("onboard.orders", "already managed"),
        ("onboard.events", "already managed"),
    ]


def test_every_database_may_be_meant_at_once(metastore_cli: Cli) -> None:
    said = metastore_cli("tables", "register", "onboard*.orders", "-o", "json")
    assert [(row["name"], row["outcome"]) for row in said.json] == [
        ("onboard.orders", "registered"),
        ("onboard_other.orders", "registered"),
    ]


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("nobody.*", "Nothing matches nobody.*"),
        ("nobody.orders", "has no table nobody.orders"),
        ("onboard.seen", "has no location"),
        ("onboard.raw", "is not a table of a format"),
        ("onboard.hive_rows", "is not a table of a format"),
    ],
)
def test_what_is_no_such_table_is_refused(metastore_cli: Cli, where: str, sentence: str) -> None:
    said = metastore_cli("tables", "register", where, "onboard.orders", "-o", "json")
    assert said.code == 3
    assert [row["outcome"] for row in said.json] == ["refused", "registered"]
    assert sentence in said.json[0]["why"]
