"""What a rollback would do to the rows of a table, compared on Spark: as a multiset, by key, across schemas."""

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakewarden.catalog.clock import SystemClock
from lakewarden.catalog.errors import ExecutionError, PreconditionError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.iceberg.reader import IcebergReader
from lakewarden.catalog.formats.port import TableReader
from lakewarden.catalog.storage.file_store import StorageOptions, canonical
from lakewarden.jobs.engines.delta.engine import DeltaEngine
from lakewarden.jobs.engines.iceberg.engine import IcebergEngine
from lakewarden.jobs.engines.iceberg.java_tables import opened
from lakewarden.jobs.engines.spark.names import hadoop_path, table_at
from lakewarden.jobs.runs.port import Engine
from lakewarden.jobs.runs.row_diff import DiffRequest, KeyCounts, RowDiff, SampleRow
from support.builders.equality_deletes import delete_by_equality
from support.builders.spark_iceberg import SparkIceberg, iceberg_catalogs
from support.cases import mostly_long
from support.servers.spark import set_to

pytestmark = pytest.mark.spark
VECTORS = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
MAPPED = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"
CATALOG = "diffs"
_NUMBERS = itertools.count()


@dataclass
class Table:
    """A table of its own, by statements with `{t}` for its name and `{using}` for its format."""

    spark: SparkSession
    engine: Engine
    reader: TableReader
    location: str
    sql: str

    def does(self, *statements: str) -> None:
        for one in statements:
            self.spark.sql(one.replace("{t}", self.sql).replace("{using}", f"USING {self.engine.format}"))

    def head(self) -> int:
        latest = self.reader.probe(self.location, seen=None).latest
        assert latest is not None
        return latest

    def rows(self, version: int) -> "Counter[Any]":
        return Counter(
            tuple(row)
            for row in self.spark.sql(f"SELECT * FROM {self.sql} VERSION AS OF {version}").collect()
        )

    def diff(self, target: int, *keys: str, samples: int = 10) -> RowDiff:
        request = DiffRequest(
            name="db.t", location=self.location, head=self.head(), target=target, keys=keys, samples=samples
        )
        return self.engine.row_diff(request)


@pytest.fixture
def delta(spark: SparkSession, tmp_path: Path) -> Table:
    engine = DeltaEngine(lambda: spark, storage=lambda _: StorageOptions(), clock=SystemClock())
    location = canonical(str(tmp_path / "a table, 100%"))
    return Table(spark, engine, DeltaReader(), location, table_at(location))


@pytest.fixture
def iceberg(spark: SparkSession, tmp_path: Path) -> Iterator[Table]:
    """In Hadoop's layout."""
    engine = IcebergEngine(lambda: spark, storage=lambda _: StorageOptions(), heads=lambda _: None)
    catalog = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "hadoop",
        ".warehouse": f"file:{tmp_path}",
    }
    named = f"{CATALOG}{next(_NUMBERS)}"  # a session keeps a catalog as it first was
    confs = {f"spark.sql.catalog.{named}{key}": value for key, value in catalog.items()}
    with set_to(spark, {**confs, f"spark.sql.catalog.{named}.cache-enabled": "false"}):
        location = canonical(str(tmp_path / "db" / "t"))
        yield Table(spark, engine, IcebergReader(), location, f"{named}.db.t")


@pytest.fixture(params=["delta", pytest.param("iceberg", marks=pytest.mark.long)])
def table(request: pytest.FixtureRequest) -> Table:
    found: Table = request.getfixturevalue(request.param)
    return found


def shown(rows: tuple[SampleRow, ...]) -> "Counter[tuple[str | None, ...]]":
    return Counter({tuple(value for _, value in row.values): row.times for row in rows})


@pytest.mark.few(1)
def test_equal_rows_count_as_often_as_they_are_there(table: Table) -> None:
    table.does(
        "CREATE TABLE {t} (id BIGINT, name STRING) {using}",
        "INSERT INTO {t} VALUES (1, 'a'), (1, 'a'), (2, NULL), (3, 'c')",
        "INSERT OVERWRITE {t} VALUES (1, 'a'), (1, 'a'), (1, 'a'), (1, 'a'), (2, NULL), (4, 'd')",
    )
    found = table.diff(1)
    assert (found.rows_head, found.rows_target, found.goes, found.comes) == (6, 4, 3, 1)
    (sample,) = found.samples
    assert shown(sample.goes) == {("1", "a"): 2, ("4", "d"): 1}
    assert shown(sample.comes) == {("3", "c"): 1}
    none = table.diff(1, samples=0)
    assert (none.goes, none.comes, none.samples) == (3, 1, ())


