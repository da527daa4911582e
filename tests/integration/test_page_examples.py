"""What stands on the pages about upserts and governed writes, and in the quickstart from its third section on, runs on
Spark and does what the page says. The gateway's page is run by test_gateway.py and test_gateway_users.py, that of
streams by test_streams.py."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, from_json

import lakewarden
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.system.port import TABLES
from lakewarden.daemon.installation.services import open_services
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.daemon.usecases.init import initialise
from support.processes.scripts import fresh_environment, typed
from support.reference.page_blocks import DOCS, code
from support.servers.metastores import without_system_tables

pytestmark = pytest.mark.spark

CUSTOMERS = "id bigint, name string, changed_at int"
ORDERS = "id bigint, amount int, day int"
STATEMENT = re.compile(r"^    (lw\.sql\(.*\))$", re.MULTILINE)
"""A line of code outside of blocks."""
PLANNED = re.compile(r"^Plan ([0-9a-f]{16}): it can be applied", re.MULTILINE)


class Page:
    """A page's examples, and the names they have in common."""

    def __init__(self, name: str, session: SparkSession, folder: Path) -> None:
        self.spark, self._folder = session, folder
        self.names: dict[str, Any] = {
            "spark": session,
            "lakewarden": lakewarden,
            "col": col,
            "from_json": from_json,
        }
        self.examples = code(name, "python")

    def run(self, words: str) -> None:
        """The one example in which these words stand."""
        (example,) = (one for one in self.examples if words in one)
        self.do(example)

    def do(self, example: str) -> None:
        runnable = example.replace("hdfs://nn:9000", self._folder.as_uri())
        runnable = runnable.replace("checkpoint=...", f"checkpoint={str(self._folder / 'made')!r}")
        exec(runnable, self.names)  # noqa: S102  # the examples are ours

    def rows(self, *rows: tuple[Any, ...], schema: str = CUSTOMERS) -> DataFrame:
        return self.spark.createDataFrame(list(rows), schema)

    def held(self, table: str = "shop.customers") -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in self.spark.table(table).collect())


@pytest.fixture
def page(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Page]]:
    monkeypatch.setenv("LAKEWARDEN_HOME", str(tmp_path / "home"))
    services = open_services(home=tmp_path / "home", flags={})
    initialise(services, services.user)
    session = spark.newSession()
    for database in ("shop", "raw"):
        session.sql(f"CREATE DATABASE {database} LOCATION '{tmp_path}/{database}'")
    made: list[Page] = []

    def of(name: str) -> Page:
        made.append(Page(name, session, tmp_path))
        return made[-1]

    try:
        yield of
    finally:
        for one in made:
            if "lw" in one.names:
                one.names["lw"].detach()
        for database in ("shop", "raw"):
            session.sql(f"DROP DATABASE {database} CASCADE")


@pytest.mark.long
def test_the_upserts_of_the_page_run(page: Callable[..., Page]) -> None:
    upserts = page("upsert")
    upserts.rows((1, "ana", 1), (2, "bo", 1)).write.format("delta").saveAsTable("shop.customers")
    upserts.names["changes"] = upserts.rows((2, "Bo", 2), (3, "cy", 2))
    upserts.run("done.rows_inserted")
    done = upserts.names["done"]
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (1, 1, 0)
    assert upserts.held() == [(1, "ana", 1), (2, "Bo", 2), (3, "cy", 2)]
    for before in (False, True):
        upserts.run("done.done_before")
        assert upserts.names["done"].done_before is before
    upserts.names["changes"] = upserts.rows((3, "Cy", 3), (4, "di", 3), (4, "di", 3))
    upserts.run('idCols="id"')
    assert upserts.held() == [(1, "ana", 1), (2, "Bo", 2), (3, "Cy", 3), (4, "di", 3)]
    upserts.spark.sql("DROP TABLE shop.customers")
    unlocked = "TBLPROPERTIES ('engine.hive.lock-enabled'='false')"
    upserts.spark.sql(f"CREATE TABLE iceberg.shop.customers ({CUSTOMERS}) USING iceberg {unlocked}")
    for ts in (4, 5):
        upserts.names["changes"] = upserts.rows((1, "old", ts - 1), (1, "ana", ts), (2, "bo", ts))
        upserts.run("done.rows_written")
    assert (upserts.names["done"].rows_written, upserts.names["done"].rows_updated) == (2, None)
    assert upserts.held("iceberg.shop.customers") == [(1, "ana", 5), (2, "bo", 5)]
    upserts.spark.sql("DROP TABLE iceberg.shop.customers PURGE")


