"""Compaction and purging on real tables: the rows stay, the files become few,
hot partitions and writers are left alone."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, PostCommitHookProperties, write_deltalake
from pyspark.sql import SparkSession

from lakewarden.catalog.errors import ConflictError
from lakewarden.catalog.formats.delta.reader import DeltaReader
from lakewarden.catalog.formats.port import DataFile, DeleteFiles, DeleteKind
from lakewarden.catalog.units import MIB
from lakewarden.jobs.actions.compact import Compact
from support.builders.delta_runs import DeltaTableOnDisk

pytestmark = pytest.mark.spark

HOOKS = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
HOUR = timedelta(hours=1)


@pytest.fixture
def table(spark: SparkSession, tmp_path: Path) -> DeltaTableOnDisk:
    return DeltaTableOnDisk(spark, tmp_path / "t ü: x")


def action(table: DeltaTableOnDisk, **changes: object) -> Compact:
    base: dict[str, object] = {
        "requires": table.observe().at,
        "target_bytes": MIB,
        "min_small_files": 4,
        "quiet_seconds": 600,
    }
    return Compact(**(base | changes))  # type: ignore[arg-type]  # by name


def later(table: DeltaTableOnDisk) -> datetime:
    """A moment at which nobody has written for an hour."""
    return table.observe().committed_at + HOUR


def files_by_partition(table: DeltaTableOnDisk) -> dict[tuple[str | None, ...], list[DataFile]]:
    found: dict[tuple[str | None, ...], list[DataFile]] = {}
    for file in DeltaReader().files(table.location):
        found.setdefault(tuple(value for _, value in file.partition), []).append(file)
    return found


STRINGS = ("'a/b c'", "'q=''1'''", "'back\\\\slash'", "'ü:?%41'", "NULL")
TYPED = {
    "i INT": "-1",
    "d DATE": "DATE'2026-11-21'",
    "t TIMESTAMP": "TIMESTAMP'2026-11-21 10:11:12.123456'",
    "n TIMESTAMP_NTZ": "TIMESTAMP_NTZ'2026-11-21 10:11:12'",
    "x DECIMAL(10,2)": "CAST(1.5 AS DECIMAL(10,2))",
    "f DOUBLE": "0.1D",
    "b BOOLEAN": "true",
}


@pytest.mark.long
@pytest.mark.parametrize(
    ("columns", "partitions", "lonely"),
    [
        pytest.param(
            ["`odd ``name` STRING"], [[text] for text in STRINGS], ["'lonely'"], id="strings, column mapping"
        ),
        pytest.param(
            [*TYPED],
            [[*TYPED.values()], ["NULL"] * len(TYPED)],
            ["7", *["NULL"] * 6],
            id="other types",
            marks=pytest.mark.long,
        ),
    ],
)
def test_partitions_are_found_again(
    table: DeltaTableOnDisk, columns: list[str], partitions: list[list[str]], lonely: list[str]
) -> None:
    names = ", ".join(column.rsplit(" ", 1)[0] for column in columns)
    mapping = "TBLPROPERTIES ('delta.columnMapping.mode' = 'name')" if "odd" in names else ""
    table.sql(
        f"CREATE TABLE {{t}} (id BIGINT, {', '.join(columns)}) USING delta PARTITIONED BY ({names}) {mapping}"
    )
    for values in partitions:
        table.sql(f"INSERT INTO {{t}} SELECT /*+ REPARTITION(4) */ id, {', '.join(values)} FROM range(8)")
    # One file alone is no reason to rewrite its partition: so the others have to be named.
    table.sql(f"INSERT INTO {{t}} SELECT 100, {', '.join(lonely)}")
    rows, head = table.rows(), table.observe().version
    report = table.run(action(table), now=later(table))
    assert (report.committed_version, report.files) == (head + 1, 4 * len(partitions))
    assert table.rows() == rows
    assert [len(files) for files in files_by_partition(table).values()] == [1] * (len(partitions) + 1)


@pytest.mark.long
def test_only_cold_partitions_are_rewritten_and_only_once(table: DeltaTableOnDisk) -> None:
    table.sql("CREATE TABLE {t} (id BIGINT, p STRING) USING delta PARTITIONED BY (p)")
    for part in ("cold", "hot", "few"):
        count = 2 if part == "few" else 8
        table.sql(f"INSERT INTO {{t}} SELECT /*+ REPARTITION({count}) */ id, '{part}' FROM range(100)")
    written = table.observe().committed_at
    table.sql("DELETE FROM {t} WHERE p = 'hot' AND id = 5")
    now = written + timedelta(milliseconds=600_001)  # the deletion came within the last ten minutes
    rows, head = table.rows(), table.observe().version
    report = table.run(action(table), now=now)
    assert {part[0]: len(files) for part, files in files_by_partition(table).items()} == {
        "cold": 1,
        "hot": 8,
        "few": 2,
    }
    assert (report.files, report.committed_version) == (8, head + 1) and table.rows() == rows
    commit = next(DeltaReader().commits(table.location, after=head))
    assert commit.operation == "OPTIMIZE" and commit.run_id is not None and not commit.data_change
    again = table.run(action(table), now=now)
    assert again.skipped and table.observe().version == head + 1


def test_files_reach_the_target_size(table: DeltaTableOnDisk) -> None:
    table.sql(
        "CREATE TABLE {t} USING delta AS SELECT /*+ REPARTITION(24) */ id, uuid() AS text FROM range(40000)"
    )
    assert table.observe().files == 24
    table.run(action(table, target_bytes=MIB // 2), now=later(table))
    sizes = [file.size_bytes for file in DeltaReader().files(table.location)]
    assert 3 <= len(sizes) <= 6 and max(sizes) <= MIB


def test_deletion_vectors_are_purged(table: DeltaTableOnDisk) -> None:
    table.sql(
        "CREATE TABLE {t} (id BIGINT, p STRING) USING delta PARTITIONED BY (p) "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    )
    table.sql("INSERT INTO {t} SELECT /*+ REPARTITION(2) */ id, 'a' FROM range(1000)")
    table.sql("INSERT INTO {t} SELECT /*+ REPARTITION(6) */ id, 'b' FROM range(1000)")
    table.sql("DELETE FROM {t} WHERE id % 100 = 3")
    seen, rows = table.observe(), table.rows()
    assert seen.deletion_vectors == 8 and seen.stored_rows == 2000
    assert seen.deletes == (DeleteFiles(kind=DeleteKind.VECTOR, files=8, rows=20),)
    report = table.run(action(table, purge=True, target_bytes=20_000), now=later(table))
    after = table.observe()
    assert after.deletion_vectors == 0 and after.deleted_rows == 0 and table.rows() == rows
    assert after.deletes == () and after.stored_rows == 1980
    assert report.committed_version == after.version and report.files == 8
    assert {one.run_id for one in DeltaReader().commits(table.location, after=seen.version)} != {None}


@pytest.mark.long
def test_clustered_tables_are_compacted_without_a_predicate(table: DeltaTableOnDisk) -> None:
    table.sql("CREATE TABLE {t} (id BIGINT) USING delta CLUSTER BY (id)")
    for i in range(5):
        table.sql(f"INSERT INTO {{t}} SELECT /*+ REPARTITION(2) */ id + {i} FROM range(50)")
    rows = table.rows()
    report = table.run(action(table), now=later(table))
    assert report.files == 10 and table.observe().files == 1 and table.rows() == rows


def test_a_writer_that_commits_in_between_wins(table: DeltaTableOnDisk) -> None:
    table.sql("CREATE TABLE {t} USING delta AS SELECT /*+ REPARTITION(8) */ id FROM range(100)")

    def append() -> None:
        write_deltalake(
            str(table.folder), pa.table({"id": [1]}), mode="append", post_commithook_properties=HOOKS
        )

    with pytest.raises(ConflictError, match="moved past version 0"):
        table.run(action(table), now=later(table), still_ours=append)
    assert table.observe().files == 9


@contextmanager
def in_the_middle(table: DeltaTableOnDisk, deed: Callable[[], object]) -> Iterator[None]:
    """Somebody who does something once, when the first files of a compaction have been written."""
    before = set(table.folder.rglob("*.parquet"))

    def work() -> None:
        while set(table.folder.rglob("*.parquet")) == before:
            time.sleep(0.01)
        deed()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    yield
    thread.join()


@pytest.fixture
def wide(table: DeltaTableOnDisk) -> DeltaTableOnDisk:
    """A table with so many partitions to compact that it takes a while."""
    table.sql("CREATE TABLE {t} (id BIGINT, p BIGINT) USING delta PARTITIONED BY (p)")
    table.sql("INSERT INTO {t} SELECT /*+ REPARTITION(4) */ id, id % 16 FROM range(1600)")
    return table


def test_beside_writers_it_commits_behind_what_others_append(wide: DeltaTableOnDisk) -> None:
    planned, now = action(wide, beside_writers=True), later(wide)
    row = pa.table({"id": [1600], "p": [0]})

    def append() -> None:
        write_deltalake(str(wide.folder), row, mode="append", post_commithook_properties=HOOKS)

    with in_the_middle(wide, append):
        report = wide.run(planned, now=now)
    assert (report.committed_version, report.files) == (planned.requires.version + 2, 64)
    assert report.message.endswith(", behind 1 commit that came meanwhile and left these alone")
    assert [len(files) for files in files_by_partition(wide).values()].count(1) == 15
    assert [row[0] for row in wide.rows()] == sorted(range(1601), key=lambda one: f"Row(id={one}, ")


@pytest.mark.long
def test_beside_writers_it_gives_way_to_one_who_changes_the_same_files(wide: DeltaTableOnDisk) -> None:
    planned, now = action(wide, beside_writers=True), later(wide)

    def delete() -> None:
        DeltaTable(str(wide.folder)).delete("p = 7 AND id = 7", post_commithook_properties=HOOKS)

    with in_the_middle(wide, delete), pytest.raises(ConflictError):
        wide.run(planned, now=now)
    assert wide.observe().version == planned.requires.version + 1 and wide.observe().files == 64
    assert {row[0] for row in wide.rows()} == set(range(1600)) - {7}
