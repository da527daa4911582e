"""What a rollback would do to the rows of a table, compared on Spark: as a multiset, by key, across schemas."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import PreconditionError
from lakewarden.catalog.storage.file_store import canonical
from lakewarden.jobs.engines.delta.version_diff import row_diff
from lakewarden.jobs.engines.spark.names import hadoop_path, table_at
from lakewarden.jobs.runs.row_diff import DiffRequest, KeyCounts, RowDiff, SampleRow

pytestmark = pytest.mark.spark
VECTORS = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
MAPPED = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')"


class Table:
    """A table of its own, by statements with `{t}` for its name."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.location = spark, canonical(str(folder))
        self.sql = table_at(self.location)

    def does(self, *statements: str) -> None:
        for one in statements:
            self.spark.sql(one.replace("{t}", self.sql))

    def head(self) -> int:
        row = self.spark.sql(f"DESCRIBE HISTORY {self.sql} LIMIT 1").first()
        assert row is not None
        return int(row["version"])

    def rows(self, version: int) -> "Counter[Any]":
        return Counter(
            tuple(row)
            for row in self.spark.sql(f"SELECT * FROM {self.sql} VERSION AS OF {version}").collect()
        )

    def diff(self, target: int, *keys: str, samples: int = 10) -> RowDiff:
        request = DiffRequest(
            name="db.t", location=self.location, head=self.head(), target=target, keys=keys, samples=samples
        )
        return row_diff(self.spark, request)


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> Table:
    return Table(spark, tmp_path / "a table, 100%")


def shown(rows: tuple[SampleRow, ...]) -> "Counter[tuple[str | None, ...]]":
    return Counter({tuple(value for _, value in row.values): row.times for row in rows})


def test_equal_rows_count_as_often_as_they_are_there(table: Table) -> None:
    table.does(
        "CREATE TABLE {t} (id BIGINT, name STRING) USING delta",
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


def test_rows_that_deletion_vectors_take_away_come_back_and_compaction_is_no_difference(table: Table) -> None:
    table.does(
        f"CREATE TABLE {{t}} (id BIGINT) USING delta {VECTORS}",
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


def test_by_key_it_is_told_what_goes_what_comes_back_and_what_changes(table: Table) -> None:
    table.does(
        "CREATE TABLE {t} (id BIGINT, day STRING, price DOUBLE) USING delta",
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


def test_columns_that_only_one_version_has_are_told_and_not_compared(table: Table) -> None:
    table.does(
        f"CREATE TABLE {{t}} (id BIGINT, old STRING, same INT) USING delta {MAPPED}",
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


def test_a_column_of_another_type_is_compared_by_value_or_as_text(table: Table) -> None:
    table.does("CREATE TABLE {t} (id INT, word INT) USING delta", "INSERT INTO {t} VALUES (1, 10), (2, 20)")
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


def test_nested_values_maps_and_numbers_that_are_none_are_compared_too(table: Table) -> None:
    columns = "id INT, m MAP<STRING, INT>, s STRUCT<a: INT, m: MAP<STRING, INT>>, d DOUBLE, b BINARY"
    same = "1, map('a', 1, 'b', 2), named_struct('a', 1, 'm', map('x', 1)), double('NaN'), X'00FF'"
    turned = "1, map('b', 2, 'a', 1), named_struct('a', 1, 'm', map('x', 1)), double('NaN'), X'00FF'"
    other = "1, map('a', 1, 'b', 3), named_struct('a', 1, 'm', map('x', 1)), -0.0D, X'00FE'"
    table.does(f"CREATE TABLE {{t}} ({columns}) USING delta", f"INSERT INTO {{t}} SELECT {same}")
    table.does(f"INSERT OVERWRITE {{t}} SELECT {turned}")
    found = table.diff(1)
    assert (found.goes, found.comes) == (0, 0)
    table.does(f"INSERT OVERWRITE {{t}} SELECT {other}")
    found = table.diff(1)
    assert (found.goes, found.comes) == (1, 1)
    (sample,) = found.samples
    assert dict(sample.comes[0].values)["b"] == "00FF"


@pytest.mark.long
def test_any_two_versions_of_a_history_differ_as_their_rows_do(table: Table) -> None:
    table.does(
        f"CREATE TABLE {{t}} (k INT, v INT) USING delta {VECTORS}",
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