@pytest.mark.long
def test_the_stream_and_the_change_data_of_the_page_run(page: Callable[..., Page]) -> None:
    upserts = page("upsert")
    spark, names = upserts.spark, upserts.names
    names["lw"] = lakewarden.attach(spark)
    upserts.rows((1, "ana", 1), (2, "bo", 1)).write.format("delta").saveAsTable("shop.customers")
    changes = upserts.rows((1, "ana", 3), (1, "Ana", 4), (2, "late", 0))
    changes.write.format("delta").saveAsTable("raw.changes")
    upserts.run("upsert_stream(\n")
    names["query"].processAllAvailable()
    names["query"].stop()
    assert upserts.held() == [(1, "Ana", 4), (2, "bo", 1)]

    spark.sql("CREATE TABLE shop.mirror (id BIGINT, name STRING) USING delta")
    spark.sql(
        "CREATE TABLE raw.fed (id BIGINT, name STRING) USING delta "
        "TBLPROPERTIES (delta.enableChangeDataFeed = true)"
    )
    spark.sql("INSERT INTO raw.fed VALUES (7, 'gil')")
    feed = spark.read.option("readChangeFeed", True).option("startingVersion", 1).table("raw.fed")
    raw = upserts.rows((envelope(3, "cy"),), schema="value string")
    raw.write.format("delta").saveAsTable("raw.kafka")
    names |= {
        "raw": spark.readStream.table("raw.kafka"),
        "feed": feed,
        "changes": upserts.rows((2, "bo", 5, "d"), schema=f"{CUSTOMERS}, action string"),
    }
    upserts.run("from_json")
    upserts.run('cdc="op"')
    for query in spark.streams.active:
        query.processAllAvailable()
        query.stop()
    assert upserts.held("shop.mirror") == [(7, "gil")]
    assert upserts.held() == [(1, "Ana", 4), (3, "cy", None)]
    assert len(upserts.examples) == 7, "each is run by one of these two tests"


def test_the_governed_writes_of_the_page_run(page: Callable[..., Page], tmp_path: Path) -> None:
    writes = page("governed-writes")
    attached, own_session, sql, frames = writes.examples
    assert code("quickstart", "python")[0].startswith(own_session), "it is run with the quickstart"
    orders = writes.rows((1, 0, 1), (2, 100, 1), (3, 150, 2), (4, 200, 2), schema=ORDERS)
    orders.write.format("delta").saveAsTable("shop.orders")
    days = writes.rows((8, 8, 1), (9, 9, 2), schema=ORDERS)
    days.write.format("delta").partitionBy("day").saveAsTable("shop.days")
    writes.do(attached)
    writes.do(sql)
    assert writes.held("shop.big") == [(3, 150, 2), (4, 200, 2)]
    writes.do(frames)
    assert [one[0] for one in writes.held("shop.big")] == [1, 2, 2, 3, 3, 4, 4]
    assert writes.held("shop.days") == [(1, 0, 1), (2, 100, 1), (9, 9, 2)]
    *_, last = commits(tmp_path / "shop" / "big")
    assert last.lineage is not None and last.lineage.user_metadata == "ticket 42"
    assert [one.version for one in last.lineage.inputs] == [0]


@pytest.mark.long
def test_the_statement_over_several_tables_of_the_page_runs(
    page: Callable[..., Page], tmp_path: Path
) -> None:
    writes = page("governed-writes")
    rows = writes.rows((1, "2019-12-31"), (2, "2020-01-01"), schema="id bigint, day string")
    rows.write.format("delta").saveAsTable("raw.orders")
    items = writes.rows((1, 10), (1, 11), (2, 20), schema="order_id bigint, item bigint")
    items.write.format("delta").saveAsTable("raw.items")
    typed("lakewarden tables register raw/orders raw/items", tmp_path)
    writes.names["lw"] = lakewarden.attach(writes.spark)
    writes.spark.sql("USE raw")
    (statement,) = STATEMENT.findall((DOCS / "governed-writes.md").read_text(encoding="utf-8"))
    writes.do(statement)
    assert writes.held("raw.orders") == [(2, "2020-01-01")] and writes.held("raw.items") == [(2, 20)]


