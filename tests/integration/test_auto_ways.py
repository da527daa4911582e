"""What `auto` comes to on tables of 70 MB, by what real statements and real reads of them have left on record."""

import base64
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from lakewarden.catalog.formats.port import Commit
from lakewarden.catalog.policy.rows_write import ROWS_WRITE
from lakewarden.catalog.system.port import Fence
from lakewarden.daemon.control.assembly import build_daemon
from lakewarden.daemon.control.cycle import Cycle
from lakewarden.daemon.installation.services import Services, open_services
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.jobs.session.attached import Attached
from support.builders.spark_iceberg import SparkIceberg
from support.cases import mostly_long
from support.processes.commands import Cli

pytestmark = [pytest.mark.spark, pytest.mark.metastore]

ROWS = 1000
MANY = (
    "MERGE INTO {t} USING (SELECT explode(sequence(0, 399)) AS id) s ON {n}.id = s.id "
    "WHEN MATCHED THEN UPDATE SET part = reverse({n}.part)"
)
FEW = "DELETE FROM {{t}} WHERE id = {}"
BESIDE = {"delta": "vector", "iceberg": "position"}


@dataclass
class Busy:
    """A managed table that asks for `auto`, and a managed one that is made from it, again and again."""

    lw: Attached
    services: Services
    cli: Cli
    table: str
    """As statements name it."""
    database: str
    newest: Callable[[], Commit]
    fence: Fence = field(init=False)

    def __post_init__(self) -> None:
        self.fence = self.services.store.raise_fence("test", at_least=1)
        self.register(self.table.rpartition(".")[2])
        self.lw.sql(f"CREATE TABLE {self.database}.sums USING delta AS SELECT sum(id) AS s FROM {self.table}")
        self.register("sums")
        self.sweep()

    def register(self, name: str) -> None:
        said = self.cli("tables", "register", f"{self.database}.{name}")
        assert said.code == 0, said.err

    def read(self, times: int) -> None:
        for _ in range(times):
            self.lw.sql(f"INSERT INTO {self.database}.sums SELECT sum(id) FROM {self.table}")
        self.sweep()

    def sweep(self) -> None:
        """One cycle of a daemon that has just started."""
        parts = build_daemon(self.services, pages=False).parts.cycle.parts
        report = Cycle(replace(parts, require=lambda fence: None)).run(self.fence, may_plan=False)
        assert (report.trouble, report.skipped) == (None, 0)

    def changed(self, text: str) -> tuple[str, str]:
        """Run a statement: in which way its rows were written, and why, which EXPLAIN GOVERNED had said before."""
        statement = text.format(t=self.table, n=self.table.rpartition(".")[2])
        (step,) = self.lw.sql(f"EXPLAIN GOVERNED {statement}").collect()
        self.lw.sql(statement)
        commit = self.newest()
        assert commit.lineage is not None and commit.lineage.rows_write is not None
        way, because = commit.lineage.rows_write, str(commit.lineage.because)
        assert step.notes == f"Rows are written: {way} ({because})."
        told = ("numTargetDeletionVectorsAdded", "numDeletionVectorsAdded", "added-delete-files")
        assert any(int(commit.metrics.get(one, 0)) for one in told) == (way != "rewrite")
        return way, because.removeprefix("auto, as the table asks: ")


@pytest.fixture
def rows(tmp_path: Path) -> str:
    """Of a Parquet file which nothing compresses."""
    bodies = [base64.b64encode(os.urandom(56_250)).decode() for _ in range(ROWS)]
    place = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": range(ROWS), "part": bodies}), place, use_dictionary=False)
    return f"SELECT id, part, CAST(NULL AS TIMESTAMP) AS at FROM parquet.`{place}`"


@pytest.fixture
def busy(
    spark: SparkSession,
    metastore: EmbeddedMetastore,
    metastore_cli: Cli,
    lw: Attached,
    rows: str,
    tmp_path: Path,
) -> Iterator[Callable[[str], Busy]]:
    ice = SparkIceberg(
        spark,
        metastore.uri,
        "iceberg",
        properties=f"'format-version'='2', 'write.parquet.compression-codec'='uncompressed', '{ROWS_WRITE}'='auto'",
    )
    services = open_services(home=tmp_path / "home")

    def made(format_: str) -> Busy:
        table, newest = str(ice), lambda: ice.reader.newest(ice.location, count=1)[0]
        if format_ == "iceberg":
            spark.sql(f"INSERT INTO {ice} {rows}")
        else:
            table, place = f"{ice.database}.big", tmp_path / "big"
            spark.sql(
                f"CREATE TABLE {table} USING delta LOCATION '{place}' TBLPROPERTIES "
                f"('delta.enableDeletionVectors'='true', '{ROWS_WRITE}'='auto') AS {rows}"
            )
            newest = lambda: services.readers[0].newest(place.as_uri(), count=1)[0]
        return Busy(lw, services, metastore_cli, table, ice.database, newest)

    yield made
    spark.sql(f"DROP DATABASE spark_catalog.{ice.database} CASCADE")


@pytest.mark.parametrize("format_", mostly_long(BESIDE, ["delta"]))
def test_auto_goes_by_how_much_is_changed_and_by_how_often_it_is_changed_and_read(
    busy: Callable[[str], Busy], format_: str
) -> None:
    one, beside = busy(format_), BESIDE[format_]
    rates = "within 7 days its rows were changed {} times, and read {} times"
    assert one.changed(MANY) == ("rewrite", rates.format(0, 1))
    share = "its changes took about 40.0% of its rows, and from 30% on files are written anew"
    assert one.changed(FEW.format(1)) == ("rewrite", share)
    way, because = one.changed(FEW.format(2))
    assert way == beside and because.startswith(f"{rates.format(2, 1)}; its changes took about 20.")
    one.read(3)
    told = f"{rates.format(3, 4)}; its changes took about 0.1% of its rows (the median of 3)"
    assert one.changed(FEW.format(3)) == ("rewrite", told)