@pytest.mark.long
def test_rows_that_deletion_vectors_take_away_come_back_and_compaction_is_no_difference(delta: Table) -> None:
    table = delta
    table.does(
        f"CREATE TABLE {{t}} (id BIGINT) {{using}} {VECTORS}",
        "INSERT INTO {t} SELECT id FROM range(0, 100, 1, 1)",
        "INSERT INTO {t} SELECT id FROM range(100, 200, 1, 1)",
        "DELETE FROM {t} WHERE id % 10 = 3",
        "DELETE FROM {t} WHERE id = 150",
    )
    found = table.diff(2)
    assert (found.goes, found.comes) == (0, 21)
    found = table.diff(3)
    assert (found.goes, found.comes) == (0, 1)
    table.does("OPTIMIZE {t}")
    found = table.diff(4)
    assert (found.goes, found.comes) == (0, 0)
    assert table.diff(2).comes == 21


@pytest.mark.few(1)
def test_by_key_it_is_told_what_goes_what_comes_back_and_what_changes(table: Table) -> None:
    table.does(
        "CREATE TABLE {t} (id BIGINT, day STRING, price DOUBLE) {using}",
        "INSERT INTO {t} VALUES (1, 'mo', 1.5), (2, 'mo', 2.5), (3, NULL, 3.5), (4, 'mo', 4.5)",
        "UPDATE {t} SET price = price * 100 WHERE id IN (2, 3)",
        "DELETE FROM {t} WHERE id = 4",
        "INSERT INTO {t} VALUES (5, 'tu', 0), (5, 'tu', 0)",
    )
    found = table.diff(1, "ID", "day")
    assert found.keys == KeyCounts(goes=1, comes=1, changes=2)
    by_key = {tuple(value for _, value in one.key): one for one in found.samples}
    assert list(by_key) == [("2", "mo"), ("3", None), ("4", "mo"), ("5", "tu")]
    assert shown(by_key["3", None].goes) == {("3", None, "350.0"): 1}
    assert shown(by_key["3", None].comes) == {("3", None, "3.5"): 1}
    assert shown(by_key["5", "tu"].goes) == {("5", "tu", "0.0"): 2}
    assert len(table.diff(1, "id", samples=2).samples) == 2
    with pytest.raises(PreconditionError, match=r"db\.t has no column nope in both versions\."):
        table.diff(1, "id", "nope")


@pytest.mark.few(1)
def test_columns_that_only_one_version_has_are_told_and_not_compared(table: Table) -> None:
    table.does(
        f"CREATE TABLE {{t}} (id BIGINT, old STRING, same INT) {{using}} {MAPPED}",
        "INSERT INTO {t} VALUES (1, 'x', 7), (2, NULL, 8)",
        "ALTER TABLE {t} DROP COLUMN old",
        "ALTER TABLE {t} ADD COLUMN `new, odd` ARRAY<INT>",
        "INSERT INTO {t} VALUES (3, 9, array(1))",
    )
    found = table.diff(1)
    assert (found.goes, found.comes) == (1, 0)
    told = {one.name: (one.head, one.target, one.values) for one in found.columns}
    assert told == {"new, odd": ("array<int>", None, 1), "old": (None, "string", 1)}
    (sample,) = found.samples
    assert shown(sample.goes) == {("3", "9"): 1}


@pytest.mark.long
def test_a_column_of_another_type_is_compared_by_value_or_as_text(delta: Table) -> None:
    table = delta
    table.does("CREATE TABLE {t} (id INT, word INT) {using}", "INSERT INTO {t} VALUES (1, 10), (2, 20)")
    anew = table.spark.sql("SELECT 1L AS id, '10' AS word UNION ALL SELECT 2L, 'twenty'")
    writer = anew.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.save(hadoop_path(table.location))
    found = table.diff(1)
    assert {(one.name, one.head, one.target) for one in found.columns} == {
        ("id", "bigint", "int"),
        ("word", "string", "int"),
    }
    (sample,) = found.samples
    assert (shown(sample.goes), shown(sample.comes)) == ({("2", "twenty"): 1}, {("2", "20"): 1})


@pytest.mark.long
def test_nested_values_maps_and_numbers_that_are_none_are_compared_too(table: Table) -> None:
    columns = "id INT, m MAP<STRING, INT>, s STRUCT<a: INT, m: MAP<STRING, INT>>, d DOUBLE, b BINARY"
    same = "1, map('a', 1, 'b', 2), named_struct('a', 1, 'm', map('x', 1)), double('NaN'), X'00FF'"
    turned = "1, map('b', 2, 'a', 1), named_struct('a', 1, 'm', map('x', 1)), double('NaN'), X'00FF'"
    other = "1, map('a', 1, 'b', 3), named_struct('a', 1, 'm', map('x', 1)), -0.0D, X'00FE'"
    table.does(f"CREATE TABLE {{t}} ({columns}) {{using}}", f"INSERT INTO {{t}} SELECT {same}")
    table.does(f"INSERT OVERWRITE {{t}} SELECT {turned}")
    found = table.diff(1)
    assert (found.goes, found.comes) == (0, 0)
    table.does(f"INSERT OVERWRITE {{t}} SELECT {other}")
    found = table.diff(1)
    assert (found.goes, found.comes) == (1, 1)
    (sample,) = found.samples
    assert dict(sample.comes[0].values)["b"] == "00FF"


