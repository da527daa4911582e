"""UPDATE ... FROM, DELETE ... USING and upserts of tables with generated, identity, default, partition and mapped
columns."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

import lakewarden
from lakewarden.daemon.callers import real_user
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.usecases.init import initialise
from lakewarden.jobs.session.attached import Attached
from support.cases import mostly_long

pytestmark = pytest.mark.spark

UPDATE = "UPDATE {t} AS t FROM {s} AS s SET v = s.v WHERE t.k = s.k"
DELETE = "DELETE FROM {t} AS t USING {s} AS s WHERE t.k = s.k"
UPSERT = "UPSERT INTO {t} (k, v) ON (k) SELECT k, v FROM {s}"
SOURCE = "SELECT * FROM VALUES (2, 21), (3, 31) AS s(k, v)"


@dataclass(frozen=True, kw_only=True)
class Feature:
    """How a table is made with the rows k = 1, 2 and v = 10, 20 in it, and what it holds after each of the deeds."""

    columns: str
    creation: str = ""
    fill: str = "INSERT INTO {t} (k, v) VALUES (1, 10), (2, 20)"
    asked: str = "k, v"
    updated: tuple[tuple[Any, ...], ...] = ((1, 10), (2, 21))
    deleted: tuple[tuple[Any, ...], ...] = ((1, 10),)
    upserted: tuple[tuple[Any, ...], ...] = ((1, 10), (2, 21), (3, 31))


FEATURES = {
    "generated columns": Feature(
        columns="k INT, v INT, g INT GENERATED ALWAYS AS (v * 2)",
        asked="k, v, g",
        updated=((1, 10, 20), (2, 21, 42)),
        deleted=((1, 10, 20),),
        upserted=((1, 10, 20), (2, 21, 42), (3, 31, 62)),
    ),
    "a generated partition column": Feature(
        columns="k INT, v INT, g INT GENERATED ALWAYS AS (CAST(v / 10 AS INT))",
        creation="PARTITIONED BY (g)",
        asked="k, v, g",
        updated=((1, 10, 1), (2, 21, 2)),
        deleted=((1, 10, 1),),
        upserted=((1, 10, 1), (2, 21, 2), (3, 31, 3)),
    ),
    "an identity column": Feature(
        columns="i BIGINT GENERATED ALWAYS AS IDENTITY, k INT, v INT",
        asked="k, v, i IS NOT NULL AS numbered",
        updated=((1, 10, True), (2, 21, True)),
        deleted=((1, 10, True),),
        upserted=((1, 10, True), (2, 21, True), (3, 31, True)),
    ),
    "default columns": Feature(
        columns="k INT, v INT, d STRING DEFAULT 'new'",
        creation="TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
        fill="INSERT INTO {t} VALUES (1, 10, 'old'), (2, 20, 'old')",
        asked="k, v, d",
        updated=((1, 10, "old"), (2, 21, "old")),
        deleted=((1, 10, "old"),),
        upserted=((1, 10, "old"), (2, 21, "old"), (3, 31, "new")),
    ),
    "partitions": Feature(columns="k INT, v INT", creation="PARTITIONED BY (k)"),
    "a partition column that is set": Feature(columns="k INT, v INT", creation="PARTITIONED BY (v)"),
    "mapped columns": Feature(
        columns="k INT, v INT, `odd name;` INT",
        creation="TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        asked="k, v, `odd name;`",
        updated=((1, 10, None), (2, 21, None)),
        deleted=((1, 10, None),),
        upserted=((1, 10, None), (2, 21, None), (3, 31, None)),
    ),
}


@dataclass(frozen=True)
class Lake:
    spark: SparkSession
    lw: Attached
    database: str

    def made(self, feature: Feature) -> str:
        name = f"{self.database}.t{uuid.uuid4().hex[:8]}"
        self.spark.sql(f"CREATE TABLE {name} ({feature.columns}) USING delta {feature.creation}")
        for statement in feature.fill.split("; "):
            self.spark.sql(statement.format(t=name))
        return name

    def run(self, statement: str, table: str) -> Row:
        (row,) = self.lw.sql(statement.format(t=table, s=f"{self.database}.s")).collect()
        assert isinstance(row, Row)
        return row

    def rows(self, table: str, asked: str = "k, v") -> tuple[tuple[Any, ...], ...]:
        return tuple(
            tuple(row) for row in self.spark.sql(f"SELECT {asked} FROM {table} ORDER BY 1").collect()
        )


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    home: Path = tmp_path_factory.mktemp("features") / "home"
    initialise(open_services(home=home), real_user())
    database = f"features_{uuid.uuid4().hex[:8]}"
    spark.sql(f"CREATE DATABASE {database}")
    spark.sql(f"CREATE TABLE {database}.s USING delta AS {SOURCE}")
    with lakewarden.attach(spark, home=home) as lw:
        yield Lake(spark, lw, database)
    spark.sql(f"DROP DATABASE {database} CASCADE")


@pytest.mark.parametrize("name", mostly_long(FEATURES, ["generated columns"]))
def test_every_change_of_a_table_with_a_feature_does_what_it_says(lake: Lake, name: str) -> None:
    feature = FEATURES[name]
    table = lake.made(feature)
    for statement, expected, counted in (
        (UPDATE, feature.updated, (1, 0, 0)),
        (UPSERT, feature.upserted, (1, 0, 1)),
        (DELETE, feature.deleted, (0, 2, 0)),
    ):
        done = lake.run(statement, table)
        assert lake.rows(table, feature.asked) == expected, statement
        told = (done["num_updated_rows"], done["num_deleted_rows"], done["num_inserted_rows"])
        assert told == counted, statement
    upserted = lake.lw.upsert(
        lake.spark.sql("SELECT * FROM VALUES (1, 11), (3, 31) AS s(k, v)"), table, keys="k"
    )
    assert (upserted.rows_updated, upserted.rows_inserted) == (1, 1)
    assert lake.rows(table) == ((1, 11), (3, 31))
