"""TPC-H's refresh functions by governed SQL, at scale 0.1: new orders by UPSERT, old ones away by DELETE ... USING."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

import lakewarden
from lakewarden.catalog.registry.register import register
from lakewarden.daemon.callers import real_user
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.usecases.init import initialise
from lakewarden.jobs.session.attached import Attached
from support.builders.callers import actor
from support.builders.tpch import KEYS, RF1, RF2, load

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.usefixtures("compiled_queries")]

SCALE = 0.1


@dataclass(frozen=True)
class Shop:
    """The tables, loaded once; the tests of this module go on from one another."""

    spark: SparkSession
    lw: Attached
    database: str
    orders: int

    def run(self, statement: str) -> Row:
        row: Row = self.lw.sql(statement.format(db=self.database)).collect()[0]
        return row

    def table(self, name: str, version: int | None = None) -> DataFrame:
        of = "" if version is None else f" VERSION AS OF {version}"
        return self.spark.sql(f"SELECT * FROM {self.database}.{name}{of}")

    def lines(self, name: str) -> int:
        return self.table(name).count()


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    folder, database = tmp_path_factory.mktemp("tpch"), f"tpch_{uuid.uuid4().hex[:10]}"
    services = open_services(home=folder / "home", flags={})
    initialise(services, services.user)
    spark.sql(f"CREATE DATABASE {database}")
    orders = load(spark, database, folder, SCALE)
    for name in KEYS:
        place = Path(folder / "delta" / name)
        register(services.registry, str(place), actor=actor(real_user()), name=f"{database}.{name}")
    with lakewarden.attach(spark, home=services.settings.home) as lw:
        yield Shop(spark, lw, database, orders)
    spark.sql(f"DROP DATABASE {database} CASCADE")


def same(one: DataFrame, other: DataFrame) -> bool:
    return one.exceptAll(other).isEmpty() and other.exceptAll(one).isEmpty()


def test_new_orders_come_in_once_however_often_they_are_brought(shop: Shop) -> None:
    for name, statement in RF1.items():
        new, before = shop.lines(f"new_{name}"), shop.lines(name)
        first, again = shop.run(statement), shop.run(statement)
        assert new >= shop.orders
        assert (first.num_inserted_rows, first.num_updated_rows) == (new, 0)
        assert (again.num_inserted_rows, again.num_updated_rows) == (0, new)
        assert shop.lines(name) == before + new
        assert same(shop.table(name), shop.table(name, 0).unionAll(shop.table(f"new_{name}")))


def test_old_orders_go_with_their_lines(shop: Shop) -> None:
    gone = [row.k for row in shop.table("gone").collect()]
    for name, statement in RF2.items():
        key = KEYS[name].partition(",")[0]
        before = shop.table(name, 2)
        expected = before.where(~before[key].isin(gone))
        deleted = shop.run(statement)
        assert deleted.num_deleted_rows == before.where(before[key].isin(gone)).count() >= shop.orders
        assert (deleted.num_updated_rows, deleted.num_inserted_rows) == (0, 0)
        assert same(shop.table(name), expected)


def test_what_a_refresh_did_is_rolled_back_exactly(shop: Shop) -> None:
    for name in KEYS:
        shop.run(f"ROLLBACK TABLE {{db}}.{name} TO VERSION 2")
        assert same(shop.table(name), shop.table(name, 2))
        shop.run(f"ROLLBACK TABLE {{db}}.{name} TO VERSION 0")
        assert same(shop.table(name), shop.table(name, 0))
