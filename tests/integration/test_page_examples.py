"""The Python on the page about upserts, and what of the quickstart needs a metastore, runs on Spark and does what the
page says."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, from_json

import lakewarden
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.daemon.usecases.init import initialise
from support.processes.commands import Cli, caller

pytestmark = pytest.mark.spark

QUICKSTART = Path(__file__).parents[2] / "docs" / "quickstart.md"
GOOD = 12
"""The version of db.sales that the quickstart goes back to."""
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


@contextmanager
def daemon(home: Path) -> Iterator[None]:
    """The daemon of a home, whose one worker does what commands and sessions ask for."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    settings = ("http.port=0", "spark.master=local[1]", "workers.drain=5 s")
    flags = [word for one in settings for word in ("--set", one)]
    with (home / "daemon.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "lakewarden.daemon", "daemon", "--home", str(home), *flags],
            stdout=log,
            stderr=log,
            env=environment,
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(60)


class Reader:
    """Does what stands in the blocks of the quickstart, one after the other."""

    def __init__(self, call: Cli, lake: Path, settings: Path, metastore: str) -> None:
        self.call, self.lake, self.settings, self.metastore = call, lake, settings, metastore
        self.names: dict[str, Any] = {}
        self.said: list[str] = []

    def does(self, language: str, text: str) -> None:
        match language:
            case "toml":
                self.settings.write_text(re.sub(r"thrift://[^\"]*", self.metastore, text), encoding="utf-8")
            case "python":
                exec(text, self.names)  # noqa: S102  # the examples are ours
            case "bash":
                for line in text.splitlines():
                    self.types(shlex.split(line, comments=True))

    def types(self, words: list[str]) -> None:
        (plan,) = re.findall(r"^Plan ([0-9a-f]{16})", "".join(self.said), re.MULTILINE)[-1:] or [""]
        here = {"HASH": plan, "/data/raw/airlines": str(self.lake / "airlines")}
        said = self.call(*(here.get(word, word) for word in words[1:]))
        assert said.code == 0, (words, said)
        self.said.append(said.out)


def test_the_quickstart_goes_on_with_a_metastore(
    spark: SparkSession,
    metastore: EmbeddedMetastore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    home, lake = tmp_path / "home", tmp_path / "lake"
    reader = Reader(caller(home, monkeypatch, capfdbinary), lake, home / "lakewarden.toml", metastore.uri)
    assert reader.call("init").code == 0
    spark.sql(f"CREATE DATABASE db LOCATION '{lake}'")
    for name in ("sales", "stock", "returns"):
        spark.sql(f"CREATE TABLE db.{name} USING parquet AS SELECT id, id % 7 AS day FROM range(100)")
    spark.range(10).write.parquet(str(lake / "airlines"))
    rest = QUICKSTART.read_text(encoding="utf-8").partition("## 3.")[2]
    settings, *others = re.findall(r"```(\w+)\n(.*?)```", rest, re.DOTALL)
    assert [language for language, _ in others] == ["bash", "python", "python", "bash"]
    reader.does(*settings)
    try:
        with daemon(home):
            for language, text in others:
                if "db.daily" in text:
                    writes_until(lake / "sales", GOOD + 1)
                reader.does(language, text)
        listed = reader.call("tables", "list", "db.*", "-o", "json").json
        assert sorted(one["name"] for one in listed) == [
            "db.airlines",
            "db.daily",
            "db.returns",
            "db.sales",
            "db.stock",
        ]
        assert spark.table("db.sales").count() > 100, "undone: the bad load is there again"
    finally:
        if "lw" in reader.names:
            reader.names["lw"].detach()
        spark.sql("DROP DATABASE db CASCADE")


def writes_until(place: Path, version: int) -> None:
    """Somebody appends, and the last load is the bad one."""
    rows = DeltaTable(place).to_pyarrow_table().slice(0, 1)
    while DeltaTable(place).version() < version:
        write_deltalake(place, rows, mode="append")
