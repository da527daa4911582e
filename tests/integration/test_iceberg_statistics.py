"""Statistics that Iceberg tables keep of their columns: what the optimizer sees of them, and how long they stay."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from lakewarden.catalog import failpoints
from lakewarden.catalog.errors import ConflictError
from support.builders.spark_iceberg import Make, SparkIceberg
from support.cases import mostly_long
from support.crashes.crashes import points_of
from support.crashes.in_process import killed_here

pytestmark = [pytest.mark.spark, pytest.mark.metastore]


@pytest.fixture(autouse=True)
def cost_based(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.cbo.enabled", "true")
    yield
    spark.conf.unset("spark.sql.cbo.enabled")


def described(make: Make, catalog: str = "by_name", **how: str) -> SparkIceberg:
    """Forty rows in two files, described by run 7."""
    table = make(catalog, **how)
    table.append(*range(20))
    table.append(*range(20, 40))
    assert not table.describe("run-7").skipped
    return table


def distinct(table: SparkIceberg, column: str = "id") -> int | None:
    """How many values the optimizer thinks that a column has; None if it has no idea."""
    plan = table.spark.table(str(table))._jdf.queryExecution().optimizedPlan()
    known = plan.stats().attributeStats()
    for place in range(plan.output().size()):
        attribute = plan.output().apply(place)
        if attribute.name() == column and known.contains(attribute):
            return int(known.apply(attribute).distinctCount().get())
    return None


def told(table: SparkIceberg) -> set[str]:
    """The files of statistics in its folder."""
    metadata = table.folder / "metadata"
    return {one.name for one in (*metadata.glob("*.stats"), *metadata.glob("partition-stats-*.parquet"))}


@pytest.mark.parametrize("catalog", mostly_long(["by_name", "by_path"], ["by_name"]))
def test_the_optimizer_knows_how_many_values_columns_have(make: Make, catalog: str) -> None:
    table = make(catalog)
    table.append(*range(20))
    table.append(*range(20, 40))
    before = table.seen
    assert distinct(table) is None and before.own_statistics is not None
    report = table.describe()
    after = table.seen
    assert report.message == "counted the distinct values of 3 columns (id, part, at)"
    assert (after.version, after.rows) == (before.version, 40) and after.head != before.head
    assert [distinct(table, one) for one in ("id", "part", "at")] == [40, 1, 1]
    again = table.describe("run-8")
    assert again.skipped and "already" in again.message
    table.append(100)
    assert distinct(table) is None, "they are of another snapshot"
    assert not table.describe("run-9").skipped and distinct(table) == 41


@pytest.mark.long
def test_columns_that_their_owner_wants_no_metrics_of_get_none(make: Make) -> None:
    unwanted = "'format-version'='2', 'write.metadata.metrics.column.part'='none'"
    table = described(make, properties=unwanted)
    table.sql(f"ALTER TABLE {table} ADD COLUMN later INT, tags ARRAY<STRING>")
    own = table.seen.own_statistics
    assert own is not None and (own.columns, own.left_out) == (("id", "at", "later"), ("part", "tags"))
    assert [distinct(table, one) for one in ("id", "part", "later")] == [40, None, None]


@pytest.mark.long
def test_partitions_are_described_by_the_same_commit(make: Make) -> None:
    table = described(make, partitioned_by="part")
    table.append(*range(40, 50), part="b")
    before = table.seen
    assert table.describe().files == 2
    (moves,) = table.sql(
        f"SELECT count(*) FROM {table}.metadata_log_entries WHERE latest_snapshot_id IS NOT NULL"
    )
    assert moves[0] == 5, "three appends and two descriptions"
    assert table.seen.version == before.version and len(told(table)) == 4


@pytest.mark.long
def test_what_changes_no_row_keeps_them(make: Make) -> None:
    merge_on_read = (
        "'format-version'='2', 'write.delete.mode'='merge-on-read', 'write.delete.granularity'='partition'"
    )
    table = make("by_name", properties=merge_on_read)
    table.append(*range(20))
    table.append(*range(20, 40))
    table.sql(f"DELETE FROM {table} WHERE id = 1")
    table.sql(f"DELETE FROM {table} WHERE id = 2")
    table.describe()
    version = table.seen.version
    assert distinct(table) == 38
    assert table.care().committed_version != version and distinct(table) == 38, "joined manifests"
    assert table.compact(join=True, least=1000).committed_version and distinct(table) == 38, "joined deletes"
    assert table.compact(purge=True).committed_version and distinct(table) == 38, "compacted"
    assert table.describe().skipped
    table.append(77)
    at = table.seen.at
    table.engine.restore(table.location, requires=at, to=version, apps=(), run_id="0" * 32)
    assert (distinct(table), len(table.rows())) == (38, 38), "rolled back"
    table.vacuum()
    table.vacuum(full=True)
    assert (distinct(table), table.missing(), len(told(table))) == (38, set(), 1)


def test_a_column_that_is_gone_is_not_described_and_breaks_no_query(make: Make) -> None:
    table = described(make, "by_path")  # a metastore refuses such columns
    table.sql(f"ALTER TABLE {table} DROP COLUMN part")
    table.sql(f"INSERT INTO {table} VALUES (100, TIMESTAMP '2026-03-01 12:00:00')")
    table.describe("run-8")
    table.sql(f"ALTER TABLE {table} DROP COLUMN at")
    table.sql(f"ALTER TABLE {table} ADD COLUMN at TIMESTAMP")
    assert table.compact(least=2).committed_version, (
        "it takes over what is known of the columns that are left"
    )
    assert distinct(table) == 41 and distinct(table, "at") is None
    assert len(table.sql(f"SELECT * FROM {table} WHERE id > 3")) == 37
    assert table.describe("run-9").skipped


def test_they_stay_as_long_as_metadata_names_them(make: Make) -> None:
    table = described(make, "by_path", partitioned_by="part")
    first = told(table)
    assert len(first) == 2
    table.vacuum(full=True)
    assert told(table) == first and distinct(table) == 40
    table.append(100)
    table.describe()
    assert len(told(table)) == 4
    table.vacuum()
    table.care(clean=True)
    assert first < told(table), "an older metadata file of the folder names them"
    stray = table.folder / "metadata" / "1-left-by-a-killed-run.stats"
    stray.write_bytes(b"PFA1")
    table.vacuum(full=True)
    assert not stray.exists() and first < told(table)
    for number in range(3):
        table.append(200 + number)
    table.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('write.metadata.previous-versions-max'='1')")
    table.append(300)
    table.care(clean=True)
    table.vacuum(full=True)
    assert first.isdisjoint(told(table)) and (table.missing(), len(table.rows())) == (set(), 45)


def test_whoever_commits_meanwhile_wins_and_nothing_is_left(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make("by_name", partitioned_by="part")
    table.append(*range(20))

    def listener(reached: str) -> None:
        if reached == "iceberg.statistics_computed":
            table.append(1000)

    monkeypatch.setattr(failpoints, "listener", listener)
    with pytest.raises(ConflictError):
        table.describe()
    monkeypatch.undo()
    assert (told(table), distinct(table), len(table.rows())) == (set(), None, 21)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "point",
    mostly_long(
        points_of("test_describing_a_table_that_is_killed_is_made_again"),
        ["iceberg.statistics_computed", "iceberg.statistics_published"],
    ),
)
def test_describing_a_table_that_is_killed_is_made_again(make: Make, point: str) -> None:
    table = make("by_path")
    table.append(*range(20))
    killed_here(point, table.describe)
    assert (table.rows(), table.missing()) == (list(range(20)), set())
    table.describe("run-2")
    assert distinct(table) == 20
    table.vacuum(full=True)
    assert (len(told(table)), distinct(table), table.unnamed()) == (1, 20, set())