@pytest.mark.long
def test_the_quickstart_with_a_metastore_and_parquet_to_the_undo_of_a_bad_load(
    spark: SparkSession, metastore: EmbeddedMetastore, tmp_path: Path
) -> None:
    """In a plain session of its own, as `spark_config` starts it, beside a daemon with a worker of its own."""
    (settings,), (converts, registers, undoes) = code("quickstart", "toml"), code("quickstart", "bash")[-3:]
    home, sales, daily = tmp_path / "home", tmp_path / "db" / "sales", tmp_path / "db" / "daily"
    spark.sql(f"CREATE DATABASE db LOCATION '{tmp_path}/db'")
    for name in ("sales", "stock", "returns"):
        rows = spark.range(6).selectExpr("id", "id % 2 AS day")
        rows.write.format("parquet").saveAsTable(f"db.{name}")
    spark.range(3).write.parquet(f"{tmp_path}/raw/airlines")
    home.mkdir()
    uri = without_system_tables(metastore.uri)
    (home / "lakewarden.toml").write_text(settings.replace("thrift://metastore.example:9083", uri))
    typed("lakewarden init", tmp_path)
    try:
        with daemon(tmp_path), python(tmp_path) as says:
            typed(here(converts, tmp_path), tmp_path)
            while (version := DeltaTable(sales).version()) < GOOD:
                write_deltalake(sales, pa.table({"id": [version], "day": [version % 2]}), mode="append")
            attach, derive, load = code("quickstart", "python")
            says(attach)
            says(derive)
            typed(here(registers, tmp_path), tmp_path)
            owners = {row.name: row.owner for row in open_services(home=home).store.rows(TABLES).all()}
            assert {"db.sales": "ana", "db.stock": "bo", "db.returns": "bo"}.items() <= owners.items()
            assert {"db.airlines", "db.daily"} <= owners.keys()
            clean = counted(sales), counted(daily)
            says(load)
            bad = counted(sales), counted(daily)
            assert bad[0] == 2 * clean[0] and bad != clean
            (made, *_, last) = commits(daily)
            assert [read(made), read(last)] == [[GOOD], [GOOD + 1]]
            history, plan, apply, lineage, undo = here(undoes, tmp_path).splitlines()
            assert str(GOOD) in typed(history, tmp_path)
            (hash_,) = PLANNED.findall(typed(plan, tmp_path))
            typed(apply.replace("HASH", hash_), tmp_path)
            assert (counted(sales), counted(daily)) == clean
            assert "db.daily" in typed(lineage, tmp_path)
            typed(undo.replace("HASH", hash_), tmp_path)
            assert (counted(sales), counted(daily)) == bad
    finally:
        spark.sql("DROP DATABASE db CASCADE")


GOOD = 12
"""The version that the page goes back to."""


def counted(place: Path) -> int:
    """How many rows of sales there are, or were when the days were counted."""
    rows = DeltaTable(place).to_pyarrow_table()
    return sum(rows.column("n").to_pylist()) if "n" in rows.column_names else rows.num_rows


def read(commit: Commit) -> list[int | None]:
    assert commit.lineage is not None
    return [one.version for one in commit.lineage.inputs]


def commits(place: Path) -> list[Commit]:
    return list(DeltaReader().commits(place.as_uri(), after=-1))


def here(commands: str, folder: Path) -> str:
    return commands.replace(".venv/bin/", "").replace("/data/", f"{folder}/")


TYPIST = """
import sys
names = {}
for lines in sys.stdin:
    exec(eval(lines), names)
    print("done", flush=True)
"""


@contextmanager
def python(folder: Path) -> Iterator[Callable[[str], None]]:
    """Somebody at a Python that knows only its home: what is typed there is done when the call returns."""
    more = {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "PYSPARK_SUBMIT_ARGS": f"--master local[1] {os.environ.get('PYSPARK_SUBMIT_ARGS', 'pyspark-shell')}",
    }
    log = folder / "python.log"
    with (
        log.open("w", encoding="utf-8") as output,
        subprocess.Popen(
            [sys.executable, "-c", TYPIST],
            env=fresh_environment(folder) | more,
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
        ) as process,
    ):
        asked, answers = process.stdin, process.stdout
        assert asked is not None and answers is not None

        def says(lines: str) -> None:
            print(repr(lines), file=asked, flush=True)
            assert answers.readline() == "done\n", log.read_text(encoding="utf-8")

        yield says
        says("lw.detach()")


@contextmanager
def daemon(folder: Path) -> Iterator[None]:
    """`lakewarden daemon` as a process, which leads, until the end."""
    file = folder / "daemon.log"
    with file.open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            ["lakewarden", "daemon", "--set", "sweep.interval=1 s"],
            env=fresh_environment(folder), cwd=folder, stderr=log,
        )  # fmt: skip
        try:
            while '"leading"' not in file.read_text(encoding="utf-8"):
                assert process.poll() is None, file.read_text(encoding="utf-8")
                time.sleep(0.1)
            yield
        finally:
            process.terminate()
            assert process.wait(60) == 0


def envelope(number: int, name: str) -> str:
    after = {"id": number, "name": name}
    return json.dumps({"payload": {"before": None, "after": after, "op": "c", "ts_ms": 1}})