@pytest.fixture(params=mostly_long(["2", "3"], ["2"]))
def merged(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[SparkIceberg]:
    """An Iceberg table whose deletes lie beside its files: by position, or by vector."""
    modes = ", ".join(f"'write.{one}.mode'='merge-on-read'" for one in ("delete", "update", "merge"))
    with iceberg_catalogs(spark, "", tmp_path):
        yield SparkIceberg(spark, "", "by_path", properties=f"'format-version'='{request.param}', {modes}")


def between(table: SparkIceberg, target: int) -> tuple[int, int]:
    asked = DiffRequest(name="t", location=table.location, head=table.seen.version, target=target)
    found = table.engine.row_diff(asked)
    assert (found.rows_head, found.rows_target) == (
        len(table.rows()),
        len(table.rows(f"VERSION AS OF {snapshot_of(table, target)}")),
    )
    return found.goes, found.comes


def snapshot_of(table: SparkIceberg, version: int) -> int:
    java = opened(table.spark, table.heads, table.location).base
    return next(int(one.snapshotId()) for one in java.snapshots() if int(one.sequenceNumber()) == version)


@pytest.mark.long
def test_deletes_of_every_kind_count_in_both_versions(merged: SparkIceberg) -> None:
    merged.append(*range(10))
    merged.append(*range(10, 20))
    merged.sql(f"DELETE FROM {merged} WHERE id IN (3, 13)")
    merged.sql(f"DELETE FROM {merged} WHERE id = 14")
    assert (between(merged, 2), between(merged, 3)) == ((0, 3), (0, 1))
    delete_by_equality(merged, 5, 14)
    merged.append(5, 5)
    assert (between(merged, 4), between(merged, 5)) == ((1, 0), (2, 0)), "one 5 went, two came"
    merged.compact(purge=True, least=1)
    assert merged.seen.deleted_rows == 0 and not merged.seen.deletes
    assert (between(merged, 6), between(merged, 2)) == ((0, 0), (1, 3)), "5 twice; 3, 13 and 14"


def test_files_that_both_have_are_not_read(merged: SparkIceberg) -> None:
    merged.append(*range(10))
    shared = list(merged.folder.glob("data/*.parquet"))
    merged.append(7)
    for one in shared:
        one.write_bytes(b"no Parquet")
    asked = DiffRequest(name="t", location=merged.location, head=2, target=1, samples=0)
    found = merged.engine.row_diff(asked)
    assert (found.rows_head, found.rows_target, found.goes, found.comes) == (11, 10, 1, 0)


def test_columns_that_changed_names_are_compared_by_their_names(iceberg: Table) -> None:
    iceberg.does(
        "CREATE TABLE {t} (id INT, a INT, b INT) {using}",
        "INSERT INTO {t} VALUES (1, 10, 20), (2, 30, 30)",
        "ALTER TABLE {t} RENAME COLUMN a TO c",
        "ALTER TABLE {t} RENAME COLUMN b TO a",
        "ALTER TABLE {t} RENAME COLUMN c TO b",
        "INSERT INTO {t} VALUES (3, 3, 3)",
    )
    found = iceberg.diff(1, "id")
    assert (found.goes, found.comes, found.keys) == (2, 1, KeyCounts(goes=1, comes=0, changes=1))
    assert not found.columns


def test_a_version_that_has_expired_is_told(iceberg: Table) -> None:
    iceberg.does(
        "CREATE TABLE {t} (id INT) {using}", "INSERT INTO {t} VALUES (1)", "INSERT INTO {t} VALUES (2)"
    )
    catalog = iceberg.sql.partition(".")[0]
    iceberg.does(f"CALL {catalog}.system.expire_snapshots('db.t', TIMESTAMP '2999-01-01 00:00:00', 1)")
    with pytest.raises(ExecutionError, match="Version 1 of .* has expired"):
        iceberg.diff(1)


@pytest.mark.long
def test_any_two_versions_of_a_history_differ_as_their_rows_do(delta: Table) -> None:
    table = delta
    table.does(
        f"CREATE TABLE {{t}} (k INT, v INT) {{using}} {VECTORS}",
        "INSERT INTO {t} SELECT CAST(id % 7 AS INT), CAST(id % 3 AS INT) FROM range(60)",
        "UPDATE {t} SET v = v + 1 WHERE k = 3",
        "DELETE FROM {t} WHERE k = 4 AND v = 1",
        "INSERT INTO {t} SELECT 3, 2 FROM range(5)",
        "RESTORE TABLE {t} TO VERSION AS OF 2",
        "INSERT OVERWRITE {t} SELECT k, v % 2 FROM {t}",
    )
    now = table.rows(table.head())
    for version in range(1, table.head()):
        then = table.rows(version)
        found = table.diff(version, samples=100)
        assert (found.goes, found.comes) == ((now - then).total(), (then - now).total()), version
        (sample,) = found.samples
        assert shown(sample.goes) == {(str(k), str(v)): times for (k, v), times in (now - then).items()}
        assert shown(sample.comes) == {(str(k), str(v)): times for (k, v), times in (then - now).items()}
