"""The Python on the page about upserts runs on Spark and does what the page says."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, from_json

import lakewarden
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.usecases.init import initialise

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[2] / "docs" / "upsert.md"
CUSTOMERS = "id bigint, name string, changed_at int"


class Page:
    """The page's examples, by what stands in them, and the names they have in common."""

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self.spark, self._folder = session, folder
        self.names: dict[str, Any] = {
            "spark": session,
            "lakewarden": lakewarden,
            "col": col,
            "from_json": from_json,
        }
        text = PAGE.read_text(encoding="utf-8").replace("hdfs://nn:9000", folder.as_uri())
        self.examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)

    def run(self, words: str) -> None:
        (example,) = (one for one in self.examples if words in one)
        runnable = example.replace("checkpoint=...", f"checkpoint={str(self._folder / 'made')!r}")
        exec(runnable, self.names)  # noqa: S102  # the examples are ours

    def rows(self, *rows: tuple[Any, ...], schema: str = CUSTOMERS) -> DataFrame:
        return self.spark.createDataFrame(list(rows), schema)

    def held(self, table: str = "shop.customers") -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in self.spark.table(table).collect())


@pytest.fixture
def page(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    monkeypatch.setenv("LAKEWARDEN_HOME", str(tmp_path / "home"))
    services = open_services(home=tmp_path / "home", flags={})
    initialise(services, services.user)
    session = spark.newSession()
    for database in ("shop", "raw"):
        session.sql(f"CREATE DATABASE {database} LOCATION '{tmp_path}/{database}'")
    made = Page(session, tmp_path)
    try:
        yield made
    finally:
        if "lw" in made.names:
            made.names["lw"].detach()
        for database in ("shop", "raw"):
            session.sql(f"DROP DATABASE {database} CASCADE")


def test_the_upserts_of_the_page_run(page: Page) -> None:
    page.rows((1, "ana", 1), (2, "bo", 1)).write.format("delta").saveAsTable("shop.customers")
    page.names["changes"] = page.rows((2, "Bo", 2), (3, "cy", 2))
    page.run("done.rows_inserted")
    done = page.names["done"]
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (1, 1, 0)
    assert page.held() == [(1, "ana", 1), (2, "Bo", 2), (3, "cy", 2)]
    for before in (False, True):
        page.run("done.done_before")
        assert page.names["done"].done_before is before
    page.names["changes"] = page.rows((3, "Cy", 3), (4, "di", 3), (4, "di", 3))
    page.run('idCols="id"')
    assert page.held() == [(1, "ana", 1), (2, "Bo", 2), (3, "Cy", 3), (4, "di", 3)]


def test_the_stream_and_the_change_data_of_the_page_run(page: Page) -> None:
    page.names["lw"] = lakewarden.attach(page.spark)
    page.rows((1, "ana", 1), (2, "bo", 1)).write.format("delta").saveAsTable("shop.customers")
    page.rows((1, "ana", 3), (1, "Ana", 4), (2, "late", 0)).write.format("delta").saveAsTable("raw.changes")
    page.run("upsert_stream(\n")
    page.names["query"].processAllAvailable()
    page.names["query"].stop()
    assert page.held() == [(1, "Ana", 4), (2, "bo", 1)]

    page.spark.sql("CREATE TABLE shop.mirror (id BIGINT, name STRING) USING delta")
    page.spark.sql(
        "CREATE TABLE raw.fed (id BIGINT, name STRING) USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    page.spark.sql("INSERT INTO raw.fed VALUES (7, 'gil')")
    feed = page.spark.read.option("readChangeFeed", True).option("startingVersion", 1).table("raw.fed")
    raw = page.rows((envelope(3, "cy"),), schema="value string")
    raw.write.format("delta").saveAsTable("raw.kafka")
    page.names |= {
        "raw": page.spark.readStream.table("raw.kafka"),
        "feed": feed,
        "changes": page.rows((2, "bo", 5, "d"), schema=f"{CUSTOMERS}, action string"),
    }
    page.run("from_json")
    page.run('cdc="op"')
    for query in page.spark.streams.active:
        query.processAllAvailable()
        query.stop()
    assert page.held("shop.mirror") == [(7, "gil")]
    assert page.held() == [(1, "Ana", 4), (3, "cy", None)]


def test_every_example_is_among_them() -> None:
    assert PAGE.read_text(encoding="utf-8").count("```python\n") == 6


def envelope(number: int, name: str) -> str:
    after = {"id": number, "name": name}
    return json.dumps({"payload": {"before": None, "after": after, "op": "c", "ts_ms": 1}})
