"""Governed CREATE TABLE ... AS SELECT of Iceberg tables: one commit, with the record of what they were made from."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

import lakewarden
from lakewarden.catalog.errors import LakewardenError, NotAllowedError, RefusedError, UsageError
from lakewarden.daemon.process.embedded_metastore import EmbeddedMetastore
from lakewarden.jobs.session import write_recorder
from lakewarden.jobs.session.attached import Attached
from support.builders.spark_iceberg import SparkIceberg
from support.processes.commands import Cli, command

pytestmark = [pytest.mark.spark, pytest.mark.metastore]
UNLOCKED = "TBLPROPERTIES ('engine.hive.lock-enabled'='false'{})"


@dataclass
class MadeBySelect(SparkIceberg):
    """A table that a statement of the test makes."""

    def __post_init__(self) -> None:
        """Nothing is made here."""


@dataclass
class Maker:
    """A managed Iceberg table with the rows 1 and 2, and a session that makes others from it."""

    lw: Attached
    cli: Cli
    home: Path
    raw: SparkIceberg

    def made(self, name: str) -> SparkIceberg:
        return MadeBySelect(self.raw.spark, self.raw.uri, "iceberg", name=name, database=self.raw.database)

    def create(self, name: str, query: str, *, more: str = "", clauses: str = "") -> SparkIceberg:
        table = self.made(name)
        self.lw.sql(f"CREATE TABLE {table} USING iceberg {clauses} {UNLOCKED.format(more)} AS {query}")
        return table

    def exists(self, name: str) -> bool:
        return bool(self.raw.sql(f"SHOW TABLES IN iceberg.{self.raw.database} LIKE '{name}'"))


@pytest.fixture
def maker(
    spark: SparkSession, metastore: EmbeddedMetastore, metastore_cli: Cli, tmp_path: Path
) -> Iterator[Maker]:
    raw = SparkIceberg(spark, metastore.uri, "iceberg", name="raw")
    raw.append(1, 2)
    assert metastore_cli("tables", "register", f"{raw.database}.raw").code == 0
    home = tmp_path / "home"
    with lakewarden.attach(spark, home=home, settings={"metastore.uri": metastore.uri}) as lw:
        yield Maker(lw, metastore_cli, home, raw)


def test_a_table_is_made_by_one_commit_that_says_from_what(maker: Maker) -> None:
    query = f"SELECT a.id, a.part FROM {maker.raw} a JOIN {maker.raw} b USING (id)"
    version = maker.raw.seen.version
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write_recorder, "require_wanted", lambda: maker.raw.append(3))
        made = maker.create("sums", query, clauses="PARTITIONED BY (part)")
    assert (made.rows(), maker.raw.rows()) == ([1, 2], [1, 2, 3])
    assert len(list((made.folder / "metadata").glob("*.metadata.json"))) == 1
    (commit,) = made.reader.commits(made.location, after=-1)
    assert commit.version == 1 and commit.lineage is not None and commit.run_id == commit.lineage.run_id
    assert [(one.location, one.version) for one in commit.lineage.inputs] == [(maker.raw.location, version)]
    names = [f"{made.database}.{one}" for one in ("raw", "sums")]
    assert maker.cli("tables", "register", names[1]).code == 0
    swept = command(maker.home, "daemon", "--once", settings={"LAKEWARDEN_HTTP_PORT": "0"})
    assert swept.returncode == 0, swept.stderr
    shown = maker.cli("lineage", "show", names[1], "--upstream", "--versions", "-o", "json").json
    edges = [
        (one["input"], one["input_version"], one["output"], one["output_version"]) for one in shown["edges"]
    ]
    assert (names[0], version, names[1], 1) in edges, shown
    maker.lw.sql(f"INSERT INTO {made} SELECT id + 10, part FROM {made}")
    assert made.rows() == [1, 2, 11, 12]


def test_it_is_made_whole_or_not_at_all(maker: Maker) -> None:
    with pytest.raises(PySparkException, match="no such row"):
        maker.create("broken", f"SELECT id, CAST(raise_error('no such row') AS INT) AS x FROM {maker.raw}")
    with pytest.raises(UsageError, match="x: unknown is not supported until v3. Nothing was made"):
        maker.create("broken", f"SELECT id, NULL AS x FROM {maker.raw}")
    assert not maker.exists("broken")
    empty = maker.create("empty", f"SELECT id FROM {maker.raw} WHERE id > 99")
    (commit,) = empty.reader.commits(empty.location, after=-1)
    assert empty.rows() == [] and commit.lineage is not None


def test_whoever_makes_it_first_has_it(maker: Maker) -> None:
    theirs = maker.made("taken")

    def first() -> None:
        if not maker.exists("taken"):
            maker.raw.sql(f"CREATE TABLE {theirs} USING iceberg {UNLOCKED.format('')} AS SELECT 7L AS id")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write_recorder, "require_wanted", first)
        with pytest.raises((LakewardenError, AnalysisException), match="already exists"):
            maker.create("taken", f"SELECT id FROM {maker.raw}")
    assert theirs.rows() == [7]
    maker.lw.sql(f"CREATE TABLE IF NOT EXISTS {theirs} USING iceberg AS SELECT id FROM {maker.raw}")
    assert theirs.rows() == [7] and len(list(theirs.reader.commits(theirs.location, after=-1))) == 1


def test_what_could_not_be_taken_back_is_refused(maker: Maker) -> None:
    query = f"SELECT id FROM {maker.raw}"
    for more, said in (
        (", 'format-version'='1'", "format version 1"),
        (", 'gc.enabled'='false'", "gc.enabled=false"),
    ):
        with pytest.raises(UsageError, match=said):
            maker.create("odd", query, more=more)
    with pytest.raises(UsageError, match="takes no option snapshot-property.lakewarden.run_id"):
        maker.create("odd", query, clauses="OPTIONS ('snapshot-property.lakewarden.run_id'='x')")
    with pytest.raises(UsageError, match="write.data.path"):
        maker.create("odd", query, more=", 'write.data.path'='/tmp/elsewhere'")
    before = {one: one.stat().st_mtime_ns for one in maker.raw.folder.rglob("*")}
    for place in (maker.raw.folder, maker.raw.folder / "inner", maker.home / "system"):
        with pytest.raises(NotAllowedError):
            maker.create("odd", query, clauses=f"LOCATION '{place.as_uri()}'")
    assert {one: one.stat().st_mtime_ns for one in maker.raw.folder.rglob("*")} == before
    maker.raw.spark.conf.set("spark.wap.id", "7")
    try:
        with pytest.raises(RefusedError, match="rows written to .*odd would not be in it"):
            maker.create("odd", query)
    finally:
        maker.raw.spark.conf.unset("spark.wap.id")
    assert not maker.exists("odd")
