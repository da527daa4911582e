"""Delta tables that governed statements make from Iceberg tables: each read is pinned, and on record."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lakewarden
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.lineage.versions import version_of
from lakewarden.catalog.model.lineage_record import LineageRecord, RecordVerdict
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.jobs.session import write_recorder
from lakewarden.jobs.session.attached import Attached
from support.builders.spark_iceberg import SparkIceberg
from support.processes.commands import Cli, command

pytestmark = [pytest.mark.spark, pytest.mark.metastore]


@dataclass
class Shop:
    """An Iceberg table, managed by its name, and a session that makes Delta tables from it."""

    spark: SparkSession
    lw: Attached
    cli: Cli
    home: Path
    raw: SparkIceberg
    table_id: str

    def ids(self, name: str) -> list[int]:
        return sorted(
            row[0] for row in self.spark.sql(f"SELECT id FROM {self.raw.database}.{name}").collect()
        )

    def folder(self, name: str) -> Path:
        detail = self.spark.sql(f"DESCRIBE DETAIL {self.raw.database}.{name}").collect()[0]
        return Path(detail["location"].removeprefix("file:"))

    def record(self, name: str) -> LineageRecord:
        """What the last commit of a Delta table says."""
        (last,) = DeltaReader().newest(canonical(str(self.folder(name))), count=1)
        assert last.lineage is not None and last.lineage_verdict is RecordVerdict.COMPLETE
        return last.lineage

    def read(self, name: str) -> tuple[str | None, str, int | None, str | None]:
        (one,) = self.record(name).inputs
        return one.table_id, one.format, one.version, one.format_id


@pytest.fixture
def shop(
    spark: SparkSession, metastore: EmbeddedMetastore, metastore_cli: Cli, tmp_path: Path
) -> Iterator[Shop]:
    raw = SparkIceberg(spark, metastore.uri, "iceberg", name="raw")
    raw.append(1, 2)
    said = metastore_cli("tables", "register", f"{raw.database}.raw", "-o", "json")
    assert said.code == 0, said.err
    home = tmp_path / "home"
    with lakewarden.attach(spark, home=home, settings={"metastore.uri": metastore.uri}) as lw:
        yield Shop(spark, lw, metastore_cli, home, raw, said.json["table_id"])
    spark.sql(f"DROP DATABASE spark_catalog.{raw.database} CASCADE")


@contextmanager
def between(act: Callable[[], None]) -> Iterator[None]:
    """Let somebody act between the moment when a statement is pinned and its run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write_recorder, "require_wanted", act)
        yield


def test_a_table_made_from_one_says_which_snapshot_it_read_whatever_came_in_between(
    shop: Shop,
) -> None:
    seen, database = shop.raw.seen, shop.raw.database
    query = f"SELECT a.id FROM {shop.raw} a JOIN {shop.raw} b USING (id)"
    with between(lambda: shop.raw.append(3)):
        shop.lw.sql(f"CREATE TABLE {database}.sums USING delta AS {query}")
    assert shop.ids("sums") == [1, 2] and shop.raw.rows() == [1, 2, 3]
    pinned = (shop.table_id, "iceberg", seen.version, seen.format_id)
    assert shop.read("sums") == pinned
    assert shop.cli("tables", "register", f"{database}.sums").code == 0
    shop.lw.sql(f"INSERT INTO {database}.sums SELECT id FROM {shop.raw}")
    assert shop.read("sums") == (*pinned[:2], shop.raw.seen.version, pinned[3])
    swept = command(shop.home, "daemon", "--once", settings={"LAKEWARDEN_HTTP_PORT": "0"})
    assert swept.returncode == 0, swept.stderr
    shown = shop.cli("lineage", "show", f"{database}.sums", "--upstream", "--versions", "-o", "json").json
    edges = {
        (one["input"], one["input_version"], one["output_version"])
        for one in shown["edges"]
        if one["output"] == f"{database}.sums"
    }
    assert edges == {(f"{database}.raw", 1, 0), (f"{database}.raw", 2, 1)}, shown


def test_a_version_that_the_statement_names_is_the_one_on_record(shop: Shop) -> None:
    shop.raw.append(3)
    first = shop.raw.sql(f"SELECT snapshot_id FROM {shop.raw}.snapshots ORDER BY committed_at LIMIT 1")[0][0]
    shop.lw.sql(
        f"CREATE TABLE {shop.raw.database}.old USING delta AS SELECT id FROM {shop.raw} VERSION AS OF {first}"
    )
    assert (shop.ids("old"), shop.read("old")[2]) == ([1, 2], 1)
    shop.lw.sql(
        f"MERGE INTO {shop.raw.database}.old AS t USING (SELECT id FROM {shop.raw}) AS s ON t.id = s.id "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)"
    )
    assert (shop.ids("old"), shop.read("old")[2]) == ([1, 2, 3], 2)
    shop.raw.sql(f"ALTER TABLE {shop.raw} RENAME COLUMN part TO region")
    for number, version in ((1, first), (2, "'main'")):  # from before its columns were changed: as they were
        query = f"SELECT id FROM {shop.raw} VERSION AS OF {version}"
        shop.lw.sql(f"INSERT OVERWRITE {shop.raw.database}.old {query}")
        assert shop.read("old")[2] == number


def test_a_frame_keeps_its_snapshot(shop: Shop) -> None:
    frame = shop.lw.table(str(shop.raw)).select("id")
    shop.raw.append(3)
    shop.spark.sql(f"CREATE TABLE {shop.raw.database}.kept (id BIGINT) USING delta")
    shop.lw.write(frame).append(f"{shop.raw.database}.kept")
    assert (shop.ids("kept"), shop.read("kept")[2]) == ([1, 2], 1)


UNPINNED = {
    "a metadata table": "SELECT snapshot_id AS id FROM {}.snapshots",
    "with options": "SELECT id FROM {} WITH (`split-size` = 1000000)",
}


def test_what_cannot_be_pinned_is_on_record_as_unknown(shop: Shop) -> None:
    for number, query in enumerate(UNPINNED.values()):
        name = f"{shop.raw.database}.odd{number}"
        shop.lw.sql(f"CREATE TABLE {name} USING delta AS {query.format(shop.raw)}")
        assert shop.read(f"odd{number}")[1:3] == ("iceberg", None)
        assert shop.cli("tables", "register", name).code == 0
    (last,) = DeltaReader().newest(canonical(str(shop.folder("odd0"))), count=1)
    assert not version_of(last).known
